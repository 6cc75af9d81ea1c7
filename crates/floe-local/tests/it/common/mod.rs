//! Helpers for the tests of this crate: engines with a manual clock, and short forms of operations.

#![allow(dead_code, reason = "each test module uses only some helpers")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::env::{ManualClock, Timestamp};
use floe_store::op::{
    ChangeRecord, CreateTable, DeleteItem, DescribeStream, GetItem, GetRecords, GetShardIterator,
    IteratorKind, ListStreams, PutItem, Scan, Shard,
};
use floe_store::{Engine, Env, Item, Result, TableDef};

/// The initial time of every test clock.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) const HOUR: Duration = Duration::from_secs(60 * 60);

/// An engine and its clock.
pub(crate) struct TestStore {
    pub(crate) engine: LocalEngine,
    pub(crate) clock: Arc<ManualClock>,
}

/// Options without background work: a test runs it explicitly.
pub(crate) fn options(clock: &Arc<ManualClock>) -> Options {
    Options::new()
        .env(Env::manual(clock.clone(), 7))
        .background(false)
}

pub(crate) fn memory() -> TestStore {
    let clock = ManualClock::at(START);
    let engine = LocalEngine::memory_with(options(&clock)).unwrap();
    TestStore { engine, clock }
}

pub(crate) fn open(dir: &Path) -> TestStore {
    open_at(dir, ManualClock::at(START))
}

pub(crate) fn open_at(dir: &Path, clock: Arc<ManualClock>) -> TestStore {
    let engine = LocalEngine::open_with(dir, options(&clock)).unwrap();
    TestStore { engine, clock }
}

impl TestStore {
    pub(crate) async fn create(&self, table: TableDef) {
        self.engine
            .create_table(CreateTable::from(table))
            .await
            .unwrap();
    }

    pub(crate) async fn put(&self, table: &str, item: Item) {
        self.engine
            .write_item(PutItem::new(table, item).into())
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, table: &str, key: Item) {
        self.engine
            .write_item(DeleteItem::new(table, key).into())
            .await
            .unwrap();
    }

    pub(crate) async fn get(&self, table: &str, key: Item) -> Option<Item> {
        self.engine
            .get_item(GetItem::new(table, key))
            .await
            .unwrap()
            .item
    }

    /// All items of a table, in the order of a scan.
    pub(crate) async fn items(&self, table: &str) -> Vec<Item> {
        self.scan(Scan::new(table)).await
    }

    /// All entries of an index, in the order of a scan.
    pub(crate) async fn entries(&self, table: &str, index: &str) -> Vec<Item> {
        let mut scan = Scan::new(table);
        scan.index_name = Some(index.to_owned());
        self.scan(scan).await
    }

    async fn scan(&self, mut scan: Scan) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let page = self.engine.scan(scan.clone()).await.unwrap();
            items.extend(page.items);
            match page.last_key {
                Some(key) => scan.start_key = Some(key),
                None => return items,
            }
        }
    }

    /// Runs background work until none is left.
    pub(crate) fn run_background(&self) {
        while self.engine.run_background_once().unwrap() {}
    }

    /// The ARN of a table's latest stream.
    pub(crate) async fn stream_arn(&self, table: &str) -> String {
        let description = self.engine.describe_table(table.to_owned()).await.unwrap();
        description.latest_stream.unwrap().arn
    }

    /// The ARNs of all streams.
    pub(crate) async fn stream_arns(&self) -> Vec<String> {
        let listed = self
            .engine
            .list_streams(ListStreams::default())
            .await
            .unwrap();
        listed
            .streams
            .into_iter()
            .map(|stream| stream.arn)
            .collect()
    }

    pub(crate) async fn shards(&self, arn: &str) -> Vec<Shard> {
        let describe = DescribeStream {
            stream_arn: arn.to_owned(),
            ..Default::default()
        };
        self.engine.describe_stream(describe).await.unwrap().shards
    }

    pub(crate) async fn iterator(
        &self,
        arn: &str,
        shard: &Shard,
        kind: IteratorKind,
    ) -> Result<String> {
        let input = GetShardIterator {
            stream_arn: arn.to_owned(),
            shard_id: shard.id.clone(),
            kind,
        };
        self.engine.get_shard_iterator(input).await
    }

    /// A page of records, and the next iterator.
    pub(crate) async fn records(
        &self,
        iterator: &str,
    ) -> Result<(Vec<ChangeRecord>, Option<String>)> {
        let input = GetRecords {
            iterator: iterator.to_owned(),
            limit: None,
        };
        let output = self.engine.get_records(input).await?;
        Ok((output.records, output.next_iterator))
    }

    /// All available records of a stream, read shard by shard like a consumer.
    pub(crate) async fn all_records(&self, arn: &str) -> Vec<ChangeRecord> {
        let mut all = Vec::new();
        for shard in self.shards(arn).await {
            let horizon = IteratorKind::TrimHorizon;
            let mut next = Some(self.iterator(arn, &shard, horizon).await.unwrap());
            while let Some(iterator) = next {
                let (records, after) = self.records(&iterator).await.unwrap();
                // An open shard never ends: read it until a page is empty.
                next = after.filter(|_| !records.is_empty() || shard.ending_sequence.is_some());
                all.extend(records);
            }
        }
        all
    }
}
