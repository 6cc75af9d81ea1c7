//! Streams in a transaction: loaded, decided upon, and appended to in the same commit as everything else.

use std::fmt;
use std::sync::Arc;

use floe_store::expr::{Condition, Path};
use floe_store::op::{ConditionCheck, TransactWrite};
use floe_store::{BoxFuture, Item, Text};

use super::Tx;
use super::commit::Failure;
use super::part::Part;
use super::session::Session;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::events::schema::{STREAM, TIP_INDEX, key};
use crate::events::sync::{Change, Guard, Position, Sync, Synced, condition};
use crate::events::{Decider, EventStore, Load, Stream, StreamName, TipLimits};
use crate::request::Budget;
use crate::telemetry::streams as telemetry;

impl Tx {
    /// Loads a stream of the table `events`. That nobody else appends to it meanwhile is checked when the transaction
    /// commits; what is appended to it is written in the same commit as everything else.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when the transaction has loaded the stream before, and as for
    /// [`Stream::query`].
    pub async fn stream<D: Decider>(&self, id: &D::Id) -> Result<StreamRow<'_, D>>
    where
        D::Event: Clone,
    {
        self.stream_in(&self.db().events(), id).await
    }

    /// As [`stream`](Self::stream), in another store of the same database.
    ///
    /// # Errors
    ///
    /// As for [`stream`](Self::stream).
    pub async fn stream_in<D: Decider>(
        &self,
        store: &EventStore,
        id: &D::Id,
    ) -> Result<StreamRow<'_, D>>
    where
        D::Event: Clone,
    {
        let stream = store.stream::<D>(id).load(Load::RequireLeader);
        let name = stream.name()?.clone();
        let slot = self.session().enter_stream(StreamEntry {
            table: store.options().table.clone(),
            name,
            limits: store.options().tip,
            guard: stream.guard(),
            position: None,
            change: None,
            is_loaded: false,
        })?;
        let _forgets = Forgets(self.session(), slot);
        let loaded = stream
            .load_state()
            .await
            .map_err(|error| self.note(error))?;
        self.session().settle_stream(slot, loaded.position.clone());
        Ok(StreamRow {
            tx: self,
            slot,
            version: loaded.version(),
            state: Arc::unwrap_or_clone(loaded.state),
            events: Vec::new(),
            stream,
        })
    }
}

/// Forgets a stream whose loading failed or was given up.
struct Forgets<'s>(&'s Session, usize);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        self.0.forget_stream(self.1);
    }
}

/// A stream in a transaction.
pub struct StreamRow<'tx, D: Decider> {
    tx: &'tx Tx,
    slot: usize,
    stream: Stream<D>,
    state: D::State,
    version: u64,
    events: Vec<D::Event>,
}

impl<D: Decider> fmt::Debug for StreamRow<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StreamRow");
        debug
            .field("stream", &self.stream)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl<D: Decider> StreamRow<'_, D>
where
    D::Event: Clone,
{
    /// The state, with all that was appended here.
    pub const fn state(&self) -> &D::State {
        &self.state
    }

    /// How many events the stream had when it was loaded.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Appends events, when the transaction commits.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when an event has no form that can be stored,
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the transaction has ended.
    pub fn append(&mut self, events: impl IntoIterator<Item = D::Event>) -> Result<()> {
        let before = self.events.len();
        self.events.extend(events);
        let Some(new) = self.events.get(before..).filter(|new| !new.is_empty()) else {
            return Ok(());
        };
        self.state = D::fold(self.state.clone(), new);
        let change = self
            .stream
            .change(self.events.clone(), &self.state, self.version)?;
        self.tx.session().change_stream(self.slot, change)
    }
}

/// A stream that a body has loaded.
#[derive(Debug)]
pub(crate) struct StreamEntry {
    pub(crate) table: String,
    pub(crate) name: StreamName,
    pub(crate) limits: TipLimits,
    pub(crate) guard: Guard,
    pub(crate) position: Option<Position>,
    pub(crate) change: Option<Change>,
    /// Whether it is known where the stream stood.
    pub(crate) is_loaded: bool,
}

impl StreamEntry {
    /// The append, if there is one.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when the Tip would not fit into an item.
    fn sync(&self, etag: &Text) -> Result<Option<Sync<'_>>> {
        let Some(change) = &self.change else {
            return Ok(None);
        };
        let position = self.position.as_ref();
        Sync::new(
            &self.table,
            &self.name,
            position,
            change,
            &self.limits,
            etag.clone(),
        )
        .map(Some)
    }

    /// Somebody else has appended to the stream.
    fn lost_race(&self) -> Failure {
        Failure::Retry(Error::new(
            ErrorKind::TransactionFailed,
            format!("somebody else appended to the stream: stream={}", self.name),
        ))
    }
}

impl Part for StreamEntry {
    fn is_write(&self) -> bool {
        self.change.is_some()
    }

    fn read_only_error(&self) -> Error {
        Error::new(
            ErrorKind::ReadOnly,
            format!(
                "a read-only transaction cannot append: stream={}",
                self.name
            ),
        )
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        vec![(self.table.clone(), "events")]
    }

    fn ensured_by(&self) -> &'static str {
        "ensure_table of the event stores"
    }

    /// Its append, or a check that it is as it was loaded.
    fn writes(&self, etag: &Text) -> Result<Vec<TransactWrite>> {
        if let Some(sync) = self.sync(etag)? {
            return Ok(sync.writes());
        }
        let condition = match &self.position {
            Some(position) => condition(position, self.guard),
            None => Condition::attribute_not_exists(Path::attribute(STREAM)),
        };
        let check = ConditionCheck::new(self.table.as_str(), key(&self.name, TIP_INDEX), condition);
        Ok(vec![check.into()])
    }

    fn refused(&self, _: usize, _: Option<&Item>) -> Failure {
        self.lost_race()
    }

    fn tell_lost(&self, _attempt: u32) {
        telemetry::conflict(&self.table, &self.name);
    }

    fn committed(&self) {
        if let Some(change) = &self.change {
            telemetry::appended(&self.table, &self.name, change.events.len());
        }
    }

    /// One plain write, whose outcome the stream itself tells.
    fn send_alone<'a>(
        &'a self,
        db: &'a Db,
        etag: &Text,
        budget: Budget,
    ) -> Result<Option<BoxFuture<'a, Result<(), Failure>>>> {
        let Some(sync) = self.sync(etag)? else {
            return Ok(None);
        };
        Ok(Some(Box::pin(async move {
            match sync.send(db, &self.name, budget).await {
                Ok(Synced::Written(_)) => Ok(()),
                Ok(Synced::Conflict(_)) => Err(self.lost_race()),
                Err(error) => Err(Failure::of(error)),
            }
        })))
    }
}
