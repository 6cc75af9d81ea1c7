//! Futures side by side, in one task: several at once, or one until another is done.

pub(crate) mod crowd;

use std::future::Future;
use std::pin::{Pin, pin};

use floe_store::BoxFuture;
use futures_util::future::{Either, select};
use futures_util::stream::iter;
use futures_util::{FutureExt as _, StreamExt as _};

/// Runs all futures, at most so many at once. Gives what they come to, in their order.
///
/// They come in boxes: of closures that make them the compiler cannot tell that they are `Send` for every lifetime.
pub(crate) async fn all<'a, T>(at_once_max: usize, futures: Vec<BoxFuture<'a, T>>) -> Vec<T> {
    let numbered = |(place, future): (usize, BoxFuture<'a, T>)| {
        let number = move |output| (place, output);
        future.map(number)
    };
    let futures: Vec<_> = futures.into_iter().enumerate().map(numbered).collect();
    // One that takes long keeps no place from those behind it.
    let running = iter(futures).buffer_unordered(at_once_max.max(1));
    let mut done: Vec<(usize, T)> = running.collect().await;
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, output)| output).collect()
}

/// Runs a future, unless another is done first. It is dropped then.
pub(crate) async fn unless<F: Future>(
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
    async fn so_many_run_at_once_and_the_order_is_kept() {
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
        let outputs = all(4, futures.collect()).await;
        assert_eq!(outputs, (0..20).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::Relaxed), 4);
        let done = all(4, vec![Box::pin(ready(1)), Box::pin(ready(2))]);
        assert_eq!(done.await, [1, 2]);
    }

    #[tokio::test]
    async fn what_is_done_first_counts() {
        assert_eq!(unless(pin!(pending()), ready(7)).await, Some(7));
        assert_eq!(unless(pin!(ready(())), pending::<u8>()).await, None);
    }
}
