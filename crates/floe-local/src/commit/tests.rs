//! Visibility between requests in one group, and failed commits.

use std::sync::mpsc;

use floe_store::expr::{Condition, Update};
use floe_store::op::{
    CreateTable, GetItem, PutItem, TransactWriteItems, UpdateItem, WriteItemOutput,
};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Error, Item, Result, TableDef};

use crate::engine::RunningEngine;
use crate::group::{DiskUse, Group};
use crate::kv::{CommitError, Direction, Space};
use crate::layout::change;
use crate::options::Options;
use crate::request::Work;
use crate::response::PendingResponse;
use crate::{items, tables, transact};

struct Fixture {
    running: RunningEngine,
}

impl Fixture {
    fn new() -> Self {
        let running = RunningEngine::memory(Options::new().background(false)).unwrap();
        let table = TableDef::builder("Tab", "id", KeyKind::N)
            .global_index(
                "by_n",
                [("n", KeyKind::N)],
                [("id", KeyKind::N)],
                Projection::All,
            )
            .stream(StreamView::NewAndOldImages)
            .build()
            .unwrap();
        let create = CreateTable::from(table);
        tables::create_table(&running.committer, &create)
            .unwrap()
            .wait()
            .unwrap();
        Self { running }
    }

    /// Keeps the committer busy, so that requests sent meanwhile form one group.
    fn hold(&self) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        drop(self.running.committer.run(DiskUse::Grows, move |_| {
            begun.send(()).unwrap();
            let _ = held.recv();
            Ok(())
        }));
        has_begun.recv().unwrap();
        release
    }

    fn put(&self, id: i64, n: i64) -> PendingResponse<WriteItemOutput> {
        let new = Condition::attribute_not_exists("id");
        let put = PutItem::new("Tab", item(id, n)).condition(new);
        items::write_item(&self.running.committer, put.into()).unwrap()
    }

    fn add(&self, id: i64, n: i64) -> PendingResponse<WriteItemOutput> {
        let update = UpdateItem::new("Tab", key(id), Update::new().add("n", n));
        items::write_item(&self.running.committer, update.into()).unwrap()
    }

    fn get(&self, id: i64) -> Option<Item> {
        let get = GetItem::new("Tab", key(id));
        items::get_item(self.running.shared(), &get).unwrap().item
    }

    fn fail_next_commit(&self, error: CommitError) {
        *self.running.shared().kv.next_failure.lock().unwrap() = Some(error);
    }
}

fn key(id: i64) -> Item {
    Item::new().with("id", id)
}

fn item(id: i64, n: i64) -> Item {
    key(id).with("n", n)
}

#[test]
fn request_sees_earlier_requests_of_its_group() {
    let fixture = Fixture::new();
    let release = fixture.hold();
    let first = fixture.put(1, 1);
    let second = fixture.put(1, 2);
    let sum = [fixture.add(1, 10), fixture.add(1, 100), fixture.add(2, 1)];
    let check = Condition::eq(floe_store::expr::Path::attribute("n"), 111);
    let update = UpdateItem::new("Tab", key(1), Update::new().set("seen", true)).condition(check);
    let transaction =
        TransactWriteItems::new([update.into(), PutItem::new("Tab", item(3, 3)).into()]);
    let committer = &*fixture.running.committer;
    let transaction = transact::transact_write_items(committer, transaction).unwrap();
    assert_eq!(fixture.get(1), None);
    release.send(()).unwrap();

    assert_eq!(first.wait(), Ok(WriteItemOutput::default()));
    assert_eq!(
        second.wait(),
        Err(Error::ConditionalCheckFailed { item: None })
    );
    for response in sum {
        response.wait().unwrap();
    }
    transaction.wait().unwrap();
    assert_eq!(fixture.get(1), Some(item(1, 111).with("seen", true)));
    assert_eq!(fixture.get(2), Some(item(2, 1)));

    // Index entries of intermediate states are gone; each change has its record.
    let table = committer.shared.catalog.get("Tab").unwrap();
    assert_eq!(table.counts().table.items, 3);
    let index = table.record.indexes[0].id;
    assert_eq!(table.counts().indexes[&index].items, 3);
    let bounds = crate::layout::key::Entries::Index(index).bounds();
    let entries = committer
        .shared
        .kv
        .snapshot()
        .range(table.space(), bounds, Direction::Forward);
    assert_eq!(entries.count(), 3);
    let records = committer
        .shared
        .kv
        .snapshot()
        .prefix(Space::Changes, &[], Direction::Forward);
    let sequences = records.map(|record| change::decode_key(&record.unwrap().0).unwrap().1);
    assert_eq!(sequences.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn failed_commit_has_unknown_outcome_and_stops_writes() {
    let fixture = Fixture::new();
    fixture.put(1, 1).wait().unwrap();
    let release = fixture.hold();
    let (written, rejected) = (fixture.put(2, 2), fixture.put(1, 1));
    fixture.fail_next_commit(CommitError::Unknown("the disk is full".to_owned()));
    release.send(()).unwrap();

    let unknown = Error::OutcomeUnknown("the disk is full".to_owned());
    assert_eq!(written.wait(), Err(unknown));
    // The rejected request wrote nothing, but its error must not reveal uncommitted state.
    assert_eq!(
        rejected.wait().map(drop),
        Err(Error::Storage("the disk is full".to_owned()))
    );

    let rejected = |result: Result<()>| match result {
        Err(Error::Storage(message)) => assert!(message.contains("the disk is full"), "{message}"),
        other => panic!("{other:?}"),
    };
    rejected(fixture.put(3, 3).wait().map(drop));
    rejected(
        fixture
            .running
            .committer
            .run(DiskUse::Grows, |_| Ok(()))
            .wait(),
    );
    assert_eq!(fixture.get(1), Some(item(1, 1)));
    assert_eq!(fixture.get(2), None);
    rejected(fixture.running.close());
}

#[test]
fn rejected_commit_has_a_known_outcome() {
    let fixture = Fixture::new();
    fixture.fail_next_commit(CommitError::Rejected("failed before".to_owned()));
    let error = fixture.put(1, 1).wait().unwrap_err();
    assert!(!error.may_have_applied(), "{error:?}");
}

#[test]
fn failed_exclusive_request_has_no_effect() {
    let fixture = Fixture::new();
    let committer = &*fixture.running.committer;
    let fail = |group: &mut Group<'_>| {
        group.new_id();
        let stream = group.shared().catalog.get("Tab").unwrap().stream().unwrap();
        let now = group.now();
        group.sequences().next(stream, now).unwrap();
        group.put(Space::Meta, &b"Z"[..], &b"1"[..]);
        group.on_commit(|shared| shared.catalog.remove("Tab"));
        Err::<(), _>(Error::validation("no"))
    };
    assert_eq!(
        committer.run(DiskUse::Grows, fail).wait(),
        Err(Error::validation("no"))
    );
    assert_eq!(
        committer
            .shared
            .kv
            .snapshot()
            .get(Space::Meta, b"Z")
            .unwrap(),
        None
    );
    assert!(committer.shared.catalog.get("Tab").is_some());
    let (id, sequence) = committer
        .run(DiskUse::Grows, |group| {
            Ok((group.new_id(), group.sequences().sequence))
        })
        .wait()
        .unwrap();
    let (next, _) = committer
        .run(DiskUse::Grows, |group| Ok((group.new_id(), 0)))
        .wait()
        .unwrap();
    assert_eq!((next, sequence), (id + 1, 0));
}

#[test]
fn panicking_committer_releases_waiting_callers() {
    let fixture = Fixture::new();
    let release = fixture.hold();
    let panics = fixture
        .running
        .committer
        .run(DiskUse::Grows, |_| -> Result<()> { panic!("a bug") });
    let waiting = fixture.put(1, 1);
    release.send(()).unwrap();
    assert!(matches!(panics.wait(), Err(Error::OutcomeUnknown(_))));
    assert!(matches!(waiting.wait(), Err(Error::OutcomeUnknown(_))));
    assert!(matches!(fixture.running.close(), Err(Error::Internal(_))));
    assert!(matches!(fixture.put(2, 2).wait(), Err(Error::Storage(_))));
}

#[test]
fn write_in_memory_runs_before_its_response_is_awaited() {
    let fixture = Fixture::new();
    // The thread holds the lock until it has sent all responses, and checks the queue once a second.
    let is_done_at_once = |id| {
        drop(fixture.running.committer.lock.lock().unwrap());
        let response = fixture.put(id, 1);
        let found = fixture.get(id);
        response.wait().unwrap();
        found == Some(item(id, 1))
    };
    assert!((0..10).any(is_done_at_once));
}

#[test]
fn concurrent_writers_in_memory_leave_no_write_behind() {
    const WRITERS: i64 = 8;
    const WRITES: i64 = 500;
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let fixture = &fixture;
            scope.spawn(move || {
                for n in 0..WRITES {
                    fixture.add(0, 1).wait().unwrap();
                    if n % 50 == writer {
                        fixture
                            .running
                            .committer
                            .run(DiskUse::Grows, |_| Ok(()))
                            .wait()
                            .unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(fixture.get(0), Some(item(0, WRITERS * WRITES)));
}

#[test]
fn panic_of_a_committing_writer_stops_writes() {
    struct Panics;
    impl Work for Panics {
        type Output = ();

        fn disk_use(&self) -> DiskUse {
            DiskUse::Grows
        }

        fn run(&mut self, _: &mut Group<'_>) -> Result<()> {
            panic!("a bug")
        }
    }
    let fixture = Fixture::new();
    let release = fixture.hold();
    let waiting = fixture.put(1, 1);
    let committer = &*fixture.running.committer;
    drop(committer.submit(Panics));
    release.send(()).unwrap();
    assert!(matches!(waiting.wait(), Err(Error::OutcomeUnknown(_))));
    assert!(matches!(fixture.running.close(), Err(Error::Internal(_))));

    let fixture = Fixture::new();
    let committer = &*fixture.running.committer;
    drop(committer.lock.lock().unwrap());
    std::thread::scope(|scope| {
        // Either the writer or the thread panics, whichever holds the lock.
        drop(scope.spawn(|| drop(committer.submit(Panics))).join());
    });
    fixture.put(1, 1).wait().unwrap_err();
    assert!(matches!(fixture.running.close(), Err(Error::Internal(_))));
}

#[test]
fn group_size_is_limited() {
    let fixture = Fixture::new();
    let release = fixture.hold();
    let responses: Vec<_> = (0..3000).map(|id| fixture.put(id, id)).collect();
    release.send(()).unwrap();
    for response in responses {
        response.wait().unwrap();
    }
    let table = fixture.running.shared().catalog.get("Tab").unwrap();
    assert_eq!(table.counts().table.items, 3000);
}

/// A write that runs until it is released.
struct SlowWrite {
    begun: mpsc::Sender<()>,
    held: mpsc::Receiver<()>,
}

impl Work for SlowWrite {
    type Output = ();

    fn disk_use(&self) -> DiskUse {
        DiskUse::Grows
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<()> {
        group.put(Space::Meta, &b"slow"[..], &b""[..]);
        self.begun.send(()).unwrap();
        let _ = self.held.recv();
        Ok(())
    }
}

/// Returns the number of writes in its group.
struct CountWrites;

impl Work for CountWrites {
    type Output = usize;

    fn disk_use(&self) -> DiskUse {
        DiskUse::Grows
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<usize> {
        Ok(group.writes())
    }
}

#[test]
fn open_group_accepts_new_requests_except_exclusive_ones_and_those_after_them() {
    let fixture = Fixture::new();
    let committer = &*fixture.running.committer;
    let after_slow = |submit: &dyn Fn() -> Vec<PendingResponse<usize>>| {
        let ((begun, has_begun), (release, held)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| committer.submit(SlowWrite { begun, held }).wait());
            has_begun.recv().unwrap();
            let submitted = submit();
            release.send(()).unwrap();
            slow.join().unwrap().unwrap();
            let responses = submitted
                .into_iter()
                .map(|response| response.wait().unwrap());
            responses.collect::<Vec<_>>()
        })
    };
    let counts = || vec![committer.submit(CountWrites), committer.submit(CountWrites)];
    assert_eq!(after_slow(&counts), [1, 1]);
    let exclusive = || {
        let alone = committer.run(DiskUse::Grows, |group| Ok(group.writes()));
        vec![alone, committer.submit(CountWrites)]
    };
    assert_eq!(after_slow(&exclusive), [0, 0]);
}
