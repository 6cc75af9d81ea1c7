//! Appends through a decider.

use std::time::Duration;

use floe::Db;
use floe::events::{Caching, EventStore, Load};

use super::append::{Own, Subject};
use super::data::{Entry, Ledger};
use super::{Failure, Sent};

/// Room for the streams of all tasks, and for some that are done.
const CACHE_BYTES_MAX: usize = 1 << 20;

pub(super) struct Streams(EventStore);

impl Streams {
    pub(super) fn new(db: &Db) -> Self {
        let caching = Caching::Sliding(Duration::from_secs(60));
        Self(db.events().cached(caching, CACHE_BYTES_MAX))
    }
}

impl Subject for Streams {
    async fn append(&self, own: &Own) -> Sent<()> {
        let load = match own.version {
            0 => Load::AssumeEmpty,
            _ => Load::AnyCached,
        };
        let stream = self.0.stream::<Ledger>(&own.id).load(load);
        stream.transact(|_| Ok::<_, Failure>([Entry::new()])).await
    }
}
