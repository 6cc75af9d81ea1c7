//! Futures side by side, in one task: several at once, or one until another is done.

pub(crate) mod crowd;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use floe_store::BoxFuture;

/// Runs all futures, at most so many at once. Gives what they come to, in their order.
///
/// They come in boxes: of closures that make them the compiler cannot tell that they are `Send` for every lifetime.
pub(crate) async fn all<T>(at_once_max: usize, futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut waiting = futures.into_iter().enumerate();
    let mut running: Vec<(usize, BoxFuture<'_, T>)> = Vec::new();
    let mut done: Vec<(usize, T)> = Vec::new();
    poll_fn(|context| {
        loop {
            let before = done.len();
            let free = at_once_max.max(1).saturating_sub(running.len());
            running.extend(waiting.by_ref().take(free));
            running.retain_mut(|(place, future)| match future.as_mut().poll(context) {
                Poll::Ready(output) => {
                    done.push((*place, output));
                    false
                }
                Poll::Pending => true,
            });
            if done.len() == before {
                break;
            }
        }
        match running.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, output)| output).collect()
}

/// Runs a future, unless another is done first. It is dropped then.
pub(crate) async fn unless<F: Future>(
    mut stop: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
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
