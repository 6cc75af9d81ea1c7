//! Audits an open directory against what is known of it: items against the ledger, indexes against the items, the items
//! against a replay of the change log.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use floe_store::expr::KeyCondition;
use floe_store::op::{Page, Query, Scan};
use floe_store::table::{IndexDef, IndexKind};
use floe_store::{Engine, Error, Item, Result, TableDef};

use super::audit_report::{AuditReport, Items};
use super::directory::{self, Settings};
use super::ledger::{Ledger, StateCheck};
use super::preload::Preload;
use super::replay::Replay;
use super::runtime;
use super::test_table::{GROUPS, Key, TABLE, group};
use crate::Failure;

/// Which part of the table to audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The whole table.
    Everything,
    /// The partitions in the ledger, without the preloaded items.
    Named,
}

/// Opens a directory without preloaded items, audits all of it, runs the doctor, and closes it.
pub(super) fn audit_directory(
    folder: &Path,
    ledger: &Ledger,
    replay: &mut Replay,
) -> Result<(AuditReport, Items), Failure> {
    let opened = directory::open(folder, Settings::IDLE)?;
    let engine = opened.engine();
    let audit = Audit {
        engine: &engine,
        ledger,
        preload: Preload::default(),
        scope: Scope::Everything,
    };
    let (mut findings, items) = runtime()?.block_on(audit.run(replay))?;
    opened.run_doctor(&mut findings)?;
    drop(engine);
    opened.close()?;
    Ok((findings, items))
}

/// An audit of one engine.
pub(super) struct Audit<'a> {
    pub(super) engine: &'a Arc<dyn Engine>,
    pub(super) ledger: &'a Ledger,
    pub(super) preload: Preload,
    pub(super) scope: Scope,
}

impl Audit<'_> {
    /// Runs the audit. Returns the items found, without preloaded ones. `replay` keeps the log position, so that the
    /// next audit continues from there.
    pub(super) async fn run(&self, replay: &mut Replay) -> Result<(AuditReport, Items)> {
        let mut findings = AuditReport::default();
        let table = match self.engine.describe_table(TABLE.to_owned()).await {
            Ok(description) => description.definition,
            // The process may have died before it created the table.
            Err(Error::ResourceNotFound(_)) => {
                self.check_items(&Items::new(), &mut findings);
                return Ok((findings, Items::new()));
            }
            Err(error) => return Err(error),
        };
        let items = self
            .read(None, |item| Some(item.clone()), &mut findings)
            .await?;
        self.check_items(&items, &mut findings);
        for index in &table.indexes {
            self.compare(&table, index, &items, &mut findings).await?;
        }
        replay.read_new_records(self.engine, &mut findings).await?;
        replay.compare(&items, &mut findings);
        Ok((findings, items))
    }

    fn check_items(&self, items: &Items, findings: &mut AuditReport) {
        let now_secs = self.engine.now().as_secs();
        let keys: BTreeSet<&Key> = self.ledger.keys().chain(items.keys()).collect();
        for key in keys {
            let found = items.get(key);
            match self.ledger.classify(key, found, now_secs) {
                StateCheck::Expected => continue,
                StateCheck::Lost => findings.lost += 1,
                StateCheck::Phantom => findings.phantom += 1,
            }
            let expected = self.ledger.describe(key);
            findings.note(format!(
                "key={key} found={} expected={expected}",
                brief(found)
            ));
        }
        for item in items
            .values()
            .filter(|item| self.ledger.is_torn(item, items))
        {
            findings.torn += 1;
            findings.note(format!(
                "partially applied transaction: {}",
                brief(Some(item))
            ));
        }
    }

    async fn compare(
        &self,
        table: &TableDef,
        index: &IndexDef,
        items: &Items,
        findings: &mut AuditReport,
    ) -> Result<()> {
        let project = |item: &Item| index.holds(item).then(|| index.project(&table.key, item));
        let expected: Items = items
            .iter()
            .filter_map(|(key, item)| Some((key.clone(), project(item)?)))
            .collect();
        let entries = self.read(Some(index), project, findings).await?;
        let keys: BTreeSet<&Key> = expected.keys().chain(entries.keys()).collect();
        for key in keys {
            let (wanted, found) = (expected.get(key), entries.get(key));
            if wanted != found {
                findings.index_mismatch += 1;
                let (name, found, wanted) = (&index.name, brief(found), brief(wanted));
                findings.note(format!(
                    "index={name} key={key} found={found} expected={wanted}"
                ));
            }
        }
        Ok(())
    }

    /// Reads the table or an index. Preloaded items are compared at once, in the form that `view` gives them, and not
    /// kept: there may be millions.
    async fn read(
        &self,
        index: Option<&IndexDef>,
        view: impl Fn(&Item) -> Option<Item>,
        findings: &mut AuditReport,
    ) -> Result<Items> {
        let mut items = Items::new();
        let mut loaded = 0;
        for mut request in self.requests(index) {
            loop {
                let page = request.next(self.engine).await?;
                for item in page.items {
                    match Key::of(&item) {
                        Some(key) if self.preload.holds(&key) => {
                            loaded += u64::from(view(&self.preload.item(&key)) == Some(item));
                        }
                        Some(key) => {
                            if items.insert(key.clone(), item).is_some() {
                                findings.index_mismatch += 1;
                                findings.note(format!("returned twice: key={key}"));
                            }
                        }
                        None => {
                            findings.phantom += 1;
                            findings.note(format!("item without a key: {}", brief(Some(&item))));
                        }
                    }
                }
                if !request.next_page(page.last_key) {
                    break;
                }
            }
        }
        if self.scope == Scope::Everything {
            let wanted = self.preload.count(|item| view(item).is_some());
            let wrong = wanted.abs_diff(loaded);
            match index {
                None => findings.lost += wrong,
                Some(_) => findings.index_mismatch += wrong,
            }
        }
        Ok(items)
    }

    fn requests(&self, index: Option<&IndexDef>) -> Vec<Request> {
        let name = index.map(|index| index.name.as_str());
        match (self.scope, index.map(|index| index.kind)) {
            (Scope::Everything, _) => vec![Request::scan(name)],
            (Scope::Named, Some(IndexKind::Global)) => (0..GROUPS)
                .map(|number| Request::query(name, "group", &group(number)))
                .collect(),
            (Scope::Named, None | Some(IndexKind::Local)) => {
                let partitions: BTreeSet<_> = self.ledger.keys().map(|k| &k.partition).collect();
                let partitions = partitions.into_iter();
                partitions.map(|p| Request::query(name, "pk", p)).collect()
            }
        }
    }
}

/// A paged read request.
enum Request {
    Scan(Scan),
    Query(Query),
}

impl Request {
    fn scan(index: Option<&str>) -> Self {
        let mut scan = Scan::new(TABLE);
        scan.consistent = index.is_none();
        scan.index_name = index.map(str::to_owned);
        Self::Scan(scan)
    }

    fn query(index: Option<&str>, attribute: &str, value: &str) -> Self {
        let mut query = Query::new(TABLE, KeyCondition::partition(attribute, value));
        query.consistent = index.is_none();
        query.index_name = index.map(str::to_owned);
        Self::Query(query)
    }

    async fn next(&self, engine: &Arc<dyn Engine>) -> Result<Page> {
        match self {
            Self::Scan(scan) => engine.scan(scan.clone()).await,
            Self::Query(query) => engine.query(query.clone()).await,
        }
    }

    /// Moves to the next page. Returns whether there is one.
    fn next_page(&mut self, last_key: Option<Item>) -> bool {
        let is_more = last_key.is_some();
        match self {
            Self::Scan(scan) => scan.start_key = last_key,
            Self::Query(query) => query.start_key = last_key,
        }
        is_more
    }
}

/// An item without its payload.
fn brief(item: Option<&Item>) -> String {
    let Some(item) = item else {
        return "nothing".to_owned();
    };
    let mut item = item.clone();
    item.remove("payload");
    format!("{item:?}")
}
