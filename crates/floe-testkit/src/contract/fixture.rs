//! What cases share: an engine with short names for its operations, tables, expressions from text,
//! and assertions about refusals.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use floe_store::error::CancellationCode;
use floe_store::expr::{Condition, Parser, Paths, Update};
use floe_store::op::{
    ChangeRecord, CreateIndex, DescribeStream, GetItem, GetRecords, GetShardIterator, IteratorKind,
    KeyRole, KeySchemaElement, Page, PutItem, Query, Scan, StreamDescription, TransactWrite,
    TransactWriteItems, TransactWriteItemsOutput, WriteItem, WriteItemOutput,
};
use floe_store::table::{IndexKind, KeyKind, Projection, Scaling, TableBuilder, TableDescription};
use floe_store::{
    CancellationReason, Capabilities, Engine, Error, Item, Name, Number, Result, Set, TableDef,
    Text, Value,
};

use crate::Harness;

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
        let created = self.engine().create_table(definition.into()).await;
        created.expect("the case's table can be made")
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

    pub(super) async fn write(&self, write: impl Into<WriteItem>) -> Result<WriteItemOutput> {
        self.engine().write_item(write.into()).await
    }

    pub(super) async fn get(&self, table: &str, key: Item) -> Option<Item> {
        let output = self.engine().get_item(GetItem::new(table, key)).await;
        output.expect("the case's key is a good one").item
    }

    pub(super) async fn query(&self, query: Query) -> Result<Page> {
        self.engine().query(query).await
    }

    pub(super) async fn scan(&self, scan: Scan) -> Result<Page> {
        self.engine().scan(scan).await
    }

    /// All items of a query, page by page.
    pub(super) async fn query_all(&self, mut query: Query) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let page = self
                .query(query.clone())
                .await
                .expect("the query is a good one");
            items.extend(page.items);
            match page.last_key {
                Some(key) => query.start_key = Some(key),
                None => return items,
            }
        }
    }

    /// All items of a scan, page by page.
    pub(super) async fn scan_all(&self, mut scan: Scan) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let page = self
                .scan(scan.clone())
                .await
                .expect("the scan is a good one");
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
        let transaction = TransactWriteItems::new(actions);
        self.engine().transact_write_items(transaction).await
    }

    pub(super) async fn describe(&self, table: &str) -> TableDescription {
        let description = self.engine().describe_table(table.to_owned()).await;
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
        self.engine().get_shard_iterator(input).await
    }

    /// The records from an iterator on, up to the present end of the shard.
    pub(super) async fn records_from(&self, iterator: String) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        let mut next = Some(iterator);
        while let Some(iterator) = next {
            let input = GetRecords {
                iterator,
                limit: None,
            };
            let output = self.engine().get_records(input).await;
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
            let iterator = self.iterator(stream, &shard.id, IteratorKind::TrimHorizon);
            let iterator = iterator.await.expect("the shard is there");
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

/// One attribute of a key.
pub(super) fn element(name: &str, role: KeyRole) -> KeySchemaElement {
    KeySchemaElement {
        name: name.into(),
        role,
    }
}

/// A request for a global index on one attribute.
pub(super) fn global_index(name: &str, attribute: &str) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        kind: IndexKind::Global,
        key_schema: vec![element(attribute, KeyRole::Hash)],
        projection: Projection::All,
        throughput: None,
        scaling: Scaling::default(),
    }
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

#[track_caller]
pub(super) fn update(text: &str, values: &Values) -> Update {
    parse(text, values, |parser, text| parser.update(text))
}

#[track_caller]
pub(super) fn projection(text: &str) -> Paths {
    parse(text, &Values::new(), |parser, text| parser.projection(text))
}

// Refusals.

/// The call was refused as invalid, with this in the message.
#[track_caller]
pub(super) fn refused<T: Debug>(result: Result<T>, detail: &str) {
    match result {
        Err(Error::Validation(message)) if message.contains(detail) => {}
        other => panic!("expected a validation error: detail={detail:?} got={other:?}"),
    }
}

/// The call named something that is not there, with this in the message.
#[track_caller]
pub(super) fn not_found<T: Debug>(result: Result<T>, detail: &str) {
    match result {
        Err(Error::ResourceNotFound(message)) if message.contains(detail) => {}
        other => panic!("expected a missing resource: detail={detail:?} got={other:?}"),
    }
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

/// The transaction was canceled; the reasons.
#[track_caller]
pub(super) fn canceled<T: Debug>(result: Result<T>) -> Vec<CancellationReason> {
    match result {
        Err(Error::TransactionCanceled { reasons }) => reasons,
        other => panic!("expected a canceled transaction: got={other:?}"),
    }
}
