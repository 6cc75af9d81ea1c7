//! Outbox messages: their requests, and that each commit stores its messages exactly once or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::no_time::NoTime;
use super::stage;
use super::support::{Player, player};
use floe::changes::outbox::{OutboxMessage, OutboxRecord, TOPIC_BYTES_MAX};
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::limits::{ITEM_BYTES_MAX, TRANSACT_ITEMS_MAX};
use floe_store::op::{
    ChangeKind, DescribeStream, GetRecords, GetShardIterator, IteratorKind, ListStreams, Scan,
};
use floe_store::size::item_size;
use floe_store::{Capabilities, Engine, Item, Value};
use floe_testkit::fault::{FaultEngine, Faults};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Joined {
    name: String,
    guild: Option<String>,
}

fn joined(name: &str) -> Joined {
    Joined {
        name: name.to_owned(),
        guild: None,
    }
}

struct World {
    db: Db,
    engine: Arc<dyn Engine>,
    recording: Arc<RecordingEngine>,
}

/// The seed of commit ids.
const SEED: u64 = 7;

/// Returns the id of the first commit. The first id of a database is the key of its cursors.
fn first_commit() -> String {
    let env = TestEnv::seeded(SEED).env;
    let _db = Db::with_parts(stage::engine(), env.clone(), Arc::new(NoTime));
    env.ordered_uuid().as_str().to_owned()
}

async fn world() -> World {
    world_of(&[Player::SCHEMA, OutboxRecord::SCHEMA]).await
}

async fn world_of(schemas: &[&floe::model::Schema]) -> World {
    let env = TestEnv::seeded(1).env;
    let engine = stage::engine_at(env);
    let setup = Db::with_engine(engine.clone());
    setup.ensure_tables(schemas).await.unwrap();
    let recording = Arc::new(RecordingEngine::new(engine.clone()));
    let env = TestEnv::seeded(SEED).env;
    let db = Db::with_parts(recording.clone(), env, Arc::new(NoTime));
    World {
        db,
        engine,
        recording,
    }
}

impl World {
    async fn records(&self) -> Vec<OutboxRecord> {
        records(&self.engine).await
    }
}

/// All records in the table.
async fn records(engine: &Arc<dyn Engine>) -> Vec<OutboxRecord> {
    let (mut records, mut start) = (Vec::new(), None);
    loop {
        let scan = Scan::new("floe_outbox").consistent().start_key(start);
        let page = engine.scan(scan).await.unwrap();
        records.extend(
            page.items
                .iter()
                .map(|i| OutboxRecord::from_item(i).unwrap()),
        );
        start = page.last_key;
        if start.is_none() {
            return records;
        }
    }
}

fn topics(record: &OutboxRecord) -> Vec<&str> {
    record.messages.iter().map(|m| m.topic.as_str()).collect()
}

#[tokio::test]
async fn single_message_is_one_put() {
    let world = world().await;
    let body = async |tx: &Tx| tx.outbox("player.joined", &joined("ada"));
    world.db.transact(body).await.unwrap();
    let id = first_commit();
    let created = TestEnv::START.as_millis();
    assert_eq!(
        world.recording.take(),
        [format!(
            r#"PutItem floe_outbox {{"_id": "{id}", "_tx": "{id}", "created": {created}, "messages": [{{"body": {{"name": "ada"}}, "topic": "player.joined"}}]}} IF attribute_not_exists(_id)"#
        )]
    );
    let [record] = &world.records().await[..] else {
        unreachable!()
    };
    assert_eq!(record.id, id);
    assert_eq!(record.created, TestEnv::START);
    assert_eq!(record.messages[0].read::<Joined>(), Ok(joined("ada")));
}

#[tokio::test]
async fn messages_of_a_commit_are_one_item_in_order() {
    let world = world().await;
    let body = async |tx: &Tx| {
        tx.outbox("b", &1)?;
        tx.create(player("ada", 1))?;
        tx.outbox("a", &[2, 3])?;
        tx.outbox("b", "four")
    };
    world.db.transact(body).await.unwrap();
    let id = first_commit();
    let created = TestEnv::START.as_millis();
    let messages = r#"[{"body": 1, "topic": "b"}, {"body": [2, 3], "topic": "a"}, {"body": "four", "topic": "b"}]"#;
    assert_eq!(
        world.recording.take(),
        [format!(
            r#"TransactWriteItems [PutItem floe_outbox {{"_id": "{id}", "_tx": "{id}", "created": {created}, "messages": {messages}}} IF attribute_not_exists(_id); PutItem Player {{"_id": "ada", "_tx": "{id}", "level": 1}} IF attribute_not_exists(_id)]"#
        )]
    );
    assert_eq!(topics(&world.records().await[0]), ["b", "a", "b"]);
}

#[tokio::test]
async fn reads_are_checked_in_the_commit_of_a_message() {
    let world = world().await;
    let body = async |tx: &Tx| {
        assert!(tx.get::<Player>("ada").await?.is_none());
        tx.outbox("player.missed", "ada")
    };
    world.db.transact(body).await.unwrap();
    let sent = world.recording.take();
    let check = r#"TransactWriteItems [ConditionCheck Player {"_id": "ada"} IF attribute_not_exists(_id); PutItem floe_outbox "#;
    assert!(sent[1].starts_with(check), "{sent:?}");
}

#[tokio::test]
async fn only_messages_of_the_last_attempt_are_stored() {
    let world = world().await;
    let runs = AtomicU32::new(0);
    let body = async |tx: &Tx| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        let mut ada = tx.get_or_create(player("ada", 0)).await?;
        ada.level += 1;
        tx.outbox("run", &run)?;
        if run < 2 {
            let other = Db::with_engine(world.engine.clone());
            let faster = async move {
                let change = async |tx: &Tx| {
                    tx.get_or_create(player("ada", 10)).await?.level += 1;
                    Ok::<_, Error>(())
                };
                other.transact(change).await
            };
            tokio::spawn(faster).await.unwrap()?;
        }
        Ok::<_, Error>(())
    };
    world.db.transact(body).await.unwrap();
    let records = world.records().await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].messages[0].read::<u32>(), Ok(2));
}

#[tokio::test]
async fn aborted_transaction_stores_no_messages() {
    let world = world().await;
    let aborted = async |tx: &Tx| {
        tx.outbox("a", &1)?;
        tx.create(player("ada", -1)).map(drop)
    };
    let error = world.db.transact(aborted).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert_eq!(world.recording.take(), [""; 0]);

    let create = async |tx: &Tx| {
        tx.outbox("a", &1)?;
        tx.create(player("ada", 1)).map(drop)
    };
    world.db.transact(create).await.unwrap();
    let error = world.db.transact(create).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(world.records().await.len(), 1);
}

#[tokio::test]
async fn read_only_transaction_rejects_messages() {
    let world = world().await;
    let body = async |tx: &Tx| tx.outbox("player.joined", &1);
    let error = world.db.tx().read_only().run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(
        error.to_string(),
        "a read-only transaction cannot write to the outbox: topic=player.joined"
    );
    assert_eq!(world.recording.take(), [""; 0]);
}

#[tokio::test]
async fn invalid_topics_are_rejected() {
    let world = world().await;
    let longest = "x".repeat(TOPIC_BYTES_MAX);
    let body = async |tx: &Tx| {
        for (topic, message) in [
            (
                "",
                "a topic must have 1 to 255 bytes: bytes=0 model=OutboxRecord field=topic",
            ),
            (
                &format!("{longest}x"),
                "a topic must have 1 to 255 bytes: bytes=256 model=OutboxRecord field=topic",
            ),
            (
                "a\nb",
                "a topic must not contain control characters: topic=\"a\\nb\" model=OutboxRecord field=topic",
            ),
        ] {
            let error = tx.outbox(topic, &1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidField);
            assert_eq!(error.to_string(), message);
        }
        tx.outbox(&longest, &1)
    };
    world.db.transact(body).await.unwrap();
    assert_eq!(topics(&world.records().await[0]), [longest]);
}

#[tokio::test]
async fn unstorable_messages_are_rejected_with_their_path() {
    #[derive(Serialize)]
    struct Measured {
        points: Vec<f64>,
    }
    let world = world().await;
    // A scalar can be nested in 31 lists and maps, of which the record takes two.
    let nested = |levels| (0..levels).fold(Value::from(1), |v, _| Value::L(vec![v]));
    let json = |levels| {
        let open = "[".repeat(levels);
        let close = "]".repeat(levels);
        serde_json::from_str::<serde_json::Value>(&format!("{open}1{close}")).unwrap()
    };
    let body = async |tx: &Tx| {
        let points = vec![1.0, f64::NAN];
        let error = tx.outbox("measured", &Measured { points }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField);
        assert_eq!(error.field(), Some("message.points[1]"));
        let error = tx.outbox("deep", &json(30)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField);
        tx.outbox("deep", &json(29))
    };
    world.db.transact(body).await.unwrap();
    let record = &world.records().await[0];
    assert_eq!(
        topics(record),
        ["deep"],
        "the rejected message is not stored"
    );
    assert_eq!(record.messages[0].body, nested(29));
}

#[tokio::test]
async fn message_can_be_none() {
    let world = world().await;
    let body = async |tx: &Tx| tx.outbox("none", &None::<Joined>);
    world.db.transact(body).await.unwrap();
    let message: &OutboxMessage = &world.records().await[0].messages[0];
    assert_eq!(message.read::<Option<Joined>>(), Ok(None));
    let error = message.read::<Joined>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
}

/// Returns a text with which the record of one message has this size.
async fn filling(world: &World, bytes: usize) -> String {
    let body = async |tx: &Tx| tx.outbox("fill", "");
    world.db.transact(body).await.unwrap();
    let page = world.engine.scan(Scan::new("floe_outbox")).await.unwrap();
    "x".repeat(bytes - item_size(&page.items[0]))
}

#[tokio::test]
async fn oversized_record_is_rejected_before_it_is_sent() {
    let world = world().await;
    let largest = filling(&world, ITEM_BYTES_MAX).await;
    let body = async |tx: &Tx| tx.outbox("fill", &largest);
    world.db.transact(body).await.unwrap();
    world.recording.take();
    let body = async |tx: &Tx| tx.outbox("fill", &format!("{largest}x"));
    let error = world.db.transact(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(error.items()[0].model, "OutboxRecord");
    assert_eq!(world.recording.take(), [""; 0]);
}

#[tokio::test]
async fn record_counts_as_an_item_of_the_transaction() {
    let world = world().await;
    let create = async |tx: &Tx, items: usize| {
        for n in 0..items {
            tx.create(player(&format!("p{n}"), 1))?;
        }
        tx.outbox("a", &1)?;
        tx.outbox("b", &2)
    };
    let too_many = async |tx: &Tx| create(tx, TRANSACT_ITEMS_MAX).await;
    let error = world.db.transact(too_many).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(world.recording.take(), [""; 0]);
    let most = async |tx: &Tx| create(tx, TRANSACT_ITEMS_MAX - 1).await;
    world.db.transact(most).await.unwrap();
    assert_eq!(world.records().await.len(), 1);
}

#[tokio::test]
async fn missing_table_error_names_ensure_tables() {
    let world = world_of(&[Player::SCHEMA]).await;
    let alone = async |tx: &Tx| tx.outbox("a", &1);
    let error = world.db.transact(alone).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert_eq!(
        error.to_string(),
        "a table is missing; pass the schemas of all models to ensure_tables: \
         tables=floe_outbox(OutboxRecord)"
    );
    assert!(error.store_error().is_some());
    let beside = async |tx: &Tx| {
        tx.create(player("ada", 1))?;
        tx.outbox("a", &1)
    };
    let error = world.db.transact(beside).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert_eq!(
        error.to_string(),
        "a table is missing; pass the schemas of all models to ensure_tables: \
         tables=Player(Player),floe_outbox(OutboxRecord)"
    );
}

#[tokio::test]
async fn records_are_in_the_change_stream_of_their_table() {
    let world = world().await;
    let write = async |tx: &Tx| {
        tx.outbox("first", &1)?;
        tx.outbox("second", &2)
    };
    world.db.transact(write).await.unwrap();
    let list = ListStreams {
        table_name: Some("floe_outbox".to_owned()),
        ..ListStreams::default()
    };
    let streams = world.engine.list_streams(list).await.unwrap().streams;
    let describe = DescribeStream {
        stream_arn: streams[0].arn.clone(),
        start_after: None,
        limit: None,
    };
    let stream = world.engine.describe_stream(describe).await.unwrap();
    let mut inserted = Vec::new();
    for shard in &stream.shards {
        let get = GetShardIterator {
            stream_arn: stream.arn.clone(),
            shard_id: shard.id.clone(),
            kind: IteratorKind::TrimHorizon,
        };
        let iterator = world.engine.get_shard_iterator(get).await.unwrap();
        let limit = None;
        let read = world.engine.get_records(GetRecords { iterator, limit });
        inserted.extend(read.await.unwrap().records);
    }
    let [change] = &inserted[..] else {
        unreachable!("{inserted:?}")
    };
    assert_eq!(change.kind, ChangeKind::Insert);
    let record = OutboxRecord::from_item(change.new_image.as_ref().unwrap()).unwrap();
    assert_eq!(topics(&record), ["first", "second"]);
}

/// The outcomes of the commits of a run with lost responses.
struct Tally {
    done: Vec<u32>,
    unknown: Vec<u32>,
    /// The numbers in the stored records.
    found: Vec<u32>,
}

/// Commits numbered messages while requests and responses are lost, each with or without another item.
async fn commits_with_lost_responses(capabilities: Capabilities, has_item: bool) -> Tally {
    let world = world().await;
    let claiming = RecordingEngine::new(world.engine.clone()).claiming(capabilities);
    let faults = Faults::seeded(3).lost_before(0.15).lost_after(0.15);
    let losing = Arc::new(FaultEngine::new(Arc::new(claiming), faults));
    let env = TestEnv::seeded(SEED).env;
    let db = Db::with_parts(losing.clone(), env, Arc::new(NoTime));
    let (mut done, mut unknown) = (Vec::new(), Vec::new());
    for n in 0..500 {
        let body = async |tx: &Tx| {
            if has_item {
                tx.create(player(&n.to_string(), 1))?;
            }
            tx.outbox("n", &n)
        };
        match db.transact(body).await {
            Ok(()) => done.push(n),
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => unknown.push(n),
            Err(error) => unreachable!("{error:?}"),
        }
    }
    assert!(losing.faults().len() > 100, "no request was lost");
    let records = world.records().await;
    let numbers = records.iter().map(|r| r.messages[0].read().unwrap());
    let mut found: Vec<u32> = numbers.collect();
    found.sort_unstable();
    Tally {
        done,
        unknown,
        found,
    }
}

#[tokio::test]
async fn lost_responses_leave_one_record_for_each_commit() {
    let own = stage::engine().capabilities();
    for (capabilities, has_item) in [
        (own.clone(), false),
        (own, true),
        (Capabilities::dynamodb(), true),
    ] {
        // A single record is a plain write, whose outcome only a token determines.
        if !has_item && !capabilities.write_tokens {
            continue;
        }
        let tally = commits_with_lost_responses(capabilities, has_item).await;
        assert_eq!(tally.unknown, [0; 0]);
        assert_eq!(tally.found, tally.done);
        assert_eq!(tally.found.len(), 500);
    }
}

#[tokio::test]
async fn lost_responses_without_tokens_leave_at_most_one_record_for_each_commit() {
    let tally = commits_with_lost_responses(Capabilities::dynamodb(), false).await;
    assert!(
        tally.found.is_sorted_by(|a, b| a < b),
        "a record is stored twice"
    );
    assert!(tally.done.iter().all(|n| tally.found.contains(n)));
    let known = |n: &u32| tally.done.contains(n) || tally.unknown.contains(n);
    assert!(tally.found.iter().all(known));
    // The item shows the outcome, unless the read is lost as well.
    assert!(tally.done.len() > 450, "{}", tally.done.len());
}

#[test]
fn record_has_a_json_schema() {
    assert!(OutboxRecord::SCHEMA.stream);
    let schema = OutboxRecord::json_schema();
    let message = &schema["properties"]["messages"]["items"];
    assert_eq!(message["required"], serde_json::json!(["topic", "body"]));
    let other = Item::new().with("topic", 1).with("body", 1);
    let item = Item::new()
        .with("_id", "a")
        .with("created", 1)
        .with("messages", Value::L(vec![Value::M(other)]));
    let error = OutboxRecord::from_item(&item).unwrap_err();
    assert_eq!(error.field(), Some("messages[0].topic"));
}
