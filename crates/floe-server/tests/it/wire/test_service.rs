//! A service on an empty engine in memory, called with JSON bodies.

use std::sync::Arc;

use floe_local::LocalEngine;
use floe_server::Service;
use floe_store::op::CreateTable;
use floe_store::{Engine, TableDef};
use serde_json::{Value, json};

/// A service to call.
pub(crate) struct TestService {
    engine: Arc<LocalEngine>,
    service: Service,
}

impl TestService {
    /// Returns a service without tables.
    pub(crate) fn new() -> Self {
        Self::on(LocalEngine::memory().unwrap())
    }

    /// Returns a service on this engine.
    pub(crate) fn on(engine: LocalEngine) -> Self {
        let engine = Arc::new(engine);
        Self {
            service: Service::new(engine.clone()),
            engine,
        }
    }

    /// Returns the engine of the service.
    pub(crate) fn engine(&self) -> &LocalEngine {
        &self.engine
    }

    /// Runs the engine's background work, which builds and removes indexes.
    pub(crate) fn run_background(&self) {
        while self.engine.run_background_once().unwrap() {}
    }

    /// Creates a table in the engine directly.
    pub(crate) async fn create_table(&self, table: TableDef) {
        let made = self.engine.create_table(CreateTable::from(table)).await;
        made.unwrap();
    }

    /// Calls an operation of DynamoDB, or of DynamoDB Streams if it has another name.
    pub(crate) async fn call(&self, operation: &str, body: &str) -> (u16, Value) {
        let service = match operation {
            "ListStreams" | "DescribeStream" | "GetShardIterator" | "GetRecords" => {
                "DynamoDBStreams_20120810"
            }
            _ => "DynamoDB_20120810",
        };
        let target = format!("{service}.{operation}");
        let response = self.service.call(&target, body.as_bytes()).await;
        // Some operations return an empty body.
        let body = match &*response.body {
            b"" => Value::Null,
            body => serde_json::from_slice(body).unwrap(),
        };
        (response.status, body)
    }

    /// Calls an operation that must succeed.
    pub(crate) async fn ok(&self, operation: &str, body: Value) -> Value {
        let (status, response) = self.call(operation, &body.to_string()).await;
        assert_eq!(
            status, 200,
            "operation={operation} body={body} response={response}"
        );
        response
    }

    /// Checks that a call fails with this code and message.
    pub(crate) async fn expect_error(
        &self,
        operation: &str,
        body: &str,
        code: &str,
        message: &str,
    ) {
        let (status, response) = self.call(operation, body).await;
        let text = |name: &str| response[name].as_str().unwrap_or_default().to_owned();
        let kind = text("__type");
        let kind = kind.rsplit('#').next().unwrap_or_default();
        let found = text("message") + &text("Message");
        assert_eq!(
            (status, kind, found.as_str()),
            (400, code, message),
            "operation={operation} body={body}"
        );
    }

    /// Checks that a call fails with a `ValidationException` of these faults in any order.
    pub(crate) async fn expect_faults(&self, operation: &str, body: &str, faults: &[&str]) {
        let (status, response) = self.call(operation, body).await;
        let message = response["message"].as_str().unwrap_or_default().to_owned();
        let plural = if faults.len() == 1 { "" } else { "s" };
        let start = format!("{} validation error{plural} detected: ", faults.len());
        let found = message.strip_prefix(&start).unwrap_or_default();
        let mut found: Vec<&str> = found.split("; ").collect();
        let mut expected = faults.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(
            (status, found),
            (400, expected),
            "operation={operation} body={body} response={response}"
        );
    }

    /// Checks that a call fails with a `ValidationException` with this message.
    pub(crate) async fn expect_validation_error(&self, operation: &str, body: &str, message: &str) {
        self.expect_error(operation, body, "ValidationException", message)
            .await;
    }

    /// Creates a table with the text key `pk`.
    pub(crate) async fn hash_table(&self, name: &str) {
        let body = json!({
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        });
        self.ok("CreateTable", body).await;
    }

    /// Creates a table with the text keys `pk` and `sk`.
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

/// Returns a request with members added or replaced.
pub(crate) fn with(request: &Value, members: &Value) -> Value {
    let mut request = request.clone();
    for (name, member) in members.as_object().into_iter().flatten() {
        request[name] = member.clone();
    }
    request
}

/// Returns the message of a single fault in the constraint form.
pub(crate) fn one(message: &str) -> String {
    format!("1 validation error detected: {message}")
}
