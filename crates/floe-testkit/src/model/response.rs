//! Responses in comparable form, without the details that an engine may choose freely.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use floe_store::env::Timestamp;
use floe_store::op::*;
use floe_store::table::{StreamView, TableDef, TableDescription};
use floe_store::{ConsumedCapacity, Engine, Error, Item, Result, Units};

/// Maximum number of pages of a read; beyond it, the read counts as endless.
const PAGES_MAX: usize = 2000;

/// The response of an engine to a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Response {
    Get(GetItemOutput),
    BatchGet(BatchGetItemOutput),
    TransactGet(TransactGetItemsOutput),
    Write(WriteItemOutput),
    BatchWrite(BatchWriteItemOutput),
    TransactWrite(TransactWriteItemsOutput),
    Pages(Vec<Page>),
    Table(Box<Description>),
    Tables(ListTablesOutput),
    /// The number of streams on a page, and whether there are more. Their order is not guaranteed.
    StreamPage(usize, bool),
    Streams(Vec<StreamContents>),
    Done,
    Failed(Error),
    /// A response that is wrong whatever the model returns.
    Broken(String),
}

/// The guaranteed parts of a table description.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Description {
    definition: TableDef,
    created: Timestamp,
    item_count: u64,
    size_bytes: u64,
    /// The name, number of entries and bytes of each index.
    indexes: Vec<(String, u64, u64)>,
    has_stream: bool,
}

impl From<TableDescription> for Description {
    fn from(table: TableDescription) -> Self {
        let index = |index: floe_store::table::IndexDescription| {
            (index.name, index.item_count, index.size_bytes)
        };
        let mut definition = table.definition;
        let mut indexes: Vec<_> = table.indexes.into_iter().map(index).collect();
        // DynamoDB lists local and global indexes separately and guarantees no order.
        definition.indexes.sort_by(|a, b| a.name.cmp(&b.name));
        indexes.sort();
        Self {
            definition,
            created: table.created,
            item_count: table.item_count,
            size_bytes: table.size_bytes,
            indexes,
            has_stream: table.latest_stream.is_some(),
        }
    }
}

/// A stream and its changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreamContents {
    table_name: String,
    view: StreamView,
    status: StreamStatus,
    /// The changes of each item, in order. The order between items is not guaranteed.
    changes: BTreeMap<String, Vec<ChangeContents>>,
}

/// A change record without its position in the stream.
#[derive(Clone, Debug, PartialEq)]
struct ChangeContents {
    kind: ChangeKind,
    old_image: Option<Item>,
    new_image: Option<Item>,
    size_bytes: usize,
    view: StreamView,
    created: Timestamp,
    identity: Option<ServiceIdentity>,
}

impl Response {
    /// The response of one operation, or its error.
    pub(super) fn of<T>(result: Result<T>, convert: impl FnOnce(T) -> Self) -> Self {
        result.map_or_else(Self::Failed, convert)
    }

    pub(super) fn get(mut output: GetItemOutput) -> Self {
        clear_index_costs(output.consumed.as_mut());
        Self::Get(output)
    }

    pub(super) fn write(mut output: WriteItemOutput) -> Self {
        clear_index_costs(output.consumed.as_mut());
        Self::Write(output)
    }

    pub(super) fn batch_get(mut output: BatchGetItemOutput) -> Self {
        for items in output.items.values_mut() {
            sort_items(items);
        }
        sort(&mut output.consumed);
        Self::BatchGet(output)
    }

    pub(super) fn transact_get(mut output: TransactGetItemsOutput) -> Self {
        sort(&mut output.consumed);
        Self::TransactGet(output)
    }

    pub(super) fn batch_write(mut output: BatchWriteItemOutput) -> Self {
        sort(&mut output.consumed);
        sort_collections(&mut output.collections);
        Self::BatchWrite(output)
    }

    pub(super) fn transact_write(mut output: TransactWriteItemsOutput) -> Self {
        sort(&mut output.consumed);
        sort_collections(&mut output.collections);
        Self::TransactWrite(output)
    }

    pub(super) fn stream_page(output: &ListStreamsOutput) -> Self {
        Self::StreamPage(output.streams.len(), output.last_arn.is_some())
    }

    pub(super) fn table(description: TableDescription) -> Self {
        Self::Table(Box::new(description.into()))
    }

    pub(super) const fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// Sorts items by hash, because items have no order and may be large.
pub(super) fn sort_items(items: &mut [Item]) {
    items.sort_by_cached_key(|item| {
        let mut hasher = DefaultHasher::new();
        item.hash(&mut hasher);
        hasher.finish()
    });
}

fn sort(consumed: &mut [ConsumedCapacity]) {
    consumed.sort_by(|a, b| a.table_name.cmp(&b.table_name));
    clear_index_costs(consumed);
}

/// Clears the costs of tables and indexes if only the total was requested.
fn clear_index_costs<'c>(consumed: impl IntoIterator<Item = &'c mut ConsumedCapacity>) {
    for cost in consumed.into_iter().filter(|cost| !cost.by_index) {
        cost.table = Units::ZERO;
        cost.local_indexes.clear();
        cost.global_indexes.clear();
    }
}

fn sort_collections(collections: &mut BTreeMap<String, Vec<ItemCollectionMetrics>>) {
    for metrics in collections.values_mut() {
        metrics.sort_by_cached_key(|metrics| format!("{:?}", metrics.key));
    }
}

/// Reads all pages of a query.
pub(super) async fn query_pages(engine: &dyn Engine, query: Query) -> Response {
    let read = async |start| engine.query(query.clone().start_key(start)).await;
    all_pages("query", query.start_key.clone(), read).await
}

/// Reads all pages of a scan with `read`.
pub(super) async fn scan_pages(scan: Scan, read: impl AsyncFn(Scan) -> Result<Page>) -> Response {
    let read = async |start| read(scan.clone().start_key(start)).await;
    all_pages("scan", scan.start_key.clone(), read).await
}

/// Reads all pages with `read`, each from the last key of the previous page.
async fn all_pages(
    operation: &str,
    mut start_key: Option<Item>,
    read: impl AsyncFn(Option<Item>) -> Result<Page>,
) -> Response {
    let mut pages = Vec::new();
    while pages.len() < PAGES_MAX {
        match read(start_key).await {
            Err(error) => return Response::Failed(error),
            Ok(mut page) => {
                clear_index_costs(page.consumed.as_mut());
                start_key = page.last_key.clone();
                pages.push(page);
            }
        }
        if start_key.is_none() {
            return Response::Pages(pages);
        }
    }
    Response::Broken(format!("{operation} does not end: pages={}", pages.len()))
}

/// Reads all streams with all their changes.
pub(super) async fn read_streams(engine: &dyn Engine, limit: usize) -> Response {
    match all_streams(engine, limit).await {
        Ok(streams) => Response::Streams(streams),
        Err(ReadError::Failed(error)) => Response::Failed(error),
        Err(ReadError::Broken(what)) => Response::Broken(what),
    }
}

/// The reason why the streams could not be read.
enum ReadError {
    Failed(Error),
    Broken(String),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

async fn all_streams(engine: &dyn Engine, limit: usize) -> Result<Vec<StreamContents>, ReadError> {
    let mut list = ListStreams::default();
    let mut summaries = Vec::new();
    loop {
        let page = engine.list_streams(list.clone()).await?;
        summaries.extend(page.streams);
        match page.last_arn {
            Some(arn) => list.start_after = Some(arn),
            None => break,
        }
    }
    summaries.sort_by(|a, b| (&a.table_name, &a.label).cmp(&(&b.table_name, &b.label)));
    let mut event_ids = BTreeSet::new();
    let mut streams = Vec::new();
    for summary in summaries {
        streams.push(one_stream(engine, &summary.arn, limit, &mut event_ids).await?);
    }
    Ok(streams)
}

async fn one_stream(
    engine: &dyn Engine,
    arn: &str,
    limit: usize,
    event_ids: &mut BTreeSet<String>,
) -> Result<StreamContents, ReadError> {
    let input = DescribeStream {
        stream_arn: arn.to_owned(),
        ..DescribeStream::default()
    };
    let stream = engine.describe_stream(input).await?;
    let mut changes: BTreeMap<String, Vec<ChangeContents>> = BTreeMap::new();
    for shard in &stream.shards {
        for record in shard_records(engine, arn, shard, limit).await? {
            if !event_ids.insert(record.event_id.clone()) {
                let what = format!("duplicate event id: event_id={}", record.event_id);
                return Err(ReadError::Broken(what));
            }
            let contents = ChangeContents {
                kind: record.kind,
                old_image: record.old_image,
                new_image: record.new_image,
                size_bytes: record.size_bytes,
                view: record.view,
                created: record.created,
                identity: record.identity,
            };
            let key = format!("{:?}", record.keys);
            changes.entry(key).or_default().push(contents);
        }
    }
    Ok(StreamContents {
        table_name: stream.table_name,
        view: stream.view,
        status: stream.status,
        changes,
    })
}

async fn shard_records(
    engine: &dyn Engine,
    arn: &str,
    shard: &Shard,
    limit: usize,
) -> Result<Vec<ChangeRecord>, ReadError> {
    let input = GetShardIterator {
        stream_arn: arn.to_owned(),
        shard_id: shard.id.clone(),
        kind: IteratorKind::TrimHorizon,
    };
    let mut next = Some(engine.get_shard_iterator(input).await?);
    let mut records: Vec<ChangeRecord> = Vec::new();
    while let Some(iterator) = next {
        let limit = Some(limit);
        let output = engine.get_records(GetRecords { iterator, limit }).await?;
        let open = shard.ending_sequence.is_none();
        if output.records.is_empty() && open {
            break;
        }
        next = output.next_iterator;
        if next.is_none() && open {
            let what = format!("open shard has an end: shard={}", shard.id);
            return Err(ReadError::Broken(what));
        }
        for record in output.records {
            if records
                .last()
                .is_some_and(|last| last.sequence >= record.sequence)
            {
                return Err(ReadError::Broken(format!(
                    "sequence numbers are not ascending: sequence={}",
                    record.sequence
                )));
            }
            records.push(record);
        }
    }
    Ok(records)
}
