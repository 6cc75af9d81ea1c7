//! The property run: random sequences of steps on an engine and on the model.

use floe_store::Clock;

use super::generate::generate;
use super::pair::{Failure, Pair};
use super::report::{Mismatch, Report};
use super::shrink::shrink;
use super::step::Step;
use crate::Harness;

/// The number of operations of one engine: enough to build up state, few enough to shrink quickly.
const SEQUENCE_STEPS: usize = 250;

/// Sends this number of random operations to engines created by `make` and compares each response with the model's.
/// The same seed generates the same operations.
///
/// The harness must have a manual clock, which the model shares.
///
/// # Errors
///
/// The first mismatch, with the steps that it needs.
pub async fn run_property<H: Harness>(
    make: impl AsyncFn(u64) -> H,
    seed: u64,
    operations: usize,
) -> Result<Report, Box<Mismatch>> {
    let mut report = Report::default();
    while report.operations < operations {
        let sequence = report.sequences;
        let own_seed = seed.wrapping_mul(1_000_003).wrapping_add(sequence as u64);
        let _panic_reporter = PanicReporter { seed, sequence };
        let harness = make(own_seed).await;
        let start = harness.clock().map(|clock| clock.now()).unwrap_or_default();
        let length = SEQUENCE_STEPS.min(operations - report.operations);
        let can = harness.engine().capabilities();
        let steps = generate(own_seed, start, length).into_iter();
        let steps: Vec<Step> = steps.map(|step| step.without_unsupported(&can)).collect();
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

/// Prints the position of the run if the engine panics, because then there is no report.
struct PanicReporter {
    seed: u64,
    sequence: usize,
}

impl Drop for PanicReporter {
    #[expect(
        clippy::print_stderr,
        reason = "after a panic, there is no other way to report"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, sequence } = self;
            eprintln!("the engine panicked: seed={seed} sequence={sequence}");
        }
    }
}

async fn minimize<H: Harness>(
    make: &impl AsyncFn(u64) -> H,
    seed: u64,
    steps: Vec<Step>,
    failure: Failure,
) -> (Vec<Step>, Failure) {
    let attempt =
        async |steps: &[Step]| run_steps(make(seed).await, steps, &mut Report::default()).await;
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
        pair.compare(step, report)
            .await
            .map_err(|failure| Failure { step: n, ..failure })?;
        report.operations += 1;
    }
    let step = steps.len().saturating_sub(1);
    let at_last = |failure| Failure { step, ..failure };
    pair.compare_state().await.map_err(at_last)?;
    // Acknowledged writes are durable.
    pair.reopen().await.map_err(at_last)?;
    pair.compare_state().await.map_err(at_last)
}
