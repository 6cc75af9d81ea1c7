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
//! | `log` | the change log: no number missing, each record in a shard |
//! | `walk` | nothing itself: reads on behind what cannot be read |
//! | `repair` | nothing itself: has the committer put things right |
//!
//! An engine that runs is examined on one snapshot, which is consistent. A repair looks at the present
//! state again before it changes anything, so writes that came since are not undone.

mod catalog;
mod compare;
mod log;
mod repair;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::path::Path;

use floe_store::{Error, Result};

use crate::LocalEngine;
use crate::dir::Directory;
use crate::engine::{Shared, open_kv};
use crate::kv::{Bytes, Kv, Space};
use crate::layout::{CHANGES_SPACE, META_SPACE, TOKENS_SPACE, record, table_of_space_name};
use crate::moment::Moment;
use crate::options::Options;

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
    /// [`Error::Storage`] when there is no catalog to begin with, or when a repair cannot be written.
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
        let shared = &*self.running.shared;
        let repair = repair.then_some(shared);
        let mut examiner = Examiner::new(&shared.kv, repair, &mut progress)?;
        examiner.examine()?;
        examiner.examine_spaces(&unknown_spaces(shared))?;
        Ok(examiner.report)
    }
}

/// Examines the store in a directory that no engine has open, even one that cannot be opened, and
/// repairs it on request.
///
/// # Errors
///
/// [`Error::Storage`] when there is no store in the directory, when it is in use, or was written by a
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
            // Opening removes the spaces that no table has.
            repaired.take_leftovers(report);
            engine.close()?;
            Ok(repaired)
        }
        Err(error) => Ok(report.with(Finding::unopenable(&error))),
    }
}

fn examine_closed(dir: &Path, progress: &mut dyn FnMut(&Progress<'_>)) -> Result<Report> {
    if !Directory::is_store(dir)? {
        return Err(Error::Storage(format!(
            "there is no store: directory={}",
            dir.display()
        )));
    }
    let directory = Directory::open(dir)?;
    let examined = open_kv(&directory, &Options::new()).and_then(|kv| {
        let mut examiner = Examiner::new(&kv, None, progress)?;
        examiner.examine()?;
        let known = |id| {
            examiner
                .moment
                .tables
                .iter()
                .any(|table| table.record.id == id)
        };
        let unknown = |name: &String| table_of_space_name(name).is_some_and(|id| !known(id));
        let unknown: Vec<_> = kv.space_names().into_iter().filter(unknown).collect();
        examiner.examine_spaces(&unknown)?;
        Ok(examiner.report)
    });
    Ok(examined.unwrap_or_else(|error| Report::default().with(Finding::unopenable(&error))))
}

/// The spaces that no table has, looked at where tables are neither being made nor removed.
fn unknown_spaces(shared: &Shared) -> Vec<String> {
    let looked = shared.run(|group| {
        let shared = group.shared();
        let unknown = |id| shared.catalog.get_by_id(id).is_none();
        let mut names = shared.kv.space_names();
        names.retain(|name| table_of_space_name(name).is_some_and(unknown));
        Ok(names)
    });
    // Looking cannot fail. An engine that was closed or has failed answers nothing any more, but what
    // can be read of it is examined all the same.
    looked.wait().unwrap_or_default()
}

/// An examination under way.
struct Examiner<'a> {
    kv: &'a Kv,
    moment: Moment,
    /// The engine, if what is wrong is to be repaired.
    repair: Option<&'a Shared>,
    report: Report,
    progress: &'a mut dyn FnMut(&Progress<'_>),
    stage: Stage,
    /// The table that is being examined.
    table: Option<String>,
    told: u64,
}

impl<'a> Examiner<'a> {
    fn new(
        kv: &'a Kv,
        repair: Option<&'a Shared>,
        progress: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Result<Self> {
        Ok(Self {
            moment: Moment::now(kv)?,
            kv,
            repair,
            report: Report::default(),
            progress,
            stage: Stage::Files,
            table: None,
            told: 0,
        })
    }

    fn examine(&mut self) -> Result<()> {
        self.examine_files();
        let catalog = self.examine_catalog()?;
        for at in 0..self.moment.tables.len() {
            self.examine_table(at, &catalog)?;
        }
        self.examine_log(&catalog)?;
        self.examine_tokens()
    }

    /// Reads all files of all spaces and compares them with their checksums.
    fn examine_files(&mut self) {
        self.begin(Stage::Files, None);
        let mut spaces: Vec<(Option<String>, Space)> = [META_SPACE, CHANGES_SPACE, TOKENS_SPACE]
            .into_iter()
            .filter_map(|name| Some((None, self.kv.find_space(name)?)))
            .collect();
        for table in &self.moment.tables {
            let name = table.record.definition.name.clone();
            spaces.push((Some(name), table.space.clone()));
        }
        for (table, space) in spaces {
            self.begin(Stage::Files, table.clone());
            let checked = &mut self.report.checked;
            let damaged = self
                .kv
                .damaged_files(&space, |bytes| checked.file_bytes += bytes);
            for (path, fault) in damaged {
                self.find(Finding {
                    table: table.clone(),
                    ..Finding::new(
                        FindingKind::DamagedFile,
                        format!("{fault}: path={}", path.display()),
                    )
                });
            }
        }
    }

    fn examine_tokens(&mut self) -> Result<()> {
        self.begin(Stage::Tokens, None);
        let Some(space) = self.kv.find_space(TOKENS_SPACE) else {
            return Ok(());
        };
        self.walk(&space, walk::everything(), |examiner, key, value| {
            examiner.report.checked.entries += 1;
            if let Err(error) = record::TokenRecord::decode(&value) {
                let finding = Finding::new(FindingKind::Undecodable, error.to_string());
                examiner.find(finding.key(hex(&key)));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Tells of spaces that no table has, and removes them.
    fn examine_spaces(&mut self, unknown: &[String]) -> Result<()> {
        self.begin(Stage::Spaces, None);
        for name in unknown {
            let what = format!("a space belongs to no table: space={name}");
            let at = self.find(Finding::new(FindingKind::LeftoverSpace, what));
            if let Some(shared) = self.repair {
                let name = name.clone();
                shared
                    .run(move |group| group.shared().kv.drop_space(&name))
                    .wait()?;
                self.report.set_repaired(at);
            }
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
        self.told += 1;
        if self.told.is_multiple_of(PROGRESS_ENTRIES) {
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
