//! Appends through a decider.

use std::time::Duration;

use floe::Db;
use floe::events::{Caching, EventStore, Load};

use super::append::{Subject, TaskStream};
use super::data::{Entry, Ledger};
use super::{Failure, TaskResult};

/// Room for the streams of all tasks, and for some finished ones.
const CACHE_BYTES_MAX: usize = 1 << 20;

pub(super) struct Streams(EventStore);

impl Streams {
    pub(super) fn new(db: &Db) -> Self {
        let caching = Caching::Sliding(Duration::from_secs(60));
        Self(db.events().cached(caching, CACHE_BYTES_MAX))
    }
}

impl Subject for Streams {
    async fn append(&self, stream: &TaskStream) -> TaskResult<()> {
        let load = match stream.version {
            0 => Load::AssumeEmpty,
            _ => Load::AnyCached,
        };
        let stream = self.0.stream::<Ledger>(&stream.id).load(load);
        stream.transact(|_| Ok::<_, Failure>([Entry::new()])).await
    }
}
