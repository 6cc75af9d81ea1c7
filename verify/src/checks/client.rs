//! A client of the writing processes: endless conditional writes and transactions on the test table, each reported
//! before it is sent and again after its response.
//!
//! There are three sorts of keys: a client's own keys, whose versions it remembers; shared keys, which all clients
//! update concurrently; and trios, three keys in three partitions that are only written together in a transaction.

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
use super::test_table::{BULKY_STAMPS, Key, State, Step, TABLE, has_version, version_and_stamp};

const OWN_KEYS: u64 = 24;
const SHARED_KEYS: u64 = 16;
const TRIOS: u64 = 24;
/// Maximum lifetime of an expiring item, in seconds.
const EXPIRY_SECS: u64 = 3;

/// Allocates stamps that distinguish the operations of one process from those of all others on the same directory.
#[derive(Debug)]
pub(super) struct Round {
    number: u64,
    next: AtomicU64,
    first_stamp: u64,
}

impl Round {
    /// Rounds of one directory are numbered from 1. Items of a bulky round are large.
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

    /// A version above all versions of earlier rounds, for keys without an item.
    const fn version_floor(&self) -> u64 {
        self.number * 1_000_000
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The write was acknowledged.
    Acked,
    /// A condition failed.
    Refused,
    /// The request failed.
    Failed,
}

/// A client.
pub(super) struct Client {
    engine: Arc<dyn Engine>,
    reporter: Arc<Reporter>,
    round: Arc<Round>,
    random: SeededRandom,
    number: u64,
    own: HashMap<Key, ObservedKey>,
    /// A planted bug: writes to own keys are reported as acknowledged before the engine responds.
    pub(super) acks_early: bool,
}

/// The state of a key when the client last observed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObservedKey {
    version: u64,
    exists: bool,
    /// The item exists and does not expire.
    is_permanent: bool,
    /// The outcome of all later operations is known, so that the key need not be read again.
    is_certain: bool,
}

impl ObservedKey {
    fn condition(self) -> floe_store::expr::Condition {
        has_version(self.exists.then_some(self.version))
    }
}

impl Client {
    /// Creates a client. Its operations are determined by the seed and the responses.
    pub(super) fn new(
        engine: Arc<dyn Engine>,
        reporter: Arc<Reporter>,
        round: Arc<Round>,
        number: u64,
        seed: u64,
    ) -> Self {
        let random = SeededRandom::new(super::test_table::splitmix64(seed ^ number));
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

    /// Runs one operation.
    ///
    /// # Errors
    ///
    /// When the reader of the records is gone.
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

    /// Reads its own keys again: each must have the state of its last acknowledged write.
    pub(super) async fn verify_own_keys(&self) -> io::Result<()> {
        for (key, known) in self.own.iter().filter(|(_, known)| known.is_certain) {
            let Some(found) = self.read_key(key).await? else {
                continue;
            };
            // An expired item may be absent.
            let is_fine = if found.exists {
                found.version == known.version
            } else {
                !known.is_permanent
            };
            if !is_fine {
                let message =
                    format!("a read returned an unexpected state: key={key} {found:?} {known:?}");
                self.report(&Record::Broken(message))?;
            }
        }
        Ok(())
    }

    async fn write_own(&mut self, state: State, by_update: bool) -> io::Result<Outcome> {
        let key = Key::new(format!("own-{}", self.number), self.random.below(OWN_KEYS));
        let known = match self.own.get(&key) {
            Some(known) if known.is_certain => *known,
            seen => {
                // The version is lost with an expired item, and versions must only increase.
                let floor = seen.map_or(0, |seen| seen.version);
                let Some(known) = self.read_key(&key).await? else {
                    return Ok(Outcome::Failed);
                };
                ObservedKey {
                    version: known.version.max(floor),
                    ..known
                }
            }
        };
        // Nothing to delete without an item.
        let state = if known.exists || state != State::Absent {
            state
        } else {
            State::Set
        };
        self.write(key, known, state, by_update).await
    }

    async fn update_shared(&mut self) -> io::Result<Outcome> {
        let key = Key::new("shared", self.random.below(SHARED_KEYS));
        let Some(known) = self.read_key(&key).await? else {
            return Ok(Outcome::Failed);
        };
        self.write(key, known, State::Set, true).await
    }

    async fn write(
        &mut self,
        key: Key,
        known: ObservedKey,
        state: State,
        by_update: bool,
    ) -> io::Result<Outcome> {
        let step = self.next_step(known.version, state);
        let write = single_write(&key, step, known, by_update);
        let operation = Operation {
            stamp: step.stamp,
            effects: vec![(key, step)],
        };
        self.report(&Record::Intent(operation.clone()))?;
        let early = self.acks_early && self.is_own(&operation);
        if early {
            self.report(&Record::Acked(operation.stamp))?;
        }
        let result = self.engine.write_item(write).await.map(drop);
        if early {
            return Ok(Outcome::Acked);
        }
        self.record_outcome(operation, result)
    }

    async fn write_trio(&mut self) -> io::Result<Outcome> {
        let number = self.random.below(TRIOS);
        let keys = [0, 1, 2].map(|member| Key::new(format!("trio-{member}"), number));
        let Some(known) = self.read_trio(&keys).await? else {
            return Ok(Outcome::Failed);
        };
        let step = self.next_step(known.version, State::Set);
        let by_update = self.random.below(2) == 0;
        let actions = keys
            .iter()
            .map(|key| match single_write(key, step, known, by_update) {
                WriteItem::Put(put) => TransactWrite::Put(put),
                WriteItem::Update(update) => TransactWrite::Update(update),
                WriteItem::Delete(delete) => TransactWrite::Delete(delete),
            });
        let input = TransactWriteItems::new(actions).token(format!("trio-{}", step.stamp));
        let operation = Operation {
            stamp: step.stamp,
            effects: keys.map(|key| (key, step)).into(),
        };
        self.report(&Record::Intent(operation.clone()))?;
        let result = self.engine.transact_write_items(input).await.map(drop);
        self.record_outcome(operation, result)
    }

    /// Reads a key. Returns `None` if the read failed.
    async fn read_key(&self, key: &Key) -> io::Result<Option<ObservedKey>> {
        let input = GetItem::new(TABLE, key.attributes());
        let result = self.engine.get_item(input).await;
        self.observe(result.map(|output| output.item))
    }

    async fn read_trio(&self, keys: &[Key; 3]) -> io::Result<Option<ObservedKey>> {
        let gets = keys
            .each_ref()
            .map(|key| TransactGet::new(TABLE, key.attributes()));
        let result = self
            .engine
            .transact_get_items(TransactGetItems::new(gets))
            .await;
        let result = result.map(|output| output.items);
        if let Ok(items) = &result {
            let states: Vec<_> = items
                .iter()
                .map(|i| i.as_ref().and_then(version_and_stamp))
                .collect();
            if states.windows(2).any(|pair| pair.first() != pair.last()) {
                let message =
                    format!("a snapshot shows a partial transaction: {keys:?} {states:?}");
                self.report(&Record::Broken(message))?;
            }
        }
        self.observe(result.map(|items| items.into_iter().flatten().next()))
    }

    fn observe(&self, result: floe_store::Result<Option<Item>>) -> io::Result<Option<ObservedKey>> {
        let item = match result {
            Ok(item) => item,
            Err(error) => {
                self.report(&Record::ReadFailed(format!("{error:?}")))?;
                return Ok(None);
            }
        };
        let version = item
            .as_ref()
            .and_then(version_and_stamp)
            .map(|(version, _)| version);
        Ok(Some(ObservedKey {
            version: version.unwrap_or(self.round.version_floor()),
            exists: version.is_some(),
            is_permanent: item.is_some_and(|item| !item.contains("expires")),
            is_certain: true,
        }))
    }

    fn next_step(&self, version: u64, state: State) -> Step {
        Step {
            version: version + 1,
            stamp: self.round.stamp(),
            state,
        }
    }

    fn record_outcome(
        &mut self,
        operation: Operation,
        result: floe_store::Result<()>,
    ) -> io::Result<Outcome> {
        let stamp = operation.stamp;
        let is_own = self.is_own(&operation);
        for (key, step) in operation.effects.into_iter().filter(|_| is_own) {
            let known = ObservedKey {
                version: step.version,
                exists: step.state != State::Absent,
                is_permanent: step.state == State::Set,
                is_certain: result.is_ok(),
            };
            self.own.insert(key, known);
        }
        let (record, outcome) = match result {
            Ok(()) => (Record::Acked(stamp), Outcome::Acked),
            Err(error) if is_refusal(&error) => (Record::Refused(stamp), Outcome::Refused),
            Err(error) => (Record::Failed(stamp, format!("{error:?}")), Outcome::Failed),
        };
        self.report(&record)?;
        Ok(outcome)
    }

    fn is_own(&self, operation: &Operation) -> bool {
        let own = format!("own-{}", self.number);
        operation
            .effects
            .iter()
            .all(|(key, _)| key.partition == own)
    }

    fn report(&self, record: &Record) -> io::Result<()> {
        self.reporter.report(record)
    }
}

/// Whether the engine evaluated the operation and rejected it.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::ConditionalCheckFailed { .. }
            | Error::TransactionCanceled { .. }
            | Error::TransactionConflict
    )
}

/// Returns the write that changes the key from its known state to the step.
fn single_write(key: &Key, step: Step, known: ObservedKey, by_update: bool) -> WriteItem {
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
