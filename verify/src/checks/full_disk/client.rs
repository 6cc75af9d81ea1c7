//! Clients that write over HTTP, and record what they were answered.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use floe_store::env::SeededRandom;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::http::{self, Connection};
use super::super::stage::mixed;
use super::ledger::{Answer, Ledger, State, TABLE, payload};
use crate::Failure;

/// The keys of a client, and the size of its items.
const KEYS: u64 = 32;
const ITEM_BYTES: usize = 8 << 10;
/// One write in this many is a delete.
const DELETE_EVERY: u64 = 8;
/// How long a client pauses after a refusal.
const PAUSE: Duration = Duration::from_millis(10);
/// A request without an answer by then has none.
const PATIENCE: Duration = Duration::from_secs(20);

/// What no message to a client may hold: paths, and names of types inside.
const INSIDE: [&str; 4] = ["/", "Fjall", "Io(", "Os {"];
/// The errors by which a write may be refused.
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
        other => Err(Failure::broken(format!("no table was made: {other:?}"))),
    }
}

/// Numbers writes, over all clients.
static STAMPS: AtomicU64 = AtomicU64::new(1);

/// A connection that is opened again when it has broken.
#[derive(Debug)]
pub(super) struct Caller {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Caller {
    pub(super) fn new(address: &str) -> Result<Self, Failure> {
        let address = address.parse();
        let address = address.map_err(|_| Failure::broken("the server has no address"))?;
        Ok(Self {
            address,
            connection: None,
        })
    }

    async fn call(&mut self, operation: &str, body: &str) -> io::Result<(u16, Vec<u8>)> {
        self.ask(&http::call(operation, body)).await
    }

    async fn ask(&mut self, request: &str) -> io::Result<(u16, Vec<u8>)> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let answered = timeout(PATIENCE, connection.ask_whole(request.as_bytes())).await;
        let answer = answered.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.connection = Some(connection);
        Ok(answer)
    }

    /// The status of a page.
    pub(super) async fn page(&mut self, path: &str) -> Option<u16> {
        let answer = self.ask(&http::get(path)).await;
        answer.ok().map(|(status, _)| status)
    }

    /// Whether an item is read.
    pub(super) async fn get(&mut self, key: &str) -> bool {
        let body = format!(r#"{{"TableName":"{TABLE}","Key":{{"p":{{"S":"{key}"}}}}}}"#);
        let answer = self.call("GetItem", &body).await;
        answer.is_ok_and(|(status, body)| {
            status == 200 && body.windows(6).any(|part| part == b"\"Item\"")
        })
    }

    /// Puts an item, and records the answer.
    pub(super) async fn put(&mut self, key: &str, bytes: usize, ledger: &Ledger) -> Answer {
        let stamp = STAMPS.fetch_add(1, Ordering::Relaxed);
        let payload = payload(stamp, bytes);
        let body = format!(
            r#"{{"TableName":"{TABLE}","Item":{{"p":{{"S":"{key}"}},"stamp":{{"N":"{stamp}"}},"payload":{{"S":"{payload}"}}}}}}"#
        );
        self.write("PutItem", &body, key, Some(stamp), ledger).await
    }

    /// Deletes an item, and records the answer.
    pub(super) async fn delete(&mut self, key: &str, ledger: &Ledger) -> Answer {
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
    ) -> Answer {
        let answer = match self.call(operation, body).await {
            Ok((200, _)) => Answer::Acked,
            Ok((status, body)) => {
                if let Some(fault) = misshapen(status, &body) {
                    ledger.record_misshapen(fault);
                }
                match status {
                    503 | 400 => Answer::Refused,
                    _ => Answer::Unknown,
                }
            }
            // The connection was never made: nothing was sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Answer::Refused,
            Err(_) => Answer::None,
        };
        ledger.record(key, state, answer);
        answer
    }
}

/// What is wrong with a refusal.
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
        return Some(format!(
            "not an error of DynamoDB: status={status} body={text}"
        ));
    }
    let inside = message.and_then(|message| INSIDE.into_iter().find(|part| message.contains(part)));
    inside.map(|part| format!("a message names what is inside: part={part:?} body={text}"))
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
            let random = SeededRandom::new(mixed(seed ^ (number << 40)));
            tasks.spawn(async move {
                let Ok(mut caller) = Caller::new(&address) else {
                    return;
                };
                while !stopped.load(Ordering::Relaxed) {
                    let key = format!("w{number}-{}", random.below(KEYS));
                    let answer = if random.below(DELETE_EVERY) == 0 {
                        caller.delete(&key, &ledger).await
                    } else {
                        caller.put(&key, ITEM_BYTES, &ledger).await
                    };
                    if answer != Answer::Acked {
                        sleep(PAUSE).await;
                    }
                }
            });
        }
        Self { stop, tasks }
    }

    /// Ends them once their last requests are answered.
    pub(super) async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // One that panicked has recorded what it had done.
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_nothing_that_is_inside() {
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
