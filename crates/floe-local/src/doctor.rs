//! The doctor: reads everything that is stored, says what is wrong with it, and repairs what follows
//! from the items.
//!
//! Items are the truth. Index entries, expiry entries, weights of collections and counters follow from
//! them, so they are worked out anew and compared, and can be made anew. Change records, the catalog and
//! items themselves follow from nothing: what is wrong with them is told and left alone.
//!
//! | module | what it examines |
//! |---|---|
//! | `catalog` | the records of the catalog, and whether they agree |
//! | `table` | the items of a table and all that follows from them |
//! | `compare` | the same, entry by entry, where something is wrong |
//! | `subject` | nothing itself: a table under examination, and the entries that follow from its items |
//! | `owner` | nothing itself: looks for the item that an entry follows from |
//! | `log` | the change log: no number missing, each record in a shard |
//! | `walk` | nothing itself: reads on behind what cannot be read |
//! | `repair` | nothing itself: has the committer put things right |
//! | `salvage` | the files of a store that cannot be opened, one by one |
//!
//! An engine that runs is examined on one snapshot, which is consistent. A repair looks at the present
//! state again before it changes anything, so writes that came since are not undone.

mod catalog;
mod compare;
mod log;
mod owner;
mod repair;
mod report;
mod salvage;
mod subject;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::path::Path;

use floe_store::Result;

use crate::LocalEngine;
use crate::commit::Committer;
use crate::dir::Directory;
use crate::engine::Opened;
use crate::group::{Effect, Group};
use crate::kv::{Bytes, Kv, Space};
use crate::layout::record;
use crate::moment::Moment;
use crate::options::Options;

pub use salvage::{SalvageReport, salvage};

pub use report::{Checked, Finding, FindingKind, Progress, Report, Stage};

/// How many entries lie between two reports of progress.
const PROGRESS_ENTRIES: u64 = 10_000;

impl LocalEngine {
    /// Reads everything that is stored, with all checksums, and says what is wrong with it. With
    /// `repair`, what follows from the items is made anew where it is wrong: index entries, expiry
    /// entries and counters.
    ///
    /// Reads and writes go on meanwhile. It blocks until everything is read.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) when there is no catalog to begin with, or when a repair cannot be written.
    /// What is merely damaged is a [`Finding`], not an error.
    ///
    /// ```
    /// let engine = floe_local::LocalEngine::memory()?;
    /// assert!(engine.doctor(false)?.is_clean());
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn doctor(&self, repair: bool) -> Result<Report> {
        self.doctor_with(repair, |_| {})
    }

    /// As [`doctor`](Self::doctor), and tells how far it has come.
    ///
    /// # Errors
    ///
    /// As [`doctor`](Self::doctor).
    pub fn doctor_with(
        &self,
        repair: bool,
        mut progress: impl FnMut(&Progress<'_>),
    ) -> Result<Report> {
        let committer = &*self.running.committer;
        let repair = repair.then_some(committer);
        let mut examiner = Examiner::new(&committer.shared.kv, repair, &mut progress);
        examiner.examine()?;
        Ok(examiner.report)
    }
}

/// Examines the store in a directory that no engine has open, even one that cannot be opened, and
/// repairs it on request.
///
/// # Errors
///
/// [`Error::Storage`](floe_store::Error::Storage) when there is no store in the directory, when it is in use, or was written by a
/// newer version; and as [`LocalEngine::doctor`].
pub fn examine(
    dir: impl AsRef<Path>,
    repair: bool,
    mut progress: impl FnMut(&Progress<'_>),
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
            // Keys that belong to no table are removed in steps. What cannot be read is in the report.
            while repaired.has(FindingKind::LeftoverKeys)
                && engine.run_background_once() == Ok(true)
            {}
            engine.close()?;
            Ok(repaired)
        }
        Err(error) => Ok(report.with(Finding::unopenable(&error))),
    }
}

fn examine_closed(dir: &Path, progress: &mut dyn FnMut(&Progress<'_>)) -> Result<Report> {
    let directory = Directory::open_existing(dir)?;
    let opened = match Opened::open(directory, &Options::new()) {
        Ok(opened) => opened,
        Err(error) => return Ok(Report::default().with(Finding::unopenable(&error))),
    };
    let mut examiner = Examiner::new(&opened.kv, None, progress);
    let examined = examiner.examine().map(|()| examiner.report);
    drop(examiner.moment);
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

/// An examination under way.
struct Examiner<'a> {
    kv: &'a Kv,
    moment: Moment,
    /// What commits repairs, if what is wrong is to be repaired.
    repair: Option<&'a Committer>,
    report: Report,
    progress: &'a mut dyn FnMut(&Progress<'_>),
    stage: Stage,
    /// The table that is being examined.
    table: Option<String>,
    visited: u64,
}

impl<'a> Examiner<'a> {
    fn new(
        kv: &'a Kv,
        repair: Option<&'a Committer>,
        progress: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Self {
        Self {
            moment: Moment::now(kv),
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
        for at in 0..self.moment.tables.len() {
            self.examine_table(at, &catalog)?;
        }
        self.examine_log(&catalog)?;
        self.examine_tokens()?;
        self.find_unknown_tables()
    }

    /// Reads all sorted files and compares them with their checksums.
    fn examine_files(&mut self) {
        self.begin(Stage::Files, None);
        let checked = &mut self.report.checked;
        let damaged = self.kv.damaged_files(|bytes| checked.file_bytes += bytes);
        for (path, fault) in damaged {
            let what = format!("{fault}: path={}", path.display());
            self.find(Finding::new(FindingKind::DamagedFile, what));
        }
    }

    fn examine_tokens(&mut self) -> Result<()> {
        self.begin(Stage::Tokens, None);
        self.walk(Space::Tokens, walk::everything(), |examiner, key, value| {
            examiner.report.checked.entries += 1;
            if let Err(error) = record::TokenRecord::decode(&value) {
                let finding = Finding::new(FindingKind::Undecodable, error.to_string());
                examiner.find(finding.key(hex(&key)));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Finds keys of tables that the catalog does not have, and has them removed.
    fn find_unknown_tables(&mut self) -> Result<()> {
        self.begin(Stage::Spaces, None);
        let mut from = 0;
        // What cannot be read was found before, table by table.
        while let Ok(Some(id)) = self.moment.snapshot.first_table(from) {
            if !self.moment.has_table(id) && !self.moment.removing.contains(&id) {
                let what = format!("keys belong to no table: id={id}");
                let at = self.find(Finding::new(FindingKind::LeftoverKeys, what));
                // A record that cannot be read may be the one of this table.
                if let Some(committer) = self.repair.filter(|_| self.moment.faults.is_empty()) {
                    let remove = move |group: &mut Group<'_>| {
                        group.add_job(id, record::Work::RemoveTable);
                        Ok(())
                    };
                    committer.run(Effect::Frees, remove).wait()?;
                    committer.shared.background.ring();
                    self.report.set_repaired(at);
                }
            }
            let Some(next) = id.checked_add(1) else { break };
            from = next;
        }
        Ok(())
    }

    /// Has the keys of findings removed that belong nowhere, and marks the findings.
    fn remove_keys(&mut self, space: Space, keys: Vec<(u64, Bytes)>) -> Result<()> {
        let Some(committer) = self.repair.filter(|_| !keys.is_empty()) else {
            return Ok(());
        };
        let (numbers, keys): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let remove = move |group: &mut Group<'_>| {
            keys.into_iter().for_each(|key| group.remove(space, key));
            Ok(())
        };
        committer.run(Effect::Frees, remove).wait()?;
        for number in numbers {
            self.report.set_repaired(number);
        }
        Ok(())
    }

    fn begin(&mut self, stage: Stage, table: Option<String>) {
        self.stage = stage;
        self.table = table;
        self.tell();
    }

    /// Tells how far the examination is, now and then.
    fn tell_now_and_then(&mut self) {
        self.visited += 1;
        if self.visited.is_multiple_of(PROGRESS_ENTRIES) {
            self.tell();
        }
    }

    fn tell(&mut self) {
        (self.progress)(&Progress {
            stage: self.stage,
            table: self.table.as_deref(),
            checked: self.report.checked,
        });
    }

    /// Notes a finding, and answers by which number it can be marked as repaired.
    fn find(&mut self, finding: Finding) -> u64 {
        self.report.add(finding)
    }
}

/// Bytes for people.
fn hex(bytes: &Bytes) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
