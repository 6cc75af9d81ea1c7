//! Which handlers are called for a change, and what a delivery reports about failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use floe::Model;
use floe::changes::lambda::Receiver;
use floe::changes::outbox::{OutboxMessage, OutboxRecord};
use floe::changes::{
    Cause, Change, Changed, Failure, Inserted, Message, Pattern, Removed, Router, Topics, Watched,
};
use floe_store::op::ChangeKind;
use floe_store::table::StreamView;
use floe_store::{Item, Timestamp, Value};

use super::support::{Notes, Player, expired, player, players, record, record_of};

#[derive(Clone, Debug, PartialEq, Model)]
#[model(table = "guild", sort_key = "money")]
struct Money {
    #[model(key)]
    id: String,
    coins: u32,
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(table = "guild", sort_key = "weapon")]
struct Weapon {
    #[model(key)]
    id: String,
    #[model(sort_key)]
    kind: String,
    power: u32,
}

/// A handler that adds a note.
macro_rules! note {
    ($notes:expr, |$arg:ident: $type:ty| $($text:tt)*) => {{
        let notes = $notes.clone();
        move |$arg: $type| {
            let notes = notes.clone();
            async move {
                notes.add(format!($($text)*));
                Ok(())
            }
        }
    }};
}

#[tokio::test]
async fn typed_handlers_receive_their_changes() {
    let notes = Notes::default();
    let router = Router::new()
        .on_inserted::<Player>(note!(notes, |a: Inserted<Player>| "new {:?}", a.value))
        .on_changed::<Player>(note!(
            notes,
            |a: Changed<Player>| "{} to {}",
            a.old.level,
            a.new.level
        ))
        .on_removed::<Player>(
            Cause::Expired,
            note!(notes, |a: Removed<Player>| "expired {}", a.value.name),
        )
        .on_removed::<Player>(
            Cause::Deleted,
            note!(notes, |a: Removed<Player>| "deleted {}", a.value.name),
        )
        .on_removed::<Player>(
            Cause::Any,
            note!(
                notes,
                |a: Removed<Player>| "gone {} {:?}",
                a.value.name,
                a.change.cause()
            ),
        );
    let (one, two) = (player("ada", 1), player("ada", 2));
    let changes = players([
        record(1, None, Some(&one)),
        record(2, Some(&one), Some(&two)),
        expired(record(3, Some(&two), None)),
        record(4, None, Some(&one)),
        record(5, Some(&one), None),
    ]);
    let delivery = router.deliver(&changes).await;
    assert_eq!((delivery.handled, delivery.failures.len()), (5, 0));
    assert_eq!(
        notes.take(),
        [
            r#"new Player { name: "ada", level: 1 }"#,
            "1 to 2",
            "expired ada",
            "gone ada Some(Expired)",
            r#"new Player { name: "ada", level: 1 }"#,
            "deleted ada",
            "gone ada Some(Deleted)",
        ]
    );
    let elsewhere = Change::new("teams", record(6, None, Some(&one)));
    let delivery = router.deliver(&[elsewhere]).await;
    assert_eq!((delivery.handled, delivery.skipped), (0, 1));
    assert_eq!(notes.take(), [""; 0]);
}

#[tokio::test]
async fn models_in_one_table_are_distinguished_by_sort_key() {
    let notes = Notes::default();
    let router = Router::new()
        .on_inserted::<Money>(note!(notes, |a: Inserted<Money>| "{} coins", a.value.coins))
        .on_inserted::<Weapon>(note!(notes, |a: Inserted<Weapon>| "a {}", a.value.kind));
    let money = Money {
        id: "g".to_owned(),
        coins: 7,
    };
    let weapon = Weapon {
        id: "g".to_owned(),
        kind: "bow".to_owned(),
        power: 3,
    };
    let changes = [
        Change::new("guild", record(1, None, Some(&money))),
        Change::new("guild", record(2, None, Some(&weapon))),
    ];
    let delivery = router.deliver(&changes).await;
    assert_eq!(delivery.handled, 2);
    let mut seen = notes.take();
    seen.sort();
    assert_eq!(seen, ["7 coins", "a bow"]);
    assert!(Money::recognises(&money.to_item().unwrap()));
    assert!(!Money::recognises(&weapon.to_item().unwrap()));
    // A sort key that only starts with the constant of the model belongs to another model.
    let longer = Item::new().with("_id", "g").with("_sk", "moneybag");
    assert!(!Money::recognises(&longer));
    assert!(router.tables().contains("guild"));
}

#[tokio::test]
async fn failed_handler_holds_later_changes_of_its_item_only() {
    let notes = Notes::default();
    let router = Router::new()
        .on_inserted::<Player>(note!(notes, |a: Inserted<Player>| "first {}", a.value.name))
        .matching(Pattern::any(), async |change| {
            let image = change.item();
            match image
                .get("level")
                .and_then(Value::as_n)
                .and_then(|n| n.to_i64())
            {
                Some(13) => Err(Failure::new("no such level")),
                _ => Ok(()),
            }
        })
        .named("levels")
        .matching(
            Pattern::any(),
            note!(notes, |c: Change| "last {}", c.sequence()),
        );
    let (bad, good, other) = (player("ada", 13), player("ada", 2), player("bob", 1));
    let changes = players([
        record(1, None, Some(&bad)),
        record(2, Some(&bad), Some(&good)),
        record(3, None, Some(&other)),
    ]);
    let delivery = router.deliver(&changes).await;
    assert_eq!((delivery.handled, delivery.skipped), (1, 0));
    let failures: Vec<_> = delivery
        .failures
        .iter()
        .map(|f| (f.index, f.handlers.join(","), f.failure.to_string()))
        .collect();
    assert_eq!(
        failures,
        [
            (0, "levels".to_owned(), "no such level".to_owned()),
            (
                1,
                String::new(),
                "an earlier change of the item failed".to_owned()
            ),
        ]
    );
    assert_eq!(delivery.failures[0].event_id, "event-1");
    let mut seen = notes.take();
    seen.sort();
    let (one, three) = (format!("last {:021}", 1), format!("last {:021}", 3));
    assert_eq!(
        seen,
        ["first ada", "first bob", one.as_str(), three.as_str()]
    );
}

#[tokio::test]
async fn undecodable_change_is_a_permanent_failure() {
    let router = Router::new().on_inserted::<Player>(async |_| Ok(()));
    let keys = Item::new().with("_id", "ada");
    let mut changes = players([
        record_of(1, keys.clone(), None, Some(keys.clone())),
        record_of(2, Item::new().with("_id", "bob"), None, Some(keys)),
    ]);
    let mut blind = changes.pop().unwrap().into_record();
    blind.new_image = None;
    blind.view = StreamView::KeysOnly;
    changes.push(Change::new("players", blind));
    let delivery = router.deliver(&changes).await;
    let failures: Vec<_> = delivery.failures.iter().map(|f| &f.failure).collect();
    assert!(failures.iter().all(|failure| failure.is_permanent()));
    let messages: Vec<String> = failures.iter().map(|failure| failure.to_string()).collect();
    assert_eq!(
        messages,
        [
            "the attribute is missing: model=Player field=level",
            "the change stream lacks an image that the handler requires: table=players view=KEYS_ONLY",
        ]
    );
}

#[tokio::test]
async fn patterns_match_the_source_of_the_router() {
    let notes = Notes::default();
    let pattern = Pattern::any().source("game").kind(ChangeKind::Insert);
    let router = Router::new()
        .source("game")
        .matching(pattern, note!(notes, |c: Change| "{}", c.table()));
    let changes = players([record(1, None, Some(&player("ada", 1)))]);
    assert_eq!(router.deliver(&changes).await.handled, 1);
    assert_eq!(notes.take(), ["players"]);
}

#[test]
fn handler_names_are_unique() {
    let router = Router::new()
        .on_inserted::<Player>(async |_| Ok(()))
        .on_inserted::<Player>(async |_| Ok(()))
        .on_removed::<Player>(Cause::Any, async |_| Ok(()))
        .matching(Pattern::any(), async |_| Ok(()))
        .named("audit")
        .matching(Pattern::any(), async |_| Ok(()))
        .named("audit")
        .outbox("player.*", async |_| Ok(()))
        .outbox(Topics::one("a*"), async |_| Ok(()));
    assert_eq!(
        router.handlers().collect::<Vec<_>>(),
        [
            "inserted Player",
            "inserted Player 2",
            "removed Player",
            "audit",
            "audit 2",
            "outbox player.*",
            "outbox a*",
        ]
    );
    let failure = Failure::new("busy").retry_after(Duration::from_secs(7));
    assert_eq!(failure.pause(), Some(Duration::from_secs(7)));
}

fn outbox_record(messages: &[(&str, i64)]) -> Change {
    let to_message = |(topic, body): &(&str, i64)| {
        let message = Item::new().with("topic", *topic).with("body", *body);
        Value::M(message)
    };
    let item = Item::new()
        .with("_id", "c1")
        .with("created", 1_735_689_600_000_i64)
        .with(
            "messages",
            Value::L(messages.iter().map(to_message).collect()),
        );
    let record: OutboxRecord = OutboxRecord::from_item(&item).unwrap();
    assert_eq!(record.created, Timestamp::from_millis(1_735_689_600_000));
    let _: &Vec<OutboxMessage> = &record.messages;
    let keys = Item::new().with("_id", "c1");
    Change::new("floe_outbox", record_of(1, keys, None, Some(item)))
}

#[tokio::test]
async fn messages_of_a_commit_are_delivered_to_their_topics_in_order() {
    let notes = Notes::default();
    let router = Router::new()
        .outbox(
            "a",
            note!(notes, |m: Message| "a {}", m.read::<i64>().unwrap()),
        )
        .outbox("b.*", note!(notes, |m: Message| "b {} {}", m.topic, m.id()))
        .outbox(Topics::all(), note!(notes, |m: Message| "all {}", m.index));
    let change = outbox_record(&[("b.x", 1), ("a", 2), ("c", 3), ("b.y", 4)]);
    assert_eq!(router.deliver(&[change]).await.handled, 1);
    assert_eq!(
        notes.take(),
        [
            "b b.x c1-0",
            "all 0",
            "a 2",
            "all 1",
            "all 2",
            "b b.y c1-3",
            "all 3"
        ]
    );
}

#[tokio::test]
async fn message_waits_for_the_previous_one_and_is_delivered_once() {
    let (notes, failures) = (Notes::default(), Arc::new(AtomicU32::new(2)));
    let handler = {
        let (notes, failures) = (notes.clone(), failures.clone());
        move |message: Message| {
            let (notes, failures) = (notes.clone(), failures.clone());
            async move {
                let body: i64 = message.read()?;
                if body == 2 && failures.load(Ordering::SeqCst) > 0 {
                    failures.fetch_sub(1, Ordering::SeqCst);
                    return Err(Failure::new("busy"));
                }
                notes.add(format!("{body}"));
                Ok(())
            }
        }
    };
    let receiver = Receiver::new(Router::new().outbox("a", handler));
    let change = outbox_record(&[("a", 1), ("a", 2), ("a", 3)]);
    let event = event(&[change]);
    let failed = format!(
        r#"{{"batchItemFailures":[{{"itemIdentifier":"{:021}"}}]}}"#,
        1
    );
    assert_eq!(receiver.handle(&event).await.unwrap(), failed);
    assert_eq!(notes.take(), ["1"]);
    assert_eq!(receiver.handle(&event).await.unwrap(), failed);
    assert_eq!(notes.take(), [""; 0]);
    let done = r#"{"batchItemFailures":[]}"#;
    assert_eq!(receiver.handle(&event).await.unwrap(), done);
    assert_eq!(notes.take(), ["2", "3"]);
    assert_eq!(receiver.handle(&event).await.unwrap(), done);
    assert_eq!(notes.take(), [""; 0]);
}

/// The event in which Lambda sends these changes.
fn event(changes: &[Change]) -> Vec<u8> {
    let records: Vec<String> = changes
        .iter()
        .map(|change| {
            let envelope = floe::changes::Envelope::new("x", change.clone());
            let mut json = envelope.detail()["record"].clone();
            let arn = format!("arn:aws:dynamodb:r:1:table/{}/stream/l", change.table());
            json["eventSourceARN"] = arn.into();
            json.to_string()
        })
        .collect();
    format!(r#"{{"Records":[{}]}}"#, records.join(",")).into_bytes()
}

/// Lambda sends everything from the first failure again. Handlers that succeeded are not called again.
#[tokio::test]
async fn receiver_does_not_repeat_successful_handlers() {
    let (notes, is_down) = (Notes::default(), Arc::new(AtomicU32::new(1)));
    let flaky = {
        let is_down = is_down.clone();
        move |inserted: Inserted<Player>| {
            let is_down = is_down.clone();
            async move {
                if inserted.value.name == "bob" && is_down.swap(0, Ordering::SeqCst) == 1 {
                    Err(Failure::new("down"))
                } else {
                    Ok(())
                }
            }
        }
    };
    let router = Router::new()
        .on_inserted::<Player>(flaky)
        .on_inserted::<Player>(note!(notes, |a: Inserted<Player>| "{}", a.value.name));
    let receiver = Receiver::new(router).table_prefix("prod-");
    let names = ["ada", "bob", "eve"];
    let changes: Vec<Change> = (1..)
        .zip(names)
        .map(|(number, name)| {
            Change::new("prod-players", record(number, None, Some(&player(name, 1))))
        })
        .collect();
    let first = receiver.receive(&event(&changes)).await.unwrap();
    assert_eq!((first.handled, first.failures.len()), (2, 1));
    assert_eq!(first.failures[0].handlers, ["inserted Player"]);
    let mut seen = notes.take();
    seen.sort();
    assert_eq!(seen, names);
    let second = receiver.receive(&event(&changes[1..])).await.unwrap();
    assert_eq!((second.handled, second.skipped), (1, 1));
    assert_eq!(notes.take(), [""; 0]);
}
