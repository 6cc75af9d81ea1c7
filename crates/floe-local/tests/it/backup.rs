//! Backups are complete snapshots, also during writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use floe_local::LocalEngine;
use floe_store::op::{PutItem, TransactWrite, TransactWriteItems};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Error, Item, TableDef};

use crate::common::{HOUR, TestStore, memory, open, open_at};

fn accounts() -> TableDef {
    TableDef::builder("Accounts", "id", KeyKind::S)
        .global_index(
            "by_round",
            [("round", KeyKind::N)],
            [("id", KeyKind::S)],
            Projection::All,
        )
        .local_index("by_balance", "balance", KeyKind::N, Projection::KeysOnly)
        .sort_key("part", KeyKind::N)
        .stream(StreamView::NewAndOldImages)
        .ttl("until")
        .build()
        .unwrap()
}

fn account(id: &str, round: u64) -> Item {
    Item::new()
        .with("id", id)
        .with("part", 0)
        .with("round", round)
        .with("balance", 100 - round as i64)
}

async fn filled(store: &TestStore, count: u64) {
    store.create(accounts()).await;
    store
        .create(
            TableDef::builder("Empty", "id", KeyKind::B)
                .build()
                .unwrap(),
        )
        .await;
    for n in 0..count {
        store
            .put("Accounts", account(&format!("a{n:04}"), n % 7))
            .await;
    }
    store
        .delete("Accounts", Item::new().with("id", "a0003").with("part", 0))
        .await;
}

/// Everything that the public API returns about an engine's content.
async fn contents(store: &TestStore) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    let engine = &store.engine;
    for name in engine
        .list_tables(Default::default())
        .await
        .unwrap()
        .table_names
    {
        contents.insert(
            format!("{name} items"),
            format!("{:?}", store.items(&name).await),
        );
        let description = engine.describe_table(name.clone()).await.unwrap();
        for index in &description.indexes {
            let entries = store.entries(&name, &index.name).await;
            contents.insert(format!("{name} {}", index.name), format!("{entries:?}"));
        }
        contents.insert(format!("{name} description"), format!("{description:?}"));
    }
    for arn in store.stream_arns().await {
        contents.insert(
            format!("{arn} shards"),
            format!("{:?}", store.shards(&arn).await),
        );
        contents.insert(
            format!("{arn} records"),
            format!("{:?}", store.all_records(&arn).await),
        );
    }
    contents
}

#[tokio::test]
async fn backup_of_a_directory_has_the_same_content() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("live"));
    filled(&store, 300).await;
    let report = store.engine.backup(dir.path().join("copy")).unwrap();
    assert_eq!(report.tables, 2);
    assert!(report.entries > 299 * 4, "{report:?}");
    let copy = open_at(&dir.path().join("copy"), store.clock.clone());
    assert_eq!(contents(&copy).await, contents(&store).await);
    assert!(copy.engine.doctor(false).unwrap().is_clean());
}

#[tokio::test]
async fn backup_of_a_store_in_memory_is_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory();
    filled(&store, 50).await;
    store.engine.backup(dir.path().join("copy")).unwrap();
    let copy = open_at(&dir.path().join("copy"), store.clock.clone());
    assert_eq!(contents(&copy).await, contents(&store).await);
}

#[tokio::test]
async fn backup_is_independent_of_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("live"));
    filled(&store, 20).await;
    store.engine.backup(dir.path().join("copy")).unwrap();
    let copy = open_at(&dir.path().join("copy"), store.clock.clone());
    let before = contents(&store).await;
    copy.put("Accounts", account("new", 1)).await;
    copy.put("Accounts", account("a0005", 6).with("until", 1))
        .await;
    copy.clock.advance(HOUR);
    copy.run_background();
    assert_eq!(copy.items("Accounts").await.len(), 20);
    assert_eq!(
        copy.all_records(&copy.stream_arn("Accounts").await)
            .await
            .len(),
        23
    );
    assert!(copy.engine.doctor(false).unwrap().is_clean());
    drop(copy);
    let copy = open_at(&dir.path().join("copy"), store.clock.clone());
    assert_eq!(copy.items("Accounts").await.len(), 20);
    assert_eq!(contents(&store).await, before);
    // A backup can be backed up as well.
    copy.engine.backup(dir.path().join("copy of copy")).unwrap();
    let second = open_at(&dir.path().join("copy of copy"), store.clock.clone());
    assert_eq!(contents(&second).await, contents(&copy).await);
}

#[tokio::test]
async fn nonempty_target_is_rejected_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory();
    filled(&store, 5).await;
    let target = dir.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("notes.txt"), "mine").unwrap();
    let error = store.engine.backup(&target).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    assert_eq!(
        fs::read_to_string(target.join("notes.txt")).unwrap(),
        "mine"
    );
    assert!(!dir.path().join("target.tmp").exists());
    fs::remove_file(target.join("notes.txt")).unwrap();
    store.engine.backup(&target).unwrap();
    let error = store.engine.backup(&target).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    LocalEngine::open(&target).unwrap();
}

#[tokio::test]
async fn foreign_directory_with_the_staging_name_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory();
    filled(&store, 5).await;
    let unfinished = dir.path().join("target.tmp");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("notes.txt"), "mine").unwrap();
    store.engine.backup(dir.path().join("target")).unwrap_err();
    assert_eq!(
        fs::read_to_string(unfinished.join("notes.txt")).unwrap(),
        "mine"
    );
    assert!(!dir.path().join("target").exists());
}

#[tokio::test]
async fn leftovers_of_a_killed_backup_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory();
    filled(&store, 5).await;
    // As left by a process that dies before or after the copy is complete.
    for complete in [false, true] {
        let unfinished = dir.path().join(format!("{complete}.tmp"));
        let target = dir.path().join(complete.to_string());
        store.engine.backup(&unfinished).unwrap();
        if !complete {
            fs::remove_file(unfinished.join("FORMAT")).unwrap();
        }
        let marker = "floe-local: an unfinished store; it may be removed\n";
        fs::write(unfinished.join("FLOE-UNFINISHED"), marker).unwrap();
        fs::write(unfinished.join("data").join("torn"), "torn").unwrap();
        store.engine.backup(&target).unwrap();
        assert!(!unfinished.exists() && !target.join("data").join("torn").exists());
        let copy = open_at(&target, store.clock.clone());
        assert_eq!(contents(&copy).await, contents(&store).await);
    }
}

#[tokio::test]
async fn backup_reports_progress() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory();
    store
        .create(
            TableDef::builder("Plain", "id", KeyKind::N)
                .build()
                .unwrap(),
        )
        .await;
    for n in 0..25_000 {
        let item = Item::new().with("id", n);
        store.put("Plain", item).await;
    }
    let mut reported = Vec::new();
    let target = dir.path().join("copy");
    let report = store
        .engine
        .backup_with(&target, |report| reported.push(report.entries))
        .unwrap();
    assert_eq!(reported.last(), Some(&report.entries));
    assert!(reported.len() >= 3 && reported.is_sorted(), "{reported:?}");
}

/// Writes rounds of transactions until `stop` is set: each transaction sets all accounts to its round.
fn keep_writing(store: &Arc<TestStore>, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<u64> {
    let (store, stop) = (store.clone(), stop.clone());
    tokio::spawn(async move {
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            round += 1;
            let puts = (0..10).map(|n| {
                TransactWrite::Put(PutItem::new("Accounts", account(&format!("t{n}"), round)))
            });
            store
                .engine
                .transact_write_items(TransactWriteItems::new(puts))
                .await
                .unwrap();
        }
        round
    })
}

async fn check_is_prefix_of_history(dir: &Path, store: &TestStore) {
    let copy = open_at(dir, store.clock.clone());
    assert!(copy.engine.doctor(false).unwrap().is_clean());
    let mut items = copy.items("Accounts").await;
    items.retain(|item| item.get("id").unwrap().as_s().unwrap().starts_with('t'));
    let rounds: Vec<_> = items
        .iter()
        .map(|item| item.get("round").unwrap().as_n().unwrap())
        .collect();
    assert!(
        rounds.windows(2).all(|pair| pair[0] == pair[1]),
        "partial transaction: {rounds:?}"
    );
    // The change log contains the same history, up to the same point.
    let records = copy.all_records(&copy.stream_arn("Accounts").await).await;
    let full = store.all_records(&store.stream_arn("Accounts").await).await;
    assert_eq!(records[..], full[..records.len()]);
    let written = records.iter().filter(|record| {
        record
            .keys
            .get("id")
            .unwrap()
            .as_s()
            .unwrap()
            .starts_with('t')
    });
    let round = rounds.first().and_then(|round| round.to_u64()).unwrap_or(0);
    assert_eq!(written.count() as u64, 10 * round);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_during_writes_is_a_prefix_of_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&dir.path().join("live")));
    filled(&store, 100).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = keep_writing(&store, &stop);
    for n in 0..3 {
        let target = dir.path().join(format!("copy{n}"));
        let source = store.clone();
        tokio::task::spawn_blocking(move || source.engine.backup(target))
            .await
            .unwrap()
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0);
    for n in 0..3 {
        check_is_prefix_of_history(&dir.path().join(format!("copy{n}")), &store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_works_while_tables_are_created_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&dir.path().join("live")));
    let stop = Arc::new(AtomicBool::new(false));
    let (changed, stop_changer) = (store.clone(), stop.clone());
    let changer = tokio::spawn(async move {
        while !stop_changer.load(Ordering::Relaxed) {
            let table = TableDef::builder("Temporary", "id", KeyKind::S)
                .build()
                .unwrap();
            changed.create(table).await;
            changed.put("Temporary", Item::new().with("id", "a")).await;
            changed
                .engine
                .delete_table("Temporary".to_owned())
                .await
                .unwrap();
        }
    });
    for n in 0..3 {
        let target = dir.path().join(format!("copy{n}"));
        let source = store.clone();
        let path = target.clone();
        tokio::task::spawn_blocking(move || source.engine.backup(path))
            .await
            .unwrap()
            .unwrap();
        let copy = open_at(&target, store.clock.clone());
        assert!(copy.engine.doctor(false).unwrap().is_clean());
    }
    stop.store(true, Ordering::Relaxed);
    changer.await.unwrap();
}

#[tokio::test]
async fn backup_to_an_impossible_target_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = store
        .engine
        .backup(dir.path().join("file").join("copy"))
        .unwrap_err();
    assert!(matches!(error, Error::Storage(_)), "{error:?}");
    let error = store.engine.backup("/").unwrap_err();
    assert!(matches!(error, Error::Storage(_)), "{error:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
