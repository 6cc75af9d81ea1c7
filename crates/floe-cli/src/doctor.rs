//! `floe doctor`: reads everything that is stored, reports what is wrong with it, repairs it on request, and copies what
//! is intact out of a store that cannot be opened.

use std::path::{Path, PathBuf};

use floe_local::doctor::{self, Finding, Progress as Examined, Report, SalvageReport, Stage};
use floe_store::json::Writer;

use crate::{
    Each, Failure, Output, Progress, Result, Table, Text, bytes, check_store, grouped, note,
    note_recovery, object, print,
};

/// Examine a store, and repair it on request
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe doctor --data ./shop
  floe doctor --data ./shop --repair
  floe doctor --data ./shop --salvage ./shop-salvaged
  floe doctor --data ./shop --json | jq -r '.findings[].what'

Items are the truth. Entries of indexes, expiry and counters follow from them: they are worked out anew and compared, and \
with --repair made anew. What follows from nothing (items, change records, the catalog) is told and left alone.

--salvage copies everything intact into a new store, and lists what is lost. It only reads the damaged store, and needs \
neither its FORMAT file nor its lists of files: data/ is enough.

The exit code is 0 if nothing is wrong or all of it was repaired, and 1 if something is or, with --salvage, is lost.")]
pub(super) struct Doctor {
    /// The store, which no other program may have open meanwhile
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Make anew what follows from the items
    #[arg(long)]
    repair: bool,

    /// Copy everything intact into a new store in this directory, and list what is lost
    #[arg(long, value_name = "TARGET", conflicts_with = "repair")]
    salvage: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

impl Doctor {
    pub(super) fn run(&self) -> Result {
        if let Some(target) = &self.salvage {
            return self.salvage(target);
        }
        check_store(&self.data)?;
        let report = self.watched(|watch| doctor::examine(&self.data, self.repair, watch))?;
        note_recovery(report.recovery);
        if let Some(error) = &report.unsealed {
            note(&format!(
                "nothing is lost, but the store is as if its process had died: {error}"
            ));
        }
        let output = self.output;
        output.either(&|w| write(w, &report), &|| print_report(&report));
        match report.is_repaired() {
            true => Ok(()),
            false => Err(Failure::broken(format!(
                "something is wrong with the store: findings={} repaired={}{}",
                report.findings_total,
                report.repaired_total,
                if self.repair { "" } else { "; see --repair" }
            ))),
        }
    }

    fn salvage(&self, target: &Path) -> Result {
        let report = self.watched(|watch| doctor::salvage(&self.data, target, watch))?;
        self.output.either(&|w| write_salvaged(w, &report), &|| {
            print_salvaged(&report, target);
        });
        match report.is_complete() && report.findings.is_empty() {
            true => Ok(()),
            false => Err(Failure::broken(format!(
                "not everything could be salvaged: lost={} uncertain={} findings={}",
                report.lost_total,
                report.uncertain,
                report.findings.len()
            ))),
        }
    }

    /// Shows how far something is while it is done.
    fn watched<T>(
        &self,
        work: impl FnOnce(&mut dyn FnMut(&Examined<'_>)) -> floe_store::Result<T>,
    ) -> Result<T> {
        let mut progress = Progress::new(!self.output.json);
        let done = work(&mut |examined| {
            progress.step(&step(examined));
            progress.at(examined.checked.entries, None);
        });
        progress.end();
        done.map_err(Failure::broken)
    }
}

fn print_salvaged(report: &SalvageReport, target: &Path) {
    let mut facts = Table::of_facts();
    facts.fact("new store", target.display());
    for (name, count) in [
        ("tables", report.tables),
        ("items", report.items),
        ("all entries", report.entries),
        ("lost", report.lost_total),
        ("uncertain keys", report.uncertain),
    ] {
        facts.fact(name, grouped(count));
    }
    facts.print();
    for lost in &report.lost {
        print(format!("lost: {lost}"));
    }
    print_findings(&report.findings);
}

fn print_findings(findings: &[Finding]) {
    for finding in findings {
        print(finding.to_string());
    }
}

fn write_salvaged(w: &mut Writer, report: &SalvageReport) {
    object!(w;
        "tables": report.tables, "items": report.items, "entries": report.entries,
        "uncertain": report.uncertain, "lost_total": report.lost_total, "lost": report.lost,
        "findings": Each(&report.findings, write_finding)
    );
}

fn step(examined: &Examined<'_>) -> String {
    let what = match examined.stage {
        Stage::Files => "comparing files with their checksums",
        Stage::Catalog => "reading the catalog",
        Stage::Table => "reading the table",
        Stage::Compare => "comparing entry by entry",
        Stage::ChangeLog => "reading the change log",
        Stage::Tokens => "reading the tokens",
        Stage::Spaces => "looking for leftovers",
        Stage::Salvage => "copying what is intact",
        _ => "examining",
    };
    match examined.table {
        Some(table) => format!("{what} {table}"),
        None => what.to_owned(),
    }
}

fn print_report(report: &Report) {
    let (checked, dropped) = (&report.checked, report.recovery.dropped_bytes);
    let repaired = (!report.is_clean()).then(|| grouped(report.repaired_total));
    let mut facts = Table::of_facts();
    for (name, text) in [
        ("tables", Some(grouped(checked.tables))),
        ("items", Some(grouped(checked.items))),
        ("index entries", Some(grouped(checked.index_entries))),
        ("change records", Some(grouped(checked.change_records))),
        ("all entries", Some(grouped(checked.entries))),
        ("files", Some(bytes(checked.file_bytes))),
        ("findings", Some(grouped(report.findings_total))),
        ("dropped", (dropped > 0).then(|| bytes(dropped))),
        ("repaired", repaired),
    ] {
        facts.fact_if_any(name, text);
    }
    facts.print();
    print_findings(&report.findings);
}

fn write(w: &mut Writer, report: &Report) {
    let checked = &report.checked;
    object!(w;
        "tables": checked.tables, "items": checked.items, "index_entries": checked.index_entries,
        "expiry_entries": checked.expiry_entries, "change_records": checked.change_records,
        "entries": checked.entries, "file_bytes": checked.file_bytes,
        "dropped_bytes": report.recovery.dropped_bytes, "findings_total": report.findings_total,
        "repaired_total": report.repaired_total,
        "findings": Each(&report.findings, write_finding)
    );
}

fn write_finding(w: &mut Writer, finding: &Finding) {
    object!(w;
        "kind": Text(&finding.kind), "what": finding.what, "table": finding.table,
        "index": finding.index, "key": finding.key, "repaired": finding.repaired
    );
}
