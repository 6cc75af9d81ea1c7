//! Records what transactions read and appended, while they do it.

use crate::history::{Log, Stamp};

/// A transaction of a history, with its place in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction<K, V> {
    /// Who ran it.
    pub client: u64,
    /// What it did, in order.
    pub steps: Vec<Step<K, V>>,
    /// How it ended.
    pub status: Status,
    /// Before its first request was sent.
    pub invoked: Stamp,
    /// After its last answer had come; absent if the outcome is unknown.
    pub returned: Option<Stamp>,
}

/// What a transaction did to one key.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<K, V> {
    /// Put a value at the end of the list. No other append to this key has the same value.
    Append {
        /// The list.
        key: K,
        /// The value.
        value: V,
    },
    /// Found these values in the list. A read that was not answered is no step.
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
    /// It is known that nothing of it was applied.
    Aborted,
    /// Its answer was lost.
    Unknown,
}

/// Records a history. Clients share it by reference.
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

    /// Starts a transaction: call this before its first request is sent.
    pub fn begin(&self, client: u64) -> OpenTransaction<'_, K, V> {
        OpenTransaction {
            recorder: self,
            client,
            invoked: self.log.stamp(),
            steps: Vec::new(),
            ended: false,
        }
    }

    /// The history. Transactions still under way are not in it.
    pub fn into_transactions(self) -> Vec<Transaction<K, V>> {
        self.log.into_entries()
    }
}

/// A transaction under way. Dropped without a word about its end (a client that panicked or was
/// cancelled), it counts as [lost](OpenTransaction::lost).
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
    /// It found these values.
    pub fn read(&mut self, key: K, values: Vec<V>) {
        self.steps.push(Step::Read { key, values });
    }

    /// It appends this value. Tell it before the commit is sent.
    pub fn append(&mut self, key: K, value: V) {
        self.steps.push(Step::Append { key, value });
    }

    /// It was applied.
    pub fn committed(mut self) {
        self.end(Status::Committed);
    }

    /// It is known not to have been applied.
    pub fn aborted(mut self) {
        self.end(Status::Aborted);
    }

    /// The answer to its commit was lost.
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
