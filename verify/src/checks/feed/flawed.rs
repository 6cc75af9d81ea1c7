//! The planted bugs: the same work with its steps in the wrong order.

use floe::ErrorKind;
use floe::events::EventStore;
use floe::events::feed::source::span_of_change;
use floe::events::feed::{Ingester, Partition, TableLog};
use floe_store::op::{DescribeStream, GetRecords, GetShardIterator, IteratorKind, ListStreams};

use super::config::{Files, GROUP, PARTITIONS, POLL, VIEW, consumer, epoch_limits};
use super::deliveries::{Deliveries, numbers};
use super::entry::{tally, view_key};

/// Stores the checkpoint of the group before the events are handled.
pub(super) async fn deliver(
    store: &EventStore,
    partition: Partition,
    deliveries: &Deliveries,
) -> floe::Result<()> {
    let group = consumer(store, GROUP, partition);
    let feed = store.feed().partition(partition);
    let mut feed = feed.from(group.checkpoint().await?);
    while let Some(batch) = feed.next().await? {
        group.move_to(batch.checkpoint).await?;
        tokio::time::sleep(POLL).await;
        for (stream, events) in batch.streams {
            let mut left = events.as_slice();
            while let [first, ..] = left {
                // A delivery that was not recorded is found missing at the end.
                drop(deliveries.record(&stream, std::slice::from_ref(first)));
                left = left.split_at(1).1;
            }
        }
    }
    Ok(())
}

/// Stores the view's changes, and then the checkpoint in a separate commit.
pub(super) async fn update_view(store: &EventStore, partition: Partition) -> floe::Result<()> {
    let view = consumer(store, VIEW, partition);
    let feed = store.feed().partition(partition);
    let mut feed = feed.from(view.checkpoint().await?);
    while let Some(batch) = feed.next().await? {
        for (stream, events) in &batch.streams {
            let numbers = &numbers(stream, events);
            let key = &view_key(stream);
            let db = store.db();
            db.transact(async |tx| tally(tx, key.clone(), numbers).await)
                .await?;
        }
        view.move_to(batch.checkpoint).await?;
    }
    Ok(())
}

/// Stores its position before it writes the epochs. Returns when there are no more records.
pub(super) async fn index(store: &EventStore, files: &Files) -> floe::Result<()> {
    let engine = store.db().engine();
    let mut ingesters = Vec::new();
    for partition in PARTITIONS.all() {
        let log = TableLog::new(store.db().clone(), store.feed_index().options().clone());
        let ingester = Ingester::new(log, partition, epoch_limits())?;
        ingesters.push((partition, ingester));
    }
    let mut iterator = iterator_of(store, files).await?;
    loop {
        let limit = Some(100);
        let page = engine.get_records(GetRecords { iterator, limit }).await?;
        let (Some(last), Some(next)) = (page.records.last(), page.next_iterator) else {
            return Ok(());
        };
        iterator = next;
        // If storing fails, the records are read again, as by any other indexer.
        drop(std::fs::write(files.early_position(), &last.sequence));
        tokio::time::sleep(POLL).await;
        let since = page.records.iter().map(|record| record.created).min();
        for (partition, ingester) in &mut ingesters {
            let mut spans = Vec::new();
            for record in &page.records {
                let span = span_of_change(record)?;
                spans.extend(span.filter(|span| PARTITIONS.of(&span.stream) == *partition));
            }
            match ingester.ingest(spans, since.unwrap_or_default()).await {
                // Missing events stay missing, and so does the rest of the batch.
                Err(error) if error.kind() == ErrorKind::MissingEvents => {}
                outcome => drop(outcome?),
            }
        }
    }
}

async fn iterator_of(store: &EventStore, files: &Files) -> floe::Result<String> {
    let engine = store.db().engine();
    let list = ListStreams {
        table_name: Some(store.options().table.clone()),
        ..ListStreams::default()
    };
    let streams = engine.list_streams(list).await?.streams;
    let stream_arn = streams.first().map(|stream| stream.arn.clone());
    let stream_arn = stream_arn.unwrap_or_default();
    let describe = DescribeStream {
        stream_arn: stream_arn.clone(),
        ..DescribeStream::default()
    };
    let shards = engine.describe_stream(describe).await?.shards;
    let shard_id = shards.first().map(|shard| shard.id.clone());
    let kind = match std::fs::read_to_string(files.early_position()) {
        Ok(sequence) => IteratorKind::AfterSequenceNumber(sequence),
        Err(_) => IteratorKind::TrimHorizon,
    };
    let request = GetShardIterator {
        stream_arn,
        shard_id: shard_id.unwrap_or_default(),
        kind,
    };
    Ok(engine.get_shard_iterator(request).await?)
}
