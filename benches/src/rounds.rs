//! Common parts of benchmarks: a runtime, an engine, and rounds of concurrent tasks.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use floe_local::LocalEngine;
use floe_store::Engine;
use tokio::runtime::Runtime;

use crate::Fallible;
use crate::measure::Rate;

/// An error that can be sent between tasks.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

pub(crate) type TaskResult<T> = Result<T, Failure>;

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The runtime of all measurements.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
}

/// The embedded engine in a directory, or in memory.
pub(crate) fn engine(folder: Option<&Path>) -> Fallible<Arc<dyn Engine>> {
    Ok(match folder {
        Some(folder) => Arc::new(LocalEngine::open(folder)?),
        None => Arc::new(LocalEngine::memory()?),
    })
}

/// A round. It ends for all tasks when the first of them notices that its length has passed.
#[derive(Clone)]
pub(crate) struct Round {
    start: Instant,
    length: Duration,
    is_over: Arc<AtomicBool>,
}

impl Round {
    /// Whether the round is over. Call it before each step.
    pub(crate) fn is_over(&self) -> bool {
        if self.start.elapsed() >= self.length {
            self.is_over.store(true, Ordering::Relaxed);
        }
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Runs all tasks for a round. Each returns its number of steps.
pub(crate) async fn run_tasks<T, F>(
    length: Duration,
    tasks: impl Iterator<Item = T>,
    work: impl Fn(T, Round) -> F,
) -> TaskResult<Rate>
where
    F: Future<Output = TaskResult<u64>> + Send + 'static,
{
    let round = Round {
        start: Instant::now(),
        length,
        is_over: Arc::default(),
    };
    let tasks: Vec<_> = tasks
        .map(|task| tokio::spawn(work(task, round.clone())))
        .collect();
    let mut operations = 0;
    for task in tasks {
        operations += task.await??;
    }
    Ok(Rate {
        operations,
        elapsed: round.start.elapsed(),
    })
}
