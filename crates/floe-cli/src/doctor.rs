//! `floe doctor`: checks everything in a store, repairs it on request, and salvages a damaged store.

use std::path::{Path, PathBuf};

use floe_local::doctor::{self, DoctorProgress as Examined, Finding, Report, SalvageReport, Stage};
use floe_store::json::Writer;

use crate::{
    AsArray, AsText, Failure, IN_USE_HINT, NO_STORE_HINT, Output, Progress, Result, Table, bytes,
    check_store, grouped, note, note_recovery, object, open_failure, print,
};

/// Check a store, and repair it on request
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe doctor --data ./shop
  floe doctor --data ./shop --repair
  floe doctor --data ./shop --salvage ./shop-salvaged
  floe doctor --data ./shop --json | jq -r '.findings[].what'

Index entries, expiry entries and counters are derived from the items: they are recomputed and compared, and rewritten with \
--repair. Faults in items, change records and the catalog cannot be repaired and are only reported.

--salvage copies everything intact into a new store, and lists what is lost. It only reads the damaged store, and needs only its \
data/ directory.

Exit codes: 0 if nothing is wrong or everything was repaired; 1 if something is wrong, or lost with --salvage.")]
pub(super) struct Doctor {
    /// Directory of the store; no other process may have it open
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Rewrite everything that is derived from the items
    #[arg(long)]
    repair: bool,

    /// Directory of a new store to copy everything intact into
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
        check_store(&self.data, NO_STORE_HINT)?;
        let report = self.with_progress(|watch| doctor::examine(&self.data, self.repair, watch))?;
        note_recovery(report.recovery);
        if let Some(error) = &report.unsealed {
            note(&format!(
                "nothing is lost, but the store could not be closed cleanly: {error}"
            ));
        }
        let output = self.output;
        output.either(&|w| write(w, &report), &|| print_report(&report))?;
        if report.is_repaired() {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "the store has faults: findings={} repaired={}{}",
            report.findings_total,
            report.repaired_total,
            if self.repair { "" } else { "; see --repair" }
        )))
    }

    fn salvage(&self, target: &Path) -> Result {
        let report = self.with_progress(|watch| doctor::salvage(&self.data, target, watch))?;
        self.output.either(&|w| write_salvaged(w, &report), &|| {
            print_salvaged(&report, target)
        })?;
        if report.is_complete() && report.findings.is_empty() {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "not everything could be salvaged: lost={} uncertain={} findings={}",
            report.lost_total,
            report.uncertain,
            report.findings.len()
        )))
    }

    /// Shows the progress of a check or a salvage.
    fn with_progress<T>(
        &self,
        work: impl FnOnce(&mut dyn FnMut(&Examined<'_>)) -> floe_store::Result<T>,
    ) -> Result<T> {
        let mut progress = Progress::new(!self.output.is_json());
        let done = work(&mut |examined| {
            progress.step(&step(examined));
            progress.at(examined.checked.entries, None);
        });
        progress.end();
        done.map_err(|error| open_failure(&error, IN_USE_HINT))
    }
}

fn print_salvaged(report: &SalvageReport, target: &Path) -> Result {
    let mut summary = Table::key_value();
    summary.entry("new store", target.display());
    for (name, count) in [
        ("tables", report.tables),
        ("items", report.items),
        ("all entries", report.entries),
        ("lost", report.lost_total),
        ("uncertain keys", report.uncertain),
    ] {
        summary.entry(name, grouped(count));
    }
    summary.print()?;
    for lost in &report.lost {
        print(format!("lost: {lost}"))?;
    }
    print_findings(&report.findings)
}

fn print_findings(findings: &[Finding]) -> Result {
    let mut findings = findings.iter();
    findings.try_for_each(|finding| print(finding.to_string()))
}

fn write_salvaged(w: &mut Writer, report: &SalvageReport) {
    object!(w;
        "tables": report.tables, "items": report.items, "entries": report.entries,
        "uncertain": report.uncertain, "lost_total": report.lost_total, "lost": report.lost,
        "findings": AsArray(&report.findings, write_finding)
    );
}

fn step(examined: &Examined<'_>) -> String {
    let step = match examined.stage {
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
        Some(table) => format!("{step} {table}"),
        None => step.to_owned(),
    }
}

fn print_report(report: &Report) -> Result {
    let (checked, dropped) = (&report.checked, report.recovery.dropped_bytes);
    let repaired = (!report.is_clean()).then(|| grouped(report.repaired_total));
    let mut summary = Table::key_value();
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
        summary.entry_if_some(name, text);
    }
    summary.print()?;
    print_findings(&report.findings)
}

fn write(w: &mut Writer, report: &Report) {
    let checked = &report.checked;
    object!(w;
        "tables": checked.tables, "items": checked.items, "index_entries": checked.index_entries,
        "expiry_entries": checked.expiry_entries, "change_records": checked.change_records,
        "entries": checked.entries, "file_bytes": checked.file_bytes,
        "dropped_bytes": report.recovery.dropped_bytes, "findings_total": report.findings_total,
        "repaired_total": report.repaired_total,
        "findings": AsArray(&report.findings, write_finding)
    );
}

fn write_finding(w: &mut Writer, finding: &Finding) {
    object!(w;
        "kind": AsText(&finding.kind), "what": finding.what, "table": finding.table,
        "index": finding.index, "key": finding.key, "repaired": finding.repaired
    );
}
