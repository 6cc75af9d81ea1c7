//! What a program wants of a stream: events to append, and in a transaction the streams that its body has loaded.

use floe_store::Text;

use super::keys::StreamName;
use super::limits::TipLimits;
use super::position::Position;
use super::stored::{StoredEvent, StoredUnfold};
use crate::error::{Error, ErrorKind, Result};

/// What shall be written.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) events: Vec<StoredEvent>,
    /// What stands beside the events from then on, instead of what stood there.
    pub(crate) unfolds: Vec<StoredUnfold>,
    /// What must not have changed.
    pub(crate) guard: Guard,
}

/// What must not have changed since a stream was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Its version.
    Version,
    /// Anything: what is written depends on the unfolds.
    Etag,
}

/// The streams that a run of a body has loaded, in their order; none where loading has failed.
#[derive(Default)]
pub(super) struct StreamChanges(pub(super) Vec<Option<StreamEntry>>);

impl StreamChanges {
    /// Records a stream that is being loaded.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been loaded before.
    pub(super) fn enter(&mut self, entry: StreamEntry) -> Result<usize> {
        let is_known = |known: &StreamEntry| known.name == entry.name && known.table == entry.table;
        if self.0.iter().flatten().any(is_known) {
            let name = &entry.name;
            let message = format!("the transaction has loaded this stream before: stream={name}");
            return Err(Error::new(ErrorKind::FetchedTwice, message));
        }
        self.0.push(Some(entry));
        Ok(self.0.len() - 1)
    }

    /// Records where a stream stands.
    pub(super) fn loaded(&mut self, slot: usize, position: Option<Position>) {
        if let Some(Some(stream)) = self.0.get_mut(slot) {
            stream.position = position;
            stream.is_loaded = true;
        }
    }

    /// Forgets a stream that was not loaded after all, so that it can be loaded again.
    pub(super) fn forget(&mut self, slot: usize) {
        if let Some(stream) = self.0.get_mut(slot) {
            stream.take_if(|stream| !stream.is_loaded);
        }
    }

    /// Records what is appended to a stream, in place of what was recorded before.
    pub(super) fn change(&mut self, slot: usize, change: Change) {
        if let Some(Some(stream)) = self.0.get_mut(slot) {
            stream.change = Some(change);
        }
    }
}

/// A stream that a body has loaded.
#[derive(Debug)]
pub(super) struct StreamEntry {
    pub(super) table: String,
    pub(super) name: StreamName,
    pub(super) limits: TipLimits,
    pub(super) guard: Guard,
    pub(super) position: Option<Position>,
    pub(super) change: Option<Change>,
    /// Whether it is known where the stream stood.
    pub(super) is_loaded: bool,
    /// The id of the commit, once there is one.
    pub(super) etag: Option<Text>,
}
