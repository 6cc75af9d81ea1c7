//! Shared by all cases: an engine with short names for its operations, tables, expressions parsed from text, and
//! assertions about errors.

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

/// A requirement of a case that not every engine meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Transactions,
    Streams,
    Expiry,
    WriteTokens,
    MultiAttributeKeys,
    ChangeHolds,
    /// The engine has a manual clock.
    ManualClock,
}

/// An engine under test, with blocking operations.
pub(super) struct Fixture {
    harness: Box<dyn Harness>,
    runtime: Handle,
}

impl Fixture {
    /// Must be called inside of a runtime; the fixture must be used on a thread that may block.
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

    /// Whether the engine has a manual clock.
    pub(super) fn has_manual_clock(&self) -> bool {
        self.harness.clock().is_some()
    }

    /// Whether the engine, or its harness, meets a requirement.
    pub(super) fn has(&self, need: Need) -> bool {
        let can = self.can();
        match need {
            Need::Transactions => can.transactions,
            Need::Streams => can.streams,
            Need::Expiry => can.expiry,
            Need::WriteTokens => can.write_tokens,
            Need::MultiAttributeKeys => can.multi_attribute_keys,
            Need::ChangeHolds => can.change_holds,
            Need::ManualClock => self.has_manual_clock(),
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        let clock = self.harness.clock();
        clock.expect("the case requires a manual clock").advance(by);
    }

    pub(super) fn now_secs(&self) -> u64 {
        self.engine().now().as_secs()
    }

    #[track_caller]
    pub(super) fn sweep(&self) {
        let swept = self.wait(self.harness.sweep());
        swept.expect("sweeping succeeds");
    }

    #[track_caller]
    pub(super) fn reopen(&mut self) {
        let reopened = self.runtime.block_on(self.harness.reopen());
        reopened.expect("reopening succeeds");
    }

    /// Creates a table for the case.
    #[track_caller]
    pub(super) fn create(&self, table: TableBuilder) -> TableDescription {
        let definition = table.build().expect("the table definition is valid");
        let created = self.create_table(definition.into());
        created.expect("the table is created")
    }

    /// Creates a table with these items for the case.
    #[track_caller]
    pub(super) fn create_with(&self, table: TableBuilder, items: impl IntoIterator<Item = Item>) {
        let table = self.create(table);
        self.fill(&table.definition.name, items);
    }

    pub(super) fn delete_table(&self, name: &str) -> Result<TableDescription> {
        self.wait(self.engine().delete_table(name.to_owned()))
    }

    /// Puts items for the case.
    #[track_caller]
    pub(super) fn fill(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        for item in items {
            let put = self.put(table, item);
            put.expect("the item is valid");
        }
    }

    /// Puts items in one request for the case.
    #[track_caller]
    pub(super) fn fill_batch(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        let batch = items
            .into_iter()
            .fold(BatchWriteItem::new(), |batch, item| batch.put(table, item));
        let written = self.batch_write_item(batch);
        written.expect("the items are valid");
    }

    pub(super) fn put(&self, table: &str, item: Item) -> Result<WriteItemOutput> {
        self.write(PutItem::new(table, item))
    }

    /// Deletes an item, if it exists.
    #[track_caller]
    pub(super) fn delete(&self, table: &str, key: Item) {
        let deleted = self.write(DeleteItem::new(table, key));
        deleted.expect("the key is valid");
    }

    pub(super) fn write(&self, write: impl Into<WriteItem>) -> Result<WriteItemOutput> {
        self.write_item(write.into())
    }

    #[track_caller]
    pub(super) fn get(&self, table: &str, key: Item) -> Option<Item> {
        let output = self.get_item(GetItem::new(table, key));
        output.expect("the key is valid").item
    }

    /// Checks that the table, [`plain`] or [`sorted`], contains exactly this item under its key.
    #[track_caller]
    pub(super) fn assert_item(&self, table: &str, item: Item) {
        let is_key = |(name, _): &(Name, Value)| name == "pk" || name == "sk";
        let key: Item = item.clone().into_iter().filter(is_key).collect();
        assert_eq!(self.get(table, key), Some(item));
    }

    /// Reads all pages of a query.
    #[track_caller]
    pub(super) fn pages(&self, mut query: Query) -> Vec<Page> {
        let mut pages = Vec::new();
        loop {
            let page = self.query(query.clone());
            let page = page.expect("the query is valid");
            query.start_key.clone_from(&page.last_key);
            pages.push(page);
            if query.start_key.is_none() {
                return pages;
            }
        }
    }

    /// Reads all items of a query.
    #[track_caller]
    pub(super) fn query_all(&self, query: Query) -> Vec<Item> {
        let pages = self.pages(query).into_iter();
        pages.flat_map(|page| page.items).collect()
    }

    /// Reads the sort keys of all items of a query.
    #[track_caller]
    pub(super) fn query_sks(&self, query: Query) -> Vec<i64> {
        sks(&self.query_all(query))
    }

    /// Reads all items of a scan.
    #[track_caller]
    pub(super) fn scan_all(&self, mut scan: Scan) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let page = self.scan(scan.clone());
            let page = page.expect("the scan is valid");
            items.extend(page.items);
            match page.last_key {
                Some(key) => scan.start_key = Some(key),
                None => return items,
            }
        }
    }

    /// Reads all items of a table.
    #[track_caller]
    pub(super) fn all_items(&self, table: &str) -> Vec<Item> {
        self.scan_all(Scan::new(table))
    }

    /// Reads all entries of an index.
    #[track_caller]
    pub(super) fn all_entries(&self, table: &str, index: &str) -> Vec<Item> {
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
        description.expect("the table exists")
    }

    /// The latest stream of a table.
    #[track_caller]
    pub(super) fn stream(&self, table: &str) -> StreamDescription {
        let handle = self.describe(table).latest_stream;
        let arn = handle.expect("the table has a stream").arn;
        self.describe_stream(&arn)
    }

    #[track_caller]
    pub(super) fn describe_stream(&self, arn: &str) -> StreamDescription {
        let description = self.try_describe_stream(arn);
        description.expect("the stream exists")
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

    /// An iterator at the start of a shard.
    #[track_caller]
    pub(super) fn start(&self, stream: &StreamDescription, shard_id: &str) -> String {
        let iterator = self.iterator(stream, shard_id, IteratorKind::TrimHorizon);
        iterator.expect("the shard exists")
    }

    /// Reads a page of a shard.
    pub(super) fn records(
        &self,
        iterator: String,
        limit: Option<usize>,
    ) -> Result<GetRecordsOutput> {
        self.get_records(GetRecords { iterator, limit })
    }

    /// Reads the records from an iterator to the current end of the shard.
    #[track_caller]
    pub(super) fn records_from(&self, iterator: String) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        let mut next = Some(iterator);
        while let Some(iterator) = next {
            let output = self.records(iterator, None);
            let output = output.expect("the iterator is valid");
            if output.records.is_empty() {
                break;
            }
            records.extend(output.records);
            next = output.next_iterator;
        }
        records
    }

    /// Reads all records of a shard.
    #[track_caller]
    pub(super) fn shard_records(
        &self,
        stream: &StreamDescription,
        shard_id: &str,
    ) -> Vec<ChangeRecord> {
        self.records_from(self.start(stream, shard_id))
    }

    /// Reads all records of a stream, parent shards before their children.
    #[track_caller]
    pub(super) fn stream_records(&self, stream: &StreamDescription) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        for shard in &stream.shards {
            records.extend(self.shard_records(stream, &shard.id));
        }
        records
    }

    /// Reads all records of a table's latest stream.
    #[track_caller]
    pub(super) fn changes(&self, table: &str) -> Vec<ChangeRecord> {
        self.stream_records(&self.stream(table))
    }
}

/// The operations of the engine, with the same names.
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

/// Requests that can return the consumed capacity.
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

/// Reads that can select the returned attributes.
pub(super) trait Selecting: Sized {
    fn selecting(self, select: Select) -> Self;

    /// Returns only these paths.
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

/// A table named `Sorted` with a sort key of this kind.
pub(super) fn sorted_by(kind: KeyKind) -> TableBuilder {
    TableDef::builder("Sorted", "pk", KeyKind::S).sort_key("sk", kind)
}

/// For an index without sort key.
pub(super) const NO_SORT: [(&str, KeyKind); 0] = [];

/// [`plain`] with the global index `by_g`, whose key is `g` of type S.
pub(super) fn indexed(projection: Projection) -> TableBuilder {
    plain().global_index("by_g", [("g", KeyKind::S)], NO_SORT, projection)
}

/// A table with the global index `by_g`, whose keys are `g` of type S and `h`.
pub(super) fn ranged(table: TableBuilder, h: KeyKind, projection: Projection) -> TableBuilder {
    table.global_index("by_g", [("g", KeyKind::S)], [("h", h)], projection)
}

/// A projection of the keys and one attribute.
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

/// An index on these attributes, to be created.
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

/// A global index on one attribute, to be created.
pub(super) fn global_index(name: &str, attribute: &str) -> CreateIndex {
    index(name, IndexKind::Global, &[(attribute, KeyRole::Hash)])
}

/// A key of [`plain`], or the start of an item.
pub(super) fn item(pk: &str) -> Item {
    Item::new().with("pk", pk)
}

/// A key of [`sorted`], or the start of an item.
pub(super) fn row(pk: &str, sk: impl Into<Value>) -> Item {
    item(pk).with("sk", sk)
}

/// Items of one partition with these sort keys.
pub(super) fn rows(pk: &str, sks: impl IntoIterator<Item = i32>) -> Vec<Item> {
    sks.into_iter().map(|sk| row(pk, sk)).collect()
}

/// An item of exactly this size in bytes.
pub(super) fn item_of_size(start: Item, bytes: usize) -> Item {
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

/// Keys that do not match the schema of [`sorted`].
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
        .map(|item| sk(item).expect("the item has a number as sort key"))
        .collect()
}

/// The values of a string attribute, sorted, for results without guaranteed order.
pub(super) fn texts(items: &[Item], name: &str) -> Vec<String> {
    let text = |item: &Item| item.get(name).and_then(Value::as_s).map(str::to_owned);
    let mut texts: Vec<_> = items.iter().filter_map(text).collect();
    texts.sort();
    texts
}

#[track_caller]
pub(super) fn number(text: &str) -> Number {
    text.parse().expect("the number is valid")
}

#[track_caller]
pub(super) fn strings<const LEN: usize>(elements: [&str; LEN]) -> Value {
    Value::Ss(Set::new(elements.map(Text::from)).expect("the set is valid"))
}

#[track_caller]
pub(super) fn numbers<const LEN: usize>(elements: [i32; LEN]) -> Value {
    Value::Ns(Set::new(elements.map(Number::from)).expect("the set is valid"))
}

#[track_caller]
pub(super) fn binaries<const LEN: usize>(elements: [&[u8]; LEN]) -> Value {
    Value::Bs(Set::new(elements.map(<[u8]>::to_vec)).expect("the set is valid"))
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

/// An item with every type of value, also nested.
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

// Expressions parsed from text.

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

/// Parses an expression in which `#x` stands for the name `x`, so that any name can be used.
#[track_caller]
fn parse<T>(text: &str, values: &Values, read: fn(&mut Parser<'_>, &str) -> Result<T>) -> T {
    let names: BTreeMap<String, Name> = placeholders(text)
        .map(|name| (format!("#{name}"), Name::from(name)))
        .collect();
    let names = (!names.is_empty()).then_some(&names);
    let mut parser = Parser::new(names, (!values.is_empty()).then_some(values));
    match read(&mut parser, text) {
        Ok(tree) => tree,
        Err(error) => panic!("invalid expression: text={text} error={error}"),
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

/// A condition without values.
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

// Errors.

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

/// Checks that the request was rejected as invalid, with a message that contains `detail`.
#[track_caller]
pub(super) fn rejected<T: Debug>(result: Result<T>, detail: &str) {
    match result {
        Err(Error::Validation(message)) if message.contains(detail) => {}
        other => panic!("expected a validation error: detail={detail:?} got={other:?}"),
    }
}

/// Checks rows of `response => detail` with [`rejected`].
macro_rules! rejections {
    ($($response:expr => $detail:expr;)*) => {
        $(rejected($response, $detail);)*
    };
}
pub(super) use rejections;

/// Checks that the request was rejected as invalid, with any message.
#[track_caller]
pub(super) fn invalid<T: Debug>(result: Result<T>) {
    rejected(result, "");
}

/// Checks that a resource was not found, with a message that contains `detail`.
#[track_caller]
pub(super) fn not_found<T: Debug>(result: Result<T>, detail: &str) {
    match result {
        Err(Error::ResourceNotFound(message)) if message.contains(detail) => {}
        other => panic!("expected a missing resource: detail={detail:?} got={other:?}"),
    }
}

/// Checks that the table of an operation on items was not found.
#[track_caller]
pub(super) fn table_not_found<T: Debug>(result: Result<T>) {
    not_found(result, "Requested resource not found");
}

/// Checks that the condition failed. Returns the item in the error.
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

/// Checks that the transaction was cancelled. Returns the reasons.
#[track_caller]
pub(super) fn canceled<T: Debug>(result: Result<T>) -> Vec<CancellationReason> {
    match result {
        Err(Error::TransactionCanceled { reasons }) => reasons,
        other => panic!("expected a canceled transaction: got={other:?}"),
    }
}

/// Checks that the transaction was cancelled with these codes. Returns the reasons.
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
