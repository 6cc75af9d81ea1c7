//! The property run: random sequences on an engine and on the model, compared answer by answer.

use std::fmt;
use std::sync::Arc;

use floe_store::env::{Env, ManualClock, Timestamp};
use floe_store::op::*;
use floe_store::{Clock, Engine, Item};

use super::ModelEngine;
use super::answer::{Answer, query_pages, read_streams, scan_pages, sort_items};
use super::generate::generate;
use super::shrink::shrink;
use super::step::Step;
use crate::Harness;

/// How many operations one engine gets before a fresh one takes over: enough for state to build up, few
/// enough to shrink quickly.
const SEQUENCE_STEPS: usize = 250;

/// Figures of a property run without a mismatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Operations whose answers were compared.
    pub operations: usize,
    /// Of them, those that failed, on both sides with the same error.
    pub errors: usize,
    /// Sequences, each on a fresh engine.
    pub sequences: usize,
    /// Tables that were made.
    pub tables: usize,
    /// Pages of queries and scans.
    pub pages: usize,
    /// How often an engine was reopened.
    pub reopens: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, errors, sequences, tables, pages, reopens } = self;
        write!(
            f,
            "operations={operations} errors={errors} sequences={sequences} tables={tables} \
             pages={pages} reopens={reopens}"
        )
    }
}

/// An answer that differs from the model's, with the shortest sequence found that leads to it.
#[derive(Clone, PartialEq)]
pub struct Mismatch {
    /// The seed of the run.
    pub seed: u64,
    /// The sequence, counted from 0.
    pub sequence: usize,
    /// The operations of the run up to the mismatch.
    pub operations: usize,
    /// The steps that lead to it; the last one was answered differently, or the state after it differs.
    pub steps: Vec<Step>,
    /// What the model answered.
    pub expected: String,
    /// What the engine answered.
    pub actual: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, sequence, operations, .. } = self;
        writeln!(
            f,
            "the engine and the model disagree: seed={seed} sequence={sequence} operations={operations}"
        )?;
        for (n, step) in self.steps.iter().enumerate() {
            writeln!(f, "    {n}. {step}")?;
        }
        writeln!(f, "  expected: {}", self.expected)?;
        write!(f, "  actual:   {}", self.actual)
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Mismatch {}

/// Sends so many random operations to engines made by `make`, and compares each answer with the
/// model's. The same seed gives the same operations.
///
/// The harness must own its clock, so that engine and model live at the same moments.
///
/// # Errors
///
/// The first mismatch, after the steps that it does not need have been left out.
pub async fn run_property<H: Harness>(
    make: impl AsyncFn(u64) -> H,
    seed: u64,
    operations: usize,
) -> Result<Report, Box<Mismatch>> {
    let mut report = Report::default();
    while report.operations < operations {
        let sequence = report.sequences;
        let own_seed = seed.wrapping_mul(1_000_003).wrapping_add(sequence as u64);
        let harness = make(own_seed).await;
        let start = harness.clock().map(|clock| clock.now()).unwrap_or_default();
        let length = SEQUENCE_STEPS.min(operations - report.operations);
        let steps = generate(own_seed, start, length);
        if let Err(failure) = run_steps(harness, &steps, &mut report).await {
            let operations = report.operations;
            let steps = steps.into_iter().take(failure.step + 1).collect();
            let (steps, failure) = minimize(&make, own_seed, steps, failure).await;
            return Err(Box::new(Mismatch {
                seed,
                sequence,
                operations,
                steps,
                expected: failure.expected,
                actual: failure.actual,
            }));
        }
        report.sequences += 1;
    }
    Ok(report)
}

/// An answer that differs.
struct Failure {
    /// The step that was answered, or the last one if the state after it differs.
    step: usize,
    expected: String,
    actual: String,
}

async fn minimize<H: Harness>(
    make: &impl AsyncFn(u64) -> H,
    seed: u64,
    steps: Vec<Step>,
    failure: Failure,
) -> (Vec<Step>, Failure) {
    let attempt = async |steps: &[Step]| {
        run_steps(make(seed).await, steps, &mut Report::default()).await
    };
    let steps = shrink(steps, async |steps| attempt(steps).await.is_err()).await;
    let failure = attempt(&steps).await.err().unwrap_or(failure);
    (steps, failure)
}

/// Runs steps on an engine and on a fresh model.
async fn run_steps<H: Harness>(
    harness: H,
    steps: &[Step],
    report: &mut Report,
) -> Result<(), Failure> {
    let mut pair = Pair::new(harness);
    for (n, step) in steps.iter().enumerate() {
        pair.compare(step, report).await.map_err(|failure| Failure { step: n, ..failure })?;
        report.operations += 1;
    }
    let last = steps.len().saturating_sub(1);
    let whole = pair.compare_state().await;
    whole.map_err(|failure| Failure { step: last, ..failure })?;
    // What was acknowledged is also there after reopening.
    pair.reopen().await.map_err(|failure| Failure { step: last, ..failure })?;
    let whole = pair.compare_state().await;
    whole.map_err(|failure| Failure { step: last, ..failure })
}

/// An engine and the model, which have seen the same steps.
struct Pair<H> {
    harness: H,
    model: Arc<ModelEngine>,
    clock: Arc<ManualClock>,
}

impl<H: Harness> Pair<H> {
    fn new(harness: H) -> Self {
        let clock = harness.clock();
        let clock = clock.unwrap_or_else(|| ManualClock::at(Timestamp::default()));
        let model = ModelEngine::new(Env::manual(clock.clone(), 0));
        Self {
            harness,
            model: Arc::new(model),
            clock,
        }
    }

    /// Takes a step on both sides and compares the answers.
    async fn compare(&mut self, step: &Step, report: &mut Report) -> Result<(), Failure> {
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
                self.compare_answers(step, report).await?;
                // An engine may fill a new index in the background.
                self.sweep().await
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
        report.tables +=
            usize::from(matches!(step, Step::CreateTable(_)) && !expected.is_failed());
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
        let known = scan.start_key.as_ref().is_none_or(|start| order.contains(start));
        let actual = scan_pages(scan.clone(), async |scan| engine.scan(scan).await).await;
        if !known {
            // Where a key lies that no entry has is the engine's own; the pages need only end.
            return match actual {
                Answer::Pages(_) => Ok(()),
                other => same(&expected, &other),
            };
        }
        let model = &self.model;
        let expected = scan_pages(scan.clone(), async |scan| model.scan_in_order(&scan, &order)).await;
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
            let part = Scan { segment, ..whole.clone() };
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
        same(&sorted(expected), &sorted(Answer::Pages(vec![page_of(everything)])))?;
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

    async fn sweep(&self) -> Result<(), Failure> {
        self.model.sweep();
        succeeded("sweep", self.harness.sweep().await)
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        succeeded("reopen", self.harness.reopen().await)
    }

    /// Compares everything that can be read.
    async fn compare_state(&self) -> Result<(), Failure> {
        let report = &mut Report::default();
        let list = Step::ListTables(ListTables::default());
        self.compare_answers(&list, report).await?;
        let names = match answer(&*self.model, &list).await {
            Answer::Tables(tables) => tables.table_names,
            _ => Vec::new(),
        };
        for name in names {
            self.compare_answers(&Step::DescribeTable(name.clone()), report).await?;
            self.compare_scan(&Scan::new(name.clone()), report).await?;
            let table = self.model.describe_table(name.clone()).await;
            let indexes = table.map(|table| table.definition.indexes).unwrap_or_default();
            for index in indexes {
                self.compare_scan(&Scan::new(name.clone()).index(index.name), report).await?;
            }
        }
        self.compare_answers(&Step::ReadStreams(1000), report).await
    }
}

/// What an engine answers to a step that is an operation.
async fn answer(engine: &dyn Engine, step: &Step) -> Answer {
    match step.clone() {
        Step::Get(get) => Answer::of(engine.get_item(get).await, Answer::Get),
        Step::BatchGet(get) => Answer::of(engine.batch_get_item(get).await, Answer::batch_get),
        Step::TransactGet(get) => {
            Answer::of(engine.transact_get_items(get).await, Answer::transact_get)
        }
        Step::Write(write) => Answer::of(engine.write_item(write).await, Answer::Write),
        Step::BatchWrite(write) => {
            Answer::of(engine.batch_write_item(write).await, Answer::batch_write)
        }
        Step::TransactWrite(write) => {
            Answer::of(engine.transact_write_items(write).await, Answer::transact_write)
        }
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
        Step::ListStreams(list) => {
            Answer::of(engine.list_streams(list).await, |page| Answer::stream_page(&page))
        }
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
    format!("{}{part}{}", if before { "… " } else { "" }, if after { " …" } else { "" })
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
