//! Records what clients did to single keys, while they do it.

use std::fmt::{self, Display};

use crate::history::{Log, Stamp};

/// An operation of a history, with its place in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<K, O> {
    /// Who did it.
    pub client: u64,
    /// What it was done to.
    pub key: K,
    /// What was done and answered; for an unknown outcome, what it does if it takes effect.
    pub operation: O,
    /// Before the request was sent.
    pub invoked: Stamp,
    /// After its answer had come; absent if the outcome is unknown.
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

/// Records a history. Clients share it by reference.
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

    /// Starts an operation: call this before the request is sent. `effect` is what the request does if it
    /// takes effect, for the case that its answer is lost; a read has none.
    pub fn call(&self, client: u64, key: K, effect: Option<O>) -> Call<'_, K, O> {
        Call {
            recorder: self,
            invoked: self.log.stamp(),
            client,
            open: Some((key, effect)),
        }
    }

    /// The history. Operations still under way are not in it.
    pub fn into_events(self) -> Vec<Event<K, O>> {
        self.log.into_entries()
    }
}

/// An operation under way. Dropped without a word about its end (a client that panicked or was
/// cancelled), it counts as [lost](Call::lost).
#[derive(Debug)]
#[must_use = "an operation ends as returned, lost or failed"]
pub struct Call<'a, K, O> {
    recorder: &'a Recorder<K, O>,
    invoked: Stamp,
    client: u64,
    /// Until the end is told.
    open: Option<(K, Option<O>)>,
}

impl<K, O> Call<'_, K, O> {
    /// It was answered: this is what was done and found.
    pub fn returned(mut self, operation: O) {
        let returned = self.recorder.log.stamp();
        if let Some((key, _)) = self.open.take() {
            self.push(key, operation, Some(returned));
        }
    }

    /// Its answer was lost: it may take effect at any later moment, or never.
    pub fn lost(self) {}

    /// It is known to have had no effect, and told nothing.
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
