//! Rejected writes, and how the store recovers.

use std::path::Path;

use floe_store::expr::Update;
use floe_store::op::{CreateTable, DeleteItem, GetItem, PutItem, Scan, UpdateItem, WriteItem};
use floe_store::table::{KeyKind, StreamView};
use floe_store::{Engine, Item, TableDef};

use super::*;
use crate::dir::Directory;
use crate::engine::OpenedStore;
use crate::response::block_on;
use crate::{LocalEngine, Options};

fn table(name: &str) -> CreateTable {
    let table = TableDef::builder(name, "id", KeyKind::N).stream(StreamView::NewImage);
    CreateTable::from(table.build().unwrap())
}

fn open(path: &Path) -> LocalEngine {
    let engine = LocalEngine::open_with(path, Options::new().background(false)).unwrap();
    if engine.running.shared().catalog.get("Tab").is_none() {
        block_on(engine.create_table(table("Tab"))).unwrap();
    }
    engine
}

fn key(id: i64) -> Item {
    Item::new().with("id", id)
}

fn put(engine: &LocalEngine, id: i64) -> Result<()> {
    let put = PutItem::new("Tab", key(id));
    block_on(engine.write_item(put.into())).map(drop)
}

fn delete(engine: &LocalEngine, id: i64) -> Result<()> {
    let delete = DeleteItem::new("Tab", key(id));
    block_on(engine.write_item(delete.into())).map(drop)
}

fn has(engine: &LocalEngine, id: i64) -> bool {
    let get = GetItem::new("Tab", key(id));
    block_on(engine.get_item(get)).unwrap().item.is_some()
}

fn fail_next_commit(engine: &LocalEngine, error: CommitError) {
    *engine.running.shared().kv.next_failure.lock().unwrap() = Some(error);
}

/// Makes the next attempt to reopen due.
fn reset_reopen_timer(engine: &LocalEngine) {
    engine.running.committer.gate.state.lock().unwrap().reopened = None;
}

#[test]
fn store_recovers_automatically_after_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    put(&engine, 1).unwrap();
    let before = block_on(engine.describe_table("Tab".to_owned())).unwrap();
    fail_next_commit(&engine, CommitError::Full("no space left".to_owned()));
    let error = put(&engine, 2).unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    match engine.health() {
        Health::WritesRefused { reason } => assert!(reason.contains("no space left"), "{reason}"),
        health => panic!("{health:?}"),
    }
    // A held snapshot prevents reopening.
    let held = engine.running.shared().kv.snapshot();
    let error = put(&engine, 3).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(has(&engine, 1) && !has(&engine, 2));
    drop(held);
    reset_reopen_timer(&engine);
    put(&engine, 3).unwrap();
    assert_eq!(engine.health(), Health::Ready);
    assert!(has(&engine, 1) && !has(&engine, 2) && has(&engine, 3));
    // The catalog, its counts and the sequence of changes match what was committed.
    let after = block_on(engine.describe_table("Tab".to_owned())).unwrap();
    assert_eq!((after.item_count, after.id), (2, before.id));
    engine.close().unwrap();
    drop(engine);
    let engine = open(dir.path());
    assert!(engine.doctor(false).unwrap().is_clean());
    assert_eq!(block_on(engine.scan(Scan::new("Tab"))).unwrap().count, 2);
}

#[test]
fn idle_store_recovers_without_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    fail_next_commit(&engine, CommitError::Full("no space left".to_owned()));
    let error = put(&engine, 1).unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    let begun = Stopwatch::start();
    while engine.health() != Health::Ready {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
    put(&engine, 1).unwrap();
}

/// The cause of the failure is unknown: on a full disk it is the lack of space, otherwise it may be a failed sync.
#[test]
fn failed_worker_is_permanent_unless_the_disk_is_full() {
    for (reserve, was_low, is_final) in
        [(0, false, true), (0, true, false), (u64::MAX, false, false)]
    {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()));
        let options = Options::new().background(false).disk_reserve_bytes(reserve);
        let engine = LocalEngine::open_with(dir.path(), options).unwrap();
        engine.running.committer.gate.state.lock().unwrap().was_low = was_low;
        let rejected = CommitError::Rejected("a thread failed".to_owned());
        let error = engine
            .running
            .committer
            .gate
            .commit_failed(engine.running.shared(), rejected);
        assert!(!error.may_have_applied(), "{error:?}");
        assert_eq!(matches!(error, Error::Storage(_)), is_final, "{error:?}");
        reset_reopen_timer(&engine);
        assert_eq!(engine.running.committer.gate.broken().is_some(), is_final);
        let is_passing = was_low && reserve == 0;
        assert_eq!(put(&engine, 1).is_ok(), is_passing);
    }
}

/// Nothing was written, so the outcome is known and the write can be retried.
#[test]
fn write_rejected_by_a_full_disk_has_a_known_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    fail_next_commit(
        &engine,
        CommitError::RejectedFull("no space left".to_owned()),
    );
    let error = put(&engine, 1).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(!error.may_have_applied(), "{error:?}");
    reset_reopen_timer(&engine);
    put(&engine, 1).unwrap();
    assert_eq!(engine.health(), Health::Ready);
}

#[test]
fn write_with_a_token_is_applied_once_after_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let add = || {
        let update = UpdateItem::new("Tab", key(1), Update::new().add("n", 1));
        WriteItem::from(update.token("t-1"))
    };
    fail_next_commit(&engine, CommitError::Full("no space left".to_owned()));
    block_on(engine.write_item(add())).unwrap_err();
    for _ in 0..2 {
        reset_reopen_timer(&engine);
        block_on(engine.write_item(add())).unwrap();
    }
    let get = GetItem::new("Tab", key(1));
    let item = block_on(engine.get_item(get)).unwrap().item.unwrap();
    assert_eq!(item, key(1).with("n", 1));
}

#[test]
fn failed_sync_is_permanent_until_the_store_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    fail_next_commit(
        &engine,
        CommitError::Unknown("input/output error".to_owned()),
    );
    put(&engine, 1).unwrap_err();
    for _ in 0..2 {
        reset_reopen_timer(&engine);
        let error = put(&engine, 2).unwrap_err();
        assert!(
            matches!(&error, Error::Storage(why) if why.contains("input/output")),
            "{error:?}"
        );
    }
    assert!(matches!(engine.health(), Health::WritesRefused { .. }));
    engine.close().unwrap_err();
    drop(engine);
    put(&open(dir.path()), 2).unwrap();
}

#[test]
fn only_deletes_are_accepted_below_the_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for id in 0..4 {
        put(&engine, id).unwrap();
    }
    drop(engine);
    let free = disk_space(dir.path()).unwrap().free;
    let with_reserve = |bytes| {
        let options = Options::new().background(false).disk_reserve_bytes(bytes);
        LocalEngine::open_with(dir.path(), options).unwrap()
    };
    let engine = with_reserve(free.saturating_mul(2));
    let error = put(&engine, 9).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("almost full")),
        "{error:?}"
    );
    let error = block_on(engine.create_table(table("Other"))).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    delete(&engine, 1).unwrap();
    assert!(has(&engine, 0) && !has(&engine, 1));
    match engine.health() {
        Health::WritesRefused { reason } => assert!(reason.contains("free_bytes="), "{reason}"),
        health => panic!("{health:?}"),
    }
    drop(engine);
    // So little space is left that even a delete might not fit.
    let engine = with_reserve(u64::MAX);
    let error = delete(&engine, 2).unwrap_err();
    assert!(error.to_string().contains("no writes"), "{error:?}");
    assert!(
        matches!(engine.health(), Health::WritesRefused { reason } if reason.contains("no writes")),
    );
    drop(engine);
    let engine = with_reserve(free.saturating_mul(2));
    block_on(engine.delete_table("Tab".to_owned())).unwrap();
    while engine.run_background_once().unwrap() {}
    drop(engine);
    block_on(with_reserve(0).create_table(table("Other"))).unwrap();
}

/// A store stops at its reserve, so free space is still below it after the cause is resolved. Deletes must free more.
#[test]
fn store_recovers_with_deletes_below_the_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for id in 0..3 {
        put(&engine, id).unwrap();
    }
    drop(engine);
    let free = disk_space(dir.path()).unwrap().free;
    let options = Options::new().background(false);
    let options = options.disk_reserve_bytes(free.saturating_mul(2));
    let engine = LocalEngine::open_with(dir.path(), options).unwrap();
    fail_next_commit(
        &engine,
        CommitError::RejectedFull("no space left".to_owned()),
    );
    delete(&engine, 0).unwrap_err();
    reset_reopen_timer(&engine);
    delete(&engine, 1).unwrap();
    assert!(has(&engine, 0) && !has(&engine, 1));
    assert!(
        matches!(engine.health(), Health::WritesRefused { reason } if reason.contains("only deletes")),
    );
    let error = put(&engine, 9).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("only deletes")),
        "{error:?}"
    );
    assert!(engine.running.committer.gate.state.lock().unwrap().was_low);
}

/// Removed files that the key-value store still holds may be the only space that can be freed, so it is reopened
/// periodically.
#[test]
fn failed_store_is_reopened_even_if_deletes_do_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let options = Options::new()
        .background(false)
        .disk_reserve_bytes(u64::MAX);
    let engine = LocalEngine::open_with(dir.path(), options).unwrap();
    let gate = || engine.running.committer.gate.state.lock().unwrap();
    let failed = || WriteBlock::AwaitingReopen("no space left".to_owned());
    gate().block = Some(failed());
    delete(&engine, 0).unwrap_err();
    assert!(matches!(gate().block, Some(WriteBlock::LowSpace { .. })));
    // The next attempt is not due yet.
    gate().block = Some(failed());
    delete(&engine, 0).unwrap_err();
    assert_eq!(gate().block, Some(failed()));
    reset_reopen_timer(&engine);
    delete(&engine, 0).unwrap_err();
    assert!(matches!(gate().block, Some(WriteBlock::LowSpace { .. })));
    assert!(!engine.running.shared().kv.has_failed());
}

#[test]
fn write_to_a_removed_directory_is_not_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let engine = open(&path);
    put(&engine, 1).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    for _ in 0..3 {
        let error = put(&engine, 2).unwrap_err();
        assert!(
            matches!(error, Error::OutcomeUnknown(_) | Error::Unavailable(_)),
            "{error:?}"
        );
    }
    assert!(matches!(engine.health(), Health::WritesRefused { .. }));
    drop(engine);
    assert!(
        !path.exists(),
        "closing creates nothing in a removed directory"
    );
}

/// Each of these keeps the lock and the directory in place.
#[test]
fn write_to_removed_or_replaced_files_is_neither_acknowledged_nor_sealed() {
    let replace_data: fn(&Path, &Path) = |data, aside| {
        std::fs::rename(data, aside).unwrap();
        copy(aside, data);
    };
    let remove_journal: fn(&Path, &Path) =
        |data, aside| std::fs::rename(data.join("0.jnl"), aside).unwrap();
    let remove_keyspaces: fn(&Path, &Path) =
        |data, aside| std::fs::rename(data.join("keyspaces"), aside).unwrap();
    for damage in [replace_data, remove_journal, remove_keyspaces] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let engine = open(&path);
        put(&engine, 1).unwrap();
        damage(&path.join("data"), &dir.path().join("aside"));
        for _ in 0..3 {
            let error = put(&engine, 2).unwrap_err();
            assert!(
                matches!(error, Error::OutcomeUnknown(_) | Error::Unavailable(_)),
                "{error:?}"
            );
        }
        assert!(matches!(engine.health(), Health::WritesRefused { .. }));
        drop(engine);
        assert!(!path.join("SEAL").exists());
    }
}

/// Journals that the key-value store itself creates and removes must not cause rejections.
#[test]
fn journal_rotation_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().background(false);
    let options = options.write_buffer_bytes(8 << 20);
    let engine = LocalEngine::open_with(dir.path(), options).unwrap();
    block_on(engine.create_table(table("Tab"))).unwrap();
    let journals = || crate::journal::journals(&dir.path().join("data")).unwrap();
    let text = "x".repeat(300_000);
    let mut id = 0;
    while journals()[0].0 == 0 {
        let put = PutItem::new("Tab", key(id).with("text", text.clone()));
        block_on(engine.write_item(put.into())).unwrap();
        assert_eq!(engine.health(), Health::Ready);
        id += 1;
        assert!(id < 2_000);
    }
    assert!(has(&engine, 0) && has(&engine, id - 1));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

#[test]
fn moved_directory_accepts_writes_when_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("store"), dir.path().join("other"));
    let engine = open(&path);
    put(&engine, 1).unwrap();
    std::fs::rename(&path, &other).unwrap();
    put(&engine, 2).unwrap_err();
    std::fs::rename(&other, &path).unwrap();
    reset_reopen_timer(&engine);
    engine.running.committer.gate.state.lock().unwrap().checked = None;
    put(&engine, 3).unwrap();
    assert_eq!(engine.health(), Health::Ready);
    drop(engine);
    let engine = open(&path);
    assert!(has(&engine, 1) && has(&engine, 3));
    assert!(engine.doctor(false).unwrap().is_clean());
}

#[test]
fn read_only_store_is_readable_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    drop({
        let engine = open(dir.path());
        put(&engine, 1).unwrap();
        engine
    });
    let before = listing(dir.path());
    let directory = Directory::open_existing(dir.path())
        .unwrap()
        .into_read_only();
    let options = Options::new().background(false);
    let opened = OpenedStore::open(directory, &options).unwrap();
    let engine = LocalEngine {
        running: crate::engine::RunningEngine::from_opened(opened, options).unwrap(),
    };
    assert_eq!(engine.health(), Health::ReadOnly);
    assert!(has(&engine, 1));
    let error = put(&engine, 2).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("read-only")),
        "{error:?}"
    );
    assert!(engine.doctor(false).unwrap().is_clean());
    engine.close().unwrap();
    drop(engine);
    assert_eq!(listing(dir.path()), before);
}

/// All files with their contents.
fn listing(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(listing(&path));
        } else {
            let content = std::fs::read(&path).unwrap();
            found.push((path, content));
        }
    }
    found.sort();
    found
}
