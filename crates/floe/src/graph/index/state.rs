//! The state of an index: each index has one in each scope, with the version of the function that made it, and
//! whether it is complete. An index of a type of which there is nothing yet is complete from the start.

use floe_store::expr::{Condition, KeyCondition, Path};
use floe_store::op::{PutItem, Query};
use floe_store::{Item, Name, Number, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::keys::type_key;
use crate::graph::reads::Reads;
use crate::graph::schema::IndexDef;
use crate::graph::steps::send;
use crate::graph::stored::{ID, SCOPE, SCOPE_TYPE_KEY, index_state_key};

const STATE_VERSION: Name = Name::new_static("_version");
const IS_READY: Name = Name::new_static("_is_ready");
const CURSOR: Name = Name::new_static("_cursor");
const DONE: Name = Name::new_static("_done");

/// The state of an index in a scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(super) version: u64,
    pub(super) is_ready: bool,
    pub(super) cursor: Option<Item>,
    pub(super) done: u64,
}

impl State {
    pub(super) fn of_item(item: &Item) -> Self {
        let number = |name: &Name| item.get(name).and_then(Value::as_n)?.to_u64();
        Self {
            version: number(&STATE_VERSION).unwrap_or(0),
            is_ready: item.get(&IS_READY) == Some(&Value::Bool(true)),
            cursor: item.get(&CURSOR).and_then(Value::as_m).cloned(),
            done: number(&DONE).unwrap_or(0),
        }
    }

    /// The error of a query of an index that is not complete.
    pub(crate) fn refused(&self, scope: &str, index: &IndexDef) -> Error {
        let (name, expected, actual, done) = (&index.name, index.version, self.version, self.done);
        Error::new(
            ErrorKind::IndexNotReady,
            format!(
                "the index is not complete; rebuild it, or ask for a scan: index={name} scope={scope} \
                 expected={expected} actual={actual} entities={done}"
            ),
        )
    }

    fn to_item(&self, scope: &str, index: &IndexDef) -> Item {
        let mut item = index_state_key(scope, &index.name)
            .with(SCOPE, scope)
            .with(STATE_VERSION, Number::from(self.version))
            .with(IS_READY, self.is_ready)
            .with(DONE, Number::from(self.done));
        if let Some(cursor) = &self.cursor {
            item.insert(CURSOR, Value::M(cursor.clone()));
        }
        item
    }
}

/// Takes note of the indexes of a type before the first entity of it is written.
pub(crate) async fn begin(reads: &Reads<'_>, scope: &str, type_name: &str) -> Result<()> {
    for index in reads.schema().indexes_of(type_name) {
        incomplete(reads, scope, index).await?;
    }
    Ok(())
}

/// What an index lacks; `None` if it is complete.
pub(crate) async fn incomplete(
    reads: &Reads<'_>,
    scope: &str,
    index: &IndexDef,
) -> Result<Option<State>> {
    let schema = reads.schema();
    if schema.is_ready(scope, index) {
        return Ok(None);
    }
    let key = index_state_key(scope, &index.name);
    let item = reads.item(&schema.entities(), &key).await?;
    let state = match &item {
        Some(item) => State::of_item(item),
        None if is_empty(reads, scope, index).await? => {
            let state = State {
                version: index.version,
                is_ready: true,
                ..State::default()
            };
            match save_new(reads, scope, index, &state).await? {
                true => state,
                false => State::default(),
            }
        }
        None => State::default(),
    };
    if state.is_ready && state.version == index.version {
        schema.note_ready(scope, index);
        return Ok(None);
    }
    Ok(Some(state))
}

async fn is_empty(reads: &Reads<'_>, scope: &str, index: &IndexDef) -> Result<bool> {
    let query = of_type(reads, scope, &index.type_name).limit(1);
    Ok(reads.page(&query).await?.items.is_empty())
}

pub(super) fn of_type(reads: &Reads<'_>, scope: &str, type_name: &str) -> Query {
    let schema = reads.schema();
    let key = KeyCondition::partition(SCOPE_TYPE_KEY, type_key(scope, type_name));
    Query::new(schema.entities(), key).index(schema.by_type())
}

/// Notes the first state of an index, unless somebody else was faster.
async fn save_new(reads: &Reads<'_>, scope: &str, index: &IndexDef, state: &State) -> Result<bool> {
    let is_new = Condition::attribute_not_exists(Path::attribute(ID));
    let put = PutItem::new(reads.schema().entities(), state.to_item(scope, index));
    let put = put.condition(is_new);
    Ok(send(reads.db, vec![put.into()]).await?.is_applied())
}

pub(super) async fn save(
    reads: &Reads<'_>,
    scope: &str,
    index: &IndexDef,
    state: &State,
) -> Result<()> {
    // A newer program may have begun to rebuild it for its own function.
    let is_older = Condition::le(Path::attribute(STATE_VERSION), Value::from(state.version));
    let is_ours = Condition::attribute_not_exists(Path::attribute(ID)).or(is_older);
    let put = PutItem::new(reads.schema().entities(), state.to_item(scope, index));
    let put = put.condition(is_ours);
    match send(reads.db, vec![put.into()]).await?.is_applied() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::IndexNotReady,
            format!(
                "a newer program has this index: index={} expected={}",
                index.name, state.version
            ),
        )),
    }
}
