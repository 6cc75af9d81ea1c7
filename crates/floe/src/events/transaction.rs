//! Streams in a transaction: loaded, decided upon, and appended to in the same commit as everything else.

use std::fmt;
use std::sync::Arc;

use floe_store::expr::{Condition, Path};
use floe_store::op::{ConditionCheck, TransactWrite};
use floe_store::{Item, Text};

use super::position::Position;
use super::schema::{STREAM, TIP_INDEX, key};
use super::sync::{Change, Guard, Sync, Synced, condition};
use super::{Decider, EventStore, Load, Stream, StreamName, TipLimits};
use crate::error::{Error, ErrorKind, Result};
use crate::events::telemetry;
use crate::tx::Tx;
use crate::tx::part::Failure;
use crate::tx::part::{Alone, AloneFailure, CommitId, Part, PartWrite, Refusal, SentAlone};
use crate::tx::session::{Changes, PartContext, Session};

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
        let entry = StreamEntry {
            table: store.options().table.clone(),
            name,
            limits: store.options().tip,
            guard: stream.guard(),
            position: None,
            change: None,
            is_loaded: false,
            etag: None,
        };
        let session = self.session();
        let slot = session.with(|streams: &mut StreamChanges| streams.enter(entry))??;
        let _forgets = Forgets(session, slot);
        let loaded = stream
            .load_state()
            .await
            .map_err(|error| self.note(error))?;
        let position = loaded.position.clone();
        session.settle(|streams: &mut StreamChanges| streams.loaded(slot, position));
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
        let Self(session, slot) = self;
        session.settle(|streams: &mut StreamChanges| streams.forget(*slot));
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
        let session = self.tx.session();
        session.with(|streams: &mut StreamChanges| streams.change(self.slot, change))
    }
}

/// The streams that a run of a body has loaded, in their order; none where loading has failed.
#[derive(Default)]
struct StreamChanges(Vec<Option<StreamEntry>>);

impl StreamChanges {
    /// Records a stream that is being loaded.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been loaded before.
    fn enter(&mut self, entry: StreamEntry) -> Result<usize> {
        let is_known = |known: &StreamEntry| known.name == entry.name && known.table == entry.table;
        if self.0.iter().flatten().any(is_known) {
            let name = &entry.name;
            return Err(Error::new(
                ErrorKind::FetchedTwice,
                format!("the transaction has loaded this stream before: stream={name}"),
            ));
        }
        self.0.push(Some(entry));
        Ok(self.0.len() - 1)
    }

    /// Records where a stream stands.
    fn loaded(&mut self, slot: usize, position: Option<Position>) {
        if let Some(Some(stream)) = self.0.get_mut(slot) {
            stream.position = position;
            stream.is_loaded = true;
        }
    }

    /// Forgets a stream that was not loaded after all, so that it can be loaded again.
    fn forget(&mut self, slot: usize) {
        if let Some(stream) = self.0.get_mut(slot) {
            stream.take_if(|stream| !stream.is_loaded);
        }
    }

    /// Records what is appended to a stream, in place of what was recorded before.
    fn change(&mut self, slot: usize, change: Change) {
        if let Some(Some(stream)) = self.0.get_mut(slot) {
            stream.change = Some(change);
        }
    }
}

impl Changes for StreamChanges {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        let loaded = self.0.into_iter().flatten();
        let loaded = loaded.filter(|stream| stream.is_loaded);
        Ok(loaded.map(|stream| Box::new(stream) as _).collect())
    }
}

/// A stream that a body has loaded.
#[derive(Debug)]
struct StreamEntry {
    table: String,
    name: StreamName,
    limits: TipLimits,
    guard: Guard,
    position: Option<Position>,
    change: Option<Change>,
    /// Whether it is known where the stream stood.
    is_loaded: bool,
    /// The id of the commit, once there is one.
    etag: Option<Text>,
}

impl StreamEntry {
    /// The append, if there is one.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when the Tip would not fit into an item.
    fn sync(&self) -> Result<Option<Sync<'_>>> {
        let (Some(change), Some(etag)) = (&self.change, &self.etag) else {
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

    fn lost_race(&self) -> Refusal {
        Refusal::Lost(Error::new(
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

    fn remedy(&self) -> &'static str {
        "call ensure_table of the event stores"
    }

    fn prepare(&mut self, commit: &CommitId) -> Result<()> {
        self.etag = Some(commit.id.clone());
        Ok(())
    }

    /// Its append, or a check that it is as it was loaded.
    fn writes(&self) -> Result<Vec<PartWrite>> {
        if let Some(sync) = self.sync()? {
            return Ok(sync.weighed_writes());
        }
        let condition = match &self.position {
            Some(position) => condition(position, self.guard),
            None => Condition::attribute_not_exists(Path::attribute(STREAM)),
        };
        let check = ConditionCheck::new(self.table.as_str(), key(&self.name, TIP_INDEX), condition);
        Ok(vec![TransactWrite::from(check).into()])
    }

    fn refused(&self, _: usize, _: Option<&Item>) -> Refusal {
        self.lost_race()
    }

    fn record_lost(&self, _attempt: u32) {
        telemetry::conflict(&self.table, &self.name);
    }

    fn committed(&self) {
        if let Some(change) = &self.change {
            telemetry::appended(&self.table, &self.name, change.events.len());
        }
    }

    /// One plain write, whose outcome the stream itself shows.
    fn send_alone<'a>(&'a mut self, alone: Alone<'a>) -> Option<SentAlone<'a>> {
        if self.change.is_none() || alone.options.exactly_once {
            return None;
        }
        let stream: &Self = self;
        Some(Box::pin(async move {
            let final_ = |error| AloneFailure::from(Failure::Final(error));
            let Some(sync) = stream.sync().map_err(final_)? else {
                return Ok(());
            };
            match sync.send(alone.db, &stream.name, alone.budget).await {
                Ok(Synced::Written(_)) => Ok(()),
                // Its own telemetry has recorded the conflict.
                Ok(Synced::Conflict(_)) => Err(AloneFailure::Refused(stream.lost_race())),
                Err(error) => Err(Failure::of(error).into()),
            }
        }))
    }
}
