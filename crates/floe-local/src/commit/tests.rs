//! What requests see of each other in one group, and what becomes of them when a commit fails.

use std::sync::mpsc;

use floe_store::expr::{Condition, Update};
use floe_store::op::{
    CreateTable, GetItem, PutItem, TransactWriteItems, UpdateItem, WriteItemOutput,
};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Error, Item, Result, TableDef};

use crate::answer::Answer;
use crate::engine::Running;
use crate::group::{Effect, Group};
use crate::kv::{CommitError, Direction, Space};
use crate::layout::change;
use crate::options::Options;
use crate::request::Work;
use crate::{items, tables, transact};

struct Fixture {
    running: Running,
}

impl Fixture {
    fn new() -> Self {
        let running = Running::memory(Options::new().background(false)).unwrap();
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

    /// Keeps the committer busy, so that what is given to it meanwhile becomes one group.
    fn hold(&self) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        drop(self.running.committer.run(Effect::Grows, move |_| {
            begun.send(()).unwrap();
            let _ = held.recv();
            Ok(())
        }));
        has_begun.recv().unwrap();
        release
    }

    fn put(&self, id: i64, n: i64) -> Answer<WriteItemOutput> {
        let new = Condition::attribute_not_exists("id");
        let put = PutItem::new("Tab", item(id, n)).condition(new);
        items::write_item(&self.running.committer, put.into()).unwrap()
    }

    fn add(&self, id: i64, n: i64) -> Answer<WriteItemOutput> {
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
fn a_request_sees_the_ones_before_it_in_its_group() {
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
    for answer in sum {
        answer.wait().unwrap();
    }
    transaction.wait().unwrap();
    assert_eq!(fixture.get(1), Some(item(1, 111).with("seen", true)));
    assert_eq!(fixture.get(2), Some(item(2, 1)));

    // Of the index entries of the states in between, none is left; each change has its record.
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
fn a_failed_commit_leaves_its_group_open_and_ends_all_writing() {
    let fixture = Fixture::new();
    fixture.put(1, 1).wait().unwrap();
    let release = fixture.hold();
    let (written, refused) = (fixture.put(2, 2), fixture.put(1, 1));
    fixture.fail_next_commit(CommitError::Unknown("the disk is full".to_owned()));
    release.send(()).unwrap();

    let unknown = Error::OutcomeUnknown("the disk is full".to_owned());
    assert_eq!(written.wait(), Err(unknown));
    // A request that was refused wrote nothing, and tells nothing of what may be lost.
    assert_eq!(
        refused.wait().map(drop),
        Err(Error::Storage("the disk is full".to_owned()))
    );

    let refused = |result: Result<()>| match result {
        Err(Error::Storage(message)) => assert!(message.contains("the disk is full"), "{message}"),
        other => panic!("{other:?}"),
    };
    refused(fixture.put(3, 3).wait().map(drop));
    refused(
        fixture
            .running
            .committer
            .run(Effect::Grows, |_| Ok(()))
            .wait(),
    );
    assert_eq!(fixture.get(1), Some(item(1, 1)));
    assert_eq!(fixture.get(2), None);
    refused(fixture.running.close());
}

#[test]
fn a_commit_that_was_refused_is_known_not_to_have_happened() {
    let fixture = Fixture::new();
    fixture.fail_next_commit(CommitError::Refused("failed before".to_owned()));
    let error = fixture.put(1, 1).wait().unwrap_err();
    assert!(!error.may_have_applied(), "{error:?}");
}

#[test]
fn an_exclusive_request_that_fails_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let committer = &*fixture.running.committer;
    let fail = |group: &mut Group<'_>| {
        group.new_id();
        let stream = group.shared().catalog.get("Tab").unwrap().stream().unwrap();
        let now = group.now();
        group.position().next(stream, now).unwrap();
        group.put(Space::Meta, &b"Z"[..], &b"1"[..]);
        group.on_commit(|shared| shared.catalog.remove("Tab"));
        Err::<(), _>(Error::validation("no"))
    };
    assert_eq!(
        committer.run(Effect::Grows, fail).wait(),
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
        .run(Effect::Grows, |group| {
            Ok((group.new_id(), group.position().sequence))
        })
        .wait()
        .unwrap();
    let (next, _) = committer
        .run(Effect::Grows, |group| Ok((group.new_id(), 0)))
        .wait()
        .unwrap();
    assert_eq!((next, sequence), (id + 1, 0));
}

#[test]
fn nobody_waits_in_vain_for_a_committer_that_panicked() {
    let fixture = Fixture::new();
    let release = fixture.hold();
    let panics = fixture
        .running
        .committer
        .run(Effect::Grows, |_| -> Result<()> { panic!("a bug") });
    let waiting = fixture.put(1, 1);
    release.send(()).unwrap();
    assert!(matches!(panics.wait(), Err(Error::OutcomeUnknown(_))));
    assert!(matches!(waiting.wait(), Err(Error::OutcomeUnknown(_))));
    assert!(matches!(fixture.running.close(), Err(Error::Internal(_))));
    assert!(matches!(fixture.put(2, 2).wait(), Err(Error::Storage(_))));
}

#[test]
fn in_memory_a_write_is_done_before_its_answer_is_waited_for() {
    let fixture = Fixture::new();
    // The thread is in the seat until it has answered everybody, and looks around once a second.
    let is_done_at_once = |id| {
        drop(fixture.running.committer.seat.lock().unwrap());
        let answer = fixture.put(id, 1);
        let found = fixture.get(id);
        answer.wait().unwrap();
        found == Some(item(id, 1))
    };
    assert!((0..10).any(is_done_at_once));
}

#[test]
fn writers_that_meet_in_memory_leave_no_write_behind() {
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
                            .run(Effect::Grows, |_| Ok(()))
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
fn a_writer_that_panics_in_the_seat_ends_all_writing() {
    struct Panics;
    impl Work for Panics {
        type Output = ();

        fn effect(&self) -> Effect {
            Effect::Grows
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
    drop(committer.seat.lock().unwrap());
    std::thread::scope(|scope| {
        // Whether it is the writer or the thread that panics depends on who is in the seat.
        drop(scope.spawn(|| drop(committer.submit(Panics))).join());
    });
    fixture.put(1, 1).wait().unwrap_err();
    assert!(matches!(fixture.running.close(), Err(Error::Internal(_))));
}

#[test]
fn a_group_takes_only_so_much() {
    let fixture = Fixture::new();
    let release = fixture.hold();
    let answers: Vec<_> = (0..3000).map(|id| fixture.put(id, id)).collect();
    release.send(()).unwrap();
    for answer in answers {
        answer.wait().unwrap();
    }
    let table = fixture.running.shared().catalog.get("Tab").unwrap();
    assert_eq!(table.counts().table.items, 3000);
}

/// A write that takes until it is told to end.
struct Slow {
    begun: mpsc::Sender<()>,
    held: mpsc::Receiver<()>,
}

impl Work for Slow {
    type Output = ();

    fn effect(&self) -> Effect {
        Effect::Grows
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<()> {
        group.put(Space::Meta, &b"slow"[..], &b""[..]);
        self.begun.send(()).unwrap();
        let _ = self.held.recv();
        Ok(())
    }
}

/// Tells how many writes are in its group.
struct Look;

impl Work for Look {
    type Output = usize;

    fn effect(&self) -> Effect {
        Effect::Grows
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<usize> {
        Ok(group.writes())
    }
}

#[test]
fn what_comes_while_a_group_is_open_is_in_it_but_for_what_is_exclusive_and_comes_behind_that() {
    let fixture = Fixture::new();
    let committer = &*fixture.running.committer;
    let after_slow = |ask: &dyn Fn() -> Vec<Answer<usize>>| {
        let ((begun, has_begun), (release, held)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| committer.submit(Slow { begun, held }).wait());
            has_begun.recv().unwrap();
            let asked = ask();
            release.send(()).unwrap();
            slow.join().unwrap().unwrap();
            let answers = asked.into_iter().map(|answer| answer.wait().unwrap());
            answers.collect::<Vec<_>>()
        })
    };
    let looks = || vec![committer.submit(Look), committer.submit(Look)];
    assert_eq!(after_slow(&looks), [1, 1]);
    let exclusive = || {
        let alone = committer.run(Effect::Grows, |group| Ok(group.writes()));
        vec![alone, committer.submit(Look)]
    };
    assert_eq!(after_slow(&exclusive), [0, 0]);
}
