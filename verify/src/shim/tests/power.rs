//! End-to-end tests of power cuts: a process that syncs before it acknowledges loses nothing, and planted bugs are
//! detected.

use std::fs::{File, OpenOptions};
use std::io::Write;

use super::*;
use crate::disk::{DirModel, Disk, Loss};

const RECORDS: u32 = 150;
const CUTS: usize = 200;

/// The variants of a workload.
const CORRECT: &str = "correct";
const ACKNOWLEDGES_BEFORE_SYNC: &str = "acknowledges before sync";
const SYNCS_NO_DIRECTORY: &str = "syncs no directory";
const CONTINUES_AFTER_FAILED_SYNC: &str = "continues after a failed sync";

/// Returns the bytes of a record: its number, its length, and a filling that makes torn records visible.
fn record(number: u32) -> Vec<u8> {
    let len = 1 + (number * 37) % 1800;
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend((0..len).map(|at| (number + at) as u8 | 1));
    bytes
}

/// Counts the complete records at the start of a journal.
fn records(mut journal: &[u8]) -> u32 {
    let mut number = 0;
    while let Some(rest) = journal.strip_prefix(record(number).as_slice()) {
        journal = rest;
        number += 1;
    }
    number
}

fn acknowledge(marks: &mut File, number: u32) {
    marks.write_all(&number.to_le_bytes()).unwrap();
}

fn sync_dir(dir: &Path) {
    File::open(dir).unwrap().sync_all().unwrap();
}

/// Appends records to a journal, and acknowledges each.
fn write_journal(variant: &str) {
    let (dir, mut marks) = (own_dir(), own_marks());
    let mut journal = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("journal"))
        .unwrap();
    if variant != SYNCS_NO_DIRECTORY {
        sync_dir(&dir);
    }
    for number in 0..RECORDS {
        journal.write_all(&record(number)).unwrap();
        if variant == ACKNOWLEDGES_BEFORE_SYNC {
            acknowledge(&mut marks, number);
        }
        match journal.sync_data() {
            Err(_) if variant != CONTINUES_AFTER_FAILED_SYNC => return,
            _ => {}
        }
        if variant != ACKNOWLEDGES_BEFORE_SYNC {
            acknowledge(&mut marks, number);
        }
    }
}

/// Repeatedly replaces a file, with a crate that renames without libc.
fn replace_file(variant: &str) {
    let (dir, mut marks) = (own_dir(), own_marks());
    for number in 0..RECORDS {
        let mut next = tempfile::NamedTempFile::new_in(&dir).unwrap();
        next.write_all(&record(number)).unwrap();
        next.as_file().sync_all().unwrap();
        next.persist(dir.join("current")).unwrap();
        if variant != SYNCS_NO_DIRECTORY {
            sync_dir(&dir);
        }
        acknowledge(&mut marks, number);
    }
}

/// Counts the records up to the one in a file that [`replace_file`] left.
fn replaced(current: &[u8]) -> u32 {
    let found = (0..RECORDS).find(|number| current == record(*number));
    found.map_or(0, |number| number + 1)
}

/// Simulates power cuts at many moments, and counts those after which an acknowledged record is missing.
fn losses(trace: &Trace, model: DirModel, loss: Loss, found: impl Fn(&Path) -> u32) -> usize {
    let mut disk = Disk::new(trace, model);
    let mut losses = 0;
    for (seed, cut) in trace.cuts(42, CUTS).into_iter().enumerate() {
        disk.advance(cut).unwrap();
        let acknowledged = disk.marks().len() as u32;
        let target = tempfile::tempdir().unwrap();
        disk.materialise(target.path(), seed as u64, loss).unwrap();
        losses += usize::from(found(target.path()) < acknowledged);
    }
    losses
}

fn journal_losses(trace: &Trace, model: DirModel, loss: Loss) -> usize {
    losses(trace, model, loss, |dir| {
        records(&read(&dir.join("journal")))
    })
}

fn replacement_losses(trace: &Trace, model: DirModel, loss: Loss) -> usize {
    losses(trace, model, loss, |dir| {
        replaced(&read(&dir.join("current")))
    })
}

fn run(folder: &TestFolder, test: &str, variant: &str, watch: &Watch) -> Trace {
    succeed(&mut child(module_path!(), test, variant, watch));
    folder.trace()
}

#[test]
fn acknowledged_record_survives() {
    if let Some(variant) = role() {
        return write_journal(&variant);
    }
    let folder = TestFolder::new();
    let trace = run(
        &folder,
        "acknowledged_record_survives",
        CORRECT,
        &folder.traced(),
    );
    assert_eq!(records(&read(&folder.dir().join("journal"))), RECORDS);
    for model in [DirModel::Ext4, DirModel::Strict] {
        for loss in [Loss::All, Loss::Random, Loss::None] {
            assert_eq!(journal_losses(&trace, model, loss), 0, "{model:?} {loss:?}");
        }
    }
    let disk = Disk::replay(&trace, DirModel::Strict, trace.len()).unwrap();
    assert_eq!(disk.marks().len() as u32, RECORDS);
}

#[test]
fn acknowledgement_before_the_sync_is_detected() {
    let this = "acknowledgement_before_the_sync_is_detected";
    if let Some(variant) = role() {
        return write_journal(&variant);
    }
    let folder = TestFolder::new();
    let trace = run(&folder, this, ACKNOWLEDGES_BEFORE_SYNC, &folder.traced());
    for model in [DirModel::Ext4, DirModel::Strict] {
        assert!(journal_losses(&trace, model, Loss::All) > CUTS / 5);
        assert!(journal_losses(&trace, model, Loss::Random) > CUTS / 20);
        assert_eq!(journal_losses(&trace, model, Loss::None), 0);
    }
}

#[test]
fn journal_without_a_durable_name_is_detected() {
    let this = "journal_without_a_durable_name_is_detected";
    if let Some(variant) = role() {
        return write_journal(&variant);
    }
    let folder = TestFolder::new();
    let trace = run(&folder, this, SYNCS_NO_DIRECTORY, &folder.traced());
    assert_eq!(journal_losses(&trace, DirModel::Ext4, Loss::All), 0);
    assert!(journal_losses(&trace, DirModel::Strict, Loss::All) > CUTS / 2);
}

#[test]
fn replaced_file_survives() {
    if let Some(variant) = role() {
        return replace_file(&variant);
    }
    let folder = TestFolder::new();
    let trace = run(&folder, "replaced_file_survives", CORRECT, &folder.traced());
    assert_eq!(folder.counts().renames, u64::from(RECORDS));
    for model in [DirModel::Ext4, DirModel::Strict] {
        for loss in [Loss::All, Loss::Random, Loss::None] {
            assert_eq!(
                replacement_losses(&trace, model, loss),
                0,
                "{model:?} {loss:?}"
            );
        }
    }
}

#[test]
fn replacement_without_directory_sync_is_detected() {
    let this = "replacement_without_directory_sync_is_detected";
    if let Some(variant) = role() {
        return replace_file(&variant);
    }
    let folder = TestFolder::new();
    let trace = run(&folder, this, SYNCS_NO_DIRECTORY, &folder.traced());
    for model in [DirModel::Ext4, DirModel::Strict] {
        assert!(
            replacement_losses(&trace, model, Loss::All) > CUTS / 10,
            "{model:?}"
        );
        assert_eq!(replacement_losses(&trace, model, Loss::None), 0);
    }
}

#[test]
fn continuing_after_a_failed_sync_is_detected() {
    let this = "continuing_after_a_failed_sync_is_detected";
    if let Some(variant) = role() {
        return write_journal(&variant);
    }
    let folder = TestFolder::new();
    let (kind, sticky) = (FaultKind::SyncEio, false);
    let watch = folder.traced().fail(Fault {
        kind,
        nth: u64::from(RECORDS / 2),
        sticky,
    });
    let stopped = run(&folder, this, CORRECT, &watch);
    assert!(stopped.first_fault().is_some());
    assert_eq!(journal_losses(&stopped, DirModel::Ext4, Loss::All), 0);
    fs::remove_file(folder.dir().join("journal")).unwrap();
    let continued = run(&folder, this, CONTINUES_AFTER_FAILED_SYNC, &watch);
    assert!(journal_losses(&continued, DirModel::Ext4, Loss::All) > CUTS / 4);
}
