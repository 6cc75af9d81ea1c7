//! The process that opens a damaged store, reads everything and compares it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use clap::Args;
use floe_local::doctor::{self, Finding, FindingKind};
use floe_local::{LocalEngine, Options};
use floe_store::op::{GetItem, IteratorKind, Page, Scan};
use floe_store::{Engine, Error, Item, Result};

use super::super::planted::Bug;
use super::super::replay::{Reader, shards};
use super::super::{child, runtime};
use super::base::Kind;
use super::content::{self, Content, INDEX, STREAM_TABLE, TABLES};
use crate::checks::role::Role;
use crate::{Failure, out};

/// The name of the role.
pub(super) const ROLE: &str = "bit-rot-examine";

/// Returns the command of the process for a store of this kind.
pub(super) fn command(folder: &Path, kind: Kind, planted: Option<Bug>) -> std::io::Result<Command> {
    let mut command = child::command(ROLE)?;
    command.arg("--folder").arg(folder);
    command.arg("--kind").arg(kind.name());
    if planted == Some(Bug::HiddenDamage) {
        command.arg("--planted").arg(Bug::HiddenDamage.name());
    }
    Ok(command)
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct ExamineRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    kind: Kind,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for ExamineRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let mut read_report = ReadReport::of(&self.folder, self.kind.content())?;
        if self.planted == Some(Bug::HiddenDamage) {
            read_report.hide_damage();
        }
        read_report.print(0);
        Ok(ExitCode::SUCCESS)
    }
}

/// The result of reading a whole store.
#[derive(Debug, Default)]
pub(super) struct ReadReport {
    is_opened: bool,
    /// Items that were never written.
    wrong: u64,
    /// Items and change records that are missing, old, or present although they were deleted.
    different: u64,
    /// Failed reads.
    errors: u64,
    /// Findings of the doctor, except missing change records.
    doctor: u64,
    /// Ranges of the change log that the doctor reported missing. Nothing can restore them, not even salvage.
    log_gaps: u64,
    /// Bytes that opening the store dropped and reported.
    dropped: u64,
    /// Items that are correct.
    items: u64,
    notes: Vec<String>,
}

impl ReadReport {
    /// Opens a store, reads everything, and runs the doctor on it.
    pub(super) fn of(folder: &Path, content: Content) -> Result<Self, Failure> {
        let mut read_report = Self::default();
        match LocalEngine::open_with(folder, Options::new().background(false)) {
            Ok(engine) => {
                read_report.is_opened = true;
                read_report.dropped = engine.recovery().dropped_bytes;
                let engine: Arc<dyn Engine> = Arc::new(engine);
                runtime()?.block_on(read_report.read(&engine, content));
            }
            Err(error) => read_report.note(format!("open: {error}")),
        }
        match doctor::examine(folder, false, |_| {}) {
            Ok(report) => {
                let is_gap = |finding: &&Finding| finding.kind == FindingKind::ChangeLog;
                read_report.log_gaps = report.findings.iter().filter(is_gap).count() as u64;
                read_report.doctor = report.findings_total - read_report.log_gaps;
                for finding in report.findings.iter().take(2) {
                    read_report.note(format!("doctor: {finding}"));
                }
            }
            Err(error) => {
                read_report.doctor = 1;
                read_report.note(format!("doctor: {error}"));
            }
        }
        Ok(read_report)
    }

    /// The planted bug: discards everything that was reported.
    fn hide_damage(&mut self) {
        if !self.is_opened || self.errors > 0 {
            self.different += 1;
        }
        self.is_opened = true;
        (self.errors, self.doctor, self.dropped) = (0, 0, 0);
        self.log_gaps = 0;
    }

    /// Prints notes, and the figures on the last line, with the number of losses reported before.
    pub(super) fn print(&self, reported: u64) {
        for note in &self.notes {
            out::figures(&note.replace('=', ":").replace('\n', " "));
        }
        out::figures(&format!(
            "reported={reported} opened={} wrong={} different={} errors={} doctor={} log_gaps={} dropped={} items={}",
            u64::from(self.is_opened),
            self.wrong,
            self.different,
            self.errors,
            self.doctor,
            self.log_gaps,
            self.dropped,
            self.items
        ));
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < 3 {
            self.notes.push(note);
        }
    }

    async fn read(&mut self, engine: &Arc<dyn Engine>, content: Content) {
        for table in 0..TABLES {
            let read = self.read_table(engine, content, table).await;
            self.record_result(read, "items");
            let read = self.read_index(engine, content, table).await;
            self.record_result(read, "an index");
            for number in content.numbers(table) {
                let read = self.read_item(engine, content, table, number).await;
                self.record_result(read, "an item");
            }
        }
        let read = self.read_stream(engine, content).await;
        self.record_result(read, "a stream");
    }

    fn record_result(&mut self, read: Result<()>, what: &str) {
        let Err(error) = read else { return };
        match error {
            // A missing table is a loss, and this error is not a report of one.
            Error::ResourceNotFound(_) => self.different += 1,
            _ => self.errors += 1,
        }
        self.note(format!("reading {what}: {error}"));
    }

    async fn read_table(
        &mut self,
        engine: &Arc<dyn Engine>,
        content: Content,
        table: u64,
    ) -> Result<()> {
        let items = scan(engine, Scan::new(content::table_name(table))).await?;
        let found = self.compare(content, table, &items);
        self.items += found.len() as u64;
        let expected = content.numbers(table);
        let expected = expected.filter(|number| content.last_version(table, *number).is_some());
        self.count_missing(table, "table", expected, &found);
        Ok(())
    }

    async fn read_index(
        &mut self,
        engine: &Arc<dyn Engine>,
        content: Content,
        table: u64,
    ) -> Result<()> {
        if !content::has_index(table) {
            return Ok(());
        }
        let scan_index = Scan::new(content::table_name(table)).index(INDEX);
        let items = scan(engine, scan_index).await?;
        let found = self.compare(content, table, &items);
        let expected = content.numbers(table).filter(|number| {
            let version = content.last_version(table, *number);
            version
                .is_some_and(|version| content::is_indexed(&content.item(table, *number, version)))
        });
        self.count_missing(table, "index", expected, &found);
        Ok(())
    }

    async fn read_item(
        &mut self,
        engine: &Arc<dyn Engine>,
        content: Content,
        table: u64,
        number: u64,
    ) -> Result<()> {
        let get = GetItem::new(content::table_name(table), content::key(number));
        let item = engine.get_item(get).await?.item;
        let found = self.compare(content, table, item.as_slice());
        let expected = content.last_version(table, number).map(|_| number);
        self.count_missing(table, "item", expected, &found);
        Ok(())
    }

    /// Reads all change records of the table that has a stream.
    async fn read_stream(&mut self, engine: &Arc<dyn Engine>, content: Content) -> Result<()> {
        let name = content::table_name(STREAM_TABLE);
        let stream = engine.describe_table(name).await?.latest_stream;
        let stream =
            stream.ok_or_else(|| Error::ResourceNotFound("the stream is missing".to_owned()))?;
        let mut count = 0;
        for shard in shards(engine, &stream.arn).await? {
            let start = IteratorKind::TrimHorizon;
            let mut reader = Reader::at(engine, &stream.arn, &shard, start).await?;
            while let Some(records) = reader.next(engine).await? {
                count += records.len() as u64;
                let images = records.iter();
                let images = images.filter_map(|record| record.new_image.as_ref());
                for image in images {
                    if content.identify(STREAM_TABLE, image).is_none() {
                        self.wrong += 1;
                        self.note(format!("change record that was never written: {image:?}"));
                    }
                }
            }
        }
        let writes = content.writes();
        let expected = writes.filter(|write| write.table == STREAM_TABLE).count() as u64;
        if count != expected {
            self.different += count.abs_diff(expected);
            self.note(format!("change records: found {count} of {expected}"));
        }
        Ok(())
    }

    /// Compares items with what was written. Returns the numbers of the correct ones.
    fn compare(&mut self, content: Content, table: u64, items: &[Item]) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for item in items {
            match content.identify(table, item) {
                None => {
                    self.wrong += 1;
                    self.note(format!("never written to table {table}: {item:?}"));
                }
                Some((number, version)) if content.last_version(table, number) == Some(version) => {
                    found.insert(number);
                }
                Some((number, version)) => {
                    self.different += 1;
                    self.note(format!(
                        "old item in table {table}: {number} version {version}"
                    ));
                }
            }
        }
        found
    }

    fn count_missing(
        &mut self,
        table: u64,
        source: &str,
        expected: impl IntoIterator<Item = u64>,
        found: &BTreeSet<u64>,
    ) {
        let missing = expected
            .into_iter()
            .filter(|number| !found.contains(number));
        let missing = missing.count() as u64;
        if missing > 0 {
            self.different += missing;
            self.note(format!(
                "missing in table {table}: {missing} of the {source}"
            ));
        }
    }
}

async fn scan(engine: &Arc<dyn Engine>, input: Scan) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut from = None;
    loop {
        let page: Page = engine.scan(input.clone().start_key(from)).await?;
        items.extend(page.items);
        from = page.last_key;
        if from.is_none() {
            return Ok(items);
        }
    }
}
