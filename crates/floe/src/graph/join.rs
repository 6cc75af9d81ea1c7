//! Waiting for several requests at once.

use std::future::poll_fn;
use std::task::Poll;

use floe_store::BoxFuture;

/// How many requests are on their way at once.
const REQUESTS_MAX: usize = 16;

/// The answers of all, in their order, some at a time.
pub(super) async fn join_all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut answers = Vec::with_capacity(futures.len());
    let mut futures = futures.into_iter();
    loop {
        let mut some: Vec<_> = futures
            .by_ref()
            .take(REQUESTS_MAX)
            .map(|future| (future, None))
            .collect();
        if some.is_empty() {
            return answers;
        }
        poll_fn(|context| {
            let mut is_done = true;
            for (future, answer) in &mut some {
                if answer.is_some() {
                    continue;
                }
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => *answer = Some(ready),
                    Poll::Pending => is_done = false,
                }
            }
            match is_done {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        answers.extend(some.into_iter().filter_map(|(_, answer)| answer));
    }
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
