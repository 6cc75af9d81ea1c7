//! Export by OTLP, to a simulated collector.

use std::time::Duration;

use floe::telemetry::otlp::{Exporter, Otlp};
use floe::{Db, Error, Model, Tx};
use floe_store::env::Stopwatch;
use tracing_subscriber::layer::SubscriberExt;

use crate::collector::{CollectorServer, contains};
use crate::protobuf::Message;
use crate::support::{Player, player};

/// Runs a closure with this export as the subscriber.
fn with_export<T>(otlp: Otlp, run: impl FnOnce(Exporter) -> T) -> T {
    let (layers, exporter) = otlp.layers().unwrap();
    let subscriber = tracing_subscriber::registry().with(layers);
    tracing::subscriber::with_default(subscriber, || run(exporter))
}

/// Runs a transaction that creates a player, and one that reads it.
fn play() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Db::memory().unwrap();
        db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
        let create = async |tx: &Tx| tx.create(player("ada-secret", 1)).map(drop);
        db.tx().label("sign up").run(create).await.unwrap();
        let look = async |tx: &Tx| {
            let ada = tx.get::<Player>("ada-secret").await?.unwrap();
            Ok::<_, Error>(*ada.level)
        };
        db.transact(look).await.unwrap();
    });
}

/// `TracesData { resource_spans = 1 { resource = 1 { attributes = 1 }, scope_spans = 2 { spans = 2 } } }`
fn spans<'b>(traces: &Message<'b>) -> Vec<Message<'b>> {
    let resources = traces.all(1).into_iter();
    let scopes = resources.flat_map(|resource| resource.all(2));
    scopes.flat_map(|scope| scope.all(2)).collect()
}

/// Metrics have the structure of spans: `Metric { name = 1, unit = 3, gauge = 5, sum = 7, histogram = 9 }`.
fn metric<'b>(metrics: &Message<'b>, name: &str) -> Message<'b> {
    let found = spans(metrics)
        .into_iter()
        .find(|metric| metric.text(1) == name);
    found.unwrap_or_else(|| panic!("no metric: name={name}"))
}

#[test]
fn spans_and_measurements_are_exported_in_otlp() {
    let server = CollectorServer::start(200);
    let otlp = Otlp::new()
        .endpoint(format!("{}/", server.url()))
        .service_name("shop")
        .attribute("deployment.environment.name", "test")
        .header("x-tenant", "blue");
    with_export(otlp, |exporter| {
        play();
        exporter.shutdown().unwrap();
    });

    let posted = server.posted("/v1/traces");
    let header = |name: &str| posted[0].headers.iter().find(|(header, _)| header == name);
    assert_eq!(header("content-type").unwrap().1, "application/x-protobuf");
    assert_eq!(header("x-tenant").unwrap().1, "blue");
    let traces = Message::parse(&posted[0].body);
    let resource = traces.all(1)[0].all(1).remove(0);
    assert_eq!(resource.attribute(1, "service.name").unwrap(), "shop");
    assert_eq!(
        resource
            .attribute(1, "deployment.environment.name")
            .unwrap(),
        "test"
    );

    // Span { trace_id = 1, span_id = 2, parent_span_id = 4, name = 5, kind = 6, attributes = 9 }
    let spans = spans(&traces);
    let get = spans.iter().find(|span| span.text(5) == "GetItem").unwrap();
    assert_eq!(get.number(6), Some(3), "a client");
    assert_eq!(get.attribute(9, "db.system.name").unwrap(), "aws.dynamodb");
    assert_eq!(get.attribute(9, "db.operation.name").unwrap(), "GetItem");
    assert_eq!(get.attribute(9, "aws.dynamodb.count").unwrap(), "1");
    assert_eq!(get.attribute(9, "floe.consumed_read_units").unwrap(), "1");
    let parent = get.pieces(4).next().unwrap();
    let attempt = spans
        .iter()
        .find(|span| span.pieces(2).next() == Some(parent));
    let attempt = attempt.unwrap();
    assert_eq!(attempt.text(5), "attempt");
    let parent = attempt.pieces(4).next().unwrap();
    let transaction = spans
        .iter()
        .find(|span| span.pieces(2).next() == Some(parent));
    assert_eq!(transaction.unwrap().text(5), "transaction");
    assert_eq!(transaction.unwrap().pieces(1).next(), get.pieces(1).next());
    let labels = spans
        .iter()
        .filter_map(|span| span.attribute(9, "floe.transaction.label"));
    assert_eq!(labels.collect::<Vec<_>>(), ["sign up"]);

    let posted_metrics = server.posted("/v1/metrics");
    let metrics = Message::parse(&posted_metrics[0].body);
    // Histogram { data_points = 1 { count = 4, bucket_counts = 6, explicit_bounds = 7, attributes = 9 } }
    let duration = metric(&metrics, "db.client.operation.duration");
    assert_eq!(duration.text(3), "s");
    let points = duration.all(9)[0].all(1);
    let gets = points
        .iter()
        .find(|point| point.attribute(9, "db.operation.name").as_deref() == Some("GetItem"));
    assert_eq!(gets.unwrap().number(4), Some(1));
    let bounds = gets.unwrap().pieces(7).next().unwrap();
    assert_eq!(bounds[..8], 0.001_f64.to_le_bytes());
    // Sum { data_points = 1 { as_double = 4, attributes = 7 }, is_monotonic = 3 }
    let units = metric(&metrics, "floe.consumed_write_units");
    let sum = &units.all(7)[0];
    assert_eq!(sum.number(3), Some(1));
    let written: f64 = sum
        .all(1)
        .iter()
        .map(|point| f64::from_bits(point.number(4).unwrap()))
        .sum();
    assert_eq!(written, 1.0);
    metric(&metrics, "floe.transaction.attempts");

    for posted in posted.iter().chain(&posted_metrics) {
        assert!(!contains(&posted.body, "ada-secret"), "a key was exported");
        assert!(
            !contains(&posted.body, "floe::metrics"),
            "a measurement is in a trace"
        );
    }
}

#[test]
fn application_spans_and_measurements_are_exported() {
    let server = CollectorServer::start(200);
    with_export(Otlp::new().endpoint(server.url()), |exporter| {
        tracing::info_span!("checkout", order = 7).in_scope(|| {
            tracing::debug_span!("too fine").in_scope(play);
        });
        tracing::info!(monotonic_counter.orders = 3_u64, shop = "tea");
        exporter.flush().unwrap();
        assert_eq!(server.posted("/v1/traces").len(), 1);
        drop(exporter);
    });
    let posted = server.posted("/v1/traces");
    let traces = Message::parse(&posted[0].body);
    let spans = spans(&traces);
    let checkout = spans
        .iter()
        .find(|span| span.text(5) == "checkout")
        .unwrap();
    assert!(!spans.iter().any(|span| span.text(5) == "too fine"));
    let id = checkout.pieces(2).next();
    let inside = spans.iter().filter(|span| span.pieces(4).next() == id);
    assert!(inside.count() > 1, "Floe's spans are children of it");
    let posted = server.posted("/v1/metrics");
    metric(&Message::parse(&posted[0].body), "orders");
}

#[test]
fn failing_collector_does_not_block_the_program() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let down = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let fails = CollectorServer::start(500);
    // It accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unresponsive = format!("http://{}", silent.local_addr().unwrap());
    for url in [down, fails.url(), unresponsive] {
        let watch = Stopwatch::start();
        let otlp = Otlp::new()
            .endpoint(url.clone())
            .timeout(Duration::from_secs(1));
        with_export(otlp, |exporter| {
            play();
            exporter.shutdown().unwrap_err();
        });
        assert!(watch.elapsed() < Duration::from_secs(30), "{url}");
    }
    assert!(!fails.posted("/v1/traces").is_empty());
}

#[test]
fn export_can_be_shut_down_inside_a_runtime() {
    let server = CollectorServer::start(200);
    let (layers, exporter) = Otlp::new().endpoint(server.url()).layers().unwrap();
    let subscriber = tracing_subscriber::registry().with(layers);
    let _default = tracing::subscriber::set_default(subscriber);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        tracing::info_span!("inside").in_scope(|| {});
        drop(exporter);
    });
    assert!(contains(&server.posted("/v1/traces")[0].body, "inside"));
}

#[test]
fn invalid_endpoint_and_second_subscriber_are_rejected() {
    let error = Otlp::new()
        .endpoint("not an address")
        .install()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("telemetry cannot be exported: "),
        "{error}"
    );

    let server = CollectorServer::start(200);
    let first = Otlp::new().endpoint(server.url()).install().unwrap();
    let error = Otlp::new().endpoint(server.url()).install().unwrap_err();
    assert!(
        error.to_string().contains("already has a subscriber"),
        "{error}"
    );
    tracing::info_span!("global").in_scope(|| {});
    first.shutdown().unwrap();
    let posted = server.posted("/v1/traces");
    assert!(posted.iter().any(|posted| contains(&posted.body, "global")));
}
