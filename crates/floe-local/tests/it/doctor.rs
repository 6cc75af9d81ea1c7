//! The doctor on directories: intact ones, ones in use, and ones with damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use floe_local::doctor::{self, FindingKind, Report, Stage};
use floe_store::op::{DeleteItem, PutItem};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef};

use crate::common::{memory, open};

fn orders() -> TableDef {
    TableDef::builder("Orders", "id", KeyKind::S)
        .global_index(
            "by_product",
            [("product", KeyKind::N)],
            [("id", KeyKind::S)],
            Projection::All,
        )
        .stream(StreamView::NewImage)
        .ttl("until")
        .build()
        .unwrap()
}

fn order(n: u64) -> Item {
    Item::new()
        .with("id", format!("order-{n:05}"))
        .with("product", n % 10)
        .with("until", 2_000_000_000 + n)
        .with("note", "x".repeat(100))
}

/// A closed store whose entries are all in sorted files, because a backup writes them there.
async fn closed_store(dir: &Path, count: u64) -> PathBuf {
    let store = memory();
    store.create(orders()).await;
    for n in 0..count {
        store.put("Orders", order(n)).await;
    }
    let path = dir.join("store");
    store.engine.backup(&path).unwrap();
    path
}

fn examine(path: &Path) -> Report {
    doctor::examine(path, false, |_| {}).unwrap()
}

fn count(report: &Report, kind: FindingKind) -> usize {
    report
        .findings
        .iter()
        .filter(|finding| finding.kind == kind)
        .count()
}

/// The sorted files of a store, largest first.
fn sorted_files(path: &Path) -> Vec<PathBuf> {
    fn collect(path: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.parent().unwrap().ends_with("tables") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    collect(path, &mut files);
    files.sort_by_key(|file| std::cmp::Reverse(fs::metadata(file).unwrap().len()));
    files
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x40;
    fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn intact_directory_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 500).await;
    let mut stages = Vec::new();
    let report = doctor::examine(&path, true, |progress| {
        stages.push((progress.stage, progress.table.map(str::to_owned)));
    })
    .unwrap();
    assert!(report.is_clean(), "{report:#?}");
    let checked = report.checked;
    assert_eq!(
        (
            checked.tables,
            checked.items,
            checked.index_entries,
            checked.expiry_entries,
            checked.change_records
        ),
        (1, 500, 500, 500, 500)
    );
    assert!(checked.file_bytes > 500 * 300, "{checked:?}");
    assert!(stages.contains(&(Stage::Table, Some("Orders".to_owned()))));
    assert!(!stages.iter().any(|(stage, _)| *stage == Stage::Compare));
    // The store is still intact, and not in use.
    let store = open(&path);
    assert_eq!(store.items("Orders").await.len(), 500);
}

#[tokio::test]
async fn store_of_a_killed_process_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("live"));
    store.create(orders()).await;
    for n in 0..50 {
        store.put("Orders", order(n)).await;
    }
    // The files of a store that is not closed.
    let copy = dir.path().join("copy");
    copy_tree(&dir.path().join("live"), &copy);
    let report = examine(&copy);
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.checked.items, 50);
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
async fn directory_without_a_store_or_in_use_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    for missing in ["", "missing"] {
        let error = doctor::examine(dir.path().join(missing), true, |_| {}).unwrap_err();
        assert!(error.to_string().starts_with("no store found"), "{error}");
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is created"
    );
    let store = open(&dir.path().join("live"));
    let error = doctor::examine(dir.path().join("live"), false, |_| {}).unwrap_err();
    assert!(
        error.to_string().starts_with("the directory is in use"),
        "{error}"
    );
    drop(store);
    assert!(examine(&dir.path().join("live")).is_clean());
}

#[tokio::test]
async fn every_flipped_byte_of_a_sorted_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 30).await;
    let file = sorted_files(&path).remove(0);
    let sound = fs::read(&file).unwrap();
    for at in (0..sound.len()).step_by(sound.len() / 40) {
        flip(&file, at);
        let report = examine(&path);
        assert!(!report.is_clean(), "at={at} of={}", sound.len());
        fs::write(&file, &sound).unwrap();
    }
    assert!(examine(&path).is_clean());
}

/// Flips a bit in the first note after this fraction of the file.
fn damage_note(file: &Path, part: f64) {
    let bytes = fs::read(file).unwrap();
    let from = (bytes.len() as f64 * part) as usize;
    let mut notes = bytes[from..].windows(20);
    flip(
        file,
        from + notes.position(|window| window == [b'x'; 20]).unwrap(),
    );
}

#[tokio::test]
async fn damaged_block_is_reported_with_its_key_range() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 2000).await;
    let file = sorted_files(&path).remove(0);
    // Among the items.
    damage_note(&file, 0.25);
    let report = examine(&path);
    assert_eq!(count(&report, FindingKind::DamagedFile), 1, "{report:#?}");
    assert_eq!(count(&report, FindingKind::Unreadable), 1, "{report:#?}");
    assert_eq!(
        report.findings_total, 2,
        "nothing else is wrong: {report:#?}"
    );
    let unreadable = report
        .findings
        .iter()
        .find(|finding| finding.kind == FindingKind::Unreadable)
        .unwrap();
    assert_eq!(unreadable.table.as_deref(), Some("Orders"));
    assert!(
        unreadable.what.contains(" after=01") && unreadable.what.contains(" before=01"),
        "{unreadable}"
    );
    // A block contains about forty items; all others are read.
    assert!((1900..2000).contains(&report.checked.items), "{report:#?}");
    assert_eq!(report.checked.index_entries, 2000);
    // A repair does not change that, and does not remove entries derived from unreadable items.
    let repaired = doctor::examine(&path, true, |_| {}).unwrap();
    assert_eq!(
        (repaired.findings_total, repaired.repaired_total),
        (2, 0),
        "{repaired:#?}"
    );
    assert_eq!(examine(&path).checked.index_entries, 2000);
}

#[tokio::test]
async fn damaged_block_of_an_index_does_not_hide_other_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 2000).await;
    let file = sorted_files(&path).remove(0);
    damage_note(&file, 0.75);
    let report = examine(&path);
    assert_eq!(report.checked.items, 2000);
    assert!(
        (1900..2000).contains(&report.checked.index_entries),
        "{report:#?}"
    );
    assert_eq!(report.findings_total, 2, "{report:#?}");
}

#[tokio::test]
async fn entries_between_damaged_blocks_are_read_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 2000).await;
    let files = sorted_files(&path);
    // Two blocks of items, one of index entries, and two of change records.
    for part in [0.1, 0.35, 0.75] {
        damage_note(&files[0], part);
    }
    for part in [0.2, 0.8] {
        damage_note(&files[1], part);
    }
    let check = |report: &Report| {
        assert_eq!(count(report, FindingKind::DamagedFile), 2, "{report:#?}");
        assert_eq!(count(report, FindingKind::Unreadable), 5, "{report:#?}");
        let totals = (report.findings_total, report.repaired_total);
        assert_eq!(totals, (7, 0), "nothing else is wrong: {report:#?}");
        // A block contains about forty entries.
        let checked = report.checked;
        assert!((1900..2000).contains(&checked.items), "{checked:?}");
        assert!((1950..2000).contains(&checked.index_entries), "{checked:?}");
        assert!(
            (1900..2000).contains(&checked.change_records),
            "{checked:?}"
        );
        assert_eq!(checked.expiry_entries, 2000);
    };
    let report = examine(&path);
    check(&report);
    let repaired = doctor::examine(&path, true, |_| {}).unwrap();
    check(&repaired);
    assert_eq!(examine(&path).checked.entries, report.checked.entries);
}

#[tokio::test]
async fn missing_or_truncated_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 100).await;
    let file = sorted_files(&path).remove(0);
    let sound = fs::read(&file).unwrap();
    for length in [0, 1, sound.len() / 2, sound.len() - 1] {
        fs::write(&file, &sound[..length]).unwrap();
        let report = examine(&path);
        assert!(!report.is_clean(), "length={length}");
    }
    fs::remove_file(&file).unwrap();
    let report = examine(&path);
    assert_eq!(count(&report, FindingKind::Unopenable), 1, "{report:#?}");
    let report = doctor::examine(&path, true, |_| {}).unwrap();
    assert!(!report.is_repaired(), "{report:#?}");
}

#[tokio::test]
async fn damaged_journal_is_reported_and_not_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("live"));
    store.create(orders()).await;
    for n in 0..20 {
        store.put("Orders", order(n)).await;
    }
    drop(store);
    let data = dir.path().join("live").join("data");
    let journals = fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let journal = journals
        .filter(|path| path.extension().is_some_and(|e| e == "jnl"))
        .max()
        .unwrap();
    let bytes = fs::read(&journal).unwrap();
    let at = bytes
        .windows(11)
        .position(|window| window == b"order-00005")
        .unwrap();
    flip(&journal, at);
    let damaged = fs::read(&journal).unwrap();
    for repair in [false, true] {
        let report = doctor::examine(dir.path().join("live"), repair, |_| {}).unwrap();
        assert!(count(&report, FindingKind::Unopenable) >= 1, "{report:#?}");
        assert!(!report.is_repaired());
    }
    assert_eq!(fs::read(&journal).unwrap(), damaged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_finds_nothing_during_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    store.create(orders()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (store, stop) = (store.clone(), stop.clone());
            tokio::spawn(async move {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let item = order(writer * 10 + n % 10).with("product", n);
                    if n % 3 == 0 {
                        let key = Item::new().with("id", item.get("id").unwrap().clone());
                        store
                            .engine
                            .write_item(DeleteItem::new("Orders", key).into())
                            .await
                            .unwrap();
                    } else {
                        store
                            .engine
                            .write_item(PutItem::new("Orders", item).into())
                            .await
                            .unwrap();
                    }
                }
            })
        })
        .collect();
    for n in 0..20 {
        let examined = store.clone();
        let report = tokio::task::spawn_blocking(move || examined.engine.doctor(n % 2 == 0))
            .await
            .unwrap()
            .unwrap();
        assert!(report.is_clean(), "{report:#?}");
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(store.engine.doctor(false).unwrap().is_clean());
}

#[tokio::test]
async fn store_that_cannot_be_sealed_is_examined() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 10).await;
    // Writing the seal fails, as on a full disk.
    fs::create_dir_all(path.join("SEAL.new/full")).unwrap();
    let report = examine(&path);
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.checked.items, 10);
    let unsealed = report.unsealed.unwrap();
    assert!(unsealed.contains("could not be sealed"), "{unsealed}");
    fs::remove_dir_all(path.join("SEAL.new")).unwrap();
    assert_eq!(examine(&path).unsealed, None);
}

#[tokio::test]
async fn closed_engine_can_be_examined() {
    let store = memory();
    store.create(orders()).await;
    store.put("Orders", order(1)).await;
    store.engine.close().unwrap();
    assert!(store.engine.doctor(true).unwrap().is_clean());
}
