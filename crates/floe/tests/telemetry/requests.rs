//! Spans and measurements of requests.

use std::sync::Arc;

use floe::Db;
use floe::cache::CacheOptions;
use floe::telemetry::TracedEngine;
use floe_local::LocalEngine;
use floe_store::capacity::{ReturnConsumedCapacity, Units};
use floe_store::expr::{Condition, KeyCondition, Update};
use floe_store::op::*;
use floe_store::table::KeyKind;
use floe_store::{Engine, Item, TableDef, Value};
use floe_testkit::fault::{FaultEngine, Faults};
use tracing::Level;

use crate::collect::{CollectedSpan, Collector, block_on, listen};

fn table(name: &str) -> CreateTable {
    let table = TableDef::builder(name, "id", KeyKind::S);
    table.build().unwrap().into()
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

fn eventual(id: &str) -> GetItem {
    GetItem::new("Orders", key(id)).eventual()
}

fn engine() -> Arc<dyn Engine> {
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    block_on(async {
        engine.create_table(table("Orders")).await.unwrap();
        engine.create_table(table("Lines")).await.unwrap();
    });
    engine
}

fn put(id: &str) -> WriteItem {
    PutItem::new("Orders", key(id).with("secret", "swordfish")).into()
}

fn field<'a>(span: &'a CollectedSpan, name: &str) -> Option<&'a str> {
    span.fields.get(name).map(String::as_str)
}

#[test]
fn request_span_follows_the_semantic_conventions() {
    let traced = TracedEngine::client(engine());
    let collector = Collector::default();
    listen(&collector, async {
        traced.write_item(put("o-1")).await.unwrap();
        traced
            .get_item(GetItem::new("Orders", key("o-1")))
            .await
            .unwrap();
        traced.get_item(eventual("o-2")).await.unwrap();
    });
    assert_eq!(collector.requests(), ["PutItem", "GetItem", "GetItem"]);
    let spans = collector.spans("request");
    for span in &spans {
        assert_eq!((span.target, span.level), ("floe::request", Level::DEBUG));
        assert!(span.is_closed);
        assert_eq!(field(span, "db.system.name"), Some("aws.dynamodb"));
        assert_eq!(field(span, "db.operation.name"), field(span, "otel.name"));
        assert_eq!(field(span, "db.collection.name"), Some("Orders"));
        assert_eq!(field(span, "aws.dynamodb.table_names"), Some("Orders"));
        assert_eq!(field(span, "otel.kind"), Some("client"));
        assert_eq!(field(span, "error.type"), None);
        assert_eq!(field(span, "otel.status_code"), None);
    }
    assert_eq!(field(&spans[0], "floe.consumed_write_units"), Some("1.0"));
    assert_eq!(field(&spans[1], "floe.consumed_read_units"), Some("1.0"));
    assert_eq!(field(&spans[2], "floe.consumed_read_units"), Some("0.5"));
    let of_reads = |name: &str| [&spans[1], &spans[2]].map(|span| field(span, name));
    assert_eq!(
        of_reads("aws.dynamodb.consistent_read"),
        [Some("true"), Some("false")]
    );
    assert_eq!(of_reads("aws.dynamodb.count"), [Some("1"), Some("0")]);
}

#[test]
fn query_and_batch_spans_contain_tables_and_item_counts() {
    let traced = TracedEngine::server(engine());
    let collector = Collector::default();
    listen(&collector, async {
        traced.write_item(put("o-1")).await.unwrap();
        let by_id = KeyCondition::partition("id", Value::from("o-1"));
        let mut query = Query::new("Orders", by_id);
        query.filter = Some(Condition::attribute_exists("nothing"));
        traced.query(query).await.unwrap();
        let mut scan = Scan::new("Orders");
        scan.index_name = Some("by-day".to_owned());
        traced.scan(scan).await.unwrap_err();
        let gets = [("Orders", "o-1"), ("Lines", "l-1"), ("Orders", "o-2")];
        let gets = gets.map(|(table, id)| TransactGet::new(table, key(id)));
        traced
            .transact_get_items(TransactGetItems::new(gets))
            .await
            .unwrap();
        traced.describe_table("Lines".to_owned()).await.unwrap();
    });
    let spans = collector.spans("request");
    let all =
        |name: &str| -> Vec<Option<&str>> { spans.iter().map(|span| field(span, name)).collect() };
    assert_eq!(
        collector.requests(),
        [
            "PutItem",
            "Query",
            "Scan",
            "TransactGetItems",
            "DescribeTable"
        ]
    );
    let kinds = all("otel.kind");
    assert!(kinds.iter().all(|kind| *kind == Some("server")));
    let counts = [None, Some("0"), None, Some("1"), None];
    assert_eq!(all("aws.dynamodb.count"), counts);
    let scanned = [None, Some("1"), None, None, None];
    assert_eq!(all("aws.dynamodb.scanned_count"), scanned);
    let indexes = [None, None, Some("by-day"), None, None];
    assert_eq!(all("aws.dynamodb.index_name"), indexes);
    let tables = ["Orders", "Orders", "Orders", "Lines,Orders", "Lines"].map(Some);
    assert_eq!(all("aws.dynamodb.table_names"), tables);
    let only = [
        Some("Orders"),
        Some("Orders"),
        Some("Orders"),
        None,
        Some("Lines"),
    ];
    assert_eq!(all("db.collection.name"), only);
    assert_eq!(all("error.type")[2], Some("ValidationException"));
    assert_eq!(all("otel.status_code")[2], Some("ERROR"));
    let count = |name: &str| collector.measured(name).len();
    assert_eq!(count("histogram.floe.server.operation.duration"), 5);
    assert_eq!(count("histogram.db.client.operation.duration"), 0);
}

#[test]
fn failed_condition_is_recorded_and_is_not_an_error() {
    let traced = TracedEngine::client(engine());
    let collector = Collector::default();
    listen(&collector, async {
        let put = PutItem::new("Orders", key("o-1")).condition(Condition::attribute_exists("id"));
        traced.write_item(put.into()).await.unwrap_err();
    });
    let span = &collector.spans("request")[0];
    assert_eq!(
        field(span, "error.type"),
        Some("ConditionalCheckFailedException")
    );
    assert_eq!(field(span, "otel.status_code"), None);
}

#[test]
fn keys_and_values_are_not_recorded() {
    let traced = TracedEngine::client(engine());
    let collector = Collector::default();
    listen(&collector, async {
        traced.write_item(put("hunter2")).await.unwrap();
        let update = Update::new().set("secret", Value::from("tuna"));
        let update = UpdateItem::new("Orders", key("hunter2"), update)
            .condition(Condition::eq("secret", Value::from("salmon")))
            .return_old_on_failure();
        traced.write_item(update.into()).await.unwrap_err();
        let by_id = KeyCondition::partition("id", Value::from("hunter2"));
        traced.query(Query::new("Orders", by_id)).await.unwrap();
        let check = ConditionCheck::new(
            "Orders",
            key("hunter2"),
            Condition::attribute_not_exists("id"),
        );
        let checks = TransactWriteItems::new([check.into()]).token("token-of-mine");
        traced.transact_write_items(checks).await.unwrap_err();
    });
    let text = collector.text();
    for secret in ["hunter2", "swordfish", "tuna", "salmon", "token-of-mine"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn capacity_is_returned_only_on_request() {
    let traced = TracedEngine::client(engine());
    let collector = Collector::default();
    listen(&collector, async {
        let asked = GetItem {
            return_capacity: ReturnConsumedCapacity::Indexes,
            ..GetItem::new("Orders", key("o-1"))
        };
        let consumed = traced.get_item(asked).await.unwrap().consumed.unwrap();
        assert!(consumed.by_index);
        assert_eq!(consumed.read, Units::whole(1));
        let batch = BatchWriteItem::new().put("Orders", key("o-2"));
        let output = traced.batch_write_item(batch).await.unwrap();
        assert_eq!(output.consumed, []);
    });
    let units = "monotonic_counter.floe.consumed_write_units";
    let measured = collector.measured(units);
    assert_eq!(measured.len(), 1);
    assert_eq!(measured[0].0, 1.0);
    assert_eq!(measured[0].1["db.collection.name"], "Orders");
    assert_eq!(measured[0].1["db.operation.name"], "BatchWriteItem");
}

#[test]
fn requests_are_measured_by_operation_table_and_error() {
    let faults = Faults::seeded(1).throttle(1.0);
    let busy = Arc::new(FaultEngine::new(engine(), faults));
    let traced = TracedEngine::client(busy.clone());
    let collector = Collector::default();
    listen(&collector, async {
        traced
            .get_item(GetItem::new("Orders", key("o-1")))
            .await
            .unwrap_err();
        busy.pause();
        traced
            .get_item(GetItem::new("Orders", key("o-1")))
            .await
            .unwrap();
    });
    let measured = collector.measured("histogram.db.client.operation.duration");
    assert_eq!(measured.len(), 2);
    for (seconds, attributes) in &measured {
        assert!((0.0..60.0).contains(seconds));
        assert_eq!(attributes["db.system.name"], "aws.dynamodb");
        assert_eq!(attributes["db.operation.name"], "GetItem");
        assert_eq!(attributes["db.collection.name"], "Orders");
    }
    let error = measured[0].1.get("error.type").unwrap();
    assert!(
        [
            "ProvisionedThroughputExceededException",
            "ThrottlingException"
        ]
        .contains(&error.as_str())
    );
    assert_eq!(measured[1].1.get("error.type"), None);
    let throttled = collector.measured("monotonic_counter.floe.throttled_requests");
    assert_eq!(throttled.len(), 1);
    assert_eq!(throttled[0].1["db.collection.name"], "Orders");
}

#[test]
fn every_database_is_traced_and_cache_hits_are_not_requests() {
    let db = Db::with_engine(engine()).with_read_cache(CacheOptions::new());
    let collector = Collector::default();
    listen(&collector, async {
        for _ in 0..3 {
            db.engine().get_item(eventual("o-1")).await.unwrap();
        }
    });
    let gets = collector.requests();
    let gets = gets.iter().filter(|name| *name == "GetItem").count();
    assert_eq!(gets, 1);
}

#[test]
fn measurements_can_be_collected_alone() {
    let traced = TracedEngine::client(engine());
    let collector = Collector::default();
    listen(&collector.only("floe::metrics"), async {
        traced
            .get_item(GetItem::new("Orders", key("o-1")))
            .await
            .unwrap();
    });
    assert!(collector.spans("request").is_empty());
    let units = "monotonic_counter.floe.consumed_read_units";
    assert_eq!(collector.measured(units)[0].0, 1.0);
}
