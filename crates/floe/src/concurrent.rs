//! Futures that run concurrently in one task: a list of them, or one until a stop signal.

pub(crate) mod task_set;

use std::future::Future;
use std::pin::{Pin, pin};

use floe_store::BoxFuture;
use futures_util::future::{Either, select};
use futures_util::stream::iter;
use futures_util::{FutureExt as _, StreamExt as _};

/// Runs all futures with a maximum concurrency. Returns their outputs in the order of the futures.
///
/// The futures are boxed, because the compiler cannot prove that closures which create them are `Send` for every
/// lifetime.
pub(crate) async fn run_all<'a, T>(
    concurrency_max: usize,
    futures: Vec<BoxFuture<'a, T>>,
) -> Vec<T> {
    let numbered = |(index, future): (usize, BoxFuture<'a, T>)| {
        let number = move |output| (index, output);
        future.map(number)
    };
    let futures: Vec<_> = futures.into_iter().enumerate().map(numbered).collect();
    // Unordered, so that a slow future does not delay the start of later ones.
    let running = iter(futures).buffer_unordered(concurrency_max.max(1));
    let mut outputs: Vec<(usize, T)> = running.collect().await;
    outputs.sort_unstable_by_key(|(index, _)| *index);
    outputs.into_iter().map(|(_, output)| output).collect()
}

/// Runs a future until `stop` completes. Returns `None` and drops the future if `stop` completes first.
pub(crate) async fn run_until<F: Future>(
    stop: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
    future: F,
) -> Option<F::Output> {
    match select(stop, pin!(future)).await {
        Either::Left(_) => None,
        Either::Right((output, _)) => Some(output),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn run_all_limits_concurrency_and_keeps_order() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let futures = (0..20).map(|n| -> BoxFuture<'_, u32> {
            let (running, most) = (&running, &most);
            Box::pin(async move {
                let now = running.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(now, Ordering::Relaxed);
                for _ in 0..(20 - n) {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::Relaxed);
                n
            })
        });
        let outputs = run_all(4, futures.collect()).await;
        assert_eq!(outputs, (0..20).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::Relaxed), 4);
        let outputs = run_all(4, vec![Box::pin(ready(1)), Box::pin(ready(2))]);
        assert_eq!(outputs.await, [1, 2]);
    }

    #[tokio::test]
    async fn run_until_returns_whichever_completes_first() {
        assert_eq!(run_until(pin!(pending()), ready(7)).await, Some(7));
        assert_eq!(run_until(pin!(ready(())), pending::<u8>()).await, None);
    }
}
