//! Streams in transactions: appends become part of the same commit as all other changes.

use std::fmt;
use std::sync::Arc;

use super::changes::{StreamChanges, StreamEntry};
use super::{Decider, EventStore, Load, Stream};
use crate::error::Result;
use crate::tx::Tx;
use crate::tx::session::Session;

impl Tx {
    /// Loads a stream of the table `events`. The commit checks that no other writer has appended to it since, and contains
    /// the events appended to it here.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) if the transaction has already loaded the stream, and as for
    /// [`Stream::query`].
    pub async fn stream<D: Decider>(&self, id: &D::Id) -> Result<StreamRow<'_, D>>
    where
        D::Event: Clone,
    {
        self.stream_in(&self.db().events(), id).await
    }

    /// Like [`stream`](Self::stream), in another store of the same database.
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
        let _forget = ForgetOnDrop(session, slot);
        let loaded = stream
            .load_state()
            .await
            .map_err(|error| self.note_error(error))?;
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

/// Removes a stream whose load failed or was cancelled, so that it can be loaded again.
struct ForgetOnDrop<'s>(&'s Session, usize);

impl Drop for ForgetOnDrop<'_> {
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
    /// The state, including the events appended here.
    pub const fn state(&self) -> &D::State {
        &self.state
    }

    /// The version of the stream when it was loaded.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Appends events in the commit of the transaction.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if an event cannot be encoded,
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the transaction has ended.
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
