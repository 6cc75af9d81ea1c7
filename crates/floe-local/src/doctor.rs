//! The doctor: reads the whole store, reports what is wrong, and repairs derived data.
//!
//! Items are the source of truth. Index entries, expiry entries, collection sizes and counts are derived from them, so
//! they can be computed again, compared and repaired. Change records, the catalog and items themselves are not derived:
//! problems with them are only reported.
//!
//! | module | responsibility |
//! |---|---|
//! | `catalog` | checks the records of the catalog, and whether they agree |
//! | `table` | checks the items of a table and the data derived from them |
//! | `compare` | compares derived entries one by one, where something is wrong |
//! | `examined_table` | a table under examination, and the entries derived from its items |
//! | `owner` | finds the item that an entry is derived from |
//! | `log` | checks the change log: no number is missing, each record is in a shard |
//! | `visit` | visits entries and skips unreadable ones |
//! | `repair` | repairs derived data through the committer |
//! | `salvage` | reads the files of a store that cannot be opened |
//!
//! A running engine is examined on one snapshot, which is consistent. A repair checks the present state again before it
//! changes anything, so later writes are not undone.

mod catalog;
mod compare;
mod examined_table;
mod log;
mod owner;
mod repair;
mod report;
mod salvage;
mod table;
#[cfg(test)]
mod tests;
mod visit;

use std::path::Path;

use floe_store::Result;

use crate::LocalEngine;
use crate::commit::Committer;
use crate::dir::Directory;
use crate::engine::OpenedStore;
use crate::group::{DiskUse, Group};
use crate::kv::{Bytes, Kv, Space};
use crate::layout::record;
use crate::options::Options;
use crate::store_snapshot::StoreSnapshot;

pub use salvage::{SalvageReport, salvage};

pub use report::{Checked, DoctorProgress, Finding, FindingKind, Report, Stage};

/// Number of entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 10_000;

impl LocalEngine {
    /// Reads the whole store, verifies all checksums, and reports what is wrong. With `repair`, wrong derived data is
    /// repaired: index entries, expiry entries, collection sizes and counts.
    ///
    /// Reads and writes are not blocked. Blocks until everything is read.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) if the catalog cannot be read at all, or if a repair cannot be
    /// written. Damage is a [`Finding`], not an error.
    ///
    /// ```
    /// let engine = floe_local::LocalEngine::memory()?;
    /// assert!(engine.doctor(false)?.is_clean());
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn doctor(&self, repair: bool) -> Result<Report> {
        self.doctor_with(repair, |_| {})
    }

    /// Like [`doctor`](Self::doctor), and reports its progress.
    ///
    /// # Errors
    ///
    /// As [`doctor`](Self::doctor).
    pub fn doctor_with(
        &self,
        repair: bool,
        mut progress: impl FnMut(&DoctorProgress<'_>),
    ) -> Result<Report> {
        let committer = &*self.running.committer;
        let repair = repair.then_some(committer);
        let mut examiner = Examiner::new(&committer.shared.kv, repair, &mut progress);
        examiner.examine()?;
        Ok(examiner.report)
    }
}

/// Examines a store that no engine has open, even one that cannot be opened, and optionally repairs it.
///
/// # Errors
///
/// [`Error::Storage`](floe_store::Error::Storage) if the directory contains no store, is in use, or was written by a
/// newer version; and as [`LocalEngine::doctor`].
pub fn examine(
    dir: impl AsRef<Path>,
    repair: bool,
    mut progress: impl FnMut(&DoctorProgress<'_>),
) -> Result<Report> {
    let dir = dir.as_ref();
    let report = examine_closed(dir, &mut progress)?;
    if !repair || report.is_clean() {
        return Ok(report);
    }
    let options = Options::new().background(false);
    match LocalEngine::open_with(dir, options) {
        Ok(engine) => {
            let mut repaired = engine.doctor_with(true, progress)?;
            repaired.recovery = report.recovery;
            // Keys that belong to no table are removed in steps. Unreadable keys are already in the report.
            while repaired.has(FindingKind::LeftoverKeys)
                && engine.run_background_once() == Ok(true)
            {}
            engine.close()?;
            Ok(repaired)
        }
        Err(error) => Ok(report.with(Finding::unopenable(&error))),
    }
}

fn examine_closed(dir: &Path, progress: &mut dyn FnMut(&DoctorProgress<'_>)) -> Result<Report> {
    let directory = Directory::open_existing(dir)?;
    let opened = match OpenedStore::open(directory, &Options::new()) {
        Ok(opened) => opened,
        Err(error) => return Ok(Report::default().with(Finding::unopenable(&error))),
    };
    let mut examiner = Examiner::new(&opened.kv, None, progress);
    let examined = examiner.examine().map(|()| examiner.report);
    drop(examiner.store);
    let recovery = opened.recovery;
    let unsealed = opened.close().err().map(|error| error.to_string());
    let unopenable = |error| Report::default().with(Finding::unopenable(&error));
    let report = examined.unwrap_or_else(unopenable);
    Ok(Report {
        recovery,
        unsealed,
        ..report
    })
}

/// An examination in progress.
struct Examiner<'a> {
    kv: &'a Kv,
    store: StoreSnapshot,
    /// The committer for repairs; `None` if nothing is to be repaired.
    repair: Option<&'a Committer>,
    report: Report,
    progress: &'a mut dyn FnMut(&DoctorProgress<'_>),
    stage: Stage,
    /// The table that is being examined.
    table: Option<String>,
    visited: u64,
}

impl<'a> Examiner<'a> {
    fn new(
        kv: &'a Kv,
        repair: Option<&'a Committer>,
        progress: &'a mut dyn FnMut(&DoctorProgress<'_>),
    ) -> Self {
        Self {
            store: StoreSnapshot::take(kv),
            kv,
            repair,
            report: Report::default(),
            progress,
            stage: Stage::Files,
            table: None,
            visited: 0,
        }
    }

    fn examine(&mut self) -> Result<()> {
        self.examine_files();
        let catalog = self.examine_catalog()?;
        for at in 0..self.store.tables.len() {
            self.examine_table(at, &catalog)?;
        }
        self.examine_log(&catalog)?;
        self.examine_tokens()?;
        self.find_unknown_tables()
    }

    /// Reads all sorted files and verifies their checksums.
    fn examine_files(&mut self) {
        self.begin(Stage::Files, None);
        let checked = &mut self.report.checked;
        let damaged = self.kv.damaged_files(|bytes| checked.file_bytes += bytes);
        for (path, fault) in damaged {
            let what = format!("{fault}: path={}", path.display());
            self.record(Finding::new(FindingKind::DamagedFile, what));
        }
    }

    fn examine_tokens(&mut self) -> Result<()> {
        self.begin(Stage::Tokens, None);
        self.visit_entries(Space::Tokens, visit::unbounded(), |examiner, key, value| {
            examiner.report.checked.entries += 1;
            if let Err(error) = record::TokenRecord::decode(&value) {
                let finding = Finding::new(FindingKind::Undecodable, error.to_string());
                examiner.record(finding.key(hex(&key)));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Finds keys of tables that are not in the catalog, and removes them if repairs are enabled.
    fn find_unknown_tables(&mut self) -> Result<()> {
        self.begin(Stage::Spaces, None);
        let mut from = 0;
        // Unreadable tables were already reported.
        while let Ok(Some(id)) = self.store.snapshot.first_table(from) {
            if !self.store.has_table(id) && !self.store.removing.contains(&id) {
                let what = format!("keys belong to no table: id={id}");
                let at = self.record(Finding::new(FindingKind::LeftoverKeys, what));
                // An unreadable table record may belong to this table.
                if let Some(committer) = self.repair.filter(|_| self.store.table_errors.is_empty())
                {
                    let remove = move |group: &mut Group<'_>| {
                        group.add_job(id, record::JobKind::RemoveTable);
                        Ok(())
                    };
                    committer.run(DiskUse::Frees, remove).wait()?;
                    committer.shared.background.notify();
                    self.report.set_repaired(at);
                }
            }
            let Some(next) = id.checked_add(1) else { break };
            from = next;
        }
        Ok(())
    }

    /// Removes keys that belong nowhere, if repairs are enabled, and marks their findings.
    fn remove_keys(&mut self, space: Space, keys: Vec<(u64, Bytes)>) -> Result<()> {
        let Some(committer) = self.repair.filter(|_| !keys.is_empty()) else {
            return Ok(());
        };
        let (numbers, keys): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let remove = move |group: &mut Group<'_>| {
            keys.into_iter().for_each(|key| group.remove(space, key));
            Ok(())
        };
        committer.run(DiskUse::Frees, remove).wait()?;
        for number in numbers {
            self.report.set_repaired(number);
        }
        Ok(())
    }

    fn begin(&mut self, stage: Stage, table: Option<String>) {
        self.stage = stage;
        self.table = table;
        self.report_progress();
    }

    /// Counts a visited entry, and reports progress periodically.
    fn count_entry(&mut self) {
        self.visited += 1;
        if self.visited.is_multiple_of(PROGRESS_ENTRIES) {
            self.report_progress();
        }
    }

    fn report_progress(&mut self) {
        (self.progress)(&DoctorProgress {
            stage: self.stage,
            table: self.table.as_deref(),
            checked: self.report.checked,
        });
    }

    /// Records a finding, and returns the number with which it can be marked as repaired.
    fn record(&mut self, finding: Finding) -> u64 {
        self.report.add(finding)
    }
}

/// Formats bytes as hexadecimal digits.
fn hex(bytes: &Bytes) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
