//! Power cuts end to end: a process that syncs before it acknowledges loses
//! nothing, and one with a planted bug is found out.

use std::fs::{File, OpenOptions};
use std::io::Write;

use super::*;
use crate::disk::{DirModel, Disk, Loss};

const RECORDS: u32 = 150;
const CUTS: usize = 200;

/// How a workload behaves.
const RIGHT: &str = "right";
const ACKNOWLEDGES_BEFORE_SYNC: &str = "acknowledges before sync";
const SYNCS_NO_DIRECTORY: &str = "syncs no directory";
const GOES_ON_AFTER_FAILED_SYNC: &str = "goes on after a failed sync";

/// The bytes of a record: its number, its length, and a filling that makes
/// torn records visible.
fn record(number: u32) -> Vec<u8> {
    let len = 1 + (number * 37) % 1800;
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend((0..len).map(|at| (number + at) as u8 | 1));
    bytes
}

/// How many whole records a journal starts with.
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

/// Appends records to a journal and acknowledges each.
fn write_journal(how: &str) {
    let (dir, mut marks) = (own_dir(), own_marks());
    let mut journal = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("journal"))
        .unwrap();
    if how != SYNCS_NO_DIRECTORY {
        sync_dir(&dir);
    }
    for number in 0..RECORDS {
        journal.write_all(&record(number)).unwrap();
        if how == ACKNOWLEDGES_BEFORE_SYNC {
            acknowledge(&mut marks, number);
        }
        match journal.sync_data() {
            Err(_) if how != GOES_ON_AFTER_FAILED_SYNC => return,
            _ => {}
        }
        if how != ACKNOWLEDGES_BEFORE_SYNC {
            acknowledge(&mut marks, number);
        }
    }
}

/// Swaps a file for its successor again and again, by way of a crate that
/// renames without libc.
fn swap_files(how: &str) {
    let (dir, mut marks) = (own_dir(), own_marks());
    for number in 0..RECORDS {
        let mut next = tempfile::NamedTempFile::new_in(&dir).unwrap();
        next.write_all(&record(number)).unwrap();
        next.as_file().sync_all().unwrap();
        next.persist(dir.join("current")).unwrap();
        if how != SYNCS_NO_DIRECTORY {
            sync_dir(&dir);
        }
        acknowledge(&mut marks, number);
    }
}

/// How many records a directory holds in the form that [`swap_files`] leaves.
fn swapped(current: &[u8]) -> u32 {
    let found = (0..RECORDS).find(|number| current == record(*number));
    found.map_or(0, |number| number + 1)
}

/// Cuts the power at many moments and counts the times that something
/// acknowledged was missing.
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

fn swap_losses(trace: &Trace, model: DirModel, loss: Loss) -> usize {
    losses(trace, model, loss, |dir| {
        swapped(&read(&dir.join("current")))
    })
}

fn run(stage: &Stage, test: &str, how: &str, watch: &Watch) -> Trace {
    succeed(&mut child(module_path!(), test, how, watch));
    stage.trace()
}

#[test]
fn an_acknowledged_record_survives() {
    if let Some(how) = role() {
        return write_journal(&how);
    }
    let stage = Stage::new();
    let trace = run(
        &stage,
        "an_acknowledged_record_survives",
        RIGHT,
        &stage.traced(),
    );
    assert_eq!(records(&read(&stage.dir().join("journal"))), RECORDS);
    for model in [DirModel::Ext4, DirModel::Strict] {
        for loss in [Loss::All, Loss::Random, Loss::None] {
            assert_eq!(journal_losses(&trace, model, loss), 0, "{model:?} {loss:?}");
        }
    }
    let disk = Disk::replay(&trace, DirModel::Strict, trace.len()).unwrap();
    assert_eq!(disk.marks().len() as u32, RECORDS);
}

#[test]
fn an_acknowledgement_before_the_sync_is_found_out() {
    let this = "an_acknowledgement_before_the_sync_is_found_out";
    if let Some(how) = role() {
        return write_journal(&how);
    }
    let stage = Stage::new();
    let trace = run(&stage, this, ACKNOWLEDGES_BEFORE_SYNC, &stage.traced());
    for model in [DirModel::Ext4, DirModel::Strict] {
        assert!(journal_losses(&trace, model, Loss::All) > CUTS / 5);
        assert!(journal_losses(&trace, model, Loss::Random) > CUTS / 20);
        assert_eq!(journal_losses(&trace, model, Loss::None), 0);
    }
}

#[test]
fn a_journal_without_its_name_is_found_out() {
    let this = "a_journal_without_its_name_is_found_out";
    if let Some(how) = role() {
        return write_journal(&how);
    }
    let stage = Stage::new();
    let trace = run(&stage, this, SYNCS_NO_DIRECTORY, &stage.traced());
    assert_eq!(journal_losses(&trace, DirModel::Ext4, Loss::All), 0);
    assert!(journal_losses(&trace, DirModel::Strict, Loss::All) > CUTS / 2);
}

#[test]
fn a_swapped_file_survives() {
    if let Some(how) = role() {
        return swap_files(&how);
    }
    let stage = Stage::new();
    let trace = run(&stage, "a_swapped_file_survives", RIGHT, &stage.traced());
    assert_eq!(stage.counts().renames, u64::from(RECORDS));
    for model in [DirModel::Ext4, DirModel::Strict] {
        for loss in [Loss::All, Loss::Random, Loss::None] {
            assert_eq!(swap_losses(&trace, model, loss), 0, "{model:?} {loss:?}");
        }
    }
}

#[test]
fn a_swap_without_directory_sync_is_found_out() {
    let this = "a_swap_without_directory_sync_is_found_out";
    if let Some(how) = role() {
        return swap_files(&how);
    }
    let stage = Stage::new();
    let trace = run(&stage, this, SYNCS_NO_DIRECTORY, &stage.traced());
    for model in [DirModel::Ext4, DirModel::Strict] {
        assert!(
            swap_losses(&trace, model, Loss::All) > CUTS / 10,
            "{model:?}"
        );
        assert_eq!(swap_losses(&trace, model, Loss::None), 0);
    }
}

#[test]
fn going_on_after_a_failed_sync_is_found_out() {
    let this = "going_on_after_a_failed_sync_is_found_out";
    if let Some(how) = role() {
        return write_journal(&how);
    }
    let stage = Stage::new();
    let (kind, sticky) = (FaultKind::SyncEio, false);
    let watch = stage.traced().fail(Fault {
        kind,
        nth: u64::from(RECORDS / 2),
        sticky,
    });
    let stopped = run(&stage, this, RIGHT, &watch);
    assert!(stopped.first_fault().is_some());
    assert_eq!(journal_losses(&stopped, DirModel::Ext4, Loss::All), 0);
    fs::remove_file(stage.dir().join("journal")).unwrap();
    let went_on = run(&stage, this, GOES_ON_AFTER_FAILED_SYNC, &watch);
    assert!(journal_losses(&went_on, DirModel::Ext4, Loss::All) > CUTS / 4);
}
