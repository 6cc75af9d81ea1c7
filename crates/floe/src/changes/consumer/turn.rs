//! The turn of an item: its next changes, one at a time, until they are handled or dead letters.

use std::sync::atomic::Ordering;

use floe_store::Item;

use super::super::handler::Failure;
use super::super::work::ChangeWork;
use super::ChangeConsumer;
use super::dead_letters::{DeadLetter, WriteOutcome};
use super::notice::ConsumerNotice;
use super::tables::Tables;
use crate::delivery::{Attempts, RunOutcome, StoreRetry, Timeout, retry_store};
use crate::error::{Error, ErrorKind, Result};

/// A task in the turn of an item.
pub(super) enum Task {
    /// Handle the next change.
    Handle(ChangeWork),
    /// Replay the dead letters of the item.
    Replay,
}

impl Tables<'_> {
    /// Runs the tasks of an item in order. After the first failed change, all later ones become dead letters.
    pub(super) async fn take_turn(
        &self,
        table: &str,
        keys: &Item,
        tasks: Vec<Task>,
        has_dead_letters: &mut bool,
    ) -> Result<RunOutcome> {
        // The dead letters that it waits behind may have been discarded.
        *has_dead_letters = *has_dead_letters
            && self
                .consumer
                .first_dead_letter(table, keys)
                .await?
                .is_some();
        for task in tasks {
            let end = match task {
                Task::Replay => self.replay(table, keys, has_dead_letters).await?,
                Task::Handle(work) => self.handle(work, has_dead_letters).await?,
            };
            if end == RunOutcome::Fenced {
                return Ok(end);
            }
        }
        Ok(RunOutcome::Completed)
    }

    /// Handles a change, or makes it a dead letter.
    async fn handle(
        &self,
        mut work: ChangeWork,
        has_dead_letters: &mut bool,
    ) -> Result<RunOutcome> {
        let (consumer, mut attempts) = (self.consumer, 0);
        if !*has_dead_letters {
            attempts = consumer.attempt(&mut work).await;
            if work.is_done() {
                self.count(|summary| summary.handled += 1);
                return Ok(RunOutcome::Completed);
            }
        }
        *has_dead_letters = true;
        let dead_letters_max = consumer.options.dead_letters_max;
        if self.dead_letter_count.load(Ordering::Relaxed) >= dead_letters_max {
            let message = format!(
                "too many dead letters: consumer={} dead_letters_max={dead_letters_max}",
                consumer.name
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let mut pending = work.pending(&consumer.router);
        if attempts == 0 {
            let failure = Failure::new("an earlier change of the item is a dead letter");
            pending.iter_mut().for_each(|p| p.failure = failure.clone());
        }
        let (all, token) = (consumer.dead_letters(), &self.token);
        let park = || all.add(token, work.change(), &pending, attempts);
        match retry_store(consumer, true, || Box::pin(park())).await? {
            WriteOutcome::Fenced => return Ok(RunOutcome::Fenced),
            WriteOutcome::Unchanged => {}
            WriteOutcome::Applied => {
                self.count(|summary| summary.dead_letters += 1);
                self.dead_letter_count.fetch_add(1, Ordering::Relaxed);
                let error = pending.first().map(|p| p.failure.to_string());
                let error = error.unwrap_or_default();
                consumer.notify(&ConsumerNotice::DeadLetter(work.change(), &error));
            }
        }
        Ok(RunOutcome::Completed)
    }

    /// Replays the dead letters of an item in order, up to the first failure.
    async fn replay(
        &self,
        table: &str,
        keys: &Item,
        has_dead_letters: &mut bool,
    ) -> Result<RunOutcome> {
        let (consumer, all, token) = (self.consumer, self.consumer.dead_letters(), &self.token);
        while let Some(dead_letter) = consumer.first_dead_letter(table, keys).await? {
            let left = consumer
                .router
                .remaining_work(&dead_letter.change, &dead_letter.handlers);
            if let Some(mut work) = left {
                let attempts = consumer.attempt(&mut work).await;
                if !work.is_done() {
                    *has_dead_letters = true;
                    let pending = work.pending(&consumer.router);
                    let record = || all.record_attempts(token, &dead_letter, &pending, attempts);
                    let is_recorded = retry_store(consumer, true, || Box::pin(record())).await?;
                    return Ok(if is_recorded {
                        RunOutcome::Completed
                    } else {
                        RunOutcome::Fenced
                    });
                }
            }
            // Sinks must have stored the change before the dead letter is removed.
            consumer.flush().await;
            let removed = || all.remove(&dead_letter.id, Some(token));
            match retry_store(consumer, true, || Box::pin(removed())).await? {
                WriteOutcome::Fenced => return Ok(RunOutcome::Fenced),
                WriteOutcome::Unchanged => {}
                WriteOutcome::Applied => {
                    self.count(|summary| summary.replayed += 1);
                    self.dead_letter_count.fetch_sub(1, Ordering::Relaxed);
                }
            }
            consumer.notify(&ConsumerNotice::Replayed(&dead_letter));
        }
        *has_dead_letters = false;
        Ok(RunOutcome::Completed)
    }
}

impl ChangeConsumer {
    /// Attempts a change until it is completed or must become a dead letter. Returns the number of failed attempts.
    async fn attempt(&self, work: &mut ChangeWork) -> u32 {
        let (mut attempts, timeout) = (Attempts::new(self), Some(Timeout::of(self)));
        while !work.attempt(&self.router, Some(&self.db), timeout).await {
            let pause = attempts.fail(work.pause().unwrap_or_default());
            let Some(pause) = pause.filter(|_| !work.is_permanent()) else {
                break;
            };
            if let Some(first) = work.pending(&self.router).first() {
                self.notify(&ConsumerNotice::Retried {
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

    async fn first_dead_letter(&self, table: &str, keys: &Item) -> Result<Option<DeadLetter>> {
        let all = self.dead_letters();
        retry_store(self, true, || Box::pin(all.first(table, keys))).await
    }

    /// Flushes sinks, and retries until it succeeds.
    pub(super) async fn flush(&self) {
        let mut retry = StoreRetry::new(self, true);
        while let Err(failure) = self.router.flush(Some(Timeout::of(self))).await {
            let error = Error::new(
                ErrorKind::Store,
                format!("a sink failed to flush: {failure}"),
            );
            retry.wait(&error).await;
        }
    }
}
