//! Directories with foreign files, truncated and damaged journals, and tables that are repeatedly created and deleted.

use std::fs;
use std::path::{Path, PathBuf};

use floe_local::doctor::{self, SalvageReport};
use floe_local::{LocalEngine, Options};
use floe_store::expr::KeyCondition;
use floe_store::op::{CreateTable, GetItem, PutItem, Query, Scan};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef};

fn definition(name: &str) -> CreateTable {
    let table = TableDef::builder(name, "id", KeyKind::N)
        .global_index(
            "by_group",
            [("group", KeyKind::N)],
            [("id", KeyKind::N)],
            Projection::All,
        )
        .stream(StreamView::NewAndOldImages);
    CreateTable::from(table.build().unwrap())
}

fn item(n: u32) -> Item {
    Item::new()
        .with("id", n)
        .with("group", n % 3)
        .with("text", format!("<item {n:05}>"))
}

async fn put(engine: &LocalEngine, table: &str, n: u32) {
    let put = PutItem::new(table, item(n));
    engine.write_item(put.into()).await.unwrap();
}

/// A closed store with `count` items, all of them in its journal.
async fn closed_store(path: &Path, count: u32) {
    let engine = LocalEngine::open(path).unwrap();
    engine.create_table(definition("Things")).await.unwrap();
    for n in 0..count {
        put(&engine, "Things", n).await;
    }
    engine.close().unwrap();
}

async fn items(engine: &LocalEngine, table: &str) -> Vec<Item> {
    let mut found = Vec::new();
    let mut scan = Scan::new(table);
    loop {
        let page = engine.scan(scan.clone()).await.unwrap();
        found.extend(page.items);
        match page.last_key {
            Some(last) => scan = Scan::new(table).start_key(Some(last)),
            None => return found,
        }
    }
}

fn journal(path: &Path) -> PathBuf {
    let entries = fs::read_dir(path.join("data")).unwrap();
    let mut journals: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .collect();
    journals.sort();
    journals.pop().unwrap()
}

/// The written part of a journal, without the trailing zeros.
fn written(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    bytes.truncate(end);
    bytes
}

fn salvage(path: &Path, target: &Path) -> SalvageReport {
    doctor::salvage(path, target, |_| {}).unwrap()
}

#[tokio::test]
async fn foreign_data_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("repo/data/train/set.csv");
    fs::create_dir_all(set.parent().unwrap()).unwrap();
    fs::write(&set, "1").unwrap();
    let message = LocalEngine::open(dir.path().join("repo"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("--salvage"), "{message}");
    assert_eq!(fs::read_to_string(&set).unwrap(), "1");
    assert_eq!(fs::read_dir(dir.path().join("repo")).unwrap().count(), 1);

    let engine = LocalEngine::memory().unwrap();
    let taken = dir.path().join("monday.tmp/data/mine.csv");
    fs::create_dir_all(taken.parent().unwrap()).unwrap();
    fs::write(&taken, "1").unwrap();
    let message = engine
        .backup(dir.path().join("monday"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("monday.tmp"), "{message}");
    assert_eq!(fs::read_to_string(&taken).unwrap(), "1");
    let message = engine
        .backup(dir.path().join("repo"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("not empty"), "{message}");
    assert_eq!(fs::read_to_string(&set).unwrap(), "1");
    let message = engine.backup(&set).unwrap_err().to_string();
    assert!(message.contains("not a directory"), "{message}");
    let message = LocalEngine::open(&set).unwrap_err().to_string();
    assert!(message.contains("not a directory"), "{message}");
    assert_eq!(fs::read_to_string(&set).unwrap(), "1");
}

#[tokio::test]
async fn store_without_its_format_file_is_rejected_but_can_be_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("store"), dir.path().join("copy"));
    closed_store(&path, 50).await;
    fs::remove_file(path.join("FORMAT")).unwrap();
    LocalEngine::open(&path).unwrap_err();
    let report = salvage(&path, &target);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!((report.tables, report.items), (1, 50));
    let engine = LocalEngine::open(&target).unwrap();
    assert_eq!(items(&engine, "Things").await.len(), 50);
    assert!(engine.doctor(false).unwrap().is_clean());
}

#[tokio::test]
async fn backup_into_its_own_store_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let engine = LocalEngine::open(&path).unwrap();
    for target in ["backup", "data/backup", "data/../deep/er/backup"] {
        let message = engine.backup(path.join(target)).unwrap_err().to_string();
        assert!(message.contains("into the store itself"), "{message}");
    }
    engine.backup(dir.path().join("backup")).unwrap();
}

#[tokio::test]
async fn journal_truncated_after_a_clean_close_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    closed_store(&path, 30).await;
    let file = journal(&path);
    let bytes = written(&file);
    for keep in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        fs::write(&file, &bytes[..keep]).unwrap();
        let message = LocalEngine::open(&path).unwrap_err().to_string();
        assert!(
            message.contains("since the store was closed"),
            "keep={keep}: {message}"
        );
        let report = doctor::examine(&path, false, |_| {}).unwrap();
        assert!(!report.is_clean(), "keep={keep}");
    }
    fs::remove_file(&file).unwrap();
    assert!(
        LocalEngine::open(&path)
            .unwrap_err()
            .to_string()
            .contains("missing")
    );
    fs::write(&file, &bytes).unwrap();
    let engine = LocalEngine::open(&path).unwrap();
    assert_eq!(items(&engine, "Things").await.len(), 30);
    assert_eq!(engine.recovery().dropped_bytes, 0);
}

#[tokio::test]
async fn salvage_reports_a_journal_truncated_or_removed_after_a_clean_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    closed_store(&path, 30).await;
    let file = journal(&path);
    let bytes = written(&file);
    for keep in [Some(bytes.len() - 1), Some(bytes.len() / 2), Some(0), None] {
        match keep {
            Some(keep) => fs::write(&file, &bytes[..keep]).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let target = dir.path().join(format!("salvaged-{keep:?}"));
        let report = salvage(&path, &target);
        assert!(!report.is_complete(), "{keep:?}");
        let lost = report.lost.join("; ");
        assert!(
            lost.contains("since the store was closed"),
            "{keep:?}: {lost}"
        );
        assert!(lost.contains(".jnl"), "{keep:?}: {lost}");
    }
}

#[tokio::test]
async fn flipped_bit_in_the_journal_loses_only_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("store"), dir.path().join("copy"));
    closed_store(&path, 200).await;
    let file = journal(&path);
    let mut bytes = written(&file);
    let at = bytes
        .windows(12)
        .position(|w| w == b"<item 00100>")
        .unwrap();
    bytes[at] ^= 1;
    fs::write(&file, &bytes).unwrap();
    LocalEngine::open(&path).unwrap_err();
    let before = fs::read(&file).unwrap();
    let report = salvage(&path, &target);
    assert_eq!(fs::read(&file).unwrap(), before);
    // The seal mismatch, and the damaged part.
    assert_eq!(report.lost_total, 2, "{report:#?}");
    assert!(
        report.lost[0].contains("the checksum differs"),
        "{report:#?}"
    );
    assert!(
        report.lost[1].contains("journal") && report.lost[1].contains("offset="),
        "{report:#?}"
    );
    let engine = LocalEngine::open(&target).unwrap();
    let found = items(&engine, "Things").await;
    assert_eq!(found.len(), 199);
    assert!(
        found
            .iter()
            .all(|found| (0..200).any(|n| *found == item(n)))
    );
    let get = GetItem::new("Things", Item::new().with("id", 199));
    assert_eq!(engine.get_item(get).await.unwrap().item, Some(item(199)));
    let group = KeyCondition::partition("group", 0);
    let by_group = engine
        .query(Query::new("Things", group).index("by_group"))
        .await;
    assert_eq!(by_group.unwrap().count, 67);
    // The change log lacks the record of the lost commit, which is reported and cannot be repaired.
    let report = engine.doctor(false).unwrap();
    let is_log = |finding: &doctor::Finding| finding.kind == doctor::FindingKind::ChangeLog;
    assert!(report.findings.iter().all(is_log), "{report:#?}");
}

/// The offsets of a journal's batches.
fn batches(journal: &[u8]) -> Vec<usize> {
    let ends = journal.windows(5).enumerate();
    let ends = ends.filter(|(_, window)| window == b"FJL\x03\x01");
    std::iter::once(0)
        .chain(ends.map(|(at, _)| at + 4))
        .collect()
}

#[tokio::test]
async fn older_version_in_a_sorted_file_does_not_replace_a_lost_batch() {
    let dir = tempfile::tempdir().unwrap();
    let (source, path) = (dir.path().join("source"), dir.path().join("store"));
    closed_store(&source, 20).await;
    // A copy has all its entries in sorted files.
    LocalEngine::open(&source).unwrap().backup(&path).unwrap();
    let engine = LocalEngine::open(&path).unwrap();
    for n in [3, 7, 9] {
        let put = PutItem::new("Things", item(n).with("text", "newer"));
        engine.write_item(put.into()).await.unwrap();
    }
    engine.close().unwrap();
    drop(engine);
    let file = journal(&path);
    let bytes = written(&file);
    let starts = batches(&bytes);
    let of_item = |n: usize| starts[starts.len() - 3 + n] + 5;
    for (n, at) in [(3, of_item(0)), (7, of_item(1)), (9, of_item(2))] {
        for bit in 0..64 {
            let mut bytes = bytes.clone();
            bytes[at + bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &bytes).unwrap();
            LocalEngine::open(&path).unwrap_err();
            let target = dir.path().join(format!("salvaged-{n}-{bit}"));
            let report = salvage(&path, &target);
            assert!(!report.is_complete(), "{n} {bit}");
            let engine = LocalEngine::open(&target).unwrap();
            let found = items(&engine, "Things").await;
            for is_old in [3, 7, 9].map(|n| found.contains(&item(n))) {
                assert!(!is_old, "n={n} bit={bit} {report:#?}");
            }
            assert!(found.len() >= 19, "n={n} bit={bit} {report:#?}");
            if found.len() == 19 {
                assert!(report.uncertain > 0, "n={n} bit={bit} {report:#?}");
            }
            drop(engine);
            fs::remove_dir_all(&target).unwrap();
        }
    }
}

#[tokio::test]
async fn value_that_looks_like_a_batch_is_neither_trusted_nor_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    closed_store(&path, 5).await;
    let file = journal(&path);
    let bytes = written(&file);
    let starts = batches(&bytes);
    // The last batch with a forged item and a matching checksum.
    let last = &bytes[starts[starts.len() - 1]..];
    let mut lie = last.to_vec();
    let end = lie.len() - 13;
    while let Some(at) = lie.windows(12).position(|w| w == b"<item 00004>") {
        lie[at..at + 12].copy_from_slice(b"<forged item");
    }
    let checksum = xxhash_rust::xxh3::xxh3_64(&lie[13..end]);
    lie[end + 1..end + 9].copy_from_slice(&checksum.to_le_bytes());
    lie[5..13].copy_from_slice(&(1_u64 << 31).to_le_bytes());
    let engine = LocalEngine::open(&path).unwrap();
    let evil = item(9).with("bytes", floe_store::Value::B(lie));
    let put = PutItem::new("Things", evil.clone());
    engine.write_item(put.into()).await.unwrap();
    engine.close().unwrap();
    drop(engine);
    let bytes = written(&file);
    let start = *batches(&bytes)
        .iter()
        .rfind(|at| bytes[**at..].len() > 1000)
        .unwrap();
    let is_forged = |item: &Item| format!("{item:?}").contains("forged item");
    for at in (start..bytes.len()).step_by(31) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 8;
        fs::write(&file, &damaged).unwrap();
        let target = dir.path().join(format!("salvaged-{at}"));
        let report = salvage(&path, &target);
        assert!(!report.is_complete());
        let engine = LocalEngine::open(&target).unwrap();
        let found = items(&engine, "Things").await;
        let mut found = found.iter().filter(|item| **item != evil);
        assert!(!found.any(is_forged), "{at}: {report:#?}");
    }
    fs::remove_file(path.join("SEAL")).unwrap();
    let mut torn = bytes.clone();
    torn.truncate(bytes.len() - 20);
    fs::write(&file, &torn).unwrap();
    let engine = LocalEngine::open(&path).unwrap();
    assert!(engine.recovery().dropped_bytes > 1000);
    assert_eq!(items(&engine, "Things").await.len(), 5);
}

#[tokio::test]
async fn damage_in_any_file_keeps_the_rest_readable() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("store"), dir.path().join("copy"));
    let source = dir.path().join("source");
    closed_store(&source, 300).await;
    // A copy has all its entries in sorted files.
    LocalEngine::open(&source).unwrap().backup(&path).unwrap();
    let mut files = Vec::new();
    let mut open = vec![path.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if fs::metadata(&path).unwrap().len() > 0 {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let mut damaged = bytes.clone();
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(1, |last| last + 1);
        for part in [0.3, 0.9] {
            damaged[(end as f64 * part) as usize] ^= 0x20;
        }
        fs::write(&file, &damaged).unwrap();
        let report = salvage(&path, &target);
        let engine = LocalEngine::open(&target).unwrap();
        let is_of_tables = file.to_string_lossy().contains("keyspaces/4/tables");
        if report.tables == 1 {
            let found = items(&engine, "Things").await;
            assert!(
                found
                    .iter()
                    .all(|found| (0..300).any(|n| *found == item(n)))
            );
            assert!(
                is_of_tables || found.len() == 300,
                "{}: {report:#?}",
                file.display()
            );
        } else {
            assert!(!report.is_complete(), "{}: {report:#?}", file.display());
        }
        assert!(
            is_of_tables || report.tables == 1,
            "{}: {report:#?}",
            file.display()
        );
        drop(engine);
        fs::remove_dir_all(&target).unwrap();
        fs::write(&file, &bytes).unwrap();
    }
}

#[tokio::test]
async fn torn_tail_after_a_crash_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    closed_store(&path, 10).await;
    // As left by a process that dies during a commit.
    fs::remove_file(path.join("SEAL")).unwrap();
    let file = journal(&path);
    let mut bytes = written(&file);
    bytes.extend([1, 9, 9, 9, 9, 9, 9]);
    fs::write(&file, &bytes).unwrap();
    for is_repair in [false, true] {
        let copy = dir.path().join(format!("copy-{is_repair}"));
        copy_tree(&path, &copy);
        let report = doctor::examine(&copy, is_repair, |_| {}).unwrap();
        assert_eq!(report.recovery.dropped_bytes, 7);
        assert!(report.is_clean(), "{report:#?}");
    }
    let engine = LocalEngine::open(&path).unwrap();
    assert_eq!(engine.recovery().dropped_bytes, 7);
    assert_eq!(items(&engine, "Things").await.len(), 10);
}

/// The paths and contents of all files.
fn all_files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with("LOCK") {
                files.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn journal_removed_or_emptied_after_a_crash_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (source, path) = (dir.path().join("source"), dir.path().join("store"));
    closed_store(&source, 20).await;
    LocalEngine::open(&source).unwrap().backup(&path).unwrap();
    // As left by a process that is killed after some writes.
    let engine = LocalEngine::open(&path).unwrap();
    put(&engine, "Things", 100).await;
    let crashed = dir.path().join("crashed");
    copy_tree(&path, &crashed);
    drop(engine);
    let file = journal(&crashed);
    for is_removed in [true, false] {
        if is_removed {
            fs::remove_file(&file).unwrap();
        } else {
            fs::write(&file, "").unwrap();
        }
        let before = all_files(&crashed);
        for _ in 0..2 {
            let message = LocalEngine::open(&crashed).unwrap_err().to_string();
            let expected = if is_removed { "no journal" } else { "is empty" };
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("--salvage"), "{message}");
            let report = doctor::examine(&crashed, false, |_| {}).unwrap();
            assert!(!report.is_clean());
        }
        assert!(all_files(&crashed) == before, "nothing is changed");
        let target = dir.path().join(format!("salvaged-{is_removed}"));
        let report = salvage(&crashed, &target);
        assert!(!report.is_complete(), "{report:#?}");
        assert_eq!(report.items, 20);
    }
}

#[tokio::test]
async fn new_stores_and_copies_can_be_reopened_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    drop(LocalEngine::open(at("new")).unwrap());
    LocalEngine::open(at("new"))
        .unwrap()
        .backup(at("copy"))
        .unwrap();
    LocalEngine::open(at("copy"))
        .unwrap()
        .backup(at("restored"))
        .unwrap();
    salvage(&at("restored"), &at("salvaged"));
    for name in ["new", "copy", "restored", "salvaged"] {
        let mut path = at(name);
        for n in 0..3 {
            let engine = LocalEngine::open(&path).unwrap();
            // Killed without a write.
            path = at(&format!("{name}-{n}"));
            copy_tree(&at(name), &path);
            drop(engine);
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn salvage_rejects_directories_without_a_store_or_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("store"), dir.path().join("copy"));
    fs::create_dir_all(path.join("data/train")).unwrap();
    let message = doctor::salvage(&path, &target, |_| {})
        .unwrap_err()
        .to_string();
    assert!(message.contains("contains no store"), "{message}");
    fs::remove_dir_all(&path).unwrap();
    let engine = LocalEngine::open(&path).unwrap();
    let message = doctor::salvage(&path, &target, |_| {})
        .unwrap_err()
        .to_string();
    assert!(message.contains("in use"), "{message}");
    drop(engine);
    let message = doctor::salvage(&path, path.join("copy"), |_| {})
        .unwrap_err()
        .to_string();
    assert!(message.contains("into the store itself"), "{message}");
    assert!(!target.exists());
    salvage(&path, &target);
    let message = doctor::salvage(&path, &target, |_| {})
        .unwrap_err()
        .to_string();
    assert!(message.contains("not empty"), "{message}");
}

#[tokio::test]
async fn store_in_use_is_not_changed_by_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("store"), dir.path().join("copy"));
    let engine = LocalEngine::open(&path).unwrap();
    engine.create_table(definition("Things")).await.unwrap();
    put(&engine, "Things", 1).await;
    // The lock file of the directory is removed, that of the key-value store is not.
    fs::remove_file(path.join("LOCK")).unwrap();
    fs::write(path.join("SEAL"), "").unwrap();
    let before = all_files(&path);
    let rejected = [
        LocalEngine::open(&path).map(drop).unwrap_err().to_string(),
        doctor::salvage(&path, &target, |_| {})
            .unwrap_err()
            .to_string(),
    ];
    for message in rejected {
        assert!(message.contains("in use"), "{message}");
    }
    let report = doctor::examine(&path, false, |_| {}).unwrap();
    assert!(report.findings[0].what.contains("in use"), "{report:#?}");
    assert!(all_files(&path) == before, "nothing is changed");
    assert!(!target.exists());
}

fn file_count(path: &Path) -> usize {
    let entries = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { file_count(&path) } else { 1 })
        .sum()
}

#[tokio::test]
async fn repeatedly_created_and_deleted_tables_leave_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().background(false);
    let engine = LocalEngine::open_with(dir.path(), options).unwrap();
    engine.create_table(definition("Kept")).await.unwrap();
    put(&engine, "Kept", 1).await;
    let before = file_count(dir.path());
    for n in 0..100 {
        engine.create_table(definition("Temporary")).await.unwrap();
        put(&engine, "Temporary", n).await;
        engine.delete_table("Temporary".to_owned()).await.unwrap();
        while engine.run_background_once().unwrap() {}
    }
    assert_eq!(file_count(dir.path()), before);
    engine.create_table(definition("Temporary")).await.unwrap();
    assert_eq!(items(&engine, "Temporary").await, []);
    assert_eq!(items(&engine, "Kept").await, [item(1)]);
    assert!(engine.doctor(false).unwrap().is_clean());
}

#[tokio::test]
async fn removal_of_a_deleted_table_continues_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Options::new().background(false);
    let engine = LocalEngine::open_with(dir.path(), options()).unwrap();
    engine.create_table(definition("Temporary")).await.unwrap();
    for n in 0..1200 {
        put(&engine, "Temporary", n).await;
    }
    engine.delete_table("Temporary".to_owned()).await.unwrap();
    // The first of several steps.
    engine.run_background_once().unwrap();
    drop(engine);
    let engine = LocalEngine::open_with(dir.path(), options()).unwrap();
    engine.create_table(definition("Temporary")).await.unwrap();
    put(&engine, "Temporary", 7).await;
    assert!(engine.doctor(false).unwrap().is_clean());
    while engine.run_background_once().unwrap() {}
    assert_eq!(items(&engine, "Temporary").await, [item(7)]);
    let report = engine.doctor(false).unwrap();
    assert!(report.is_clean(), "{report:#?}");
    // The item, its index entry, and little else.
    assert!(report.checked.entries < 4000, "{report:#?}");
}

/// Concurrent copies to the same target use the same staging directory.
#[test]
fn exactly_one_of_several_concurrent_copies_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sources: Vec<_> = (1..=3_u32)
        .map(|count| {
            let path = dir.path().join(format!("source-{count}"));
            runtime.block_on(closed_store(&path, count));
            LocalEngine::open(&path).unwrap()
        })
        .collect();
    for round in 0..10 {
        let target = dir.path().join(format!("copy-{round}"));
        let copied: Vec<bool> = std::thread::scope(|scope| {
            let copies = sources.iter().map(|source| {
                let target = &target;
                scope.spawn(move || source.backup(target).is_ok())
            });
            let threads: Vec<_> = copies.collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(copied.iter().filter(|it| **it).count(), 1, "round={round}");
        let source = copied.iter().position(|it| *it).unwrap();
        let engine = LocalEngine::open(&target).unwrap();
        let found = runtime.block_on(items(&engine, "Things"));
        assert_eq!(found.len(), source + 1, "round={round}");
        assert!(engine.doctor(false).unwrap().is_clean());
        assert!(!dir.path().join(format!("copy-{round}.tmp")).exists());
    }
}

/// A copy is published by renaming it, which would fail only after everything is copied.
#[cfg(target_os = "linux")]
#[test]
fn copy_to_a_mount_point_is_rejected_before_copying() {
    let engine = LocalEngine::memory().unwrap();
    let message = engine.backup("/proc").unwrap_err().to_string();
    assert!(
        message.contains("mount point") && message.contains("inside"),
        "{message}"
    );
}
