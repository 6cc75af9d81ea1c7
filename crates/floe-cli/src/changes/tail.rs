//! `floe changes tail`: prints the change stream of a table.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_store::op::{
    ChangeRecord, DescribeStream, GetRecords, GetShardIterator, IteratorKind, Shard,
};
use floe_store::{Engine, Item};

use crate::{
    Failure, OpenStore, Result, Signals, StoreArgs, escaped, item_cell, note, object, print,
    print_json, utc,
};

/// The pause after a round without changes.
const POLL: Duration = Duration::from_millis(500);

/// Follow the changes of a table
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe changes tail orders --endpoint http://127.0.0.1:8000
  floe changes tail orders --from-start --once --data ./shop
  floe changes tail orders --json --endpoint http://127.0.0.1:8000 \\
      | jq -r 'select(.kind == \"REMOVE\") | .keys'

Prints a line for each change: time, kind (INSERT, MODIFY, REMOVE), key, and new image if the stream has it. Changes of one \
item are printed in order. Change records are kept for 24 hours by default. With --json, each line is an object: kind, \
sequence, time_ms, keys, and the images old and new if the stream has them. Stop with Ctrl-C.")]
pub(super) struct Tail {
    /// Name of the table
    table: String,

    /// Start with the oldest retained change [default: with the next change]
    #[arg(long)]
    from_start: bool,

    /// Exit at the end of the stream instead of waiting for changes
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

/// The positions of a reader in the shards of a change stream.
struct StreamReader<'o> {
    engine: &'o dyn Engine,
    arn: String,
    /// The next iterator of each discovered shard; `None` if the shard was read to its end.
    iterators: BTreeMap<String, Option<String>>,
}

impl Tail {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let table = opened.table(&self.table).await?;
        let stream = table.latest_stream.ok_or_else(|| {
            Failure::failed(format!(
                "the table has no change stream: table={}; create the table with --stream",
                self.table
            ))
        })?;
        let mut reader = StreamReader {
            engine: opened.engine(),
            arn: stream.arn,
            iterators: BTreeMap::new(),
        };
        reader.discover_shards(self.from_start).await?;
        if self.once {
            while self.print_new(&mut reader).await? > 0 {}
            return Ok(());
        }
        let signals = Signals::new()?;
        note("waiting for changes; stop with Ctrl-C");
        tokio::select! {
            result = self.follow(&mut reader) => result,
            () = signals.stop() => Ok(()),
        }
    }

    async fn follow(&self, reader: &mut StreamReader<'_>) -> Result {
        loop {
            if self.print_new(reader).await? == 0 {
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// Prints the new changes of all open shards, then discovers the successors of shards that ended. Returns the number of
    /// changes and new shards: 0 at the end of the stream.
    async fn print_new(&self, reader: &mut StreamReader<'_>) -> Result<usize> {
        let mut count = 0;
        for shard in reader.open_shards() {
            let records = reader.next_records(&shard).await?;
            count += records.len();
            records.iter().try_for_each(|record| self.print(record))?;
        }
        let shards_before = reader.iterators.len();
        reader.discover_shards(true).await?;
        Ok(count + (reader.iterators.len() - shards_before))
    }

    fn print(&self, record: &ChangeRecord) -> Result {
        let output = self.target.output;
        if output.is_json() {
            return print_json(&|w| {
                object!(w;
                    "kind": record.kind.as_str(), "sequence": record.sequence,
                    "time_ms": record.created.as_millis(), "keys": output.item(&record.keys),
                    "old": record.old_image.as_ref().map(|image| output.item(image)),
                    "new": record.new_image.as_ref().map(|image| output.item(image))
                );
            });
        }
        let image = record.new_image.as_ref();
        let image = image.map(|image| without_key(image, &record.keys));
        let line = format!(
            "{}  {:<6}  {}  {}",
            utc::date_time(record.created),
            record.kind.as_str(),
            item_cell(&record.keys),
            image.unwrap_or_default()
        );
        print(escaped(line.trim_end()))
    }
}

/// An item without its key, which is printed in its own column.
fn without_key(image: &Item, keys: &Item) -> String {
    let others = image.iter().filter(|(name, _)| !keys.contains(name));
    let others: Item = others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    item_cell(&others)
}

impl StreamReader<'_> {
    /// Adds the shards whose parents were read to the end, so that changes of one item stay in order. Reads them from their
    /// start, or from now on.
    async fn discover_shards(&mut self, from_start: bool) -> Result {
        let shards = self.describe().await?;
        let is_retained = |id: &String| shards.iter().any(|shard| shard.id == *id);
        for shard in &shards {
            if self.iterators.contains_key(&shard.id) {
                continue;
            }
            let parent = shard.parent_id.as_ref().filter(|id| is_retained(id));
            let is_read = |parent| matches!(self.iterators.get(parent), Some(None));
            if !from_start && shard.ending_sequence.is_some() {
                self.iterators.insert(shard.id.clone(), None);
            } else if parent.is_none_or(is_read) {
                let iterator = self.engine.get_shard_iterator(GetShardIterator {
                    stream_arn: self.arn.clone(),
                    shard_id: shard.id.clone(),
                    kind: if from_start {
                        IteratorKind::TrimHorizon
                    } else {
                        IteratorKind::Latest
                    },
                });
                self.iterators
                    .insert(shard.id.clone(), Some(iterator.await?));
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

    /// The shards that were not read to their end.
    fn open_shards(&self) -> Vec<String> {
        let open = self.iterators.iter().filter(|(_, next)| next.is_some());
        open.map(|(id, _)| id.clone()).collect()
    }

    /// The next changes of a shard.
    async fn next_records(&mut self, shard: &str) -> Result<Vec<ChangeRecord>> {
        let Some(Some(iterator)) = self.iterators.get(shard).cloned() else {
            return Ok(Vec::new());
        };
        let request = GetRecords {
            iterator,
            limit: None,
        };
        let read = self.engine.get_records(request).await?;
        self.iterators.insert(shard.to_owned(), read.next_iterator);
        Ok(read.records)
    }
}
