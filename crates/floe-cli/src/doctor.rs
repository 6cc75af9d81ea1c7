//! `floe doctor`: reads everything that is stored, reports what is wrong with it, repairs it on request, and copies what
//! is intact out of a store that cannot be opened.

use std::path::{Path, PathBuf};

use clap::Args;
use floe_local::doctor::{self, Finding, Progress as Examined, Report, SalvageReport, Stage};
use floe_store::json::Writer;

use super::out::progress::Progress;
use super::out::{Output, Table, bytes, grouped, print};
use super::place::check_store;
use super::{Failure, note, note_recovery};

const AFTER_HELP: &str = "\
Examples:
  floe doctor --data ./shop
  floe doctor --data ./shop --repair
  floe doctor --data ./shop --salvage ./shop-salvaged
  floe doctor --data ./shop --json | jq -r '.findings[].what'

Items are the truth. Entries of indexes, expiry and counters follow from them: they are worked out anew and compared, and \
with --repair made anew. What follows from nothing (items, change records, the catalog) is told and left alone.

--salvage copies everything intact into a new store, and lists what is lost. It only reads the damaged store, and needs \
neither its FORMAT file nor its lists of files: data/ is enough.

The exit code is 0 if nothing is wrong or all of it was repaired, and 1 if something is or, with --salvage, is lost.";

/// Examine a store, and repair it on request
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
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
    pub(super) fn run(&self) -> Result<(), Failure> {
        if let Some(target) = &self.salvage {
            return self.salvage(target);
        }
        check_store(&self.data)?;
        let mut progress = Progress::new(!self.output.json);
        let quiet = self.output.json;
        let examined = doctor::examine(&self.data, self.repair, |examined| {
            if !quiet {
                progress.step(&step(examined));
            }
            progress.at(examined.checked.entries, None);
        });
        progress.end();
        let report = examined.map_err(Failure::broken)?;
        note_recovery(report.recovery);
        if let Some(error) = &report.unsealed {
            note(&format!(
                "nothing is lost, but the store is as if its process had died: {error}"
            ));
        }
        self.output.tell(|w| write(w, &report), || tell(&report));
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
}

impl Doctor {
    fn salvage(&self, target: &Path) -> Result<(), Failure> {
        let mut progress = Progress::new(!self.output.json);
        let quiet = self.output.json;
        let salvaged = doctor::salvage(&self.data, target, |examined| {
            if !quiet {
                progress.step(&step(examined));
            }
            progress.at(examined.checked.entries, None);
        });
        progress.end();
        let report = salvaged.map_err(Failure::broken)?;
        self.output.tell(
            |w| write_salvaged(w, &report),
            || print_salvaged(&report, target),
        );
        if report.is_complete() && report.findings.is_empty() {
            Ok(())
        } else {
            Err(Failure::broken(format!(
                "not everything could be salvaged: lost={} uncertain={} findings={}",
                report.lost_total,
                report.uncertain,
                report.findings.len()
            )))
        }
    }
}

fn print_salvaged(report: &SalvageReport, target: &Path) {
    let mut facts = Table::of_facts();
    facts.fact("new store", target.display().to_string());
    facts.fact("tables", grouped(report.tables));
    facts.fact("items", grouped(report.items));
    facts.fact("all entries", grouped(report.entries));
    facts.fact("lost", grouped(report.lost_total));
    facts.fact("uncertain keys", grouped(report.uncertain));
    facts.print();
    for lost in &report.lost {
        print(format!("lost: {lost}"));
    }
    for finding in &report.findings {
        print(finding.to_string());
    }
}

fn write_salvaged(w: &mut Writer, report: &SalvageReport) {
    w.object(|w| {
        w.name("tables").number(report.tables);
        w.name("items").number(report.items);
        w.name("entries").number(report.entries);
        w.name("uncertain").number(report.uncertain);
        w.name("lost_total").number(report.lost_total);
        w.name("lost").array(|w| {
            for lost in &report.lost {
                w.string(lost);
            }
        });
        w.name("findings").array(|w| {
            for finding in &report.findings {
                write_finding(w, finding);
            }
        });
    });
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

fn tell(report: &Report) {
    let checked = &report.checked;
    let mut facts = Table::of_facts();
    facts.fact("tables", grouped(checked.tables));
    facts.fact("items", grouped(checked.items));
    facts.fact("index entries", grouped(checked.index_entries));
    facts.fact("change records", grouped(checked.change_records));
    facts.fact("all entries", grouped(checked.entries));
    facts.fact("files", bytes(checked.file_bytes));
    facts.fact("findings", grouped(report.findings_total));
    if report.recovery.dropped_bytes > 0 {
        facts.fact("dropped", bytes(report.recovery.dropped_bytes));
    }
    if !report.is_clean() {
        facts.fact("repaired", grouped(report.repaired_total));
    }
    facts.print();
    for finding in &report.findings {
        print(finding.to_string());
    }
}

fn write(w: &mut Writer, report: &Report) {
    let checked = &report.checked;
    w.object(|w| {
        w.name("tables").number(checked.tables);
        w.name("items").number(checked.items);
        w.name("index_entries").number(checked.index_entries);
        w.name("expiry_entries").number(checked.expiry_entries);
        w.name("change_records").number(checked.change_records);
        w.name("entries").number(checked.entries);
        w.name("file_bytes").number(checked.file_bytes);
        w.name("dropped_bytes")
            .number(report.recovery.dropped_bytes);
        w.name("findings_total").number(report.findings_total);
        w.name("repaired_total").number(report.repaired_total);
        w.name("findings").array(|w| {
            for finding in &report.findings {
                write_finding(w, finding);
            }
        });
    });
}

fn write_finding(w: &mut Writer, finding: &Finding) {
    w.object(|w| {
        w.name("kind").string(&finding.kind.to_string());
        w.name("what").string(&finding.what);
        for (name, value) in [
            ("table", &finding.table),
            ("index", &finding.index),
            ("key", &finding.key),
        ] {
            if let Some(value) = value {
                w.name(name).string(value);
            }
        }
        w.name("repaired").bool(finding.repaired);
    });
}
