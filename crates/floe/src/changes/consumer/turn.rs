//! One turn of an item: its next changes, one after the other, until they are done or parked.

use std::sync::atomic::Ordering;

use floe_store::Item;

use super::super::handler::Failure;
use super::super::work::Work;
use super::Consumer;
use super::notice::Notice;
use super::parked::{Parked, Written};
use super::tables::Tables;
use crate::delivery::{Attempts, End, StoreRetry, Timeout, outlast};
use crate::error::{Error, ErrorKind, Result};

/// What is to be done in a turn of an item.
pub(super) enum Task {
    /// Its next change.
    Handle(Work),
    /// What is parked of it is tried again.
    Replay,
}

impl Tables<'_> {
    /// Does what is to be done about an item, in its order. From the first change on that does not get on, they are
    /// parked.
    pub(super) async fn take_turn(
        &self,
        table: &str,
        keys: &Item,
        tasks: Vec<Task>,
        is_parked: &mut bool,
    ) -> Result<End> {
        // Somebody may have taken away what it waits behind.
        *is_parked = *is_parked && self.consumer.first_parked(table, keys).await?.is_some();
        for task in tasks {
            let end = match task {
                Task::Replay => self.replay(table, keys, is_parked).await?,
                Task::Handle(work) => self.handle(work, is_parked).await?,
            };
            if end == End::Fenced {
                return Ok(end);
            }
        }
        Ok(End::Done)
    }

    /// Handles a change, or parks it.
    async fn handle(&self, mut work: Work, is_parked: &mut bool) -> Result<End> {
        let (consumer, mut attempts) = (self.consumer, 0);
        if !*is_parked {
            attempts = consumer.attempt(&mut work).await;
            if work.is_done() {
                self.count(|ran| ran.handled += 1);
                return Ok(End::Done);
            }
        }
        *is_parked = true;
        let parked_max = consumer.options.parked_max;
        if self.parked_count.load(Ordering::Relaxed) >= parked_max {
            let message = format!(
                "too many changes are parked: consumer={} parked_max={parked_max}",
                consumer.name
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let mut pending = work.pending(&consumer.router);
        if attempts == 0 {
            let failure = Failure::new("an earlier change of the item is parked");
            pending.iter_mut().for_each(|p| p.failure = failure.clone());
        }
        let (all, token) = (consumer.parked(), &self.token);
        let park = || all.park(token, work.change(), &pending, attempts);
        match outlast(consumer, true, || Box::pin(park())).await? {
            Written::Fenced => return Ok(End::Fenced),
            Written::Unchanged => {}
            Written::Done => {
                self.count(|ran| ran.parked += 1);
                self.parked_count.fetch_add(1, Ordering::Relaxed);
                let error = pending.first().map(|p| p.failure.to_string());
                let error = error.unwrap_or_default();
                consumer.tell(&Notice::Parked(work.change(), &error));
            }
        }
        Ok(End::Done)
    }

    /// Tries the parked changes of an item in their order, up to the first that does not get on.
    async fn replay(&self, table: &str, keys: &Item, is_parked: &mut bool) -> Result<End> {
        let (consumer, all, token) = (self.consumer, self.consumer.parked(), &self.token);
        while let Some(parked) = consumer.first_parked(table, keys).await? {
            let left = consumer.router.work_left(&parked.change, &parked.handlers);
            if let Some(mut work) = left {
                let attempts = consumer.attempt(&mut work).await;
                if !work.is_done() {
                    *is_parked = true;
                    let pending = work.pending(&consumer.router);
                    let noted = || all.tried(token, &parked, &pending, attempts);
                    let is_noted = outlast(consumer, true, || Box::pin(noted())).await?;
                    return Ok(if is_noted { End::Done } else { End::Fenced });
                }
            }
            // A sink must have it for good before it is forgotten.
            consumer.flush().await;
            let removed = || all.remove(&parked.id, Some(token));
            match outlast(consumer, true, || Box::pin(removed())).await? {
                Written::Fenced => return Ok(End::Fenced),
                Written::Unchanged => {}
                Written::Done => {
                    self.count(|ran| ran.replayed += 1);
                    self.parked_count.fetch_sub(1, Ordering::Relaxed);
                }
            }
            consumer.tell(&Notice::Replayed(&parked));
        }
        *is_parked = false;
        Ok(End::Done)
    }
}

impl Consumer {
    /// Tries a change until it is done, or has to be parked. Tells how often it has failed.
    async fn attempt(&self, work: &mut Work) -> u32 {
        let (mut attempts, timeout) = (Attempts::new(self), Some(Timeout::of(self)));
        while !work.attempt(&self.router, Some(&self.db), timeout).await {
            let pause = attempts.fail(work.pause().unwrap_or_default());
            let Some(pause) = pause.filter(|_| !work.is_stuck()) else {
                break;
            };
            if let Some(first) = work.pending(&self.router).first() {
                self.tell(&Notice::Retried {
                    change: work.change(),
                    handler: &first.name,
                    failure: &first.failure,
                    attempts: attempts.failed(),
                    pause,
                });
            }
            attempts.wait(pause).await;
        }
        attempts.failed()
    }

    async fn first_parked(&self, table: &str, keys: &Item) -> Result<Option<Parked>> {
        let all = self.parked();
        outlast(self, true, || Box::pin(all.first(table, keys))).await
    }

    /// Makes lasting what sinks have taken, however often it has to be tried.
    pub(super) async fn flush(&self) {
        let mut retry = StoreRetry::new(self, true);
        while let Err(failure) = self.router.flush(Some(Timeout::of(self))).await {
            let error = Error::new(ErrorKind::Store, format!("a sink cannot keep: {failure}"));
            retry.wait(&error).await;
        }
    }
}
