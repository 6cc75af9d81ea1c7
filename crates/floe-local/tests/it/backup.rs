//! Backups: whole, of one moment, while writes go on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use floe_local::LocalEngine;
use floe_store::op::{PutItem, TransactWrite, TransactWriteItems};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Error, Item, TableDef};

use crate::common::{HOUR, Owned, memory, open, open_at};

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

async fn filled(owned: &Owned, count: u64) {
    owned.create(accounts()).await;
    owned
        .create(
            TableDef::builder("Empty", "id", KeyKind::B)
                .build()
                .unwrap(),
        )
        .await;
    for n in 0..count {
        owned
            .put("Accounts", account(&format!("a{n:04}"), n % 7))
            .await;
    }
    owned
        .delete("Accounts", Item::new().with("id", "a0003").with("part", 0))
        .await;
}

/// Everything that can be seen of an engine from outside.
async fn contents(owned: &Owned) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    let engine = &owned.engine;
    for name in engine
        .list_tables(Default::default())
        .await
        .unwrap()
        .table_names
    {
        contents.insert(
            format!("{name} items"),
            format!("{:?}", owned.items(&name).await),
        );
        let description = engine.describe_table(name.clone()).await.unwrap();
        for index in &description.indexes {
            let entries = owned.entries(&name, &index.name).await;
            contents.insert(format!("{name} {}", index.name), format!("{entries:?}"));
        }
        contents.insert(format!("{name} description"), format!("{description:?}"));
    }
    for arn in owned.stream_arns().await {
        contents.insert(
            format!("{arn} shards"),
            format!("{:?}", owned.shards(&arn).await),
        );
        contents.insert(
            format!("{arn} records"),
            format!("{:?}", owned.all_records(&arn).await),
        );
    }
    contents
}

#[tokio::test]
async fn a_backup_of_a_directory_is_the_same_store() {
    let dir = tempfile::tempdir().unwrap();
    let owned = open(&dir.path().join("live"));
    filled(&owned, 300).await;
    let report = owned.engine.backup(dir.path().join("copy")).unwrap();
    assert_eq!(report.tables, 2);
    assert!(report.entries > 299 * 4, "{report:?}");
    let copy = open_at(&dir.path().join("copy"), owned.clock.clone());
    assert_eq!(contents(&copy).await, contents(&owned).await);
    assert!(copy.engine.doctor(false).unwrap().is_clean());
}

#[tokio::test]
async fn a_backup_of_memory_is_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let owned = memory();
    filled(&owned, 50).await;
    owned.engine.backup(dir.path().join("copy")).unwrap();
    let copy = open_at(&dir.path().join("copy"), owned.clock.clone());
    assert_eq!(contents(&copy).await, contents(&owned).await);
}

#[tokio::test]
async fn a_backup_goes_on_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let owned = open(&dir.path().join("live"));
    filled(&owned, 20).await;
    owned.engine.backup(dir.path().join("copy")).unwrap();
    let copy = open_at(&dir.path().join("copy"), owned.clock.clone());
    let before = contents(&owned).await;
    copy.put("Accounts", account("new", 1)).await;
    copy.put("Accounts", account("a0005", 6).with("until", 1))
        .await;
    copy.clock.advance(HOUR);
    copy.settle();
    assert_eq!(copy.items("Accounts").await.len(), 20);
    assert_eq!(
        copy.all_records(&copy.stream_arn("Accounts").await)
            .await
            .len(),
        23
    );
    assert!(copy.engine.doctor(false).unwrap().is_clean());
    drop(copy);
    let copy = open_at(&dir.path().join("copy"), owned.clock.clone());
    assert_eq!(copy.items("Accounts").await.len(), 20);
    assert_eq!(contents(&owned).await, before);
    // And can be backed up itself.
    copy.engine.backup(dir.path().join("copy of copy")).unwrap();
    let second = open_at(&dir.path().join("copy of copy"), owned.clock.clone());
    assert_eq!(contents(&second).await, contents(&copy).await);
}

#[tokio::test]
async fn a_target_in_use_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let owned = memory();
    filled(&owned, 5).await;
    let target = dir.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("notes.txt"), "mine").unwrap();
    let error = owned.engine.backup(&target).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    assert_eq!(
        fs::read_to_string(target.join("notes.txt")).unwrap(),
        "mine"
    );
    assert!(!dir.path().join("target.tmp").exists());
    fs::remove_file(target.join("notes.txt")).unwrap();
    owned.engine.backup(&target).unwrap();
    let error = owned.engine.backup(&target).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    LocalEngine::open(&target).unwrap();
}

#[tokio::test]
async fn the_name_of_an_unfinished_backup_is_not_taken_from_others() {
    let dir = tempfile::tempdir().unwrap();
    let owned = memory();
    filled(&owned, 5).await;
    let unfinished = dir.path().join("target.tmp");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("notes.txt"), "mine").unwrap();
    owned.engine.backup(dir.path().join("target")).unwrap_err();
    assert_eq!(
        fs::read_to_string(unfinished.join("notes.txt")).unwrap(),
        "mine"
    );
    assert!(!dir.path().join("target").exists());
}

#[tokio::test]
async fn what_is_left_of_a_backup_that_was_killed_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    let owned = memory();
    filled(&owned, 5).await;
    // As a process leaves it that dies before or after the copy is complete.
    for complete in [false, true] {
        let unfinished = dir.path().join(format!("{complete}.tmp"));
        let target = dir.path().join(complete.to_string());
        owned.engine.backup(&unfinished).unwrap();
        if !complete {
            fs::remove_file(unfinished.join("FORMAT")).unwrap();
        }
        let marker = "floe-local: an unfinished store; it may be removed\n";
        fs::write(unfinished.join("FLOE-UNFINISHED"), marker).unwrap();
        fs::write(unfinished.join("data").join("torn"), "torn").unwrap();
        owned.engine.backup(&target).unwrap();
        assert!(!unfinished.exists() && !target.join("data").join("torn").exists());
        let copy = open_at(&target, owned.clock.clone());
        assert_eq!(contents(&copy).await, contents(&owned).await);
    }
}

#[tokio::test]
async fn a_backup_tells_how_far_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let owned = memory();
    owned
        .create(
            TableDef::builder("Plain", "id", KeyKind::N)
                .build()
                .unwrap(),
        )
        .await;
    for n in 0..25_000 {
        let item = Item::new().with("id", n);
        owned.put("Plain", item).await;
    }
    let mut told = Vec::new();
    let target = dir.path().join("copy");
    let report = owned
        .engine
        .backup_with(&target, |report| told.push(report.entries))
        .unwrap();
    assert_eq!(told.last(), Some(&report.entries));
    assert!(told.len() >= 3 && told.is_sorted(), "{told:?}");
}

/// Writes rounds of transactions until it is told to stop: each sets all accounts to the same round.
fn keep_writing(owned: &Arc<Owned>, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<u64> {
    let (owned, stop) = (owned.clone(), stop.clone());
    tokio::spawn(async move {
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            round += 1;
            let puts = (0..10).map(|n| {
                TransactWrite::Put(PutItem::new("Accounts", account(&format!("t{n}"), round)))
            });
            owned
                .engine
                .transact_write_items(TransactWriteItems::new(puts))
                .await
                .unwrap();
        }
        round
    })
}

async fn check_prefix(dir: &Path, owned: &Owned) {
    let copy = open_at(dir, owned.clock.clone());
    assert!(copy.engine.doctor(false).unwrap().is_clean());
    let mut items = copy.items("Accounts").await;
    items.retain(|item| item.get("id").unwrap().as_s().unwrap().starts_with('t'));
    let rounds: Vec<_> = items
        .iter()
        .map(|item| item.get("round").unwrap().as_n().unwrap())
        .collect();
    assert!(
        rounds.windows(2).all(|pair| pair[0] == pair[1]),
        "half a transaction: {rounds:?}"
    );
    // The change log tells the same history, and no more of it.
    let records = copy.all_records(&copy.stream_arn("Accounts").await).await;
    let full = owned.all_records(&owned.stream_arn("Accounts").await).await;
    assert_eq!(records[..], full[..records.len()]);
    let told = records.iter().filter(|record| {
        record
            .keys
            .get("id")
            .unwrap()
            .as_s()
            .unwrap()
            .starts_with('t')
    });
    let round = rounds.first().and_then(|round| round.to_u64()).unwrap_or(0);
    assert_eq!(told.count() as u64, 10 * round);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_under_writes_hold_a_beginning_of_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let owned = Arc::new(open(&dir.path().join("live")));
    filled(&owned, 100).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = keep_writing(&owned, &stop);
    for n in 0..3 {
        let target = dir.path().join(format!("copy{n}"));
        let taken = owned.clone();
        tokio::task::spawn_blocking(move || taken.engine.backup(target))
            .await
            .unwrap()
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0);
    for n in 0..3 {
        check_prefix(&dir.path().join(format!("copy{n}")), &owned).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_work_while_tables_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let owned = Arc::new(open(&dir.path().join("live")));
    let stop = Arc::new(AtomicBool::new(false));
    let (changed, stopped) = (owned.clone(), stop.clone());
    let changer = tokio::spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            let table = TableDef::builder("Passing", "id", KeyKind::S)
                .build()
                .unwrap();
            changed.create(table).await;
            changed.put("Passing", Item::new().with("id", "a")).await;
            changed
                .engine
                .delete_table("Passing".to_owned())
                .await
                .unwrap();
        }
    });
    for n in 0..3 {
        let target = dir.path().join(format!("copy{n}"));
        let taken = owned.clone();
        let path = target.clone();
        tokio::task::spawn_blocking(move || taken.engine.backup(path))
            .await
            .unwrap()
            .unwrap();
        let copy = open_at(&target, owned.clock.clone());
        assert!(copy.engine.doctor(false).unwrap().is_clean());
    }
    stop.store(true, Ordering::Relaxed);
    changer.await.unwrap();
}

#[tokio::test]
async fn a_backup_into_nowhere_fails_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let owned = memory();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = owned
        .engine
        .backup(dir.path().join("file").join("copy"))
        .unwrap_err();
    assert!(matches!(error, Error::Storage(_)), "{error:?}");
    let error = owned.engine.backup("/").unwrap_err();
    assert!(matches!(error, Error::Storage(_)), "{error:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
