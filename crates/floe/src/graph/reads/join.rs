//! Waiting for several requests at once.

use std::future::poll_fn;
use std::task::Poll;

use floe_store::BoxFuture;

/// How many requests are on their way at once.
const REQUESTS_MAX: usize = 16;

/// The answers of all, in their order. So many are waited for at once; when one is there, the next is begun.
pub(crate) async fn join_all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut waiting = futures.into_iter().enumerate();
    let mut begun: Vec<(usize, BoxFuture<'_, T>)> = Vec::new();
    poll_fn(|context| {
        loop {
            let free = REQUESTS_MAX - begun.len();
            begun.extend(waiting.by_ref().take(free));
            let before = begun.len();
            begun.retain_mut(|(at, future)| match future.as_mut().poll(context) {
                Poll::Ready(ready) => {
                    if let Some(answer) = answers.get_mut(*at) {
                        *answer = Some(ready);
                    }
                    false
                }
                Poll::Pending => true,
            });
            if begun.is_empty() && waiting.len() == 0 {
                return Poll::Ready(());
            }
            // Those that have come make room for others, which have to be polled, too.
            if begun.len() == before || waiting.len() == 0 {
                return Poll::Pending;
            }
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_come_in_the_order_of_the_requests() {
        let futures = (0..40).map(|at| -> BoxFuture<'_, usize> {
            Box::pin(async move {
                for _ in 0..(40 - at) % 7 {
                    tokio::task::yield_now().await;
                }
                at
            })
        });
        let answers = join_all(futures.collect()).await;
        assert_eq!(answers, (0..40).collect::<Vec<_>>());
    }
}
