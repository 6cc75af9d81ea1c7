//! The doctor on whole directories: sound ones, ones in use, and ones with damaged files.

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

/// A closed store whose entries are all in sorted files: a backup writes them so.
async fn closed_store(dir: &Path, count: u64) -> PathBuf {
    let owned = memory();
    owned.create(orders()).await;
    for n in 0..count {
        owned.put("Orders", order(n)).await;
    }
    let path = dir.join("store");
    owned.engine.backup(&path).unwrap();
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
async fn a_sound_directory_is_clean() {
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
    // It is still a store, and nobody has it open.
    let owned = open(&path);
    assert_eq!(owned.items("Orders").await.len(), 500);
}

#[tokio::test]
async fn a_store_that_was_just_killed_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let owned = open(&dir.path().join("live"));
    owned.create(orders()).await;
    for n in 0..50 {
        owned.put("Orders", order(n)).await;
    }
    // As it is on disk at this moment, without being closed.
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
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test]
async fn what_is_no_store_or_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for missing in ["", "missing"] {
        let error = doctor::examine(dir.path().join(missing), true, |_| {}).unwrap_err();
        assert!(
            error.to_string().starts_with("there is no store"),
            "{error}"
        );
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is made"
    );
    let owned = open(&dir.path().join("live"));
    let error = doctor::examine(dir.path().join("live"), false, |_| {}).unwrap_err();
    assert!(
        error.to_string().starts_with("the directory is in use"),
        "{error}"
    );
    drop(owned);
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

/// Damages a file in the first note behind this part of it.
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
async fn a_damaged_block_is_told_with_its_place_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 2000).await;
    let file = sorted_files(&path).remove(0);
    // In the middle of the items.
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
    // A block holds some forty items; all others were read.
    assert!((1900..2000).contains(&report.checked.items), "{report:#?}");
    assert_eq!(report.checked.index_entries, 2000);
    // A repair changes nothing about it, and removes nothing of what follows from the unreadable.
    let repaired = doctor::examine(&path, true, |_| {}).unwrap();
    assert_eq!(
        (repaired.findings_total, repaired.repaired_total),
        (2, 0),
        "{repaired:#?}"
    );
    assert_eq!(examine(&path).checked.index_entries, 2000);
}

#[tokio::test]
async fn a_damaged_block_of_an_index_does_not_hide_its_other_entries() {
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
async fn what_lies_between_damaged_blocks_is_read_and_kept() {
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
        // A block holds some forty entries.
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
async fn a_file_that_is_gone_or_cut_short_is_found() {
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
async fn a_damaged_journal_is_told_and_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let owned = open(&dir.path().join("live"));
    owned.create(orders()).await;
    for n in 0..20 {
        owned.put("Orders", order(n)).await;
    }
    drop(owned);
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
async fn an_engine_under_writes_is_always_clean() {
    let dir = tempfile::tempdir().unwrap();
    let owned = Arc::new(open(dir.path()));
    owned.create(orders()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (owned, stop) = (owned.clone(), stop.clone());
            tokio::spawn(async move {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let item = order(writer * 10 + n % 10).with("product", n);
                    if n % 3 == 0 {
                        let key = Item::new().with("id", item.get("id").unwrap().clone());
                        owned
                            .engine
                            .write_item(DeleteItem::new("Orders", key).into())
                            .await
                            .unwrap();
                    } else {
                        owned
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
        let examined = owned.clone();
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
    assert!(owned.engine.doctor(false).unwrap().is_clean());
}

#[tokio::test]
async fn store_that_cannot_be_sealed_is_examined() {
    let dir = tempfile::tempdir().unwrap();
    let path = closed_store(dir.path(), 10).await;
    // A full disk keeps the seal from being written; so does this.
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
async fn a_closed_engine_can_be_examined() {
    let owned = memory();
    owned.create(orders()).await;
    owned.put("Orders", order(1)).await;
    owned.engine.close().unwrap();
    assert!(owned.engine.doctor(true).unwrap().is_clean());
}
