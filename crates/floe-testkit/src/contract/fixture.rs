//! What cases share: an engine with short names for its operations, tables, expressions from text,
//! and assertions about refusals.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use floe_store::error::CancellationCode;
use floe_store::expr::{Condition, KeyCondition, Parser, Paths, Update};
use floe_store::op::{
    ChangeRecord, ConditionCheck, CreateIndex, DeleteItem, DescribeStream, GetItem, GetRecords,
    GetRecordsOutput, GetShardIterator, IteratorKind, KeyRole, KeySchemaElement, Page, PutItem,
    Query, Scan, StreamDescription, TransactWrite, TransactWriteItems, TransactWriteItemsOutput,
    UpdateItem, WriteItem, WriteItemOutput,
};
use floe_store::size::item_size;
use floe_store::table::{IndexKind, KeyKind, Projection, Scaling, TableBuilder, TableDescription};
use floe_store::{
    CancellationReason, Capabilities, Engine, Error, Item, Name, Number, Result, Set, TableDef,
    Text, Value, each_operation,
};

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

/// An engine under test.
pub(super) struct Fixture {
    harness: Box<dyn Harness>,
}

impl Fixture {
    pub(super) fn new(harness: Box<dyn Harness>) -> Self {
        Self { harness }
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

    pub(super) async fn sweep(&self) {
        self.harness.sweep().await.expect("expired items are swept");
    }

    pub(super) async fn reopen(&mut self) {
        self.harness.reopen().await.expect("the engine reopens");
    }

    /// Makes a table, for the rest of the case to use.
    pub(super) async fn create(&self, table: TableBuilder) -> TableDescription {
        let definition = table.build().expect("the case's table is a good one");
        let created = self.create_table(definition.into()).await;
        created.expect("the case's table can be made")
    }

    pub(super) async fn delete_table(&self, name: &str) -> Result<TableDescription> {
        self.engine().delete_table(name.to_owned()).await
    }

    /// Puts items, for the rest of the case to use.
    pub(super) async fn fill(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        for item in items {
            self.put(table, item)
                .await
                .expect("the case's item is a good one");
        }
    }

    pub(super) async fn put(&self, table: &str, item: Item) -> Result<WriteItemOutput> {
        self.write(PutItem::new(table, item)).await
    }

    /// Deletes an item, if it is there.
    pub(super) async fn delete(&self, table: &str, key: Item) {
        let deleted = self.write(DeleteItem::new(table, key)).await;
        deleted.expect("the case's key is a good one");
    }

    pub(super) async fn write(&self, write: impl Into<WriteItem>) -> Result<WriteItemOutput> {
        self.write_item(write.into()).await
    }

    pub(super) async fn get(&self, table: &str, key: Item) -> Option<Item> {
        let output = self.get_item(GetItem::new(table, key)).await;
        output.expect("the case's key is a good one").item
    }

    /// The table, [`plain`] or [`sorted`], holds exactly this item under its key.
    #[track_caller]
    pub(super) fn assert_item<'a>(
        &'a self,
        table: &'a str,
        item: Item,
    ) -> impl Future<Output = ()> + Send + 'a {
        let at = Location::caller();
        let is_key = |(name, _): &(Name, Value)| name == "pk" || name == "sk";
        let key: Item = item.clone().into_iter().filter(is_key).collect();
        async move { assert_eq!(self.get(table, key).await, Some(item), "{at}") }
    }

    /// All pages of a query.
    pub(super) async fn pages(&self, mut query: Query) -> Vec<Page> {
        let mut pages = Vec::new();
        loop {
            let page = self.query(query.clone()).await;
            let page = page.expect("the query is a good one");
            query.start_key.clone_from(&page.last_key);
            pages.push(page);
            if query.start_key.is_none() {
                return pages;
            }
        }
    }

    /// All items of a query, page by page.
    pub(super) async fn query_all(&self, query: Query) -> Vec<Item> {
        let pages = self.pages(query).await.into_iter();
        pages.flat_map(|page| page.items).collect()
    }

    /// The sort keys of all items of a query.
    pub(super) async fn query_sks(&self, query: Query) -> Vec<i64> {
        sks(&self.query_all(query).await)
    }

    /// All items of a scan, page by page.
    pub(super) async fn scan_all(&self, mut scan: Scan) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let page = self.scan(scan.clone()).await;
            let page = page.expect("the scan is a good one");
            items.extend(page.items);
            match page.last_key {
                Some(key) => scan.start_key = Some(key),
                None => return items,
            }
        }
    }

    pub(super) async fn transact(
        &self,
        actions: impl IntoIterator<Item = TransactWrite>,
    ) -> Result<TransactWriteItemsOutput> {
        self.transact_write_items(TransactWriteItems::new(actions))
            .await
    }

    pub(super) async fn describe(&self, table: &str) -> TableDescription {
        let description = self.describe_table(table.to_owned()).await;
        description.expect("the case's table is there")
    }

    /// The newest stream of a table.
    pub(super) async fn stream(&self, table: &str) -> StreamDescription {
        let handle = self.describe(table).await.latest_stream;
        let arn = handle.expect("the case's table has a stream").arn;
        self.describe_stream(&arn).await
    }

    pub(super) async fn describe_stream(&self, arn: &str) -> StreamDescription {
        let input = DescribeStream {
            stream_arn: arn.to_owned(),
            ..DescribeStream::default()
        };
        let description = self.engine().describe_stream(input).await;
        description.expect("the stream is there")
    }

    /// An iterator into a shard of a stream.
    pub(super) async fn iterator(
        &self,
        stream: &StreamDescription,
        shard_id: &str,
        kind: IteratorKind,
    ) -> Result<String> {
        let input = GetShardIterator {
            stream_arn: stream.arn.clone(),
            shard_id: shard_id.to_owned(),
            kind,
        };
        self.get_shard_iterator(input).await
    }

    /// An iterator over all of a shard.
    pub(super) async fn start(&self, stream: &StreamDescription, shard_id: &str) -> String {
        let iterator = self.iterator(stream, shard_id, IteratorKind::TrimHorizon);
        iterator.await.expect("the shard is there")
    }

    /// The next page of a shard.
    pub(super) async fn records(
        &self,
        iterator: String,
        limit: Option<usize>,
    ) -> Result<GetRecordsOutput> {
        self.get_records(GetRecords { iterator, limit }).await
    }

    /// The records from an iterator on, up to the present end of the shard.
    pub(super) async fn records_from(&self, iterator: String) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        let mut next = Some(iterator);
        while let Some(iterator) = next {
            let output = self.records(iterator, None).await;
            let output = output.expect("the iterator is a good one");
            if output.records.is_empty() {
                break;
            }
            records.extend(output.records);
            next = output.next_iterator;
        }
        records
    }

    /// All records of a stream so far, shard by shard, parents before children.
    pub(super) async fn stream_records(&self, stream: &StreamDescription) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        for shard in &stream.shards {
            let iterator = self.start(stream, &shard.id).await;
            records.extend(self.records_from(iterator).await);
        }
        records
    }

    /// All records of a table's newest stream so far.
    pub(super) async fn changes(&self, table: &str) -> Vec<ChangeRecord> {
        let stream = self.stream(table).await;
        self.stream_records(&stream).await
    }
}

/// The operations of the engine, under their names.
macro_rules! operations {
    ($($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
        pub(super) async fn $operation(&self, input: $input) -> Result<$output> {
            self.engine().$operation(input).await
        }
    )*};
}

impl Fixture {
    each_operation!(operations; items, create_table, describe_table, update_table, list_tables);
    each_operation!(operations; update_time_to_live, update_tags, list_streams, get_shard_iterator);
    each_operation!(operations; get_records, hold_changes);
}

// Tables and items.

/// A table with the partition key `pk` of type S.
pub(super) fn plain() -> TableBuilder {
    TableDef::builder("Plain", "pk", KeyKind::S)
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

/// The codes of reasons.
pub(super) fn codes(reasons: &[CancellationReason]) -> Vec<CancellationCode> {
    reasons.iter().map(|reason| reason.code).collect()
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
