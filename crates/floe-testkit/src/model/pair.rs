//! Runs each step on an engine and on the model, and compares the responses.

use std::sync::Arc;

use floe_store::env::{Env, ManualClock, Timestamp};
use floe_store::op::*;
use floe_store::{Engine, Item};

use super::ModelEngine;
use super::report::Report;
use super::response::{Response, query_pages, read_streams, scan_pages, sort_items};
use super::step::Step;
use crate::Harness;

/// A difference between an engine and the model.
pub(super) struct Failure {
    /// The step with the different response, or the last step if the state after it differs.
    pub(super) step: usize,
    pub(super) expected: String,
    pub(super) actual: String,
}

/// An engine and the model, after the same steps.
pub(super) struct Pair<H> {
    harness: H,
    model: Arc<ModelEngine>,
    clock: Arc<ManualClock>,
    /// Whether the engine may still be building or removing an index in the background.
    index_pending: bool,
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
            index_pending: false,
        }
    }

    /// Runs a step on both and compares the responses.
    pub(super) async fn compare(
        &mut self,
        step: &Step,
        report: &mut Report,
    ) -> Result<(), Failure> {
        if self.index_pending && depends_on_indexes(step) {
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
                self.index_pending = true;
                self.compare_answers(step, report).await
            }
            _ => self.compare_answers(step, report).await,
        }
    }

    async fn compare_answers(&self, step: &Step, report: &mut Report) -> Result<(), Failure> {
        let engine = self.harness.engine();
        let actual = execute(&*engine, step).await;
        let expected = execute(&*self.model, step).await;
        if let Response::Pages(pages) = &expected {
            report.pages += pages.len();
        }
        report.errors += usize::from(expected.is_failed());
        report.tables += usize::from(matches!(step, Step::CreateTable(_)) && !expected.is_failed());
        ensure_equal(&expected, &actual)
    }

    /// An engine chooses the order of its scans, so the order is determined first, by a scan that returns
    /// everything.
    async fn compare_scan(&self, scan: &Scan, report: &mut Report) -> Result<(), Failure> {
        let engine = self.harness.engine();
        let expected = execute(&*self.model, &Step::Scan(scan.clone())).await;
        if expected.is_failed() {
            report.errors += 1;
            let actual = execute(&*engine, &Step::Scan(scan.clone())).await;
            return ensure_equal(&expected, &actual);
        }
        let order = self.scan_order(scan).await?;
        let known = scan
            .start_key
            .as_ref()
            .is_none_or(|start| order.contains(start));
        let actual = scan_pages(scan.clone(), async |scan| engine.scan(scan).await).await;
        if !known {
            // Only the engine knows the position of a key without an entry, so the pages must only end.
            return match actual {
                Response::Pages(_) => Ok(()),
                other => ensure_equal(&expected, &other),
            };
        }
        let model = &self.model;
        let expected = scan_pages(scan.clone(), async |scan| {
            model.scan_in_order(&scan, &order)
        })
        .await;
        if let Response::Pages(pages) = &expected {
            report.pages += pages.len();
        }
        ensure_equal(&expected, &actual)
    }

    /// The keys that a scan of this table, index and segment finds, in the engine's order. Compares the entries
    /// with the model's.
    async fn scan_order(&self, scan: &Scan) -> Result<Vec<Item>, Failure> {
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
            let Response::Pages(pages) = actual else {
                return ensure_equal(&expected, &actual).map(|()| Vec::new());
            };
            let items: Vec<Item> = pages.into_iter().flat_map(|page| page.items).collect();
            if scan.segment == segment {
                own.clone_from(&items);
            }
            everything.extend(items);
        }
        ensure_equal(
            &sorted(expected),
            &sorted(Response::Pages(vec![page_of(everything)])),
        )?;
        Ok(self.keys(scan, own).await)
    }

    /// The keys of entries, as in the last keys of pages.
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
        self.index_pending = false;
        self.model.sweep();
        ensure_success("sweep", self.harness.sweep().await)
    }

    pub(super) async fn reopen(&mut self) -> Result<(), Failure> {
        ensure_success("reopen", self.harness.reopen().await)
    }

    /// Compares everything that can be read.
    pub(super) async fn compare_state(&mut self) -> Result<(), Failure> {
        if self.index_pending {
            self.sweep().await?;
        }
        let report = &mut Report::default();
        let list = Step::ListTables(ListTables::default());
        self.compare_answers(&list, report).await?;
        let names = match execute(&*self.model, &list).await {
            Response::Tables(tables) => tables.table_names,
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

/// Whether the response to a step depends on the progress of an index that was just added or removed. Other steps
/// run meanwhile, so that items change while an index is built.
fn depends_on_indexes(step: &Step) -> bool {
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

/// Runs an operation on an engine.
async fn execute(engine: &dyn Engine, step: &Step) -> Response {
    match step.clone() {
        Step::Get(get) => Response::of(engine.get_item(get).await, Response::get),
        Step::BatchGet(get) => Response::of(engine.batch_get_item(get).await, Response::batch_get),
        Step::TransactGet(get) => {
            Response::of(engine.transact_get_items(get).await, Response::transact_get)
        }
        Step::Write(write) => Response::of(engine.write_item(write).await, Response::write),
        Step::BatchWrite(write) => {
            Response::of(engine.batch_write_item(write).await, Response::batch_write)
        }
        Step::TransactWrite(write) => Response::of(
            engine.transact_write_items(write).await,
            Response::transact_write,
        ),
        Step::Query(query) => query_pages(engine, query).await,
        Step::Scan(scan) => scan_pages(scan, async |scan| engine.scan(scan).await).await,
        Step::CreateTable(create) => {
            Response::of(engine.create_table(create).await, Response::table)
        }
        Step::DescribeTable(name) => {
            Response::of(engine.describe_table(name).await, Response::table)
        }
        // While an index is built or removed, its description is not determined.
        Step::UpdateTable(update) => {
            Response::of(engine.update_table(update).await, |_| Response::Done)
        }
        Step::DeleteTable(name) => Response::of(engine.delete_table(name).await, Response::table),
        Step::ListTables(list) => Response::of(engine.list_tables(list).await, Response::Tables),
        Step::UpdateTimeToLive(ttl) => {
            Response::of(engine.update_time_to_live(ttl).await, Response::table)
        }
        Step::UpdateTags(tags) => Response::of(engine.update_tags(tags).await, |()| Response::Done),
        Step::ListStreams(list) => Response::of(engine.list_streams(list).await, |page| {
            Response::stream_page(&page)
        }),
        Step::ReadStreams(limit) => read_streams(engine, limit).await,
        Step::Advance(_) | Step::Sweep | Step::Reopen => Response::Done,
    }
}

fn ensure_equal(expected: &Response, actual: &Response) -> Result<(), Failure> {
    if expected == actual {
        return Ok(());
    }
    let (expected, actual) = (format!("{expected:?}"), format!("{actual:?}"));
    let pairs = expected.chars().zip(actual.chars());
    let difference = pairs.take_while(|(a, b)| a == b).count();
    Err(Failure {
        step: 0,
        expected: excerpt(&expected, difference),
        actual: excerpt(&actual, difference),
    })
}

/// The text, or the part of a long text around a position.
fn excerpt(text: &str, position: usize) -> String {
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

fn ensure_success(what: &str, result: floe_store::Result<()>) -> Result<(), Failure> {
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

/// The items of all pages as one sorted page.
fn sorted(response: Response) -> Response {
    match response {
        Response::Pages(pages) => {
            let mut items: Vec<Item> = pages.into_iter().flat_map(|page| page.items).collect();
            sort_items(&mut items);
            Response::Pages(vec![page_of(items)])
        }
        other => other,
    }
}
