//! `floe doctor`: reads everything that is stored, says what is wrong with it, and repairs it on request.

use std::path::PathBuf;

use clap::Args;
use floe_local::doctor::{self, Finding, Progress as Examined, Report, Stage};

use super::Failure;
use super::out::progress::Progress;
use super::out::{Output, Table, bytes, grouped, print};
use super::place::check_store;
use crate::wire::json::Writer;

const AFTER_HELP: &str = "\
Examples:
  floe doctor --data ./shop
  floe doctor --data ./shop --repair
  floe doctor --data ./shop --json | jq -r '.findings[].what'

Items are the truth. Entries of indexes, expiry and counters follow from them: they are worked out anew and compared, and \
with --repair made anew. What follows from nothing (items, change records, the catalog) is told and left alone.

The exit code is 0 if nothing is wrong or all of it was repaired, and 1 if something is.";

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

    #[command(flatten)]
    output: Output,
}

impl Doctor {
    pub(super) fn run(&self) -> Result<(), Failure> {
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

fn step(examined: &Examined<'_>) -> String {
    let what = match examined.stage {
        Stage::Files => "comparing files with their checksums",
        Stage::Catalog => "reading the catalog",
        Stage::Table => "reading the table",
        Stage::Compare => "comparing entry by entry",
        Stage::ChangeLog => "reading the change log",
        Stage::Tokens => "reading the tokens",
        Stage::Spaces => "looking for leftovers",
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
