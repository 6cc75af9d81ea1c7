//! ListStreams, DescribeStream, GetShardIterator and GetRecords.

use std::sync::Arc;
use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::op::{UpdateTable, UpdateTimeToLive};
use floe_store::table::{KeyKind, StreamView};
use floe_store::{Engine, Env, TableDef, Timestamp};
use serde_json::{Value, json};

use super::world::World;

/// A table `Hash` with a stream, at half past a second.
async fn world() -> World {
    world_and_clock().await.0
}

async fn world_and_clock() -> (World, Arc<ManualClock>) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_500));
    let options = Options::new()
        .region("eu-west-1")
        .background(false)
        .env(Env::manual(clock.clone(), 1));
    let world = World::on(LocalEngine::memory_with(options).unwrap());
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).stream(StreamView::NewAndOldImages);
    world.make(hash.build().unwrap()).await;
    (world, clock)
}

async fn write(world: &World, request: Value) {
    let body = json!({"RequestItems": {"Hash": [request]}});
    world.ok("BatchWriteItem", body).await;
}

async fn put(world: &World, pk: &str) {
    write(world, json!({"PutRequest": {"Item": {"pk": {"S": pk}}}})).await;
}

/// A place in the shard of the table's stream.
async fn iterator(world: &World, kind: &str, sequence: Option<&str>) -> Value {
    let mut body = json!({"StreamArn": ARN, "ShardId": SHARD, "ShardIteratorType": kind});
    if let Some(sequence) = sequence {
        body["SequenceNumber"] = json!(sequence);
    }
    world.ok("GetShardIterator", body).await["ShardIterator"].take()
}

/// What is read from a place, and where to go on.
async fn records(world: &World, iterator: &Value) -> (Vec<Value>, Value) {
    let mut answer = world
        .ok("GetRecords", json!({"ShardIterator": iterator}))
        .await;
    let records = answer["Records"].as_array().unwrap().clone();
    (records, answer["NextShardIterator"].take())
}

/// The keys of records.
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
    let world = world().await;
    let stream =
        json!({"StreamArn": ARN, "TableName": "Hash", "StreamLabel": "2023-11-14T22:13:20.500"});
    assert_eq!(
        world.ok("ListStreams", json!({"Limit": 1})).await,
        json!({"Streams": [stream]})
    );
    assert_eq!(
        world.ok("DescribeStream", json!({"StreamArn": ARN})).await,
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
async fn records_tell_each_change() {
    let world = world().await;
    let item = |n: &str| json!({"pk": {"S": "a"}, "n": {"N": n}});
    let key = json!({"pk": {"S": "a"}});
    write(&world, json!({"PutRequest": {"Item": item("1")}})).await;
    write(&world, json!({"PutRequest": {"Item": item("2")}})).await;
    write(&world, json!({"DeleteRequest": {"Key": key}})).await;
    let iterator = iterator(&world, "TRIM_HORIZON", None).await;
    let mut answer = world
        .ok(
            "GetRecords",
            json!({"ShardIterator": iterator, "Limit": 1000}),
        )
        .await;
    assert!(answer["NextShardIterator"].is_string());
    let records = answer["Records"].as_array_mut().unwrap();
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
async fn iterators_begin_where_they_are_told() {
    let world = world().await;
    let latest = iterator(&world, "LATEST", None).await;
    let (none, latest) = records(&world, &latest).await;
    assert_eq!(none, Vec::<Value>::new());
    put(&world, "a").await;
    put(&world, "b").await;
    // The same again is no change.
    put(&world, "b").await;
    let (read, next) = records(&world, &latest).await;
    assert_eq!(keys(&read), ["a", "b"]);
    assert_eq!(records(&world, &next).await.0, Vec::<Value>::new());
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
        let iterator = iterator(&world, kind, sequence).await;
        let (read, _) = records(&world, &iterator).await;
        assert_eq!(keys(&read), expected, "kind={kind}");
    }
    let mut next = iterator(&world, "TRIM_HORIZON", None).await;
    for expected in ["a", "b"] {
        let body = json!({"ShardIterator": next, "Limit": 1});
        let mut answer = world.ok("GetRecords", body).await;
        assert_eq!(keys(answer["Records"].as_array().unwrap()), [expected]);
        next = answer["NextShardIterator"].take();
    }
}

#[tokio::test]
async fn an_item_that_expires_is_removed_by_the_service() {
    let (world, clock) = world_and_clock().await;
    let expiry = UpdateTimeToLive::enable("Hash", "expires");
    world.engine().update_time_to_live(expiry).await.unwrap();
    let item = json!({"pk": {"S": "a"}, "expires": {"N": "1700000010"}});
    write(&world, json!({"PutRequest": {"Item": item}})).await;
    clock.advance(Duration::from_secs(60));
    while world.engine().run_background_once().unwrap() {}
    let iterator = iterator(&world, "TRIM_HORIZON", None).await;
    let (records, _) = records(&world, &iterator).await;
    let told = |at: usize| (&records[at]["eventName"], &records[at]["userIdentity"]);
    assert_eq!(told(0), (&json!("INSERT"), &Value::Null));
    let service = json!({"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"});
    assert_eq!(told(1), (&json!("REMOVE"), &service));
}

#[tokio::test]
async fn a_stream_that_is_switched_off_can_be_read_to_its_end() {
    let world = world().await;
    put(&world, "a").await;
    let off = UpdateTable {
        stream: Some(None),
        ..UpdateTable::new("Hash")
    };
    world.engine().update_table(off).await.unwrap();
    let answer = world.ok("DescribeStream", json!({"StreamArn": ARN})).await;
    let stream = &answer["StreamDescription"];
    assert_eq!(stream["StreamStatus"], "DISABLED");
    assert_eq!(
        stream["Shards"],
        json!([{"ShardId": SHARD, "SequenceNumberRange": {
            "StartingSequenceNumber": "000000000000000000001", "EndingSequenceNumber": "000000000000000000001"}}])
    );
    let iterator = iterator(&world, "TRIM_HORIZON", None).await;
    let (read, next) = records(&world, &iterator).await;
    assert_eq!((keys(&read), next), (vec!["a"], Value::Null));
    let listed = world.ok("ListStreams", json!({"TableName": "Hash"})).await;
    assert_eq!(listed["Streams"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn shards_can_be_asked_for_by_their_parent() {
    let (world, clock) = world_and_clock().await;
    put(&world, "a").await;
    // A shard takes records for four hours.
    clock.advance(Duration::from_secs(5 * 60 * 60));
    put(&world, "b").await;
    let check = async |filter: Value, expected: usize| {
        let body = json!({"StreamArn": ARN, "ShardFilter": filter});
        let answer = world.ok("DescribeStream", body).await;
        let shards = answer["StreamDescription"]["Shards"].as_array().unwrap();
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
    let answer = world.ok("DescribeStream", body).await;
    let stream = &answer["StreamDescription"];
    assert_eq!(stream["LastEvaluatedShardId"], SHARD);
    for (after, expected) in [(SHARD, 1), (&*"z".repeat(40), 0)] {
        let body = json!({"StreamArn": ARN, "ExclusiveStartShardId": after});
        let answer = world.ok("DescribeStream", body).await;
        let shards = &answer["StreamDescription"]["Shards"];
        assert_eq!(shards.as_array().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn requests_are_checked_before_streams_are_looked_for() {
    let world = world().await;
    let check = async |operation: &str, body: Value, message: &str| {
        world.invalid(operation, &body.to_string(), message).await;
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
        world
            .refused(operation, &body.to_string(), code, &message)
            .await;
    }
}
