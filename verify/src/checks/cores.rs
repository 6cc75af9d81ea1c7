//! Parallel work on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::figures::ProgressPrinter;
use crate::Failure;

/// Runs the work once on each core, and waits for all.
pub(super) fn on_all_cores(work: impl Fn() -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(&work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.map_err(|_| Failure::broken("a thread of the check panicked"))?
        })
    })
}

/// Runs all jobs in parallel and combines their results. Prints progress in the name of the check.
pub(super) fn run_jobs<J: Sync, O, T: Default + Send>(
    check: &'static str,
    jobs: &[J],
    work: impl Fn(&J) -> Result<O, Failure> + Sync,
    take: impl Fn(&mut T, &J, O) + Sync,
    message: impl Fn(&T) -> String + Sync,
) -> Result<T, Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((T::default(), ProgressPrinter::new(check)));
    on_all_cores(|| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = work(job)?;
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let (total, progress) = &mut *results;
            take(total, job, outcome);
            progress.tick(|| message(total));
        }
        Ok(())
    })?;
    let (total, _) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(total)
}
