//! An engine and the model side by side: each step is taken on both, and the answers compared.

use std::sync::Arc;

use floe_store::env::{Env, ManualClock, Timestamp};
use floe_store::op::*;
use floe_store::{Engine, Item};

use super::ModelEngine;
use super::answer::{Answer, query_pages, read_streams, scan_pages, sort_items};
use super::report::Report;
use super::step::Step;
use crate::Harness;

/// An answer that differs.
pub(super) struct Failure {
    /// The step that was answered, or the last one if the state after it differs.
    pub(super) step: usize,
    pub(super) expected: String,
    pub(super) actual: String,
}

/// An engine and the model, which have seen the same steps.
pub(super) struct Pair<H> {
    harness: H,
    model: Arc<ModelEngine>,
    clock: Arc<ManualClock>,
    /// Whether the engine may still be filling or removing an index in the background.
    unsettled: bool,
}

impl<H: Harness> Pair<H> {
    pub(super) fn new(harness: H) -> Self {
        let clock = harness.clock();
        let clock = clock.unwrap_or_else(|| ManualClock::at(Timestamp::default()));
        let model = ModelEngine::new(Env::manual(clock.clone(), 0));
        Self {
            harness,
            model: Arc::new(model),
            clock,
            unsettled: false,
        }
    }

    /// Takes a step on both sides and compares the answers.
    pub(super) async fn compare(
        &mut self,
        step: &Step,
        report: &mut Report,
    ) -> Result<(), Failure> {
        if self.unsettled && shows_indexes(step) {
            self.sweep().await?;
        }
        match step {
            Step::Advance(by) => {
                self.clock.advance(*by);
                Ok(())
            }
            Step::Sweep => self.sweep().await,
            Step::Reopen => {
                report.reopens += 1;
                self.reopen().await
            }
            Step::Scan(scan) => self.compare_scan(scan, report).await,
            Step::UpdateTable(_) => {
                self.unsettled = true;
                self.compare_answers(step, report).await
            }
            _ => self.compare_answers(step, report).await,
        }
    }

    async fn compare_answers(&self, step: &Step, report: &mut Report) -> Result<(), Failure> {
        let engine = self.harness.engine();
        let actual = answer(&*engine, step).await;
        let expected = answer(&*self.model, step).await;
        if let Answer::Pages(pages) = &expected {
            report.pages += pages.len();
        }
        report.errors += usize::from(expected.is_failed());
        report.tables += usize::from(matches!(step, Step::CreateTable(_)) && !expected.is_failed());
        same(&expected, &actual)
    }

    /// A scan goes in an order that the engine has chosen, so that order is learned first, from a scan
    /// that returns everything.
    async fn compare_scan(&self, scan: &Scan, report: &mut Report) -> Result<(), Failure> {
        let engine = self.harness.engine();
        let expected = answer(&*self.model, &Step::Scan(scan.clone())).await;
        if expected.is_failed() {
            report.errors += 1;
            let actual = answer(&*engine, &Step::Scan(scan.clone())).await;
            return same(&expected, &actual);
        }
        let order = self.learn_order(scan).await?;
        let known = scan
            .start_key
            .as_ref()
            .is_none_or(|start| order.contains(start));
        let actual = scan_pages(scan.clone(), async |scan| engine.scan(scan).await).await;
        if !known {
            // Where a key lies that no entry has is the engine's own; the pages need only end.
            return match actual {
                Answer::Pages(_) => Ok(()),
                other => same(&expected, &other),
            };
        }
        let model = &self.model;
        let expected = scan_pages(scan.clone(), async |scan| {
            model.scan_in_order(&scan, &order)
        })
        .await;
        if let Answer::Pages(pages) = &expected {
            report.pages += pages.len();
        }
        same(&expected, &actual)
    }

    /// The keys that a scan of this table, index and segment meets, in the engine's order. Compares the
    /// entries on the way.
    async fn learn_order(&self, scan: &Scan) -> Result<Vec<Item>, Failure> {
        let whole = Scan {
            index_name: scan.index_name.clone(),
            ..Scan::new(scan.table_name.clone())
        };
        let expected = scan_pages(whole.clone(), async |scan| self.model.scan(scan).await).await;
        let total = scan.segment.map_or(1, |segment| segment.total);
        let mut everything = Vec::new();
        let mut own = Vec::new();
        for index in 0..total {
            let segment = scan.segment.map(|segment| Segment { index, ..segment });
            let part = Scan {
                segment,
                ..whole.clone()
            };
            let engine = self.harness.engine();
            let actual = scan_pages(part, async |scan| engine.scan(scan).await).await;
            let Answer::Pages(pages) = actual else {
                return same(&expected, &actual).map(|()| Vec::new());
            };
            let items: Vec<Item> = pages.into_iter().flat_map(|page| page.items).collect();
            if scan.segment == segment {
                own.clone_from(&items);
            }
            everything.extend(items);
        }
        same(
            &sorted(expected),
            &sorted(Answer::Pages(vec![page_of(everything)])),
        )?;
        Ok(self.keys(scan, own).await)
    }

    /// The keys of entries, as the pages of a scan name them.
    async fn keys(&self, scan: &Scan, entries: Vec<Item>) -> Vec<Item> {
        let table = self.model.describe_table(scan.table_name.clone()).await;
        let Ok(table) = table.map(|table| table.definition) else {
            return Vec::new();
        };
        match scan.plan(&table) {
            Ok(plan) => entries.iter().map(|entry| plan.last_key(entry)).collect(),
            Err(_) => Vec::new(),
        }
    }

    async fn sweep(&mut self) -> Result<(), Failure> {
        self.unsettled = false;
        self.model.sweep();
        succeeded("sweep", self.harness.sweep().await)
    }

    pub(super) async fn reopen(&mut self) -> Result<(), Failure> {
        succeeded("reopen", self.harness.reopen().await)
    }

    /// Compares everything that can be read.
    pub(super) async fn compare_state(&mut self) -> Result<(), Failure> {
        if self.unsettled {
            self.sweep().await?;
        }
        let report = &mut Report::default();
        let list = Step::ListTables(ListTables::default());
        self.compare_answers(&list, report).await?;
        let names = match answer(&*self.model, &list).await {
            Answer::Tables(tables) => tables.table_names,
            _ => Vec::new(),
        };
        for name in names {
            self.compare_answers(&Step::DescribeTable(name.clone()), report)
                .await?;
            self.compare_scan(&Scan::new(name.clone()), report).await?;
            let table = self.model.describe_table(name.clone()).await;
            let indexes = table
                .map(|table| table.definition.indexes)
                .unwrap_or_default();
            for index in indexes {
                self.compare_scan(&Scan::new(name.clone()).index(index.name), report)
                    .await?;
            }
        }
        self.compare_answers(&Step::ReadStreams(1000), report).await
    }
}

/// Whether the answer to a step depends on how far an index is that was just added or removed. Other
/// steps go on meanwhile, so that items change while an index is being filled.
fn shows_indexes(step: &Step) -> bool {
    match step {
        Step::Query(query) => query.index_name.is_some(),
        Step::Scan(scan) => scan.index_name.is_some(),
        Step::CreateTable(_)
        | Step::DescribeTable(_)
        | Step::UpdateTable(_)
        | Step::DeleteTable(_)
        | Step::UpdateTimeToLive(_) => true,
        _ => false,
    }
}

/// What an engine answers to a step that is an operation.
async fn answer(engine: &dyn Engine, step: &Step) -> Answer {
    match step.clone() {
        Step::Get(get) => Answer::of(engine.get_item(get).await, Answer::get),
        Step::BatchGet(get) => Answer::of(engine.batch_get_item(get).await, Answer::batch_get),
        Step::TransactGet(get) => {
            Answer::of(engine.transact_get_items(get).await, Answer::transact_get)
        }
        Step::Write(write) => Answer::of(engine.write_item(write).await, Answer::write),
        Step::BatchWrite(write) => {
            Answer::of(engine.batch_write_item(write).await, Answer::batch_write)
        }
        Step::TransactWrite(write) => Answer::of(
            engine.transact_write_items(write).await,
            Answer::transact_write,
        ),
        Step::Query(query) => query_pages(engine, query).await,
        Step::Scan(scan) => scan_pages(scan, async |scan| engine.scan(scan).await).await,
        Step::CreateTable(create) => Answer::of(engine.create_table(create).await, Answer::table),
        Step::DescribeTable(name) => Answer::of(engine.describe_table(name).await, Answer::table),
        // While an index is being filled or removed, an engine may describe it either way.
        Step::UpdateTable(update) => {
            Answer::of(engine.update_table(update).await, |_| Answer::Done)
        }
        Step::DeleteTable(name) => Answer::of(engine.delete_table(name).await, Answer::table),
        Step::ListTables(list) => Answer::of(engine.list_tables(list).await, Answer::Tables),
        Step::UpdateTimeToLive(ttl) => {
            Answer::of(engine.update_time_to_live(ttl).await, Answer::table)
        }
        Step::UpdateTags(tags) => Answer::of(engine.update_tags(tags).await, |()| Answer::Done),
        Step::ListStreams(list) => Answer::of(engine.list_streams(list).await, |page| {
            Answer::stream_page(&page)
        }),
        Step::ReadStreams(limit) => read_streams(engine, limit).await,
        Step::Advance(_) | Step::Sweep | Step::Reopen => Answer::Done,
    }
}

fn same(expected: &Answer, actual: &Answer) -> Result<(), Failure> {
    if expected == actual {
        return Ok(());
    }
    let (expected, actual) = (format!("{expected:?}"), format!("{actual:?}"));
    let pairs = expected.chars().zip(actual.chars());
    let difference = pairs.take_while(|(a, b)| a == b).count();
    Err(Failure {
        step: 0,
        expected: around(&expected, difference),
        actual: around(&actual, difference),
    })
}

/// The text, or the part of a long one around a position.
fn around(text: &str, position: usize) -> String {
    const SHOWN: usize = 3000;
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let start = position.saturating_sub(SHOWN / 2);
    let part: String = text.chars().skip(start).take(SHOWN).collect();
    let (before, after) = (start > 0, start + SHOWN < text.chars().count());
    format!(
        "{}{part}{}",
        if before { "… " } else { "" },
        if after { " …" } else { "" }
    )
}

fn succeeded(what: &str, result: floe_store::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| Failure {
        step: 0,
        expected: format!("{what} succeeds"),
        actual: format!("{error:?}"),
    })
}

fn page_of(items: Vec<Item>) -> Page {
    Page {
        items,
        ..Page::default()
    }
}

/// The items of pages as one page, in an order of their own.
fn sorted(answer: Answer) -> Answer {
    match answer {
        Answer::Pages(pages) => {
            let mut items: Vec<Item> = pages.into_iter().flat_map(|page| page.items).collect();
            sort_items(&mut items);
            Answer::Pages(vec![page_of(items)])
        }
        other => other,
    }
}
