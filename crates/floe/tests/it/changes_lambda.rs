//! A router as an AWS Lambda function, on a simulated runtime API: it receives recorded events, and the test checks its
//! responses.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use floe::changes::lambda::{Receiver, Runtime, run};
use floe::changes::{Change, Failure, Pattern, Router};
use floe::{Error, ErrorKind};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const EVENT: &str = include_str!("changes/fixtures/lambda_event.json");

/// The sequence numbers of the changes in the event.
const SEQUENCES: [&str; 4] = [
    "300000000012345678901",
    "300000000012345678902",
    "300000000012345678903",
    "300000000012345678904",
];

/// A simulated Lambda runtime API.
struct Lambda(TcpListener);

/// A request of the runtime.
#[derive(Debug)]
struct Request {
    head: Vec<String>,
    body: String,
    stream: TcpStream,
}

impl Lambda {
    async fn new() -> (Self, Runtime) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lambda = Self(listener);
        let runtime = Runtime::at(lambda.address());
        (lambda, runtime)
    }

    fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    async fn request(&self) -> Request {
        let (stream, _) = self.0.accept().await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).await.unwrap();
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_lowercase()),
            }
        }
        let length = head
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).await.unwrap();
        Request {
            head,
            body: String::from_utf8(body).unwrap(),
            stream: reader.into_inner(),
        }
    }

    /// Answers the request for the next event. Returns path and body of the response to it.
    async fn invoke(&self, event: &str) -> (String, Value) {
        let next = self.request().await;
        assert_eq!(
            next.head[0],
            "get /2018-06-01/runtime/invocation/next http/1.1"
        );
        let id = "Lambda-Runtime-Aws-Request-Id: id-7\r\n";
        next.answer("200 OK", id, event).await;
        self.report().await
    }

    /// Receives a response or an error. Returns its path and body.
    async fn report(&self) -> (String, Value) {
        let report = self.request().await;
        let path = report.head[0].strip_prefix("post /2018-06-01/runtime/");
        let path = path.unwrap().strip_suffix(" http/1.1").unwrap().to_owned();
        let body: Value = serde_json::from_str(&report.body).unwrap();
        if path.ends_with("/error") {
            let name = body["errorType"].as_str().unwrap().to_lowercase();
            let named = format!("lambda-runtime-function-error-type: {name}");
            assert!(report.head.contains(&named), "{report:?}");
        }
        report.answer("202 Accepted", "", "").await;
        (path, body)
    }
}

impl Request {
    async fn answer(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }
}

/// The response to an event with these failed changes.
fn response(failed: &[&str]) -> (String, Value) {
    let failed: Vec<Value> = failed
        .iter()
        .map(|sequence| json!({ "itemIdentifier": sequence }))
        .collect();
    let answer = json!({ "batchItemFailures": failed });
    ("invocation/id-7/response".to_owned(), answer)
}

/// A router that records its calls, and fails for the changes in `failing`.
fn router(calls: &Arc<Mutex<Vec<String>>>, failing: &Arc<Mutex<Vec<&'static str>>>) -> Router {
    let (calls, failing) = (Arc::clone(calls), Arc::clone(failing));
    let all = Pattern::any();
    Router::new().matching(all, move |change: Change| {
        let fails = failing.lock().unwrap().contains(&change.event_id());
        calls.lock().unwrap().push(change.event_id().to_owned());
        async move {
            if fails {
                Err(Failure::new("no room"))
            } else {
                Ok(())
            }
        }
    })
}

#[tokio::test]
async fn recorded_events_are_handled() {
    let (lambda, runtime) = Lambda::new().await;
    let (calls, failing) = (Arc::default(), Arc::<Mutex<Vec<_>>>::default());
    let receiver = Receiver::new(router(&calls, &failing));
    let played = async {
        failing.lock().unwrap().push("a2");
        // The third change is of the same item as the second, which fails; the fourth is of another item.
        let held = response(&[SEQUENCES[1], SEQUENCES[2]]);
        assert_eq!(lambda.invoke(EVENT).await, held);
        assert_eq!(*calls.lock().unwrap(), ["a1", "a2", "a4"]);
        failing.lock().unwrap().clear();
        // When the event is sent again, only unfinished changes are handled.
        assert_eq!(lambda.invoke(EVENT).await, response(&[]));
        assert_eq!(*calls.lock().unwrap(), ["a1", "a2", "a4", "a2", "a3"]);
        assert_eq!(lambda.invoke(r#"{"Records":[]}"#).await, response(&[]));
        let (path, error) = lambda.invoke("{").await;
        assert_eq!(path, "invocation/id-7/error");
        assert_eq!(error["errorType"], "Floe.EventFailed");
        let message = error["errorMessage"].as_str().unwrap();
        assert!(message.starts_with("the event is not JSON: "), "{message}");
        // The failed event does not stop the runtime.
        assert_eq!(lambda.invoke(EVENT).await, response(&[]));
        assert_eq!(calls.lock().unwrap().len(), 5);
    };
    tokio::select! {
        ended = receiver.run_in(&runtime) => ended.unwrap(),
        () = played => {}
    }
}

/// Returns the error with which the runtime stops after this response.
async fn ended_by(status: &str, headers: &str) -> Error {
    let (lambda, runtime) = Lambda::new().await;
    let receiver = Receiver::new(Router::new());
    let played = async { lambda.request().await.answer(status, headers, "{}").await };
    let (ended, ()) = tokio::join!(receiver.run_in(&runtime), played);
    ended.unwrap_err()
}

#[tokio::test]
async fn runtime_stops_when_the_api_fails() {
    let error = ended_by("403 Forbidden", "").await;
    assert_eq!(error.kind(), ErrorKind::Store);
    let message = error.to_string();
    assert!(
        message.starts_with("Lambda runtime API request failed: status 403"),
        "{message}"
    );
    assert!(
        message.ends_with("path=/2018-06-01/runtime/invocation/next"),
        "{message}"
    );
    let error = ended_by("200 OK", "").await;
    assert_eq!(error.to_string(), "a Lambda event has no request id");

    let (lambda, runtime) = Lambda::new().await;
    drop(lambda);
    let ended = Receiver::new(Router::new()).run_in(&runtime).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Store);
}

#[tokio::test]
async fn failed_initialization_is_reported() {
    let (lambda, runtime) = Lambda::new().await;
    let runtime = runtime.error_name("Shop.NoTable");
    let (sent, (path, error)) = tokio::join!(runtime.fail_init("no table"), lambda.report());
    sent.unwrap();
    assert_eq!(path, "init/error");
    let expected =
        json!({"errorMessage": "no table", "errorType": "Shop.NoTable", "stackTrace": []});
    assert_eq!(error, expected);
}

/// The function that `address_comes_from_the_environment` starts in a child process. In the test process, it fails.
#[tokio::test]
async fn function_process() {
    let failing = Router::new().matching(Pattern::any(), async |_| Err(Failure::new("no room")));
    let ended = run(failing).await.unwrap_err();
    if !Runtime::is_lambda() {
        assert_eq!(ended.kind(), ErrorKind::InvalidUse);
        let message =
            "this process was not started by AWS Lambda: AWS_LAMBDA_RUNTIME_API is not set";
        assert_eq!(ended.to_string(), message);
    }
}

#[tokio::test]
async fn address_comes_from_the_environment() {
    let (lambda, _) = Lambda::new().await;
    let function = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "changes_lambda::function_process", "--nocapture"])
        .env("AWS_LAMBDA_RUNTIME_API", lambda.address())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(lambda.invoke(EVENT).await, response(&SEQUENCES));
    drop(lambda);
    let log = function.wait_with_output().unwrap().stderr;
    let log = String::from_utf8(log).unwrap();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("floe: "))
        .collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(
        lines[0].starts_with("floe: change failed, no room: handlers="),
        "{log}"
    );
    assert!(
        lines[0].ends_with(" sequence=300000000012345678901 event_id=a1"),
        "{log}"
    );
    assert_eq!(lines[2], "floe: further changes must be resent: changes=2");
}
