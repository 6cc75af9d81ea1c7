//! Records the operations of clients on single keys while they run.

use std::fmt::{self, Display};

use crate::history::{Log, Stamp};

/// An operation of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<K, O> {
    /// The client that ran it.
    pub client: u64,
    /// The key.
    pub key: K,
    /// The operation with its response; if the outcome is unknown, its effect.
    pub operation: O,
    /// Taken before the request was sent.
    pub invoked: Stamp,
    /// Taken after the response arrived; `None` if the outcome is unknown.
    pub returned: Option<Stamp>,
}

impl<K, O: Display> Display for Event<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (client, invoked) = (self.client, self.invoked);
        match self.returned {
            Some(returned) => write!(f, "client {client} [{invoked}..{returned}] ")?,
            None => write!(f, "client {client} [{invoked}..unknown] ")?,
        }
        self.operation.fmt(f)
    }
}

/// Records a history. Clients share the recorder by reference.
#[derive(Debug)]
pub struct Recorder<K, O> {
    log: Log<Event<K, O>>,
}

impl<K, O> Default for Recorder<K, O> {
    fn default() -> Self {
        Self {
            log: Log::default(),
        }
    }
}

impl<K, O> Recorder<K, O> {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an operation. Call it before the request is sent. `effect` is the effect of the request if its
    /// response is lost; `None` for reads.
    pub fn call(&self, client: u64, key: K, effect: Option<O>) -> Call<'_, K, O> {
        Call {
            recorder: self,
            invoked: self.log.stamp(),
            client,
            open: Some((key, effect)),
        }
    }

    /// The history, without unfinished operations.
    pub fn into_events(self) -> Vec<Event<K, O>> {
        self.log.into_entries()
    }
}

/// A running operation. If it is dropped without an outcome (because its client panicked or was cancelled), it
/// counts as [lost](Call::lost).
#[derive(Debug)]
#[must_use = "an operation ends as returned, lost or failed"]
pub struct Call<'a, K, O> {
    recorder: &'a Recorder<K, O>,
    invoked: Stamp,
    client: u64,
    /// `None` after the outcome was recorded.
    open: Option<(K, Option<O>)>,
}

impl<K, O> Call<'_, K, O> {
    /// Records the operation with its response.
    pub fn returned(mut self, operation: O) {
        let returned = self.recorder.log.stamp();
        if let Some((key, _)) = self.open.take() {
            self.push(key, operation, Some(returned));
        }
    }

    /// Records that the response was lost: the operation may take effect at any later moment, or never.
    pub fn lost(self) {}

    /// Records that the operation had no effect and returned nothing.
    pub fn failed(mut self) {
        self.open = None;
    }

    fn push(&self, key: K, operation: O, returned: Option<Stamp>) {
        self.recorder.log.push(Event {
            client: self.client,
            key,
            operation,
            invoked: self.invoked,
            returned,
        });
    }
}

impl<K, O> Drop for Call<'_, K, O> {
    fn drop(&mut self) {
        if let Some((key, Some(effect))) = self.open.take() {
            self.push(key, effect, None);
        }
    }
}
