//! Calls of the wire: the name of an operation on the first line, a body behind it. Never a panic, never an error
//! of the server's own, always an answer in JSON, or none where DynamoDB says nothing; and an item that was put comes back so that putting what came
//! back changes nothing.

#![no_main]

use std::sync::{Arc, OnceLock};

use floe_local::{LocalEngine, Options};
use floe_server::{ApiResponse, Service};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (operation, body) = data.split_at(end);
    let Ok(operation) = std::str::from_utf8(operation) else {
        return;
    };
    let body = body.get(1..).unwrap_or_default();
    let target = match operation {
        "ListStreams" | "DescribeStream" | "GetShardIterator" | "GetRecords" => "DynamoDBStreams_20120810",
        _ => "DynamoDB_20120810",
    };
    let world = world();
    let answer = world.call(&format!("{target}.{operation}"), body);
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    // Tagging is answered with nothing.
    let is_silent = operation.ends_with("tagResource") || operation == "TagResource";
    if !(is_silent && answer.status == 200 && answer.body.is_empty()) {
        let _json: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
    }
    if operation == "PutItem" && answer.status == 200 {
        world.check_item(body);
    }
});

struct World {
    runtime: Runtime,
    service: Service,
}

/// One engine for all inputs, with a table that seeds know.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let engine = LocalEngine::memory_with(Options::new().background(false)).expect("an engine");
        let world = World {
            runtime: Builder::new_current_thread().build().expect("a runtime"),
            service: Service::new(Arc::new(engine)),
        };
        let table = json!({
            "TableName": "Things",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        let made = world.call("DynamoDB_20120810.CreateTable", table.to_string().as_bytes());
        assert_eq!(made.status, 200, "{made:?}");
        world
    })
}

impl World {
    fn call(&self, target: &str, body: &[u8]) -> ApiResponse {
        self.runtime.block_on(self.service.call(target, body))
    }

    /// Reads the item that the body has put, puts what was read and reads it again.
    fn check_item(&self, body: &[u8]) {
        let body: Value = serde_json::from_slice(body).expect("what was taken is JSON");
        let Some(key) = body.pointer("/Item/pk").filter(|_| body["TableName"] == "Things") else {
            return;
        };
        let first = self.read(key);
        let again = json!({"TableName": "Things", "Item": first});
        let put = self.call("DynamoDB_20120810.PutItem", again.to_string().as_bytes());
        assert_eq!(put.status, 200, "{put:?}");
        assert_eq!(self.read(key), first);
    }

    fn read(&self, key: &Value) -> Value {
        let get = json!({"TableName": "Things", "Key": {"pk": key}, "ConsistentRead": true});
        let got = self.call("DynamoDB_20120810.GetItem", get.to_string().as_bytes());
        assert_eq!(got.status, 200, "{got:?}");
        let got: Value = serde_json::from_slice(&got.body).expect("an answer is JSON");
        got["Item"].clone()
    }
}
