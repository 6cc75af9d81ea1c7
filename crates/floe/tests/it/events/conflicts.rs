//! Others who write between a load and an append.

use floe::events::{EventStore, EventStoreOptions, Expected};
use floe::{Error, ErrorKind};
use floe_store::{Item, Value};

use super::support::{Note, Way, World, append, name, note, noted, notes, stream, world};

/// Lets somebody else append the notes 100, 101 and so on before each of the first writes.
fn disturb(world: &World, times: u64, store: EventStore) {
    world.probe.before_writes(move |write| {
        let store = store.clone();
        Box::pin(async move {
            if write < times {
                append(&store, "a", noted([100 + u32::try_from(write).unwrap()])).await;
            }
        })
    });
}

/// Adds a note that says how many there were.
async fn count(world: &World, way: Way) -> Result<u64, Error> {
    let decide = |state: &Vec<u32>| {
        let length = u32::try_from(state.len()).unwrap();
        Ok::<_, Error>((length, vec![Note::Noted(length)]))
    };
    let (length, version) = stream(&world.store(), "a", way)
        .transact_versioned(decide)
        .await?;
    assert_eq!(u64::from(length) + 1, version);
    Ok(version)
}

#[tokio::test]
async fn a_conflict_is_resolved_from_the_image_without_another_read() {
    for way in [Way::Unoptimized, Way::Snapshot, Way::Multi, Way::Custom] {
        for events in [0, 1, 3] {
            let world = world().await;
            if events > 0 {
                append(&world.store(), "a", noted(0..events)).await;
            }
            world.sent();
            disturb(&world, 1, world.other.events());
            let version = count(&world, way).await.unwrap();
            assert_eq!(version, u64::from(events) + 2);
            let read = if way == Way::Unoptimized {
                "Query"
            } else {
                "GetItem"
            };
            let write = if events == 0 { "PutItem" } else { "UpdateItem" };
            assert_eq!(
                world.kinds(),
                [read, write, "UpdateItem"],
                "{way:?} {events}"
            );
            let all = notes(&stream(&world.store(), "a", way)).await;
            let expected: Vec<u32> = (0..events).chain([100, events + 1]).collect();
            assert_eq!(all, expected, "{way:?} {events}");
        }
    }
}

#[tokio::test]
async fn what_the_image_does_not_hold_is_read_from_where_the_state_stands() {
    let world = world().await;
    append(&world.store(), "a", noted([0, 1])).await;
    world.sent();
    // The other one calves twice: what is new is in the Tip and in the batch at 2.
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
    assert_eq!(count(&world, Way::Unoptimized).await.unwrap(), 5);
    let sent = world.sent();
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert_eq!(
        sent[2],
        r#"Query events p = "Notes-a" AND i < 3 backward limit 32"#
    );
    let all = stream(&world.store(), "a", Way::Unoptimized);
    assert_eq!(notes(&all).await, [0, 1, 100, 101, 4]);
}

#[tokio::test]
async fn a_snapshot_in_the_image_suffices_however_much_was_calved() {
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
                    note(&stream(&other, "a", Way::Snapshot), one)
                        .await
                        .unwrap();
                }
            }
        })
    });
    assert_eq!(count(&world, Way::Snapshot).await.unwrap(), 5);
    assert_eq!(world.kinds(), ["GetItem", "UpdateItem", "UpdateItem"]);
}

#[tokio::test]
async fn a_conflict_while_calving_is_resolved_from_the_image() {
    for other_calves in [false, true] {
        let world = world().await;
        append(&world.store(), "a", noted([0, 1])).await;
        world.sent();
        let options = match other_calves {
            true => EventStoreOptions::default().tip_events_max(2),
            false => EventStoreOptions::default(),
        };
        disturb(&world, 1, world.other.event_store(options));
        let calving = stream(&world.calving(2), "a", Way::Unoptimized);
        note(&calving, 7).await.unwrap();
        // Once the other has calved, there is room in the Tip.
        let second = if other_calves {
            "UpdateItem"
        } else {
            "TransactWriteItems"
        };
        assert_eq!(world.kinds(), ["Query", "TransactWriteItems", second]);
        assert_eq!(notes(&calving).await, [0, 1, 100, 7]);
        assert_eq!(world.items(&name("a")).await.len(), 2);
    }
}

#[tokio::test]
async fn a_tip_that_was_trimmed_at_the_same_version_is_not_calved_as_it_was() {
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
    assert_eq!(items.len(), 1, "after it was trimmed there is room");
    assert_eq!(items[0].get("e").unwrap().as_l().unwrap().len(), 2);
}

#[tokio::test]
async fn attempts_come_to_an_end() {
    // An append is tried once at least.
    for (attempts_max, attempts) in [(0, 1), (1, 1), (2, 2), (3, 3), (4, 4)] {
        for way in [Way::Unoptimized, Way::Snapshot, Way::Rolling, Way::Custom] {
            let world = world().await;
            append(&world.store(), "a", noted([0])).await;
            world.sent();
            disturb(&world, 100, world.other.events());
            let options = EventStoreOptions::default().attempts_max(attempts_max);
            let stream = stream(&world.db.event_store(options), "a", way);
            let error = note(&stream, 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
            let message = format!("gave up after conflicts: stream=Notes-a attempts={attempts}");
            assert_eq!(error.to_string(), message);
            let writes = world.kinds().len() - 1;
            assert_eq!(writes, attempts, "{way:?}");
        }
    }
}

#[tokio::test]
async fn an_append_is_tried_three_times_in_all() {
    let world = world().await;
    disturb(&world, 2, world.other.events());
    assert_eq!(count(&world, Way::Unoptimized).await.unwrap(), 3);
    disturb(&world, 3, world.other.events());
    let error = count(&world, Way::Unoptimized).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
}

#[tokio::test]
async fn a_decision_is_made_anew_upon_the_new_state() {
    let world = world().await;
    disturb(&world, 1, world.other.events());
    let all = stream(&world.store(), "a", Way::Unoptimized);
    // The seat is free at first, and then it is not.
    let decide = |state: &Vec<u32>| match state.as_slice() {
        [] => Ok(("mine", vec![Note::Noted(1)])),
        _ => Ok::<_, Error>(("taken", Vec::new())),
    };
    let decided = all.transact_versioned(decide).await.unwrap();
    assert_eq!(decided, ("taken", 1));
    assert_eq!(notes(&all).await, [100]);

    world.probe.undisturbed();
    world.sent();
    #[derive(Debug, PartialEq)]
    enum Refusal {
        Taken,
        Store(Error),
    }
    impl From<Error> for Refusal {
        fn from(error: Error) -> Self {
            Self::Store(error)
        }
    }
    let refuse = |_: &Vec<u32>| Err::<Vec<Note>, _>(Refusal::Taken);
    assert_eq!(all.transact(refuse).await, Err(Refusal::Taken));
    assert_eq!(world.kinds(), ["Query"]);
}

#[tokio::test]
async fn an_append_to_another_version_than_expected_is_refused() {
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
    let nobody = name("nobody");
    let error = store
        .append(&nobody, Expected::Exact(2), noted([2]))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    assert_eq!(
        store
            .append(&nobody, Expected::Exact(0), noted([2]))
            .await
            .unwrap(),
        1
    );
    assert_eq!(store.version(&name("a")).await.unwrap(), 2);
}

#[tokio::test]
async fn an_expected_version_that_passes_meanwhile_is_refused_and_any_version_is_not() {
    for (expected, outcome) in [(Expected::Exact(2), None), (Expected::Any, Some(4))] {
        for events_max in [2, 10] {
            let world = world().await;
            append(&world.store(), "a", noted([0, 1])).await;
            world.sent();
            disturb(&world, 1, world.other.events());
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
                    assert_eq!(world.sent().len(), 2, "the image tells the version");
                }
            }
        }
    }
    let world = world().await;
    disturb(&world, 1, world.other.events());
    let new = world
        .store()
        .append(&name("a"), Expected::New, noted([2]))
        .await;
    assert_eq!(new.unwrap_err().kind(), ErrorKind::VersionConflict);
    assert_eq!(world.sent().len(), 1);
}

#[tokio::test]
async fn an_append_to_any_version_gives_up_after_twenty_attempts() {
    let world = world().await;
    disturb(&world, 100, world.other.events());
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
async fn unfolds_that_change_alone_are_noticed() {
    for (way, depends) in [
        (Way::Rolling, true),
        (Way::Custom, true),
        (Way::Snapshot, false),
        (Way::Unoptimized, false),
    ] {
        let world = world().await;
        let rolling = stream(&world.other.events(), "a", Way::Rolling);
        note(&rolling, 1).await.unwrap();
        world.probe.before_writes({
            let store = world.other.events();
            move |write| {
                let rolling = stream(&store, "a", Way::Rolling);
                Box::pin(async move {
                    if write == 0 {
                        note(&rolling, 2).await.unwrap();
                    }
                })
            }
        });
        let mine = stream(&world.store(), "a", way);
        note(&mine, 3).await.unwrap();
        let writes = world.kinds().len() - 1;
        assert_eq!(writes, 2, "{way:?}");
        if depends {
            assert_eq!(notes(&mine).await, [1, 2, 3], "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_taken_for_empty_is_found_in_the_image() {
    let world = world().await;
    append(&world.store(), "a", noted([0, 1])).await;
    world.sent();
    let assumed =
        stream(&world.store(), "a", Way::Unoptimized).load(floe::events::Load::AssumeEmpty);
    assert_eq!(note(&assumed, 2).await.unwrap(), 3);
    assert_eq!(world.kinds(), ["PutItem", "UpdateItem"]);
    let other = stream(&world.store(), "b", Way::Unoptimized).load(floe::events::Load::AssumeEmpty);
    assert_eq!(note(&other, 0).await.unwrap(), 1);
    assert_eq!(world.kinds(), ["PutItem"]);
}

#[tokio::test]
async fn a_stream_without_events_is_there_and_at_version_0() {
    let world = world().await;
    note(&stream(&world.store(), "a", Way::Rolling), 1)
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
async fn an_id_that_is_none_is_told_before_anything_is_sent() {
    let world = world().await;
    let wrong = stream(&world.store(), "a_b", Way::Unoptimized);
    assert_eq!(
        note(&wrong, 1).await.unwrap_err().kind(),
        ErrorKind::InvalidUse
    );
    let query = wrong.query(|_| ()).await;
    assert_eq!(query.unwrap_err().kind(), ErrorKind::InvalidUse);
    assert!(world.sent().is_empty());
}

/// Appends notes of a task, and tries again as long as others are faster.
async fn contend(store: EventStore, task: u32, way: Way) {
    let stream = stream(&store, "a", way);
    for one in 0..25 {
        note(&stream, task * 100 + one).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_many_writers_is_lost() {
    for way in [Way::Unoptimized, Way::Snapshot, Way::Rolling, Way::Custom] {
        let world = world().await;
        let options = EventStoreOptions::default()
            .tip_events_max(4)
            .attempts_max(100_000);
        let store = world.db.event_store(options);
        let tasks = (0..6).map(|task| tokio::spawn(contend(store.clone(), task, way)));
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let all = notes(&stream(&store, "a", way)).await;
        assert_eq!(all.len(), 150, "{way:?}");
        for task in 0..6 {
            let of_task = all.iter().copied().filter(|note| note / 100 == task);
            let expected = Vec::from_iter(task * 100..task * 100 + 25);
            assert_eq!(Vec::from_iter(of_task), expected, "{way:?}");
        }
    }
}
