//! Replays the change log from its beginning: the old image of every record must be the state after the records before
//! it, and the final state must equal the table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use floe_store::op::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetShardIterator, IteratorKind, Shard,
};
use floe_store::{Engine, Error, Result};

use super::audit_report::{AuditReport, Items};
use super::preload::Preload;
use super::test_table::{Key, TABLE};

/// The state after the records read so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    preload: Preload,
    /// Number of preloaded items found in the log. They are not kept.
    loaded: u64,
    /// All other items.
    items: Items,
    /// The last record read from each shard.
    read: HashMap<String, String>,
    /// The number of the last record over all shards; the first is 1.
    last: u128,
    /// Number of records read.
    pub(super) records: u64,
}

impl Replay {
    /// The state before the first record, for a table with these preloaded items.
    pub(super) fn new(preload: Preload) -> Self {
        Self {
            preload,
            ..Self::default()
        }
    }

    /// Reads the records written since the last call.
    pub(super) async fn read_new_records(
        &mut self,
        engine: &Arc<dyn Engine>,
        findings: &mut AuditReport,
    ) -> Result<()> {
        let description = engine.describe_table(TABLE.to_owned()).await?;
        let stream = description
            .latest_stream
            .ok_or_else(|| Error::Internal("the table has no stream".to_owned()))?;
        let mut numbers = Vec::new();
        // A shard follows its parent, so the changes of an item are read in order.
        for shard in shards(engine, &stream.arn).await? {
            let mut reader = self.reader(engine, &stream.arn, &shard).await?;
            while let Some(records) = reader.next(engine).await? {
                for record in records {
                    numbers.push(self.apply_record(record, &shard, findings));
                }
            }
        }
        self.check_numbers(numbers, findings);
        Ok(())
    }

    /// Compares the state with the items of the table.
    pub(super) fn compare(&self, items: &Items, findings: &mut AuditReport) {
        let keys: BTreeSet<&Key> = self.items.keys().chain(items.keys()).collect();
        for key in keys {
            if self.items.get(key) != items.get(key) {
                findings.log_gaps += 1;
                findings.note(format!("the replay differs from the table: key={key}"));
            }
        }
        let missing = self.preload.items.abs_diff(self.loaded);
        if missing > 0 {
            findings.log_gaps += missing;
            findings.note(format!(
                "preloaded items are missing in the log: items={missing}"
            ));
        }
    }

    async fn reader(&self, engine: &Arc<dyn Engine>, arn: &str, shard: &Shard) -> Result<Reader> {
        let kind = match self.read.get(&shard.id) {
            Some(last) => IteratorKind::AfterSequenceNumber(last.clone()),
            None => IteratorKind::TrimHorizon,
        };
        Reader::at(engine, arn, shard, kind).await
    }

    /// Applies a record and returns its number.
    fn apply_record(
        &mut self,
        record: ChangeRecord,
        shard: &Shard,
        findings: &mut AuditReport,
    ) -> u128 {
        self.records += 1;
        let number = record.sequence.parse().unwrap_or_default();
        self.read.insert(shard.id.clone(), record.sequence.clone());
        if let Some(fault) = self.apply(record) {
            findings.log_gaps += 1;
            findings.note(format!("{fault}: sequence={number}"));
        }
        number
    }

    fn apply(&mut self, record: ChangeRecord) -> Option<&'static str> {
        let Some(key) = Key::of(&record.keys) else {
            return Some("record without a key");
        };
        let wanted_kind = match (&record.old_image, &record.new_image) {
            (None, Some(_)) => ChangeKind::Insert,
            (Some(_), Some(_)) => ChangeKind::Modify,
            (Some(_), None) => ChangeKind::Remove,
            (None, None) => return Some("record without a change"),
        };
        if record.kind != wanted_kind {
            return Some("record of the wrong kind");
        }
        if self.preload.holds(&key) {
            self.loaded += 1;
            let is_loaded = record.new_image == Some(self.preload.item(&key));
            return (!is_loaded || record.old_image.is_some())
                .then_some("wrong record of a preloaded item");
        }
        let old = match record.new_image {
            Some(new) => self.items.insert(key, new),
            None => self.items.remove(&key),
        };
        (old != record.old_image).then_some("old image differs from the replayed state")
    }

    /// Checks that the records of all shards are numbered without gaps.
    fn check_numbers(&mut self, mut numbers: Vec<u128>, findings: &mut AuditReport) {
        numbers.sort_unstable();
        for number in numbers {
            let last = std::mem::replace(&mut self.last, number);
            if last + 1 != number {
                findings.log_gaps += 1;
                findings.note(format!("gap in the log: after={last} next={number}"));
            }
        }
    }
}

/// A reader of the records of a shard.
pub(super) struct Reader(Option<String>);

impl Reader {
    /// Creates a reader at a position.
    pub(super) async fn at(
        engine: &Arc<dyn Engine>,
        arn: &str,
        shard: &Shard,
        kind: IteratorKind,
    ) -> Result<Self> {
        let input = GetShardIterator {
            stream_arn: arn.to_owned(),
            shard_id: shard.id.clone(),
            kind,
        };
        let iterator = engine.get_shard_iterator(input).await?;
        Ok(Self(Some(iterator)))
    }

    /// Returns the next records, or `None` at the current end.
    pub(super) async fn next(
        &mut self,
        engine: &Arc<dyn Engine>,
    ) -> Result<Option<Vec<ChangeRecord>>> {
        let Some(iterator) = self.0.take() else {
            return Ok(None);
        };
        let input = GetRecords {
            iterator,
            limit: None,
        };
        let output = engine.get_records(input).await?;
        self.0 = output.next_iterator;
        Ok((!output.records.is_empty()).then_some(output.records))
    }
}

/// Returns all shards of a stream, each after its parent.
pub(super) async fn shards(engine: &Arc<dyn Engine>, arn: &str) -> Result<Vec<Shard>> {
    let mut all = Vec::new();
    let mut input = DescribeStream {
        stream_arn: arn.to_owned(),
        ..DescribeStream::default()
    };
    loop {
        let page = engine.describe_stream(input.clone()).await?;
        all.extend(page.shards);
        if page.last_shard_id.is_none() {
            return Ok(all);
        }
        input.start_after = page.last_shard_id;
    }
}
