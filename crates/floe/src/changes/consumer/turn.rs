//! One turn of an item: its next changes, one after the other, until they are done or parked.

use floe_store::Item;

use super::super::change::Change;
use super::super::handler::Failure;
use super::super::work::Work;
use super::Consumer;
use super::lease::Mine;
use super::notice::Notice;
use super::parked::{Parked, Parking, Removed};
use crate::error::{Error, ErrorKind, Result};

/// What a turn has come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) handled: u64,
    pub(super) parked: u64,
    pub(super) replayed: u64,
    /// Whether something of the item is parked after it.
    pub(super) is_parked: bool,
    /// Whether somebody else delivers by now.
    pub(super) is_fenced: bool,
}

/// A turn that somebody else has to end.
const FENCED: Turn = Turn {
    handled: 0,
    parked: 0,
    replayed: 0,
    is_parked: false,
    is_fenced: true,
};

impl Consumer {
    /// Handles changes of an item in their order. From the first on that does not get on, they are parked.
    pub(super) async fn turn(
        &self,
        mine: &Mine,
        works: Vec<Work>,
        mut is_parked: bool,
        room: usize,
    ) -> Result<Turn> {
        let mut turn = Turn::default();
        if is_parked && let Some(first) = works.first() {
            // Somebody may have taken away what it waits behind.
            is_parked = self.has_parked(first.change()).await?;
        }
        for mut work in works {
            let attempts = match is_parked {
                true => 0,
                false => self.attempt(&mut work).await,
            };
            if !is_parked && work.is_done() {
                turn.handled += 1;
                continue;
            }
            is_parked = true;
            if turn.parked >= room as u64 {
                return Err(self.too_many_parked());
            }
            match self.park(mine, &work, attempts).await? {
                Parking::Parked => turn.parked += 1,
                Parking::WasThere => {}
                Parking::Fenced => return Ok(FENCED),
            }
        }
        turn.is_parked = is_parked;
        Ok(turn)
    }

    /// Tries the parked changes of an item in their order, up to the first that does not get on.
    pub(super) async fn replay(&self, mine: &Mine, table: &str, keys: &Item) -> Result<Turn> {
        let mut turn = Turn::default();
        loop {
            let Some(parked) = self.first_parked(table, keys).await? else {
                return Ok(turn);
            };
            let left = self.router.work_left(&parked.change, &parked.handlers);
            if let Some(mut work) = left {
                let attempts = self.attempt(&mut work).await;
                if !work.is_done() {
                    turn.is_parked = true;
                    turn.is_fenced = !self.note_tried(mine, &parked, &work, attempts).await?;
                    return Ok(turn);
                }
            }
            // A sink must have it for good before it is forgotten.
            self.flush().await;
            match self.remove_parked(mine, &parked).await? {
                Removed::Fenced => return Ok(FENCED),
                Removed::Yes => turn.replayed += 1,
                Removed::No => {}
            }
            self.tell(&Notice::Replayed(&parked));
        }
    }

    /// Tries a change until it is done, or has to be parked. Tells how often.
    async fn attempt(&self, work: &mut Work) -> u32 {
        let attempts_max = self.options.attempts_max.max(1);
        for attempt in 1..attempts_max {
            if work.attempt(&self.router, Some(&self.db)).await || work.is_stuck() {
                return attempt;
            }
            let pause = self
                .options
                .backoff
                .pause(attempt, self.db.env().next_u64());
            let pause = pause.max(work.pause().unwrap_or_default());
            let pending = work.pending(&self.router);
            if let Some(first) = pending.first() {
                self.tell(&Notice::Retried {
                    change: work.change(),
                    handler: &first.name,
                    failure: &first.failure,
                    attempts: attempt,
                    pause,
                });
            }
            self.db.timer().sleep(pause).await;
        }
        work.attempt(&self.router, Some(&self.db)).await;
        attempts_max
    }

    async fn park(&self, mine: &Mine, work: &Work, attempts: u32) -> Result<Parking> {
        let mut pending = work.pending(&self.router);
        if attempts == 0 {
            let failure = Failure::new("an earlier change of the item is parked");
            pending.iter_mut().for_each(|p| p.failure = failure.clone());
        }
        let parked = self.parked();
        let mut patience = self.patience();
        loop {
            match parked.park(mine, work.change(), &pending, attempts).await {
                Ok(parking) => {
                    if parking == Parking::Parked {
                        let error = pending.first().map(|p| p.failure.to_string());
                        let error = error.unwrap_or_default();
                        self.tell(&Notice::Parked(work.change(), &error));
                    }
                    return Ok(parking);
                }
                Err(error) => patience.outlast(error).await?,
            }
        }
    }

    async fn has_parked(&self, change: &Change) -> Result<bool> {
        let first = self.first_parked(change.table(), change.keys()).await?;
        Ok(first.is_some())
    }

    async fn first_parked(&self, table: &str, keys: &Item) -> Result<Option<Parked>> {
        let parked = self.parked();
        let mut patience = self.patience();
        loop {
            match parked.first(table, keys).await {
                Ok(first) => return Ok(first),
                Err(error) => patience.outlast(error).await?,
            }
        }
    }

    async fn note_tried(
        &self,
        mine: &Mine,
        parked: &Parked,
        work: &Work,
        attempts: u32,
    ) -> Result<bool> {
        let pending = work.pending(&self.router);
        let all = self.parked();
        let mut patience = self.patience();
        loop {
            match all.tried(mine, parked, &pending, attempts).await {
                Ok(is_mine) => return Ok(is_mine),
                Err(error) => patience.outlast(error).await?,
            }
        }
    }

    async fn remove_parked(&self, mine: &Mine, parked: &Parked) -> Result<Removed> {
        let all = self.parked();
        let mut patience = self.patience();
        loop {
            match all.remove(&parked.id, Some(mine)).await {
                Ok(removed) => return Ok(removed),
                Err(error) => patience.outlast(error).await?,
            }
        }
    }

    /// Makes lasting what sinks have taken, however often it has to be tried.
    pub(super) async fn flush(&self) {
        let mut failures = 0;
        while let Err(failure) = self.router.flush().await {
            failures += 1;
            let error = Error::new(ErrorKind::Store, format!("a sink cannot keep: {failure}"));
            self.wait_after(&error, failures).await;
        }
    }

    fn too_many_parked(&self) -> Error {
        let message = format!(
            "too many changes are parked: consumer={} parked_max={}",
            self.name, self.options.parked_max
        );
        Error::new(ErrorKind::TooLarge, message)
    }
}
