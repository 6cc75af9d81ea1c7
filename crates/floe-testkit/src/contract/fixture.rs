//! What cases share: an engine with short names for its operations, tables, expressions from text,
//! and assertions about refusals.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::error::CancellationCode;
use floe_store::expr::{Condition, KeyCondition, KeyOp, Parser, Paths, Update};
use floe_store::op::{
    BatchGetItem, BatchWriteItem, ChangeRecord, ConditionCheck, CreateIndex, DeleteItem,
    DescribeStream, GetItem, GetRecords, GetRecordsOutput, GetShardIterator, IteratorKind, KeyRole,
    KeySchemaElement, Page, PutItem, Query, Scan, Select, StreamDescription, TransactGetItems,
    TransactWrite, TransactWriteItems, TransactWriteItemsOutput, UpdateItem, WriteItem,
    WriteItemOutput,
};
use floe_store::size::item_size;
use floe_store::table::{
    IndexKind, KeyKind, Projection, Scaling, StreamView, TableBuilder, TableDescription,
};
use floe_store::{
    CancellationReason, Capabilities, Engine, Error, Item, Name, Number, Result, Set, TableDef,
    Text, Value, each_operation,
};

use tokio::runtime::Handle;

use crate::Harness;

/// What a case needs, and not every engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Transactions,
    Streams,
    Expiry,
    WriteTokens,
    MultiAttributeKeys,
    ChangeHolds,
    /// The test owns the engine's time.
    OwnedTime,
}

/// An engine under test, whose operations are waited for.
pub(super) struct Fixture {
    harness: Box<dyn Harness>,
    runtime: Handle,
}

impl Fixture {
    /// Made inside of a runtime, and used in a thread where it is allowed to block.
    pub(super) fn new(harness: Box<dyn Harness>) -> Self {
        let runtime = Handle::current();
        Self { harness, runtime }
    }

    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(super) fn engine(&self) -> Arc<dyn Engine> {
        self.harness.engine()
    }

    pub(super) fn can(&self) -> Capabilities {
        self.engine().capabilities()
    }

    /// Whether the test owns the engine's time.
    pub(super) fn owns_time(&self) -> bool {
        self.harness.clock().is_some()
    }

    /// Whether the engine, or its harness, has what a case needs.
    pub(super) fn has(&self, need: Need) -> bool {
        let can = self.can();
        match need {
            Need::Transactions => can.transactions,
            Need::Streams => can.streams,
            Need::Expiry => can.expiry,
            Need::WriteTokens => can.write_tokens,
            Need::MultiAttributeKeys => can.multi_attribute_keys,
            Need::ChangeHolds => can.change_holds,
            Need::OwnedTime => self.owns_time(),
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        let clock = self.harness.clock();
        clock
            .expect("a case about time asks `owns_time` first")
            .advance(by);
    }

    pub(super) fn now_secs(&self) -> u64 {
        self.engine().now().as_secs()
    }

    #[track_caller]
    pub(super) fn sweep(&self) {
        let swept = self.wait(self.harness.sweep());
        swept.expect("expired items are swept");
    }

    #[track_caller]
    pub(super) fn reopen(&mut self) {
        let reopened = self.runtime.block_on(self.harness.reopen());
        reopened.expect("the engine reopens");
    }

    /// Makes a table, for the rest of the case to use.
    #[track_caller]
    pub(super) fn create(&self, table: TableBuilder) -> TableDescription {
        let definition = table.build().expect("the case's table is a good one");
        let created = self.create_table(definition.into());
        created.expect("the case's table can be made")
    }

    /// Makes a table with these items in it, for the rest of the case to use.
    #[track_caller]
    pub(super) fn create_with(&self, table: TableBuilder, items: impl IntoIterator<Item = Item>) {
        let table = self.create(table);
        self.fill(&table.definition.name, items);
    }

    pub(super) fn delete_table(&self, name: &str) -> Result<TableDescription> {
        self.wait(self.engine().delete_table(name.to_owned()))
    }

    /// Puts items, for the rest of the case to use.
    #[track_caller]
    pub(super) fn fill(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        for item in items {
            let put = self.put(table, item);
            put.expect("the case's item is a good one");
        }
    }

    /// Puts items in one request, for the rest of the case to use.
    #[track_caller]
    pub(super) fn fill_batch(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        let batch = items
            .into_iter()
            .fold(BatchWriteItem::new(), |batch, item| batch.put(table, item));
        let written = self.batch_write_item(batch);
        written.expect("the case's items are good ones");
    }

    pub(super) fn put(&self, table: &str, item: Item) -> Result<WriteItemOutput> {
        self.write(PutItem::new(table, item))
    }

    /// Deletes an item, if it is there.
    #[track_caller]
    pub(super) fn delete(&self, table: &str, key: Item) {
        let deleted = self.write(DeleteItem::new(table, key));
        deleted.expect("the case's key is a good one");
    }

    pub(super) fn write(&self, write: impl Into<WriteItem>) -> Result<WriteItemOutput> {
        self.write_item(write.into())
    }

    #[track_caller]
    pub(super) fn get(&self, table: &str, key: Item) -> Option<Item> {
        let output = self.get_item(GetItem::new(table, key));
        output.expect("the case's key is a good one").item
    }

    /// The table, [`plain`] or [`sorted`], holds exactly this item under its key.
    #[track_caller]
    pub(super) fn assert_item(&self, table: &str, item: Item) {
        let is_key = |(name, _): &(Name, Value)| name == "pk" || name == "sk";
        let key: Item = item.clone().into_iter().filter(is_key).collect();
        assert_eq!(self.get(table, key), Some(item));
    }

    /// All pages of a query.
    #[track_caller]
    pub(super) fn pages(&self, mut query: Query) -> Vec<Page> {
        let mut pages = Vec::new();
        loop {
            let page = self.query(query.clone());
            let page = page.expect("the query is a good one");
            query.start_key.clone_from(&page.last_key);
            pages.push(page);
            if query.start_key.is_none() {
                return pages;
            }
        }
    }

    /// All items of a query, page by page.
    #[track_caller]
    pub(super) fn query_all(&self, query: Query) -> Vec<Item> {
        let pages = self.pages(query).into_iter();
        pages.flat_map(|page| page.items).collect()
    }

    /// The sort keys of all items of a query.
    #[track_caller]
    pub(super) fn query_sks(&self, query: Query) -> Vec<i64> {
        sks(&self.query_all(query))
    }

    /// All items of a scan, page by page.
    #[track_caller]
    pub(super) fn scan_all(&self, mut scan: Scan) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let page = self.scan(scan.clone());
            let page = page.expect("the scan is a good one");
            items.extend(page.items);
            match page.last_key {
                Some(key) => scan.start_key = Some(key),
                None => return items,
            }
        }
    }

    /// All items of a table.
    #[track_caller]
    pub(super) fn whole(&self, table: &str) -> Vec<Item> {
        self.scan_all(Scan::new(table))
    }

    /// All entries of an index.
    #[track_caller]
    pub(super) fn whole_index(&self, table: &str, index: &str) -> Vec<Item> {
        self.scan_all(Scan::new(table).index(index))
    }

    pub(super) fn transact(
        &self,
        actions: impl IntoIterator<Item = TransactWrite>,
    ) -> Result<TransactWriteItemsOutput> {
        self.transact_write_items(TransactWriteItems::new(actions))
    }

    #[track_caller]
    pub(super) fn describe(&self, table: &str) -> TableDescription {
        let description = self.describe_table(table.to_owned());
        description.expect("the case's table is there")
    }

    /// The newest stream of a table.
    #[track_caller]
    pub(super) fn stream(&self, table: &str) -> StreamDescription {
        let handle = self.describe(table).latest_stream;
        let arn = handle.expect("the case's table has a stream").arn;
        self.describe_stream(&arn)
    }

    #[track_caller]
    pub(super) fn describe_stream(&self, arn: &str) -> StreamDescription {
        let description = self.try_describe_stream(arn);
        description.expect("the stream is there")
    }

    pub(super) fn try_describe_stream(&self, arn: &str) -> Result<StreamDescription> {
        let input = DescribeStream {
            stream_arn: arn.to_owned(),
            ..DescribeStream::default()
        };
        self.wait(self.engine().describe_stream(input))
    }

    /// An iterator into a shard of a stream.
    pub(super) fn iterator(
        &self,
        stream: &StreamDescription,
        shard_id: &str,
        kind: IteratorKind,
    ) -> Result<String> {
        self.get_shard_iterator(GetShardIterator {
            stream_arn: stream.arn.clone(),
            shard_id: shard_id.to_owned(),
            kind,
        })
    }

    /// An iterator over all of a shard.
    #[track_caller]
    pub(super) fn start(&self, stream: &StreamDescription, shard_id: &str) -> String {
        let iterator = self.iterator(stream, shard_id, IteratorKind::TrimHorizon);
        iterator.expect("the shard is there")
    }

    /// The next page of a shard.
    pub(super) fn records(
        &self,
        iterator: String,
        limit: Option<usize>,
    ) -> Result<GetRecordsOutput> {
        self.get_records(GetRecords { iterator, limit })
    }

    /// The records from an iterator on, up to the present end of the shard.
    #[track_caller]
    pub(super) fn records_from(&self, iterator: String) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        let mut next = Some(iterator);
        while let Some(iterator) = next {
            let output = self.records(iterator, None);
            let output = output.expect("the iterator is a good one");
            if output.records.is_empty() {
                break;
            }
            records.extend(output.records);
            next = output.next_iterator;
        }
        records
    }

    /// The records of a shard so far.
    #[track_caller]
    pub(super) fn shard_records(
        &self,
        stream: &StreamDescription,
        shard_id: &str,
    ) -> Vec<ChangeRecord> {
        self.records_from(self.start(stream, shard_id))
    }

    /// All records of a stream so far, shard by shard, parents before children.
    #[track_caller]
    pub(super) fn stream_records(&self, stream: &StreamDescription) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        for shard in &stream.shards {
            records.extend(self.shard_records(stream, &shard.id));
        }
        records
    }

    /// All records of a table's newest stream so far.
    #[track_caller]
    pub(super) fn changes(&self, table: &str) -> Vec<ChangeRecord> {
        self.stream_records(&self.stream(table))
    }
}

/// The operations of the engine, under their names.
macro_rules! operations {
    ($($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
        pub(super) fn $operation(&self, input: $input) -> Result<$output> {
            self.wait(self.engine().$operation(input))
        }
    )*};
}

impl Fixture {
    each_operation!(operations; items, create_table, describe_table, update_table, list_tables);
    each_operation!(operations; update_time_to_live, update_tags, list_streams, get_shard_iterator);
    each_operation!(operations; get_records, hold_changes);
}

/// Requests that say which costs to return.
pub(super) trait Costing: Sized {
    fn costing(self, detail: ReturnConsumedCapacity) -> Self;
}

macro_rules! costing {
    ($($request:ty),*) => {$(
        impl Costing for $request {
            fn costing(mut self, detail: ReturnConsumedCapacity) -> Self {
                self.return_capacity = detail;
                self
            }
        }
    )*};
}

costing!(
    GetItem,
    PutItem,
    UpdateItem,
    DeleteItem,
    Query,
    Scan,
    BatchGetItem,
    BatchWriteItem
);
costing!(TransactGetItems, TransactWriteItems);

/// Reads that say what to return of the items.
pub(super) trait Selecting: Sized {
    fn selecting(self, select: Select) -> Self;

    /// Returns these paths.
    fn projecting(self, paths: &str) -> Self;
}

macro_rules! selecting {
    ($($request:ty),*) => {$(
        impl Selecting for $request {
            fn selecting(mut self, select: Select) -> Self {
                self.select = Some(select);
                self
            }

            fn projecting(mut self, paths: &str) -> Self {
                self.projection = Some(projection(paths));
                self
            }
        }
    )*};
}

selecting!(Query, Scan);

// Tables and items.

/// A table with the partition key `pk` of type S.
pub(super) fn plain() -> TableBuilder {
    TableDef::builder("Plain", "pk", KeyKind::S)
}

/// [`plain`] with a change stream.
pub(super) fn streamed(view: StreamView) -> TableBuilder {
    plain().stream(view)
}

/// A table with the partition key `pk` of type S and the sort key `sk` of type N.
pub(super) fn sorted() -> TableBuilder {
    TableDef::builder("Sorted", "pk", KeyKind::S).sort_key("sk", KeyKind::N)
}

/// A table with a sort key of this kind, called `Sorted`.
pub(super) fn sorted_by(kind: KeyKind) -> TableBuilder {
    TableDef::builder("Sorted", "pk", KeyKind::S).sort_key("sk", kind)
}

/// The sort key of an index that has none.
pub(super) const NO_SORT: [(&str, KeyKind); 0] = [];

/// [`plain`] with the global index `by_g`, whose key is `g` of type S.
pub(super) fn indexed(projection: Projection) -> TableBuilder {
    plain().global_index("by_g", [("g", KeyKind::S)], NO_SORT, projection)
}

/// A table with the global index `by_g`, whose keys are `g` of type S and `h`.
pub(super) fn ranged(table: TableBuilder, h: KeyKind, projection: Projection) -> TableBuilder {
    table.global_index("by_g", [("g", KeyKind::S)], [("h", h)], projection)
}

/// A projection that copies an attribute besides the keys.
pub(super) fn including(name: &str) -> Projection {
    Projection::Include(vec![name.into()])
}

/// The attributes of a key.
pub(super) fn elements(key: &[(&str, KeyRole)]) -> Vec<KeySchemaElement> {
    let element = |(name, role): &(&str, KeyRole)| KeySchemaElement {
        name: (*name).into(),
        role: *role,
    };
    key.iter().map(element).collect()
}

/// A request for an index on these attributes.
pub(super) fn index(name: &str, kind: IndexKind, key: &[(&str, KeyRole)]) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        kind,
        key_schema: elements(key),
        projection: Projection::All,
        throughput: None,
        scaling: Scaling::default(),
    }
}

/// A request for a global index on one attribute.
pub(super) fn global_index(name: &str, attribute: &str) -> CreateIndex {
    index(name, IndexKind::Global, &[(attribute, KeyRole::Hash)])
}

/// A key of [`plain`], or the beginning of an item.
pub(super) fn item(pk: &str) -> Item {
    Item::new().with("pk", pk)
}

/// A key of [`sorted`], or the beginning of an item.
pub(super) fn row(pk: &str, sk: impl Into<Value>) -> Item {
    item(pk).with("sk", sk)
}

/// Items of one partition with these sort keys.
pub(super) fn rows(pk: &str, sks: impl IntoIterator<Item = i32>) -> Vec<Item> {
    sks.into_iter().map(|sk| row(pk, sk)).collect()
}

/// An item that weighs exactly so many bytes.
pub(super) fn weighing(start: Item, bytes: usize) -> Item {
    let bare = item_size(&start.clone().with("pad", ""));
    let item = start.with("pad", "x".repeat(bytes - bare));
    assert_eq!(item_size(&item), bytes);
    item
}

/// A query of a partition of [`sorted`].
pub(super) fn partition(pk: &str) -> Query {
    Query::new("Sorted", KeyCondition::partition("pk", pk))
}

/// A query of a part of a partition of [`sorted`].
pub(super) fn partition_where(pk: &str, op: KeyOp) -> Query {
    Query::new("Sorted", KeyCondition::partition("pk", pk).and("sk", op))
}

/// Keys that are none of [`sorted`].
pub(super) fn wrong_keys() -> [Item; 4] {
    let more = row("a", 1).with("x", 1);
    [Item::new(), item("a"), row("a", "text"), more]
}

/// The sort keys of items.
pub(super) fn sks(items: &[Item]) -> Vec<i64> {
    let sk = |item: &Item| {
        item.get("sk")
            .and_then(Value::as_n)
            .and_then(|n| n.to_i64())
    };
    items
        .iter()
        .map(|item| sk(item).expect("a numeric sk"))
        .collect()
}

/// The values of a text attribute, sorted, for answers without a promised order.
pub(super) fn texts(items: &[Item], name: &str) -> Vec<String> {
    let text = |item: &Item| item.get(name).and_then(Value::as_s).map(str::to_owned);
    let mut texts: Vec<_> = items.iter().filter_map(text).collect();
    texts.sort();
    texts
}

#[track_caller]
pub(super) fn number(text: &str) -> Number {
    text.parse().expect("a good number")
}

#[track_caller]
pub(super) fn strings<const LEN: usize>(elements: [&str; LEN]) -> Value {
    Value::Ss(Set::new(elements.map(Text::from)).expect("a good set"))
}

#[track_caller]
pub(super) fn numbers<const LEN: usize>(elements: [i32; LEN]) -> Value {
    Value::Ns(Set::new(elements.map(Number::from)).expect("a good set"))
}

#[track_caller]
pub(super) fn binaries<const LEN: usize>(elements: [&[u8]; LEN]) -> Value {
    Value::Bs(Set::new(elements.map(<[u8]>::to_vec)).expect("a good set"))
}

pub(super) fn binary(bytes: &[u8]) -> Value {
    Value::B(bytes.to_vec())
}

pub(super) fn list<V: Into<Value>>(elements: impl IntoIterator<Item = V>) -> Value {
    Value::L(elements.into_iter().map(Into::into).collect())
}

pub(super) fn map<V: Into<Value>, const LEN: usize>(entries: [(&str, V); LEN]) -> Value {
    Value::M(entries.into())
}

/// An item with every type of value, nested too.
pub(super) fn every_type(pk: &str) -> Item {
    item(pk)
        .with("s", "text with ünïcödé and \u{1F9CA}")
        .with("n", number("-12345678901234567890123456789.012345678"))
        .with("b", vec![0u8, 255, 128, 1])
        .with("bool", true)
        .with("null", Value::Null)
        .with("m", map([("inner", map([("deep", 1)]))]))
        .with(
            "l",
            Value::L(vec!["a".into(), 1.into(), Value::Null, list(["x"])]),
        )
        .with("ss", strings(["b", "a", ""]))
        .with("ns", numbers([3, -1, 2]))
        .with("bs", binaries([b"z", b"a"]))
        .with("empty_s", "")
        .with("empty_b", Vec::<u8>::new())
        .with("empty_m", Item::new())
        .with("empty_l", Vec::<Value>::new())
}

// Expressions from text.

/// The values of `:placeholders`.
pub(super) type Values = BTreeMap<String, Value>;

/// Values for `:placeholders`, written as `values! { "v" => 1 }` for `:v`.
macro_rules! values {
    ($($name:literal => $value:expr),* $(,)?) => {{
        let values: Vec<(&str, floe_store::Value)> = vec![$(($name, $value.into())),*];
        let values = values.into_iter().map(|(name, value)| (format!(":{name}"), value));
        values.collect::<$crate::contract::fixture::Values>()
    }};
}
pub(super) use values;

/// Parses expressions in which `#x` stands for `x` itself, so that any name can be written.
#[track_caller]
fn parse<T>(text: &str, values: &Values, read: fn(&mut Parser<'_>, &str) -> Result<T>) -> T {
    let names: BTreeMap<String, Name> = placeholders(text)
        .map(|name| (format!("#{name}"), Name::from(name)))
        .collect();
    let names = (!names.is_empty()).then_some(&names);
    let mut parser = Parser::new(names, (!values.is_empty()).then_some(values));
    match read(&mut parser, text) {
        Ok(tree) => tree,
        Err(error) => panic!("the case's expression does not parse: text={text} error={error}"),
    }
}

/// The names after `#` in a text.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('#').skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        rest.get(..end.unwrap_or(rest.len()))
    })
}

#[track_caller]
pub(super) fn condition(text: &str, values: &Values) -> Condition {
    parse(text, values, |parser, text| parser.condition(text))
}

/// A condition that names no values.
#[track_caller]
pub(super) fn bare_condition(text: &str) -> Condition {
    condition(text, &Values::new())
}

#[track_caller]
pub(super) fn update(text: &str, values: &Values) -> Update {
    parse(text, values, |parser, text| parser.update(text))
}

#[track_caller]
pub(super) fn update_item(table: &str, key: Item, text: &str, values: &Values) -> UpdateItem {
    UpdateItem::new(table, key, update(text, values))
}

#[track_caller]
pub(super) fn projection(text: &str) -> Paths {
    parse(text, &Values::new(), |parser, text| parser.projection(text))
}

// Actions of transactions on [`plain`].

pub(super) fn put(item: Item) -> TransactWrite {
    PutItem::new("Plain", item).into()
}

pub(super) fn add(pk: &str, n: i32) -> TransactWrite {
    update_item("Plain", item(pk), "ADD n :n", &values! {"n" => n}).into()
}

pub(super) fn check(pk: &str, text: &str) -> TransactWrite {
    ConditionCheck::new("Plain", item(pk), bare_condition(text)).into()
}

// Refusals.

pub(super) const WRONG_KEY: &str = "The provided key element does not match the schema";
pub(super) const WRONG_START: &str = "The provided starting key is invalid";
pub(super) const ITEM_TOO_LARGE: &str = "Item size has exceeded the maximum allowed size";
pub(super) const ONLY_OLD: &str = "ReturnValues can only be ALL_OLD or NONE";
pub(super) const OVERLAP: &str = "Two document paths overlap with each other";
pub(super) const CONFLICT: &str = "Two document paths conflict with each other";
pub(super) const TWICE_IN_ONE: &str =
    "Transaction request cannot include multiple operations on one item";
pub(super) const TWICE_IN_LIST: &str = "Provided list of item keys contains duplicates";
pub(super) const EMPTY_LIST: &str = "Member must have length greater than or equal to 1";

/// The call was refused as invalid, with this in the message.
#[track_caller]
pub(super) fn refused<T: Debug>(result: Result<T>, detail: &str) {
    match result {
        Err(Error::Validation(message)) if message.contains(detail) => {}
        other => panic!("expected a validation error: detail={detail:?} got={other:?}"),
    }
}

/// Checks rows of `answer => detail`: each call was [refused].
macro_rules! refusals {
    ($($answer:expr => $detail:expr;)*) => {
        $(refused($answer, $detail);)*
    };
}
pub(super) use refusals;

/// The call was refused as invalid, in whatever words.
#[track_caller]
pub(super) fn invalid<T: Debug>(result: Result<T>) {
    refused(result, "");
}

/// The call named something that is not there, with this in the message.
#[track_caller]
pub(super) fn not_found<T: Debug>(result: Result<T>, detail: &str) {
    match result {
        Err(Error::ResourceNotFound(message)) if message.contains(detail) => {}
        other => panic!("expected a missing resource: detail={detail:?} got={other:?}"),
    }
}

/// The call named a table that is not there.
#[track_caller]
pub(super) fn no_table<T: Debug>(result: Result<T>) {
    not_found(result, "Requested resource not found");
}

/// The condition did not hold; the item that came with the refusal.
#[track_caller]
pub(super) fn condition_failed<T: Debug>(result: Result<T>) -> Option<Item> {
    match result {
        Err(Error::ConditionalCheckFailed { item }) => item.map(|item| *item),
        other => panic!("expected a failed condition: got={other:?}"),
    }
}

#[track_caller]
pub(super) fn assert_message(reason: &CancellationReason, message: &str) {
    assert_eq!(reason.message.as_deref(), Some(message));
}

/// The transaction was canceled; the reasons.
#[track_caller]
pub(super) fn canceled<T: Debug>(result: Result<T>) -> Vec<CancellationReason> {
    match result {
        Err(Error::TransactionCanceled { reasons }) => reasons,
        other => panic!("expected a canceled transaction: got={other:?}"),
    }
}

/// The transaction was canceled with these codes; the reasons.
#[track_caller]
pub(super) fn canceled_with<T: Debug>(
    result: Result<T>,
    expected: &[CancellationCode],
) -> Vec<CancellationReason> {
    let reasons = canceled(result);
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes, expected);
    reasons
}
