//! The property run: random sequences on an engine and on the model, compared answer by answer.

use floe_store::Clock;

use super::generate::generate;
use super::pair::{Failure, Pair};
use super::report::{Mismatch, Report};
use super::shrink::shrink;
use super::step::Step;
use crate::Harness;

/// How many operations one engine gets before a fresh one takes over: enough for state to build up, few
/// enough to shrink quickly.
const SEQUENCE_STEPS: usize = 250;

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
        let _announced = Announced { seed, sequence };
        let harness = make(own_seed).await;
        let start = harness.clock().map(|clock| clock.now()).unwrap_or_default();
        let length = SEQUENCE_STEPS.min(operations - report.operations);
        let can = harness.engine().capabilities();
        let steps = generate(own_seed, start, length).into_iter();
        let steps: Vec<Step> = steps.map(|step| step.within(&can)).collect();
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

/// Tells where a run is when the engine panics, which ends it without a report.
struct Announced {
    seed: u64,
    sequence: usize,
}

impl Drop for Announced {
    #[expect(clippy::print_stderr, reason = "a panic leaves no other way to tell")]
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
    // What was acknowledged is also there after reopening.
    pair.reopen().await.map_err(at_last)?;
    pair.compare_state().await.map_err(at_last)
}
