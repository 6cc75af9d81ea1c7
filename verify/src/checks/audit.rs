//! Looks over an opened directory and compares it with what is known of it: items with the ledger,
//! indexes with the items, the items with a replay of the change log.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use floe_store::expr::KeyCondition;
use floe_store::op::{Page, Query, Scan};
use floe_store::table::{IndexDef, IndexKind};
use floe_store::{Engine, Error, Item, Result, TableDef};

use super::directory::{self, Settings};
use super::findings::{Findings, Items};
use super::ledger::{Finding, Ledger};
use super::preload::Preload;
use super::replay::Replay;
use super::runtime;
use super::stage::{GROUPS, Key, TABLE, group};
use crate::Failure;

/// How much of the table to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of it.
    Everything,
    /// The partitions that the ledger names, but not what was loaded in advance.
    Named,
}

/// Opens a directory on which nothing was loaded in advance, looks all over it, lets the doctor look
/// as well, and closes it.
pub(super) fn look_over(
    folder: &Path,
    ledger: &Ledger,
    replay: &mut Replay,
) -> Result<(Findings, Items), Failure> {
    let opened = directory::open(folder, Settings::IDLE)?;
    let engine = opened.engine();
    let audit = Audit {
        engine: &engine,
        ledger,
        preload: Preload::default(),
        scope: Scope::Everything,
    };
    let (mut findings, items) = runtime()?.block_on(audit.run(replay))?;
    opened.ask_doctor(&mut findings)?;
    drop(engine);
    opened.close()?;
    Ok((findings, items))
}

/// One look over an engine.
pub(super) struct Audit<'a> {
    pub(super) engine: &'a Arc<dyn Engine>,
    pub(super) ledger: &'a Ledger,
    pub(super) preload: Preload,
    pub(super) scope: Scope,
}

impl Audit<'_> {
    /// Looks, and returns the items that were found beside those loaded in advance. What is read of
    /// the log is remembered in `replay`, so that the next look reads on from there.
    pub(super) async fn run(&self, replay: &mut Replay) -> Result<(Findings, Items)> {
        let mut findings = Findings::default();
        let table = match self.engine.describe_table(TABLE.to_owned()).await {
            Ok(description) => description.definition,
            // The process may have come to its end before it had made the table.
            Err(Error::ResourceNotFound(_)) => {
                self.judge(&Items::new(), &mut findings);
                return Ok((findings, Items::new()));
            }
            Err(error) => return Err(error),
        };
        let items = self
            .read(None, |item| Some(item.clone()), &mut findings)
            .await?;
        self.judge(&items, &mut findings);
        for index in &table.indexes {
            self.compare(&table, index, &items, &mut findings).await?;
        }
        replay.read_on(self.engine, &mut findings).await?;
        replay.compare(&items, &mut findings);
        Ok((findings, items))
    }

    fn judge(&self, items: &Items, findings: &mut Findings) {
        let now_secs = self.engine.now().as_secs();
        let keys: BTreeSet<&Key> = self.ledger.keys().chain(items.keys()).collect();
        for key in keys {
            let found = items.get(key);
            match self.ledger.judge(key, found, now_secs) {
                Finding::Fine => continue,
                Finding::Lost => findings.lost += 1,
                Finding::Phantom => findings.phantom += 1,
            }
            let told = self.ledger.tell(key);
            findings.note(format!("key={key} found={} told={told}", brief(found)));
        }
        for item in items
            .values()
            .filter(|item| self.ledger.is_torn(item, items))
        {
            findings.torn += 1;
            findings.note(format!("half a transaction: {}", brief(Some(item))));
        }
    }

    async fn compare(
        &self,
        table: &TableDef,
        index: &IndexDef,
        items: &Items,
        findings: &mut Findings,
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
                    "index={name} key={key} found={found} wanted={wanted}"
                ));
            }
        }
        Ok(())
    }

    /// Reads the table or an index. Items that were loaded in advance are compared at once, by what
    /// `view` shows of them, and not kept: there may be millions.
    async fn read(
        &self,
        index: Option<&IndexDef>,
        view: impl Fn(&Item) -> Option<Item>,
        findings: &mut Findings,
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
                                findings.note(format!("read twice: key={key}"));
                            }
                        }
                        None => {
                            findings.phantom += 1;
                            findings.note(format!("without a key: {}", brief(Some(&item))));
                        }
                    }
                }
                if !request.go_on(page.last_key) {
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

/// A read that goes on page by page.
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

    /// Whether there is another page.
    fn go_on(&mut self, last_key: Option<Item>) -> bool {
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
