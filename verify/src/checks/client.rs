//! One client of the writing processes: endless conditional writes and transactions on the stage,
//! each announced before it is sent and reported after its answer.
//!
//! Three sorts of keys: a client's own ones, on which it knows the version by heart; shared ones,
//! which all clients update at once; and trios, three keys in three partitions that are only ever
//! written together by a transaction.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::env::SeededRandom;
use floe_store::op::{
    DeleteItem, GetItem, PutItem, TransactGet, TransactGetItems, TransactWrite, TransactWriteItems,
    UpdateItem, WriteItem,
};
use floe_store::{Engine, Error, Item};

use super::record::{Operation, Record, Reporter};
use super::stage::{BULKY_STAMPS, Key, State, Step, TABLE, stands_at, version_and_stamp};

const OWN_KEYS: u64 = 24;
const SHARED_KEYS: u64 = 16;
const TRIOS: u64 = 24;
/// Items that expire do so within so many seconds.
const EXPIRY_SECS: u64 = 3;

/// The numbers that tell the operations of one process from those of all others on the same
/// directory.
#[derive(Debug)]
pub(super) struct Round {
    number: u64,
    next: AtomicU64,
    first_stamp: u64,
}

impl Round {
    /// Rounds of one directory are numbered upwards from 1. The items of a bulky one are large.
    pub(super) const fn new(number: u64, is_bulky: bool) -> Self {
        Self {
            number,
            next: AtomicU64::new(1),
            first_stamp: number * 1_000_000_000 + if is_bulky { BULKY_STAMPS } else { 0 },
        }
    }

    fn stamp(&self) -> u64 {
        self.first_stamp + self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Above all versions of earlier rounds, which a key that is not there cannot tell.
    const fn version_floor(&self) -> u64 {
        self.number * 1_000_000
    }
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The engine acknowledged a write.
    Acked,
    /// A condition did not hold.
    Refused,
    /// The engine failed.
    Failed,
}

/// A client.
pub(super) struct Client {
    engine: Arc<dyn Engine>,
    reporter: Arc<Reporter>,
    round: Arc<Round>,
    random: SeededRandom,
    number: u64,
    own: HashMap<Key, Known>,
    /// A planted bug: writes of own keys are reported before the engine has answered.
    pub(super) acks_early: bool,
}

/// A key as the client last saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    version: u64,
    is_there: bool,
    /// It is there and will not expire.
    is_lasting: bool,
    /// Nothing has happened since that would make it necessary to look again.
    is_sure: bool,
}

impl Known {
    fn condition(self) -> floe_store::expr::Condition {
        stands_at(self.is_there.then_some(self.version))
    }
}

impl Client {
    /// The client of this number; what it does follows from the seed and the answers it gets.
    pub(super) fn new(
        engine: Arc<dyn Engine>,
        reporter: Arc<Reporter>,
        round: Arc<Round>,
        number: u64,
        seed: u64,
    ) -> Self {
        let random = SeededRandom::new(super::stage::mixed(seed ^ number));
        Self {
            engine,
            reporter,
            round,
            random,
            number,
            own: HashMap::new(),
            acks_early: false,
        }
    }

    /// Does one operation.
    ///
    /// # Errors
    ///
    /// When nobody listens to the reports any more.
    pub(super) async fn step(&mut self) -> io::Result<Outcome> {
        match self.random.below(100) {
            0..20 => self.write_own(State::Set, false).await,
            20..50 => self.write_own(State::Set, true).await,
            50..58 => self.write_own(State::Absent, false).await,
            58..63 => {
                let expires = self.engine.now().as_secs() + self.random.below(EXPIRY_SECS);
                self.write_own(State::Expiring(expires), false).await
            }
            63..80 => self.update_shared().await,
            _ => self.write_trio().await,
        }
    }

    /// Reads its own keys once more: each must stand where its last acknowledged write left it.
    pub(super) async fn look_again(&self) -> io::Result<()> {
        for (key, known) in self.own.iter().filter(|(_, known)| known.is_sure) {
            let Some(found) = self.look(key).await? else {
                continue;
            };
            // What has expired may be gone.
            let is_fine = match found.is_there {
                true => found.version == known.version,
                false => !known.is_lasting,
            };
            if !is_fine {
                let message = format!("a read shows another state: key={key} {found:?} {known:?}");
                self.tell(&Record::Broken(message))?;
            }
        }
        Ok(())
    }

    async fn write_own(&mut self, state: State, by_update: bool) -> io::Result<Outcome> {
        let key = Key::new(format!("own-{}", self.number), self.random.below(OWN_KEYS));
        let known = match self.own.get(&key) {
            Some(known) if known.is_sure => *known,
            seen => {
                // An item that has expired takes its version with it, and versions only grow.
                let floor = seen.map_or(0, |seen| seen.version);
                let Some(known) = self.look(&key).await? else {
                    return Ok(Outcome::Failed);
                };
                Known {
                    version: known.version.max(floor),
                    ..known
                }
            }
        };
        // There is nothing to remove where nothing is.
        let state = if known.is_there || state != State::Absent {
            state
        } else {
            State::Set
        };
        self.write(key, known, state, by_update).await
    }

    async fn update_shared(&mut self) -> io::Result<Outcome> {
        let key = Key::new("shared", self.random.below(SHARED_KEYS));
        let Some(known) = self.look(&key).await? else {
            return Ok(Outcome::Failed);
        };
        self.write(key, known, State::Set, true).await
    }

    async fn write(
        &mut self,
        key: Key,
        known: Known,
        state: State,
        by_update: bool,
    ) -> io::Result<Outcome> {
        let step = self.next_step(known.version, state);
        let write = single(&key, step, known, by_update);
        let operation = Operation {
            stamp: step.stamp,
            effects: vec![(key, step)],
        };
        self.tell(&Record::Intent(operation.clone()))?;
        let early = self.acks_early && self.is_own(&operation);
        if early {
            self.tell(&Record::Acked(operation.stamp))?;
        }
        let result = self.engine.write_item(write).await.map(drop);
        if early {
            return Ok(Outcome::Acked);
        }
        self.settle(operation, result)
    }

    async fn write_trio(&mut self) -> io::Result<Outcome> {
        let number = self.random.below(TRIOS);
        let keys = [0, 1, 2].map(|member| Key::new(format!("trio-{member}"), number));
        let Some(known) = self.look_at_trio(&keys).await? else {
            return Ok(Outcome::Failed);
        };
        let step = self.next_step(known.version, State::Set);
        let by_update = self.random.below(2) == 0;
        let actions = keys
            .iter()
            .map(|key| match single(key, step, known, by_update) {
                WriteItem::Put(put) => TransactWrite::Put(put),
                WriteItem::Update(update) => TransactWrite::Update(update),
                WriteItem::Delete(delete) => TransactWrite::Delete(delete),
            });
        let input = TransactWriteItems::new(actions).token(format!("trio-{}", step.stamp));
        let operation = Operation {
            stamp: step.stamp,
            effects: keys.map(|key| (key, step)).into(),
        };
        self.tell(&Record::Intent(operation.clone()))?;
        let result = self.engine.transact_write_items(input).await.map(drop);
        self.settle(operation, result)
    }

    /// Reads a key; `None` if the read failed.
    async fn look(&self, key: &Key) -> io::Result<Option<Known>> {
        let input = GetItem::new(TABLE, key.attributes());
        let result = self.engine.get_item(input).await;
        self.known(result.map(|output| output.item))
    }

    async fn look_at_trio(&self, keys: &[Key; 3]) -> io::Result<Option<Known>> {
        let gets = keys
            .each_ref()
            .map(|key| TransactGet::new(TABLE, key.attributes()));
        let result = self
            .engine
            .transact_get_items(TransactGetItems::new(gets))
            .await;
        let result = result.map(|output| output.items);
        if let Ok(items) = &result {
            let faces: Vec<_> = items
                .iter()
                .map(|i| i.as_ref().and_then(version_and_stamp))
                .collect();
            if faces.windows(2).any(|pair| pair.first() != pair.last()) {
                let message = format!("a snapshot shows half a transaction: {keys:?} {faces:?}");
                self.tell(&Record::Broken(message))?;
            }
        }
        self.known(result.map(|items| items.into_iter().flatten().next()))
    }

    fn known(&self, result: floe_store::Result<Option<Item>>) -> io::Result<Option<Known>> {
        let item = match result {
            Ok(item) => item,
            Err(error) => {
                self.tell(&Record::ReadFailed(format!("{error:?}")))?;
                return Ok(None);
            }
        };
        let version = item
            .as_ref()
            .and_then(version_and_stamp)
            .map(|(version, _)| version);
        Ok(Some(Known {
            version: version.unwrap_or(self.round.version_floor()),
            is_there: version.is_some(),
            is_lasting: item.is_some_and(|item| !item.contains("expires")),
            is_sure: true,
        }))
    }

    fn next_step(&self, version: u64, state: State) -> Step {
        Step {
            version: version + 1,
            stamp: self.round.stamp(),
            state,
        }
    }

    fn settle(
        &mut self,
        operation: Operation,
        result: floe_store::Result<()>,
    ) -> io::Result<Outcome> {
        let stamp = operation.stamp;
        let is_own = self.is_own(&operation);
        for (key, step) in operation.effects.into_iter().filter(|_| is_own) {
            let known = Known {
                version: step.version,
                is_there: step.state != State::Absent,
                is_lasting: step.state == State::Set,
                is_sure: result.is_ok(),
            };
            self.own.insert(key, known);
        }
        let (record, outcome) = match result {
            Ok(()) => (Record::Acked(stamp), Outcome::Acked),
            Err(error) if is_refusal(&error) => (Record::Refused(stamp), Outcome::Refused),
            Err(error) => (Record::Failed(stamp, format!("{error:?}")), Outcome::Failed),
        };
        self.tell(&record)?;
        Ok(outcome)
    }

    fn is_own(&self, operation: &Operation) -> bool {
        let own = format!("own-{}", self.number);
        operation
            .effects
            .iter()
            .all(|(key, _)| key.partition == own)
    }

    fn tell(&self, record: &Record) -> io::Result<()> {
        self.reporter.tell(record)
    }
}

/// Whether the engine looked at the operation and decided against it.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::ConditionalCheckFailed { .. }
            | Error::TransactionCanceled { .. }
            | Error::TransactionConflict
    )
}

/// The write that takes a key from what is known of it to the step.
fn single(key: &Key, step: Step, known: Known, by_update: bool) -> WriteItem {
    let condition = known.condition();
    match step.item(key) {
        None => DeleteItem::new(TABLE, key.attributes())
            .condition(condition)
            .into(),
        Some(_) if by_update && step.state == State::Set => {
            UpdateItem::new(TABLE, key.attributes(), step.update())
                .condition(condition)
                .into()
        }
        Some(item) => PutItem::new(TABLE, item).condition(condition).into(),
    }
}
