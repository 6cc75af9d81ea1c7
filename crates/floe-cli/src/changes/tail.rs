//! `floe changes tail`: the change stream of a table, change by change.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_server::json::write_item_hashed;
use floe_store::op::{
    ChangeRecord, DescribeStream, GetRecords, GetShardIterator, IteratorKind, Shard,
};
use floe_store::{Engine, Item};

use crate::{
    Failure, Opened, Result, Signals, StoreArgs, escaped, item_cell, moment, note, print,
    print_json, write_members,
};

/// How long to wait where nothing has changed.
const POLL: Duration = Duration::from_millis(500);

/// Follow the changes of a table
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe changes tail orders --endpoint http://127.0.0.1:8000
  floe changes tail orders --from-start --once --data ./shop
  floe changes tail orders --json --endpoint http://127.0.0.1:8000 \\
      | jq -r 'select(.kind == \"REMOVE\") | .keys'

A line for each change: time, kind (INSERT, MODIFY, REMOVE), the key, and the item as it is then, as far as the stream \
keeps images. Changes of one item come in their order. They are kept for a day. With --json each line is an object: kind, \
sequence, time_ms, keys, and old and new where there are images, in DynamoDB's JSON. Ctrl-C ends it.")]
pub(super) struct Tail {
    /// The table
    table: String,

    /// Begin with the oldest change that is kept
    #[arg(long)]
    from_start: bool,

    /// End when there is nothing more, instead of waiting
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

/// How far a change stream was read.
struct Reading<'o> {
    engine: &'o dyn Engine,
    arn: String,
    /// Where to go on in each shard that was seen; `None` in one that has ended.
    shards: BTreeMap<String, Option<String>>,
}

impl Tail {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let table = opened.table(&self.table).await?;
        let stream = table.latest_stream.ok_or_else(|| {
                Failure::broken(format!(
                    "the table has no change stream: table={}; it is asked for when the table is made, with --stream",
                    self.table
                ))
            })?;
        let mut reading = Reading {
            engine: opened.engine(),
            arn: stream.arn,
            shards: BTreeMap::new(),
        };
        reading.look(self.from_start).await?;
        if self.once {
            while self.round(&mut reading).await? > 0 {}
            return Ok(());
        }
        let signals = Signals::new()?;
        note("following; Ctrl-C ends it");
        tokio::select! {
            followed = self.follow(&mut reading) => followed,
            () = signals.stop() => Ok(()),
        }
    }

    async fn follow(&self, reading: &mut Reading<'_>) -> Result {
        loop {
            if self.round(reading).await? == 0 {
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// Prints what has changed in all shards since the last round, and returns how many changes that were. What comes after a
    /// shard that has ended is read in the next.
    async fn round(&self, reading: &mut Reading<'_>) -> Result<usize> {
        let mut count = 0;
        for shard in reading.open() {
            let records = reading.next(&shard).await?;
            count += records.len();
            records.iter().for_each(|record| self.print(record));
        }
        let known = reading.shards.len();
        reading.look(true).await?;
        Ok(count + (reading.shards.len() - known))
    }

    fn print(&self, record: &ChangeRecord) {
        if self.at.output.json {
            print_json(&|w| {
                w.object(|w| {
                    write_members!(w;
                        "kind": record.kind.as_str(), "sequence": record.sequence,
                        "time_ms": record.created.as_millis()
                    );
                    write_item_hashed(w.name("keys"), &record.keys);
                    for (name, image) in [("old", &record.old_image), ("new", &record.new_image)] {
                        if let Some(image) = image {
                            write_item_hashed(w.name(name), image);
                        }
                    }
                });
            });
            return;
        }
        let image = record.new_image.as_ref();
        let image = image.map(|image| rest(image, &record.keys));
        let line = format!(
            "{}  {:<6}  {}  {}",
            moment::text(record.created),
            record.kind.as_str(),
            item_cell(&record.keys),
            image.unwrap_or_default()
        );
        print(escaped(line.trim_end()));
    }
}

/// An item without its key, which was printed before.
fn rest(image: &Item, keys: &Item) -> String {
    let others = image.iter().filter(|(name, _)| !keys.contains(name));
    let others: Item = others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    item_cell(&others)
}

impl Reading<'_> {
    /// Finds the shards that were not seen yet, of which the ones before have been read to their ends. They are read from
    /// their starts, or from now on.
    async fn look(&mut self, from_start: bool) -> Result {
        let shards = self.describe().await?;
        let is_there = |id: &String| shards.iter().any(|shard| shard.id == *id);
        for shard in &shards {
            if self.shards.contains_key(&shard.id) {
                continue;
            }
            let parent = shard.parent_id.as_ref().filter(|id| is_there(id));
            let is_read = |parent| matches!(self.shards.get(parent), Some(None));
            if !from_start && shard.ending_sequence.is_some() {
                self.shards.insert(shard.id.clone(), None);
            } else if parent.is_none_or(is_read) {
                let iterator = self.engine.get_shard_iterator(GetShardIterator {
                    stream_arn: self.arn.clone(),
                    shard_id: shard.id.clone(),
                    kind: match from_start {
                        true => IteratorKind::TrimHorizon,
                        false => IteratorKind::Latest,
                    },
                });
                self.shards.insert(shard.id.clone(), Some(iterator.await?));
            }
        }
        Ok(())
    }

    async fn describe(&self) -> Result<Vec<Shard>> {
        let mut shards = Vec::new();
        let mut request = DescribeStream {
            stream_arn: self.arn.clone(),
            start_after: None,
            limit: None,
        };
        loop {
            let page = self.engine.describe_stream(request.clone()).await?;
            shards.extend(page.shards);
            match page.last_shard_id {
                None => return Ok(shards),
                last => request.start_after = last,
            }
        }
    }

    /// The shards that have not ended.
    fn open(&self) -> Vec<String> {
        let open = self.shards.iter().filter(|(_, next)| next.is_some());
        open.map(|(id, _)| id.clone()).collect()
    }

    /// The next changes of a shard.
    async fn next(&mut self, shard: &str) -> Result<Vec<ChangeRecord>> {
        let Some(Some(iterator)) = self.shards.get(shard).cloned() else {
            return Ok(Vec::new());
        };
        let request = GetRecords {
            iterator,
            limit: None,
        };
        let read = self.engine.get_records(request).await?;
        self.shards.insert(shard.to_owned(), read.next_iterator);
        Ok(read.records)
    }
}
