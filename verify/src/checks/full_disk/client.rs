//! Clients that write over HTTP, and record the responses.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use floe_store::env::SeededRandom;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::http::{self, Connection};
use super::super::test_table::splitmix64;
use super::ledger::{Ledger, State, TABLE, WriteOutcome, payload};
use crate::Failure;

/// Number of keys of a client, and the size of its items.
const KEYS: u64 = 32;
const ITEM_BYTES: usize = 8 << 10;
/// One write in this many is a delete.
const DELETE_EVERY: u64 = 8;
/// The pause of a client after a rejection.
const PAUSE: Duration = Duration::from_millis(10);
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Internals that no error message may contain: paths and type names.
const INSIDE: [&str; 4] = ["/", "Fjall", "Io(", "Os {"];
/// The error codes that a rejected write may return.
const CODES: [&str; 4] = [
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "InternalServerError",
    "InternalServerErrorException",
];

/// Creates the table.
pub(super) async fn create_table(address: &str) -> Result<(), Failure> {
    let body = format!(
        r#"{{"TableName":"{TABLE}","KeySchema":[{{"AttributeName":"p","KeyType":"HASH"}}],"AttributeDefinitions":[{{"AttributeName":"p","AttributeType":"S"}}],"BillingMode":"PAY_PER_REQUEST"}}"#
    );
    let mut caller = Caller::new(address)?;
    match caller.call("CreateTable", &body).await {
        Ok((200, _)) => Ok(()),
        other => Err(Failure::broken(format!(
            "cannot create the table: {other:?}"
        ))),
    }
}

/// The number of the next write, over all clients.
static STAMPS: AtomicU64 = AtomicU64::new(1);

/// A connection that is reopened after an error.
#[derive(Debug)]
pub(super) struct Caller {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Caller {
    pub(super) fn new(address: &str) -> Result<Self, Failure> {
        let address = address.parse();
        let address = address.map_err(|_| Failure::broken("the server has no valid address"))?;
        Ok(Self {
            address,
            connection: None,
        })
    }

    async fn call(&mut self, operation: &str, body: &str) -> io::Result<(u16, Vec<u8>)> {
        self.send(&http::call(operation, body)).await
    }

    async fn send(&mut self, request: &str) -> io::Result<(u16, Vec<u8>)> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let received = timeout(TIMEOUT, connection.request(request.as_bytes())).await;
        let response = received.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.connection = Some(connection);
        Ok(response)
    }

    /// Requests a page and returns its status.
    pub(super) async fn page(&mut self, path: &str) -> Option<u16> {
        let response = self.send(&http::get(path)).await;
        response.ok().map(|(status, _)| status)
    }

    /// Whether an item can be read.
    pub(super) async fn get(&mut self, key: &str) -> bool {
        let body = format!(r#"{{"TableName":"{TABLE}","Key":{{"p":{{"S":"{key}"}}}}}}"#);
        let response = self.call("GetItem", &body).await;
        response.is_ok_and(|(status, body)| {
            status == 200 && body.windows(6).any(|part| part == b"\"Item\"")
        })
    }

    /// Puts an item, and records the outcome.
    pub(super) async fn put(&mut self, key: &str, bytes: usize, ledger: &Ledger) -> WriteOutcome {
        let stamp = STAMPS.fetch_add(1, Ordering::Relaxed);
        let payload = payload(stamp, bytes);
        let body = format!(
            r#"{{"TableName":"{TABLE}","Item":{{"p":{{"S":"{key}"}},"stamp":{{"N":"{stamp}"}},"payload":{{"S":"{payload}"}}}}}}"#
        );
        self.write("PutItem", &body, key, Some(stamp), ledger).await
    }

    /// Deletes an item, and records the outcome.
    pub(super) async fn delete(&mut self, key: &str, ledger: &Ledger) -> WriteOutcome {
        let body = format!(r#"{{"TableName":"{TABLE}","Key":{{"p":{{"S":"{key}"}}}}}}"#);
        self.write("DeleteItem", &body, key, None, ledger).await
    }

    async fn write(
        &mut self,
        operation: &str,
        body: &str,
        key: &str,
        state: State,
        ledger: &Ledger,
    ) -> WriteOutcome {
        let outcome = match self.call(operation, body).await {
            Ok((200, _)) => WriteOutcome::Acked,
            Ok((status, body)) => {
                if let Some(fault) = misshapen(status, &body) {
                    ledger.record_misshapen(fault);
                }
                match status {
                    503 | 400 => WriteOutcome::Refused,
                    _ => WriteOutcome::Unknown,
                }
            }
            // The connection was refused: nothing was sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => WriteOutcome::Refused,
            Err(_) => WriteOutcome::NoResponse,
        };
        ledger.record(key, state, outcome);
        outcome
    }
}

/// Describes what is wrong with an error response.
fn misshapen(status: u16, body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(serde_json::Value::as_str);
    let code = field("__type").and_then(|code| code.rsplit('#').next());
    let message = field("message").or_else(|| field("Message"));
    let is_shaped = matches!(status, 500 | 503)
        && code.is_some_and(|code| CODES.contains(&code))
        && message.is_some_and(|message| !message.is_empty());
    if !is_shaped {
        return Some(format!("not a DynamoDB error: status={status} body={text}"));
    }
    let inside = message.and_then(|message| INSIDE.into_iter().find(|part| message.contains(part)));
    inside.map(|part| format!("an error message exposes internals: part={part:?} body={text}"))
}

/// Clients that write until they are stopped.
#[derive(Debug)]
pub(super) struct Writers {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Writers {
    pub(super) fn start(clients: u64, seed: u64, address: &str, ledger: &Arc<Ledger>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            let (ledger, stopped) = (Arc::clone(ledger), Arc::clone(&stop));
            let address = address.to_owned();
            let random = SeededRandom::new(splitmix64(seed ^ (number << 40)));
            tasks.spawn(async move {
                let Ok(mut caller) = Caller::new(&address) else {
                    return;
                };
                while !stopped.load(Ordering::Relaxed) {
                    let key = format!("w{number}-{}", random.below(KEYS));
                    let outcome = if random.below(DELETE_EVERY) == 0 {
                        caller.delete(&key, &ledger).await
                    } else {
                        caller.put(&key, ITEM_BYTES, &ledger).await
                    };
                    if outcome != WriteOutcome::Acked {
                        sleep(PAUSE).await;
                    }
                }
            });
        }
        Self { stop, tasks }
    }

    /// Stops the clients after their last responses.
    pub(super) async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A client that panicked has recorded its earlier outcomes.
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_expose_no_internals() {
        let refusal = |code: &str, message: &str| {
            let body = format!(
                r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"{message}"}}"#
            );
            misshapen(503, body.as_bytes())
        };
        assert_eq!(refusal("ServiceUnavailable", "the disk is full"), None);
        assert!(refusal("ServiceUnavailable", "no space: path=/var/x").is_some());
        assert!(refusal("ServiceUnavailable", "FjallError: Io(..)").is_some());
        assert!(refusal("ValidationException", "the disk is full").is_some());
        assert!(misshapen(502, b"<html>").is_some());
    }
}
