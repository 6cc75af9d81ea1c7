//! Work on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::figures::Progress;
use crate::Failure;

/// Does the work once on each core, until all have come to their end.
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

/// Does all jobs, several at once, and adds up what they come to. Shows as progress of the check how far it is.
pub(super) fn sum_up<J: Sync, O, T: Default + Send>(
    check: &'static str,
    jobs: &[J],
    work: impl Fn(&J) -> Result<O, Failure> + Sync,
    take: impl Fn(&mut T, &J, O) + Sync,
    how_far: impl Fn(&T) -> String + Sync,
) -> Result<T, Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((T::default(), Progress::new(check)));
    on_all_cores(|| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = work(job)?;
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let (total, progress) = &mut *results;
            take(total, job, outcome);
            progress.tick(|| how_far(total));
        }
        Ok(())
    })?;
    let (total, _) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(total)
}
