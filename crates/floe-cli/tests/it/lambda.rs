//! The program as a custom runtime of AWS Lambda. The test plays Lambda's runtime API.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use floe::events::EventStore;
use serde_json::{Value, json};

use crate::support::{ProgramOutput, Running, append, block_on, connected, floe, run, spawn};

/// Lambda's runtime API.
struct Lambda(TcpListener);

/// A request of the runtime.
#[derive(Debug)]
struct Request {
    line: String,
    headers: Vec<String>,
    body: String,
    stream: TcpStream,
}

impl Lambda {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Starts a function with this environment as Lambda does, without arguments.
    fn start(&self, environment: &[(&str, &str)]) -> Function {
        let mut command: Command = floe(&[]);
        let address = self.0.local_addr().unwrap().to_string();
        command
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .envs(environment.iter().copied())
            .stdout(Stdio::null());
        Function(Some(spawn(command)))
    }

    fn request(&self) -> Request {
        let (stream, _) = self.0.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_lowercase()),
            }
        }
        let length = lines
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        Request {
            line: lines.remove(0),
            headers: lines,
            body: String::from_utf8(body).unwrap(),
            stream,
        }
    }

    /// Delivers an event, and waits for the function's next request.
    fn invoke(&self, event: &str) -> Request {
        let poll = self.request();
        assert_eq!(
            poll.line,
            "get /2018-06-01/runtime/invocation/next http/1.1"
        );
        let head = "Lambda-Runtime-Aws-Request-Id: Id-7\r\nLambda-Runtime-Deadline-Ms: 1\r\n";
        poll.respond("200 OK", head, event);
        self.request()
    }

    /// Delivers an event that succeeds. Returns the response.
    fn response(&self, event: &str) -> Value {
        let posted = self.invoke(event);
        assert_eq!(
            posted.line, "post /2018-06-01/runtime/invocation/id-7/response http/1.1",
            "{posted:?}"
        );
        posted.json()
    }

    /// Delivers an event that fails. Returns the error message.
    fn error(&self, event: &str) -> String {
        let posted = self.invoke(event);
        assert_eq!(
            posted.line,
            "post /2018-06-01/runtime/invocation/id-7/error http/1.1"
        );
        posted.error()
    }
}

impl Request {
    fn respond(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    fn json(self) -> Value {
        let json = serde_json::from_str(&self.body).unwrap();
        self.respond("202 Accepted", "", "");
        json
    }

    fn error(self) -> String {
        let named = "lambda-runtime-function-error-type: floe.indexerfailed".to_owned();
        assert!(self.headers.contains(&named), "{self:?}");
        let json = self.json();
        assert_eq!(json["errorType"], "Floe.IndexerFailed");
        json["errorMessage"].as_str().unwrap().to_owned()
    }
}

/// A running function; killed when dropped.
struct Function(Option<Child>);

impl Function {
    fn wait(mut self) -> ProgramOutput {
        let mut child = self.0.take().unwrap();
        let mut stderr = String::new();
        let mut pipe = child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        ProgramOutput {
            code: child.wait().unwrap().code(),
            stdout: String::new(),
            stderr,
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The event that Lambda would create for the streams of a table.
async fn event(store: &EventStore) -> String {
    let mut records = Vec::new();
    for stream in store.streams(None).collect().await.unwrap() {
        let version = store.version(&stream).await.unwrap();
        let types: Vec<Value> = (0..version).map(|_| json!({"S": "Added"})).collect();
        let number = |n: u64| json!({"N": n.to_string()});
        let key = json!({"p": {"S": stream.as_str()}, "i": number(2_147_483_647)});
        let mut image = key.clone();
        let more = json!({"n": number(version), "a": number(version), "c": {"L": types}});
        let more = more.as_object().unwrap().clone();
        image.as_object_mut().unwrap().extend(more);
        records.push(json!({
            "eventID": "e", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "eu-central-1",
            "dynamodb": {"ApproximateCreationDateTime": 1_700_000_000, "Keys": key, "NewImage": image,
                "SequenceNumber": format!("{}00", records.len() + 1), "SizeBytes": 99, "StreamViewType": "NEW_IMAGE"},
            "eventSourceARN": "arn:aws:dynamodb:eu-central-1:1:table/shop/stream/2026-01-01T00:00:00.000",
        }));
    }
    json!({ "Records": records }).to_string()
}

#[test]
fn changes_from_lambda_enter_the_feed() {
    let (_server, endpoint) = Running::server();
    let event = block_on(async {
        let store = connected(&endpoint).await;
        store.ensure_feed().await.unwrap();
        append(&store, "Cart-1", &["{}", "{}"]).await;
        append(&store, "Cart-2", &["{}"]).await;
        event(&store).await
    });
    let lambda = Lambda::new();
    let environment = [
        ("FLOE_ENDPOINT", endpoint.as_str()),
        ("FLOE_TABLE", "shop"),
        ("FLOE_PARTITIONS", "1"),
    ];
    let function = lambda.start(&environment);
    let all = json!({"batchItemFailures": []});
    assert_eq!(lambda.response(&event), all);
    assert_eq!(lambda.response(&event), all, "redelivered");
    let poison = event.replace(r#"{"S":"Cart-2"}"#, r#"{"NULL":true}"#);
    let reason = lambda.error(&poison);
    assert!(
        reason.contains("invalid change record of an events table, no stream name"),
        "{reason}"
    );
    let reason = lambda.error("{");
    assert!(reason.starts_with("the event is not JSON: "), "{reason}");
    assert_eq!(lambda.response(r#"{"Records":[]}"#), all);

    let read = [
        "feed",
        "read",
        "--json",
        "--endpoint",
        &endpoint,
        "--table",
        "shop",
    ];
    let printed = run(&read).assert_success().stdout;
    assert_eq!(printed.lines().count(), 2, "{printed}");
    // The function exits when the runtime API is gone.
    drop(lambda);
    let output = function.wait();
    output.assert_failure(
        1,
        &["Lambda runtime API request failed", "/invocation/next"],
    );
}

#[test]
fn first_failed_change_is_reported_on_request() {
    let (_server, endpoint) = Running::server();
    let event = block_on(async {
        let store = connected(&endpoint).await;
        store.ensure_feed().await.unwrap();
        for id in 1..4 {
            append(&store, &format!("Cart-{id}"), &["{}"]).await;
        }
        event(&store).await
    });
    let lambda = Lambda::new();
    let environment = [
        ("FLOE_ENDPOINT", endpoint.as_str()),
        ("FLOE_TABLE", "shop"),
        ("FLOE_REPORT_BATCH_ITEM_FAILURES", "true"),
    ];
    let _function = lambda.start(&environment);
    let records: Value = serde_json::from_str(&event).unwrap();
    let mut poison = records;
    poison["Records"][1]["dynamodb"]["NewImage"]["a"] = json!({"S": "1"});
    let failed = json!({"batchItemFailures": [{"itemIdentifier": "200"}]});
    assert_eq!(lambda.response(&poison.to_string()), failed);
    assert_eq!(lambda.response(&event), json!({"batchItemFailures": []}));
}

#[test]
fn initialization_failure_is_reported() {
    let (_server, endpoint) = Running::server();
    block_on(async {
        connected(&endpoint).await;
    });
    let lambda = Lambda::new();
    let environment = [("FLOE_ENDPOINT", endpoint.as_str()), ("FLOE_TABLE", "shop")];
    let function = lambda.start(&environment);
    let posted = lambda.request();
    assert_eq!(posted.line, "post /2018-06-01/runtime/init/error http/1.1");
    let reason = posted.error();
    assert!(reason.contains("shop-index"), "{reason}");
    function.wait().assert_failure(1, &["shop-index"]);
}
