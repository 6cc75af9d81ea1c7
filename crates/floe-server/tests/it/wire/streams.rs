//! ListStreams, DescribeStream, GetShardIterator and GetRecords.

use std::sync::Arc;
use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::op::{UpdateTable, UpdateTimeToLive};
use floe_store::table::{KeyKind, StreamView};
use floe_store::{Engine, Env, TableDef, Timestamp};
use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a service with a table `Hash` with a stream, at a time with half a second.
async fn service() -> TestService {
    service_and_clock().await.0
}

async fn service_and_clock() -> (TestService, Arc<ManualClock>) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_500));
    let options = Options::new()
        .region("eu-west-1")
        .background(false)
        .env(Env::manual(clock.clone(), 1));
    let service = TestService::on(LocalEngine::memory_with(options).unwrap());
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).stream(StreamView::NewAndOldImages);
    service.create_table(hash.build().unwrap()).await;
    (service, clock)
}

async fn write(service: &TestService, request: Value) {
    let body = json!({"RequestItems": {"Hash": [request]}});
    service.ok("BatchWriteItem", body).await;
}

async fn put(service: &TestService, pk: &str) {
    write(service, json!({"PutRequest": {"Item": {"pk": {"S": pk}}}})).await;
}

/// Returns an iterator into the shard of the table's stream.
async fn iterator(service: &TestService, kind: &str, sequence: Option<&str>) -> Value {
    let mut body = json!({"StreamArn": ARN, "ShardId": SHARD, "ShardIteratorType": kind});
    if let Some(sequence) = sequence {
        body["SequenceNumber"] = json!(sequence);
    }
    service.ok("GetShardIterator", body).await["ShardIterator"].take()
}

/// Reads the records at an iterator. Returns them and the next iterator.
async fn records(service: &TestService, iterator: &Value) -> (Vec<Value>, Value) {
    let mut response = service
        .ok("GetRecords", json!({"ShardIterator": iterator}))
        .await;
    let records = response["Records"].as_array().unwrap().clone();
    (records, response["NextShardIterator"].take())
}

/// Returns the keys of records.
fn keys(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap())
        .collect()
}

const SHARD: &str = "shardId-00000001700000000500-00000001";

const ARN: &str =
    "arn:aws:dynamodb:eu-west-1:000000000000:table/Hash/stream/2023-11-14T22:13:20.500";

#[tokio::test]
async fn streams_are_listed_and_described() {
    let service = service().await;
    let stream =
        json!({"StreamArn": ARN, "TableName": "Hash", "StreamLabel": "2023-11-14T22:13:20.500"});
    assert_eq!(
        service.ok("ListStreams", json!({"Limit": 1})).await,
        json!({"Streams": [stream]})
    );
    assert_eq!(
        service
            .ok("DescribeStream", json!({"StreamArn": ARN}))
            .await,
        json!({"StreamDescription": {
            "StreamArn": ARN,
            "StreamLabel": "2023-11-14T22:13:20.500",
            "StreamStatus": "ENABLED",
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            "CreationRequestDateTime": 1_700_000_000.5,
            "TableName": "Hash",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "Shards": [{
                "ShardId": "shardId-00000001700000000500-00000001",
                "SequenceNumberRange": {"StartingSequenceNumber": "000000000000000000001"},
            }],
        }})
    );
}

#[tokio::test]
async fn records_contain_each_change() {
    let service = service().await;
    let item = |n: &str| json!({"pk": {"S": "a"}, "n": {"N": n}});
    let key = json!({"pk": {"S": "a"}});
    write(&service, json!({"PutRequest": {"Item": item("1")}})).await;
    write(&service, json!({"PutRequest": {"Item": item("2")}})).await;
    write(&service, json!({"DeleteRequest": {"Key": key}})).await;
    let iterator = iterator(&service, "TRIM_HORIZON", None).await;
    let mut response = service
        .ok(
            "GetRecords",
            json!({"ShardIterator": iterator, "Limit": 1000}),
        )
        .await;
    assert!(response["NextShardIterator"].is_string());
    let records = response["Records"].as_array_mut().unwrap();
    let change = |n: u32, size: u32, mut images: Value| {
        images["ApproximateCreationDateTime"] = json!(1_700_000_000);
        images["Keys"] = key.clone();
        images["SequenceNumber"] = json!(format!("{n:021}"));
        images["SizeBytes"] = json!(size);
        images["StreamViewType"] = json!("NEW_AND_OLD_IMAGES");
        images
    };
    let expected = [
        ("INSERT", change(1, 9, json!({"NewImage": item("1")}))),
        (
            "MODIFY",
            change(2, 15, json!({"NewImage": item("2"), "OldImage": item("1")})),
        ),
        ("REMOVE", change(3, 9, json!({"OldImage": item("2")}))),
    ];
    for (record, (name, change)) in records.iter_mut().zip(expected) {
        let id = record.as_object_mut().unwrap().remove("eventID").unwrap();
        assert_eq!(id.as_str().unwrap().len(), 32);
        assert_eq!(
            *record,
            json!({"eventName": name, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
                   "awsRegion": "eu-west-1", "dynamodb": change})
        );
    }
    assert_eq!(records.len(), 3);
}

#[tokio::test]
async fn iterators_start_at_the_requested_position() {
    let service = service().await;
    let latest = iterator(&service, "LATEST", None).await;
    let (none, latest) = records(&service, &latest).await;
    assert_eq!(none, Vec::<Value>::new());
    put(&service, "a").await;
    put(&service, "b").await;
    // An identical put is not a change.
    put(&service, "b").await;
    let (read, next) = records(&service, &latest).await;
    assert_eq!(keys(&read), ["a", "b"]);
    assert_eq!(records(&service, &next).await.0, Vec::<Value>::new());
    let second = read[1]["dynamodb"]["SequenceNumber"].as_str().unwrap();
    for (kind, sequence, expected) in [
        ("TRIM_HORIZON", None, ["a", "b"].as_slice()),
        ("LATEST", None, &[]),
        ("AT_SEQUENCE_NUMBER", Some(second), &["b"]),
        ("AFTER_SEQUENCE_NUMBER", Some(second), &[]),
        (
            "AT_SEQUENCE_NUMBER",
            Some("000000000000000000001"),
            &["a", "b"],
        ),
    ] {
        let iterator = iterator(&service, kind, sequence).await;
        let (read, _) = records(&service, &iterator).await;
        assert_eq!(keys(&read), expected, "kind={kind}");
    }
    let mut next = iterator(&service, "TRIM_HORIZON", None).await;
    for expected in ["a", "b"] {
        let body = json!({"ShardIterator": next, "Limit": 1});
        let mut response = service.ok("GetRecords", body).await;
        assert_eq!(keys(response["Records"].as_array().unwrap()), [expected]);
        next = response["NextShardIterator"].take();
    }
}

#[tokio::test]
async fn expired_item_is_deleted_by_the_service() {
    let (service, clock) = service_and_clock().await;
    let expiry = UpdateTimeToLive::enable("Hash", "expires");
    service.engine().update_time_to_live(expiry).await.unwrap();
    let item = json!({"pk": {"S": "a"}, "expires": {"N": "1700000010"}});
    write(&service, json!({"PutRequest": {"Item": item}})).await;
    clock.advance(Duration::from_secs(60));
    while service.engine().run_background_once().unwrap() {}
    let iterator = iterator(&service, "TRIM_HORIZON", None).await;
    let (records, _) = records(&service, &iterator).await;
    let event = |at: usize| (&records[at]["eventName"], &records[at]["userIdentity"]);
    assert_eq!(event(0), (&json!("INSERT"), &Value::Null));
    let identity = json!({"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"});
    assert_eq!(event(1), (&json!("REMOVE"), &identity));
}

#[tokio::test]
async fn disabled_stream_can_be_read_to_its_end() {
    let service = service().await;
    put(&service, "a").await;
    let off = UpdateTable {
        stream: Some(None),
        ..UpdateTable::new("Hash")
    };
    service.engine().update_table(off).await.unwrap();
    let response = service
        .ok("DescribeStream", json!({"StreamArn": ARN}))
        .await;
    let stream = &response["StreamDescription"];
    assert_eq!(stream["StreamStatus"], "DISABLED");
    assert_eq!(
        stream["Shards"],
        json!([{"ShardId": SHARD, "SequenceNumberRange": {
            "StartingSequenceNumber": "000000000000000000001", "EndingSequenceNumber": "000000000000000000001"}}])
    );
    let iterator = iterator(&service, "TRIM_HORIZON", None).await;
    let (read, next) = records(&service, &iterator).await;
    assert_eq!((keys(&read), next), (vec!["a"], Value::Null));
    let listed = service
        .ok("ListStreams", json!({"TableName": "Hash"}))
        .await;
    assert_eq!(listed["Streams"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn shards_can_be_filtered_by_parent() {
    let (service, clock) = service_and_clock().await;
    put(&service, "a").await;
    // A shard covers four hours.
    clock.advance(Duration::from_secs(5 * 60 * 60));
    put(&service, "b").await;
    let check = async |filter: Value, expected: usize| {
        let body = json!({"StreamArn": ARN, "ShardFilter": filter});
        let response = service.ok("DescribeStream", body).await;
        let shards = response["StreamDescription"]["Shards"].as_array().unwrap();
        assert_eq!(shards.len(), expected, "filter={filter}");
        shards.clone()
    };
    let all = check(json!(null), 2).await;
    let filter = |parent: &Value| json!({"Type": "CHILD_SHARDS", "ShardId": parent});
    let children = check(filter(&all[0]["ShardId"]), 1).await;
    assert_eq!(children, [all[1].clone()]);
    assert_eq!(all[1]["ParentShardId"], all[0]["ShardId"]);
    check(filter(&all[1]["ShardId"]), 0).await;
    let body = json!({"StreamArn": ARN, "Limit": 1});
    let response = service.ok("DescribeStream", body).await;
    let stream = &response["StreamDescription"];
    assert_eq!(stream["LastEvaluatedShardId"], SHARD);
    for (after, expected) in [(SHARD, 1), (&*"z".repeat(40), 0)] {
        let body = json!({"StreamArn": ARN, "ExclusiveStartShardId": after});
        let response = service.ok("DescribeStream", body).await;
        let shards = &response["StreamDescription"]["Shards"];
        assert_eq!(shards.as_array().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn requests_are_checked_before_streams_are_looked_up() {
    let service = service().await;
    let check = async |operation: &str, body: Value, message: &str| {
        service
            .expect_validation_error(operation, &body.to_string(), message)
            .await;
    };
    let one = |fault: &str| format!("1 validation error detected: {fault}");
    let null = |name: &str| {
        format!("Value null at '{name}' failed to satisfy constraint: Member must not be null")
    };
    let limit = |limit: i32, constraint: &str| {
        one(&format!(
            "Value '{limit}' at 'limit' failed to satisfy constraint: Member must have value {constraint}"
        ))
    };
    for (operation, mut body, most) in [
        ("ListStreams", json!({}), 100),
        ("DescribeStream", json!({"StreamArn": ARN}), 100),
        ("GetRecords", json!({"ShardIterator": "x"}), 1000),
    ] {
        for below in [0, -1] {
            body["Limit"] = json!(below);
            let message = limit(below, "greater than or equal to 1");
            check(operation, body.clone(), &message).await;
        }
        body["Limit"] = json!(most + 1);
        let message = limit(most + 1, &format!("less than or equal to {most}"));
        check(operation, body, &message).await;
    }
    check("DescribeStream", json!({}), &one(&null("streamArn"))).await;
    check("GetRecords", json!({}), &one(&null("shardIterator"))).await;
    check(
        "GetShardIterator",
        json!({}),
        &format!(
            "3 validation errors detected: {}; {}; {}",
            null("streamArn"),
            null("shardId"),
            null("shardIteratorType")
        ),
    )
    .await;
    let invalid = "Invalid StreamArn";
    check(
        "DescribeStream",
        json!({"StreamArn": "fake-stream"}),
        invalid,
    )
    .await;
    check(
        "ListStreams",
        json!({"ExclusiveStartStreamArn": "x".repeat(50)}),
        invalid,
    )
    .await;
    check(
        "GetRecords",
        json!({"ShardIterator": "x".repeat(50)}),
        "Invalid ShardIterator",
    )
    .await;
    let at = |kind: &str, extra: Value| {
        let mut body = json!({"StreamArn": ARN, "ShardId": SHARD, "ShardIteratorType": kind});
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        body
    };
    let operation = "GetShardIterator";
    check(
        operation,
        at("LATEST", json!({"StreamArn": "x".repeat(50)})),
        invalid,
    )
    .await;
    check(
        operation,
        at("bulle", json!({})),
        &one("Value 'bulle' at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: \
              [AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]"),
    )
    .await;
    let number = "0".repeat(21);
    let wrong = "One or more parameter values were invalid: SequenceNumber";
    for kind in ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"] {
        check(
            operation,
            at(kind, json!({})),
            &format!("{wrong} cannot be null"),
        )
        .await;
        check(
            operation,
            at(kind, json!({"SequenceNumber": "9".repeat(30)})),
            "Invalid SequenceNumber for the shard",
        )
        .await;
    }
    for kind in ["TRIM_HORIZON", "LATEST"] {
        let message = format!("{wrong} should not be passed for this iterator type");
        check(
            operation,
            at(kind, json!({"SequenceNumber": number})),
            &message,
        )
        .await;
        check(
            operation,
            at(kind, json!({"SequenceNumber": "1"})),
            &one("Value at 'sequenceNumber' failed to satisfy constraint: Member must have length greater than or \
                  equal to 21"),
        )
        .await;
    }
    let unknown = ARN.replace("Hash", "Cash");
    let shard = "x".repeat(40);
    let code = "ResourceNotFoundException";
    for (operation, body, message) in [
        (
            "DescribeStream",
            json!({"StreamArn": unknown}),
            format!("Requested resource not found: Stream: {unknown} not found"),
        ),
        (
            "GetShardIterator",
            at("LATEST", json!({"ShardId": shard})),
            format!("Requested resource not found: Shard: {shard} in Stream: {ARN} not found"),
        ),
    ] {
        service
            .expect_error(operation, &body.to_string(), code, &message)
            .await;
    }
}
