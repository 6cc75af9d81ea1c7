//! The state of an index in a scope: the version of its function, and whether the index is complete. The index of a
//! type without entities is complete from the start.

use floe_store::expr::{Condition, KeyCondition, Path};
use floe_store::op::{PutItem, Query};
use floe_store::{Item, Name, Value};

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

    fn to_item(&self, scope: &str, index: &IndexDef) -> Item {
        let mut item = index_state_key(scope, &index.name)
            .with(SCOPE, scope)
            .with(STATE_VERSION, self.version)
            .with(IS_READY, self.is_ready)
            .with(DONE, self.done);
        if let Some(cursor) = &self.cursor {
            item.insert(CURSOR, Value::M(cursor.clone()));
        }
        item
    }
}

/// An index in a scope.
#[derive(Clone, Copy)]
pub(crate) struct ScopedIndex<'a> {
    pub(crate) reads: Reads<'a>,
    pub(crate) scope: &'a str,
    pub(crate) def: &'a IndexDef,
}

/// Creates the states of the indexes of a type before its first entity is written.
pub(crate) async fn begin(reads: Reads<'_>, scope: &str, type_name: &str) -> Result<()> {
    for def in reads.schema().indexes_of(type_name) {
        ScopedIndex { reads, scope, def }.incomplete().await?;
    }
    Ok(())
}

impl ScopedIndex<'_> {
    /// The state of the index if it is incomplete; `None` if it is complete.
    pub(crate) async fn incomplete(&self) -> Result<Option<State>> {
        let schema = self.reads.schema();
        if schema.is_ready(self.scope, self.def) {
            return Ok(None);
        }
        let state = match self.state().await? {
            Some(state) => state,
            None => self.first_state().await?,
        };
        if state.is_ready && state.version == self.def.version {
            schema.mark_ready(self.scope, self.def);
            return Ok(None);
        }
        Ok(Some(state))
    }

    /// The error of a query on an incomplete index.
    pub(crate) fn not_ready(&self, state: &State) -> Error {
        let (name, scope, expected) = (&self.def.name, self.scope, self.def.version);
        let (actual, done) = (state.version, state.done);
        let message = format!(
            "the index is incomplete: call rebuild, or allow a scan: index={name} scope={scope} \
                         expected={expected} actual={actual} entities={done}"
        );
        Error::new(ErrorKind::IndexNotReady, message)
    }

    pub(super) async fn state(&self) -> Result<Option<State>> {
        let key = index_state_key(self.scope, &self.def.name);
        let item = self
            .reads
            .item(&self.reads.schema().entities(), &key)
            .await?;
        Ok(item.as_ref().map(State::of_item))
    }

    /// Stores the first state of the index: complete, if there are no entities yet. Another process may have stored one
    /// before.
    async fn first_state(&self) -> Result<State> {
        let query = self.of_type().limit(1);
        let is_empty = self.reads.page(&query).await?.items.is_empty();
        let complete = State {
            version: self.def.version,
            is_ready: true,
            ..State::default()
        };
        let is_new = Condition::attribute_not_exists(Path::attribute(ID));
        if is_empty && self.put(&complete, is_new).await? {
            Ok(complete)
        } else {
            Ok(State::default())
        }
    }

    /// A query for all entities of the type.
    pub(super) fn of_type(&self) -> Query {
        let schema = self.reads.schema();
        let name = type_key(self.scope, &self.def.type_name);
        let key = KeyCondition::partition(SCOPE_TYPE_KEY, name);
        Query::new(schema.entities(), key).index(schema.by_type())
    }

    pub(super) async fn save(&self, state: &State) -> Result<()> {
        // A newer program may have started a rebuild for its own function.
        let is_older = Condition::le(Path::attribute(STATE_VERSION), Value::from(state.version));
        let is_ours = Condition::attribute_not_exists(Path::attribute(ID)).or(is_older);
        if self.put(state, is_ours).await? {
            return Ok(());
        }
        let (name, expected) = (&self.def.name, state.version);
        let message =
            format!("a newer program owns the index state: index={name} expected={expected}");
        Err(Error::new(ErrorKind::IndexNotReady, message))
    }

    async fn put(&self, state: &State, condition: Condition) -> Result<bool> {
        let item = state.to_item(self.scope, self.def);
        let put = PutItem::new(self.reads.schema().entities(), item).condition(condition);
        Ok(send(self.reads.db, vec![put.into()]).await?.is_applied())
    }
}
