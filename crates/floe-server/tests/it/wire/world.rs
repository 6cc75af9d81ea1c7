//! A service on an empty engine in memory, called with JSON.

use std::sync::Arc;

use floe_local::LocalEngine;
use floe_server::Service;
use floe_store::op::CreateTable;
use floe_store::{Engine, TableDef};
use serde_json::{Value, json};

/// A service to call.
pub(crate) struct World {
    engine: Arc<LocalEngine>,
    service: Service,
}

impl World {
    /// Without tables.
    pub(crate) fn new() -> Self {
        Self::on(LocalEngine::memory().unwrap())
    }

    /// On this engine.
    pub(crate) fn on(engine: LocalEngine) -> Self {
        let engine = Arc::new(engine);
        Self {
            service: Service::new(engine.clone()),
            engine,
        }
    }

    /// The engine below the service.
    pub(crate) fn engine(&self) -> &LocalEngine {
        &self.engine
    }

    /// Does what the engine would do in the background: fills and removes indexes.
    pub(crate) fn work(&self) {
        while self.engine.run_background_once().unwrap() {}
    }

    /// Makes a table without asking the service.
    pub(crate) async fn make(&self, table: TableDef) {
        let made = self.engine.create_table(CreateTable::from(table)).await;
        made.unwrap();
    }

    /// Calls an operation of DynamoDB, or of its streams if there is no other of that name.
    pub(crate) async fn call(&self, operation: &str, body: &str) -> (u16, Value) {
        let service = match operation {
            "ListStreams" | "DescribeStream" | "GetShardIterator" | "GetRecords" => {
                "DynamoDBStreams_20120810"
            }
            _ => "DynamoDB_20120810",
        };
        let target = format!("{service}.{operation}");
        let answer = self.service.call(&target, body.as_bytes()).await;
        // Some operations answer nothing at all.
        let body = match &*answer.body {
            b"" => Value::Null,
            body => serde_json::from_slice(body).unwrap(),
        };
        (answer.status, body)
    }

    /// The answer to a call that succeeds.
    pub(crate) async fn ok(&self, operation: &str, body: Value) -> Value {
        let (status, answer) = self.call(operation, &body.to_string()).await;
        assert_eq!(
            status, 200,
            "operation={operation} body={body} answer={answer}"
        );
        answer
    }

    /// Checks that a call is refused with this code and message.
    pub(crate) async fn refused(&self, operation: &str, body: &str, code: &str, message: &str) {
        let (status, answer) = self.call(operation, body).await;
        let told = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let kind = told("__type");
        let kind = kind.rsplit('#').next().unwrap_or_default();
        let words = told("message") + &told("Message");
        assert_eq!(
            (status, kind, words.as_str()),
            (400, code, message),
            "operation={operation} body={body}"
        );
    }

    /// Checks that a call is refused with a `ValidationException` of these faults, told together in any order.
    pub(crate) async fn faulty(&self, operation: &str, body: &str, faults: &[&str]) {
        let (status, answer) = self.call(operation, body).await;
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        let plural = if faults.len() == 1 { "" } else { "s" };
        let start = format!("{} validation error{plural} detected: ", faults.len());
        let told = message.strip_prefix(&start).unwrap_or_default();
        let mut told: Vec<&str> = told.split("; ").collect();
        let mut expected = faults.to_vec();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(
            (status, told),
            (400, expected),
            "operation={operation} body={body} answer={answer}"
        );
    }

    /// Checks that a call is refused with a `ValidationException` of this message.
    pub(crate) async fn invalid(&self, operation: &str, body: &str, message: &str) {
        self.refused(operation, body, "ValidationException", message)
            .await;
    }

    /// Makes a table with the key `pk`, text.
    pub(crate) async fn hash_table(&self, name: &str) {
        let body = json!({
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        });
        self.ok("CreateTable", body).await;
    }

    /// Makes a table with the keys `pk` and `sk`, both text.
    pub(crate) async fn table(&self, name: &str) {
        let body = json!({
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
        });
        self.ok("CreateTable", body).await;
    }
}

/// A request with more members, or other ones.
pub(crate) fn with(request: &Value, members: &Value) -> Value {
    let mut request = request.clone();
    for (name, member) in members.as_object().into_iter().flatten() {
        request[name] = member.clone();
    }
    request
}

/// One fault in the form of a constraint.
pub(crate) fn one(message: &str) -> String {
    format!("1 validation error detected: {message}")
}
