//! Writes of other processes between a load and an append.

use floe::events::{EventStore, EventStoreOptions, Expected};
use floe::{Error, ErrorKind};
use floe_store::{Item, Value};

use super::support::{Note, Strategy, World, append, name, note, noted, notes, stream, world};

/// Appends the notes 100, 101 and so on from another process before each of the first writes.
fn interfere(world: &World, times: u64, store: EventStore) {
    world.probe.before_writes(move |write| {
        let store = store.clone();
        Box::pin(async move {
            if write < times {
                append(&store, "a", noted([100 + u32::try_from(write).unwrap()])).await;
            }
        })
    });
}

/// Adds a note that contains the previous number of notes.
async fn count(world: &World, strategy: Strategy) -> Result<u64, Error> {
    let decide = |state: &Vec<u32>| {
        let length = u32::try_from(state.len()).unwrap();
        Ok::<_, Error>((length, vec![Note::Noted(length)]))
    };
    let (length, version) = stream(&world.store(), "a", strategy)
        .transact_versioned(decide)
        .await?;
    assert_eq!(u64::from(length) + 1, version);
    Ok(version)
}

#[tokio::test]
async fn conflict_is_resolved_from_the_returned_tip_without_a_read() {
    for strategy in [
        Strategy::Unoptimized,
        Strategy::Snapshot,
        Strategy::Multi,
        Strategy::Custom,
    ] {
        for events in [0, 1, 3] {
            let world = world().await;
            if events > 0 {
                append(&world.store(), "a", noted(0..events)).await;
            }
            world.sent();
            interfere(&world, 1, world.other.events());
            let version = count(&world, strategy).await.unwrap();
            assert_eq!(version, u64::from(events) + 2);
            let read = if strategy == Strategy::Unoptimized {
                "Query"
            } else {
                "GetItem"
            };
            let write = if events == 0 { "PutItem" } else { "UpdateItem" };
            assert_eq!(
                world.operations(),
                [read, write, "UpdateItem"],
                "{strategy:?} {events}"
            );
            let all = notes(&stream(&world.store(), "a", strategy)).await;
            let expected: Vec<u32> = (0..events).chain([100, events + 1]).collect();
            assert_eq!(all, expected, "{strategy:?} {events}");
        }
    }
}

#[tokio::test]
async fn conflict_reads_new_calves_only() {
    let world = world().await;
    append(&world.store(), "a", noted([0, 1])).await;
    world.sent();
    // The other writer calves twice: the new events are in the Tip and in the calf at 2.
    let options = EventStoreOptions::default().tip_events_max(1);
    let other = world.other.event_store(options);
    world.probe.before_writes(move |write| {
        let other = other.clone();
        Box::pin(async move {
            if write == 0 {
                append(&other, "a", noted([100])).await;
                append(&other, "a", noted([101])).await;
            }
        })
    });
    assert_eq!(count(&world, Strategy::Unoptimized).await.unwrap(), 5);
    let sent = world.sent();
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert_eq!(
        sent[2],
        r#"Query events p = "Notes-a" AND i < 3 backward limit 32"#
    );
    let all = stream(&world.store(), "a", Strategy::Unoptimized);
    assert_eq!(notes(&all).await, [0, 1, 100, 101, 4]);
}

#[tokio::test]
async fn conflict_is_resolved_from_a_snapshot_in_the_returned_tip() {
    let world = world().await;
    append(&world.store(), "a", noted([0, 1])).await;
    world.sent();
    let options = EventStoreOptions::default().tip_events_max(1);
    let other = world.other.event_store(options);
    world.probe.before_writes(move |write| {
        let other = other.clone();
        Box::pin(async move {
            for one in [100, 101] {
                if write == 0 {
                    note(&stream(&other, "a", Strategy::Snapshot), one)
                        .await
                        .unwrap();
                }
            }
        })
    });
    assert_eq!(count(&world, Strategy::Snapshot).await.unwrap(), 5);
    assert_eq!(world.operations(), ["GetItem", "UpdateItem", "UpdateItem"]);
}

#[tokio::test]
async fn conflict_while_calving_is_resolved_from_the_returned_tip() {
    for other_calves in [false, true] {
        let world = world().await;
        append(&world.store(), "a", noted([0, 1])).await;
        world.sent();
        let options = if other_calves {
            EventStoreOptions::default().tip_events_max(2)
        } else {
            EventStoreOptions::default()
        };
        interfere(&world, 1, world.other.event_store(options));
        let calving = stream(&world.calving(2), "a", Strategy::Unoptimized);
        note(&calving, 7).await.unwrap();
        // If the other writer has calved, the Tip has room.
        let second = if other_calves {
            "UpdateItem"
        } else {
            "TransactWriteItems"
        };
        assert_eq!(world.operations(), ["Query", "TransactWriteItems", second]);
        assert_eq!(notes(&calving).await, [0, 1, 100, 7]);
        assert_eq!(world.items(&name("a")).await.len(), 2);
    }
}

#[tokio::test]
async fn tip_trimmed_at_the_same_version_is_detected() {
    let world = world().await;
    append(&world.store(), "a", noted([0, 1])).await;
    let other = world.other.clone();
    let tip = world.tip(&name("a")).await;
    let last = |list: &str| Value::L(tip.get(list).unwrap().as_l().unwrap()[1..].to_vec());
    let trimmed: Item = tip
        .clone()
        .with("e", last("e"))
        .with("c", last("c"))
        .with("etag", "trimmed");
    world.probe.before_writes(move |write| {
        let (engine, item) = (other.engine().clone(), trimmed.clone());
        Box::pin(async move {
            if write == 0 {
                let put = floe_store::op::PutItem::new("events", item);
                engine.write_item(put.into()).await.unwrap();
            }
        })
    });
    append(&world.calving(2), "a", noted([2])).await;
    let items = world.items(&name("a")).await;
    assert_eq!(items.len(), 1, "the trimmed Tip has room");
    assert_eq!(items[0].get("e").unwrap().as_l().unwrap().len(), 2);
}

#[tokio::test]
async fn attempts_are_limited() {
    // There is at least one attempt.
    for (attempts_max, attempts) in [(0, 1), (1, 1), (2, 2), (3, 3), (4, 4)] {
        for strategy in [
            Strategy::Unoptimized,
            Strategy::Snapshot,
            Strategy::Rolling,
            Strategy::Custom,
        ] {
            let world = world().await;
            append(&world.store(), "a", noted([0])).await;
            world.sent();
            interfere(&world, 100, world.other.events());
            let options = EventStoreOptions::default().attempts_max(attempts_max);
            let stream = stream(&world.db.event_store(options), "a", strategy);
            let error = note(&stream, 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
            let message = format!("gave up after conflicts: stream=Notes-a attempts={attempts}");
            assert_eq!(error.to_string(), message);
            let writes = world.operations().len() - 1;
            assert_eq!(writes, attempts, "{strategy:?}");
        }
    }
}

#[tokio::test]
async fn append_has_three_attempts_by_default() {
    let world = world().await;
    interfere(&world, 2, world.other.events());
    assert_eq!(count(&world, Strategy::Unoptimized).await.unwrap(), 3);
    interfere(&world, 3, world.other.events());
    let error = count(&world, Strategy::Unoptimized).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
}

#[tokio::test]
async fn decision_is_repeated_on_the_new_state() {
    let world = world().await;
    interfere(&world, 1, world.other.events());
    let all = stream(&world.store(), "a", Strategy::Unoptimized);
    // The first attempt sees a free seat, the second one a taken seat.
    let decide = |state: &Vec<u32>| match state.as_slice() {
        [] => Ok(("mine", vec![Note::Noted(1)])),
        _ => Ok::<_, Error>(("taken", Vec::new())),
    };
    let decided = all.transact_versioned(decide).await.unwrap();
    assert_eq!(decided, ("taken", 1));
    assert_eq!(notes(&all).await, [100]);

    world.probe.remove_hook();
    world.sent();
    #[derive(Debug, PartialEq)]
    enum DecisionError {
        Taken,
        Store(Error),
    }
    impl From<Error> for DecisionError {
        fn from(error: Error) -> Self {
            Self::Store(error)
        }
    }
    let reject = |_: &Vec<u32>| Err::<Vec<Note>, _>(DecisionError::Taken);
    assert_eq!(all.transact(reject).await, Err(DecisionError::Taken));
    assert_eq!(world.operations(), ["Query"]);
}

#[tokio::test]
async fn append_at_an_unexpected_version_is_rejected() {
    let world = world().await;
    let store = world.store();
    append(&store, "a", noted([0, 1])).await;
    for (expected, wanted) in [
        (Expected::New, 0),
        (Expected::Exact(0), 0),
        (Expected::Exact(1), 1),
        (Expected::Exact(3), 3),
    ] {
        let error = store
            .append(&name("a"), expected, noted([2]))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict, "{expected:?}");
        let message =
            format!("the stream is at another version: stream=Notes-a expected={wanted} actual=2");
        assert_eq!(error.to_string(), message);
    }
    let missing = name("missing");
    let error = store
        .append(&missing, Expected::Exact(2), noted([2]))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    assert_eq!(
        store
            .append(&missing, Expected::Exact(0), noted([2]))
            .await
            .unwrap(),
        1
    );
    assert_eq!(store.version(&name("a")).await.unwrap(), 2);
}

#[tokio::test]
async fn concurrent_append_rejects_exact_version_but_not_any_version() {
    for (expected, outcome) in [(Expected::Exact(2), None), (Expected::Any, Some(4))] {
        for events_max in [2, 10] {
            let world = world().await;
            append(&world.store(), "a", noted([0, 1])).await;
            world.sent();
            interfere(&world, 1, world.other.events());
            let appended = world
                .calving(events_max)
                .append(&name("a"), expected, noted([2]))
                .await;
            match outcome {
                Some(version) => {
                    assert_eq!(appended.unwrap(), version);
                    assert_eq!(world.sent().len(), 3);
                }
                None => {
                    assert_eq!(appended.unwrap_err().kind(), ErrorKind::VersionConflict);
                    assert_eq!(
                        world.sent().len(),
                        2,
                        "the returned Tip contains the version"
                    );
                }
            }
        }
    }
    let world = world().await;
    interfere(&world, 1, world.other.events());
    let new = world
        .store()
        .append(&name("a"), Expected::New, noted([2]))
        .await;
    assert_eq!(new.unwrap_err().kind(), ErrorKind::VersionConflict);
    assert_eq!(world.sent().len(), 1);
}

#[tokio::test]
async fn append_at_any_version_has_twenty_attempts() {
    let world = world().await;
    interfere(&world, 100, world.other.events());
    let at = name("a");
    let error = world
        .store()
        .append(&at, Expected::Any, noted([0]))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
    assert_eq!(world.sent().len(), 1 + 20);
}

#[tokio::test]
async fn changes_of_unfolds_alone_are_detected() {
    for (strategy, depends) in [
        (Strategy::Rolling, true),
        (Strategy::Custom, true),
        (Strategy::Snapshot, false),
        (Strategy::Unoptimized, false),
    ] {
        let world = world().await;
        let rolling = stream(&world.other.events(), "a", Strategy::Rolling);
        note(&rolling, 1).await.unwrap();
        world.probe.before_writes({
            let store = world.other.events();
            move |write| {
                let rolling = stream(&store, "a", Strategy::Rolling);
                Box::pin(async move {
                    if write == 0 {
                        note(&rolling, 2).await.unwrap();
                    }
                })
            }
        });
        let own = stream(&world.store(), "a", strategy);
        note(&own, 3).await.unwrap();
        let writes = world.operations().len() - 1;
        assert_eq!(writes, 2, "{strategy:?}");
        if depends {
            assert_eq!(notes(&own).await, [1, 2, 3], "{strategy:?}");
        }
    }
}

#[tokio::test]
async fn wrongly_assumed_empty_stream_is_resolved_from_the_returned_tip() {
    let world = world().await;
    append(&world.store(), "a", noted([0, 1])).await;
    world.sent();
    let assumed =
        stream(&world.store(), "a", Strategy::Unoptimized).load(floe::events::Load::AssumeEmpty);
    assert_eq!(note(&assumed, 2).await.unwrap(), 3);
    assert_eq!(world.operations(), ["PutItem", "UpdateItem"]);
    let other =
        stream(&world.store(), "b", Strategy::Unoptimized).load(floe::events::Load::AssumeEmpty);
    assert_eq!(note(&other, 0).await.unwrap(), 1);
    assert_eq!(world.operations(), ["PutItem"]);
}

#[tokio::test]
async fn stream_without_events_exists_at_version_0() {
    let world = world().await;
    note(&stream(&world.store(), "a", Strategy::Rolling), 1)
        .await
        .unwrap();
    let (at, store) = (name("a"), world.store());
    let new = store
        .append(&at, Expected::New, noted([2]))
        .await
        .unwrap_err();
    assert_eq!(new.kind(), ErrorKind::VersionConflict);
    assert_eq!(
        store
            .append(&at, Expected::Exact(0), noted([2]))
            .await
            .unwrap(),
        1
    );
}

#[tokio::test]
async fn invalid_id_is_rejected_before_a_request() {
    let world = world().await;
    let wrong = stream(&world.store(), "a_b", Strategy::Unoptimized);
    assert_eq!(
        note(&wrong, 1).await.unwrap_err().kind(),
        ErrorKind::InvalidUse
    );
    let query = wrong.query(|_| ()).await;
    assert_eq!(query.unwrap_err().kind(), ErrorKind::InvalidUse);
    assert!(world.sent().is_empty());
}

/// Appends the notes of a task.
async fn append_notes(store: EventStore, task: u32, strategy: Strategy) {
    let stream = stream(&store, "a", strategy);
    for one in 0..25 {
        note(&stream, task * 100 + one).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_lose_no_events() {
    for strategy in [
        Strategy::Unoptimized,
        Strategy::Snapshot,
        Strategy::Rolling,
        Strategy::Custom,
    ] {
        let world = world().await;
        let options = EventStoreOptions::default()
            .tip_events_max(4)
            .attempts_max(100_000);
        let store = world.db.event_store(options);
        let tasks = (0..6).map(|task| tokio::spawn(append_notes(store.clone(), task, strategy)));
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let all = notes(&stream(&store, "a", strategy)).await;
        assert_eq!(all.len(), 150, "{strategy:?}");
        for task in 0..6 {
            let of_task = all.iter().copied().filter(|note| note / 100 == task);
            let expected = Vec::from_iter(task * 100..task * 100 + 25);
            assert_eq!(Vec::from_iter(of_task), expected, "{strategy:?}");
        }
    }
}
