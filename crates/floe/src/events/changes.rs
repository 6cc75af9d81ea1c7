//! Appends to a stream, and in a transaction the streams that its body has loaded.

use floe_store::Text;

use super::keys::StreamName;
use super::limits::TipLimits;
use super::position::StreamPosition;
use super::stored::{StoredEvent, StoredUnfold};
use crate::error::{Error, ErrorKind, Result};

/// An append.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) events: Vec<StoredEvent>,
    /// The unfolds that replace the stored ones.
    pub(crate) unfolds: Vec<StoredUnfold>,
    /// What must be unchanged.
    pub(crate) guard: Guard,
}

/// What must be unchanged since a stream was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Its version.
    Version,
    /// The whole Tip, because the append depends on the unfolds.
    Etag,
}

/// The streams loaded by a run of a body, in order; `None` where loading failed.
#[derive(Default)]
pub(super) struct StreamChanges(pub(super) Vec<Option<StreamEntry>>);

impl StreamChanges {
    /// Records a stream that is being loaded.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) if it was loaded before.
    pub(super) fn enter(&mut self, entry: StreamEntry) -> Result<usize> {
        let is_known = |known: &StreamEntry| known.name == entry.name && known.table == entry.table;
        if self.0.iter().flatten().any(is_known) {
            let name = &entry.name;
            let message = format!("the transaction has already loaded this stream: stream={name}");
            return Err(Error::new(ErrorKind::FetchedTwice, message));
        }
        self.0.push(Some(entry));
        Ok(self.0.len() - 1)
    }

    /// Records the position of a loaded stream.
    pub(super) fn loaded(&mut self, slot: usize, position: Option<StreamPosition>) {
        if let Some(Some(stream)) = self.0.get_mut(slot) {
            stream.position = position;
            stream.is_loaded = true;
        }
    }

    /// Removes a stream that was not loaded after all, so that it can be loaded again.
    pub(super) fn forget(&mut self, slot: usize) {
        if let Some(stream) = self.0.get_mut(slot) {
            stream.take_if(|stream| !stream.is_loaded);
        }
    }

    /// Records an append to a stream, replacing an earlier one.
    pub(super) fn change(&mut self, slot: usize, change: Change) {
        if let Some(Some(stream)) = self.0.get_mut(slot) {
            stream.change = Some(change);
        }
    }
}

/// A stream loaded by a body.
#[derive(Debug)]
pub(super) struct StreamEntry {
    pub(super) table: String,
    pub(super) name: StreamName,
    pub(super) limits: TipLimits,
    pub(super) guard: Guard,
    pub(super) position: Option<StreamPosition>,
    pub(super) change: Option<Change>,
    /// Whether loading has completed.
    pub(super) is_loaded: bool,
    /// The id of the commit, after it is assigned.
    pub(super) etag: Option<Text>,
}
