//! Records the reads and appends of transactions while they run.

use crate::history::{Log, Stamp};

/// A transaction of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction<K, V> {
    /// The client that ran it.
    pub client: u64,
    /// Its steps, in order.
    pub steps: Vec<Step<K, V>>,
    /// How it ended.
    pub status: Status,
    /// Taken before its first request was sent.
    pub invoked: Stamp,
    /// Taken after its last response arrived; `None` if the outcome is unknown.
    pub returned: Option<Stamp>,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<K, V> {
    /// Appended a value to a list. No other append to this key has the same value.
    Append {
        /// The list.
        key: K,
        /// The value.
        value: V,
    },
    /// Read these values of a list. A read without a response is not a step.
    Read {
        /// The list.
        key: K,
        /// The values, first to last.
        values: Vec<V>,
    },
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was applied as a whole.
    Committed,
    /// Nothing of it was applied.
    Aborted,
    /// Its response was lost.
    Unknown,
}

/// Records a history. Clients share the recorder by reference.
#[derive(Debug)]
pub struct Recorder<K, V> {
    log: Log<Transaction<K, V>>,
}

impl<K, V> Default for Recorder<K, V> {
    fn default() -> Self {
        Self {
            log: Log::default(),
        }
    }
}

impl<K, V> Recorder<K, V> {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a transaction. Call it before the first request is sent.
    pub fn begin(&self, client: u64) -> OpenTransaction<'_, K, V> {
        OpenTransaction {
            recorder: self,
            client,
            invoked: self.log.stamp(),
            steps: Vec::new(),
            ended: false,
        }
    }

    /// The history, without unfinished transactions.
    pub fn into_transactions(self) -> Vec<Transaction<K, V>> {
        self.log.into_entries()
    }
}

/// A running transaction. If it is dropped without an outcome (because its client panicked or was cancelled), it
/// counts as [lost](OpenTransaction::lost).
#[derive(Debug)]
#[must_use = "a transaction ends as committed, aborted or lost"]
pub struct OpenTransaction<'a, K, V> {
    recorder: &'a Recorder<K, V>,
    client: u64,
    invoked: Stamp,
    steps: Vec<Step<K, V>>,
    ended: bool,
}

impl<K, V> OpenTransaction<'_, K, V> {
    /// Records a read of these values.
    pub fn read(&mut self, key: K, values: Vec<V>) {
        self.steps.push(Step::Read { key, values });
    }

    /// Records an append. Call it before the commit is sent.
    pub fn append(&mut self, key: K, value: V) {
        self.steps.push(Step::Append { key, value });
    }

    /// Records that the transaction was applied.
    pub fn committed(mut self) {
        self.end(Status::Committed);
    }

    /// Records that nothing of the transaction was applied.
    pub fn aborted(mut self) {
        self.end(Status::Aborted);
    }

    /// Records that the response to its commit was lost.
    pub fn lost(mut self) {
        self.end(Status::Unknown);
    }

    fn end(&mut self, status: Status) {
        self.ended = true;
        let returned = (status != Status::Unknown).then(|| self.recorder.log.stamp());
        self.recorder.log.push(Transaction {
            client: self.client,
            steps: std::mem::take(&mut self.steps),
            status,
            invoked: self.invoked,
            returned,
        });
    }
}

impl<K, V> Drop for OpenTransaction<'_, K, V> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Status::Unknown);
        }
    }
}
