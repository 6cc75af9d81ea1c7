//! OpenTelemetry export of the program `floe`, to a collector that the test plays.

#[path = "../../../floe/tests/telemetry/collector.rs"]
mod collector;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use collector::{CollectorServer, contains};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{self, run_command, spawn};

fn floe(arguments: &[&str], collector: &str) -> Command {
    let mut command = support::floe(arguments);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    command
}

/// A running program; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Running {
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.0.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        line
    }

    /// Stops the program. Returns its standard error.
    fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        let mut stderr = String::new();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        assert!(self.0.wait().unwrap().success(), "{stderr}");
        stderr
    }
}

fn call(address: &str, operation: &str, body: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nx-amz-target: DynamoDB_20120810.{operation}\r\n\
         content-type: application/x-amz-json-1.0\r\nauthorization: AWS4-HMAC-SHA256 \
         Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b\r\n\
         x-amz-date: 20260101T000000Z\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    connection.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}

const TABLE: &str = r#"{"TableName":"things","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;

#[test]
fn server_exports_spans_and_metrics() {
    let collector = CollectorServer::start(200);
    let arguments = ["serve", "--memory", "--listen", "0"];
    let mut server = Running(spawn(floe(&arguments, &collector.url())));
    let line = server.first_line();
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(call(address, "CreateTable", TABLE).contains("TableDescription"));
    let put = r#"{"TableName":"things","Item":{"id":{"S":"hunter2"}}}"#;
    let response = call(address, "PutItem", put);
    assert!(response.ends_with("{}"), "{response}");
    let stderr = server.stop();
    let note = format!("floe: telemetry is exported: endpoint={}", collector.url());
    assert_eq!(stderr.lines().next(), Some(note.as_str()));
    let traces = collector.posted("/v1/traces");
    let has = |text: &str| traces.iter().any(|posted| contains(&posted.body, text));
    for text in [
        "floe-serve",
        "PutItem",
        "CreateTable",
        "things",
        "floe.consumed_write_units",
    ] {
        assert!(has(text), "{text}");
    }
    assert!(!has("hunter2"), "a key was exported");
    let is_protobuf = |(name, value): &(String, String)| {
        name == "content-type" && value == "application/x-protobuf"
    };
    assert!(traces[0].headers.iter().any(is_protobuf));
    let metrics = collector.posted("/v1/metrics");
    let has = |text: &str| metrics.iter().any(|posted| contains(&posted.body, text));
    assert!(has("floe.server.operation.duration") && has("PutItem"));
}

#[test]
fn indexer_exports_spans_and_metrics() {
    let collector = CollectorServer::start(200);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    // The demo creates an event table.
    let demo = ["demo", "--no-serve", "--data", path];
    run_command(floe(&demo, &collector.url())).assert_success();
    let arguments = ["indexer", "--data", path, "--once"];
    let mut indexer = floe(&arguments, &collector.url());
    indexer.env("OTEL_SERVICE_NAME", "the-indexer");
    run_command(indexer).assert_success();
    let traces = collector.posted("/v1/traces");
    let has = |text: &str| traces.iter().any(|posted| contains(&posted.body, text));
    assert!(has("the-indexer") && has("floe.feed.records"));
    let metrics = collector.posted("/v1/metrics");
    let has = |text: &str| metrics.iter().any(|posted| contains(&posted.body, text));
    assert!(has("floe.indexer.events") && has("floe.indexer.lag"));
}

#[test]
fn unreachable_collector_is_reported_and_delays_no_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let down = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let arguments = ["serve", "--memory", "--listen", "0"];
    let mut server = Running(spawn(floe(&arguments, &down)));
    let line = server.first_line();
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(call(address, "ListTables", "{}").contains("TableNames"));
    let stderr = server.stop();
    assert!(stderr.contains("telemetry cannot be exported"), "{stderr}");
}
