//! The states that each key may have after the death of a writing process, derived from its records.

use std::collections::{BTreeMap, HashMap};

use floe_store::Item;

use super::record::{Operation, Record};
use super::test_table::{Key, State, Step, version_and_stamp};

/// The operations that were reported, and the possible states of the keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    keys: BTreeMap<Key, History>,
    /// Operations without an outcome so far.
    open: HashMap<u64, Operation>,
    /// Operations on several items that may have been applied.
    joint: HashMap<u64, Operation>,
    pub(super) tally: Tally,
}

/// The number of operations by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) intents: u64,
    pub(super) acked: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Acknowledged operations that wrote a version already acknowledged: a condition was ignored.
    pub(super) doubled: u64,
}

#[derive(Clone, Debug, Default)]
struct History {
    /// The newest acknowledged state.
    floor: Option<Step>,
    /// Later states with an unknown outcome.
    open: Vec<Step>,
}

/// The result of comparing a found state with the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateCheck {
    /// The state is the newest acknowledged one, or one sent later.
    Expected,
    /// An acknowledged state was lost.
    Lost,
    /// The state was never written, or was rejected.
    Phantom,
}

impl Ledger {
    /// Applies a record.
    pub(super) fn apply(&mut self, record: &Record) {
        match record {
            Record::Intent(operation) => self.intent(operation),
            Record::Acked(stamp) => self.acked(*stamp),
            Record::Refused(stamp) => self.refused(*stamp),
            Record::Failed(..) => self.tally.failed += 1,
            Record::Opened(_) | Record::ReadFailed(_) | Record::Broken(_) | Record::Done => {}
        }
    }

    /// All keys that operations named.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.keys()
    }

    /// Compares the state found at a key, at this time in epoch seconds.
    pub(super) fn classify(&self, key: &Key, found: Option<&Item>, now_secs: u64) -> StateCheck {
        let nothing = History::default();
        let history = self.keys.get(key).unwrap_or(&nothing);
        match found {
            Some(item) => history.classify_item(key, item),
            None => history.classify_absence(now_secs),
        }
    }

    /// Describes the possible states of a key.
    pub(super) fn describe(&self, key: &Key) -> String {
        match self.keys.get(key) {
            Some(history) => format!("{:?}", history.possible().collect::<Vec<_>>()),
            None => "nothing".to_owned(),
        }
    }

    /// Whether an operation on several items was partially applied: it wrote this item, and another of its keys still
    /// has an older version.
    pub(super) fn is_torn(&self, item: &Item, items: &BTreeMap<Key, Item>) -> bool {
        let operation = version_and_stamp(item).and_then(|(_, stamp)| self.joint.get(&stamp));
        let Some(operation) = operation else {
            return false;
        };
        operation.effects.iter().any(|(key, step)| {
            let found = items.get(key).and_then(version_and_stamp);
            let is_absent_by_right = found.is_none() && step.state != State::Set;
            !is_absent_by_right && found.is_none_or(|(version, _)| version < step.version)
        })
    }

    /// Accepts the found items as the current state: operations without an outcome were either applied or never will
    /// be.
    pub(super) fn settle(&mut self, items: &BTreeMap<Key, Item>) {
        self.open.clear();
        for (key, history) in &mut self.keys {
            history.settle(items.get(key).and_then(version_and_stamp));
        }
    }

    fn intent(&mut self, operation: &Operation) {
        self.tally.intents += 1;
        for (key, step) in &operation.effects {
            self.keys.entry(key.clone()).or_default().open.push(*step);
        }
        if operation.effects.len() > 1 {
            self.joint.insert(operation.stamp, operation.clone());
        }
        self.open.insert(operation.stamp, operation.clone());
    }

    fn acked(&mut self, stamp: u64) {
        self.tally.acked += 1;
        for (key, step) in self.close(stamp) {
            let history = self.keys.entry(key).or_default();
            self.tally.doubled += u64::from(!history.raise_floor(step));
        }
    }

    fn refused(&mut self, stamp: u64) {
        self.tally.refused += 1;
        self.joint.remove(&stamp);
        for (key, step) in self.close(stamp) {
            let history = self.keys.entry(key).or_default();
            history.open.retain(|open| *open != step);
        }
    }

    fn close(&mut self, stamp: u64) -> Vec<(Key, Step)> {
        let operation = self.open.remove(&stamp);
        operation.map(|o| o.effects).unwrap_or_default()
    }
}

impl History {
    /// Records an acknowledged step. Returns `false` if its version was already acknowledged.
    fn raise_floor(&mut self, step: Step) -> bool {
        self.open.retain(|open| *open != step);
        let floor = self.floor.map_or(0, |floor| floor.version);
        if step.version > floor {
            self.floor = Some(step);
        }
        step.version != floor
    }

    /// The possible states of the key: the newest acknowledged one, and those sent later.
    fn possible(&self) -> impl Iterator<Item = &Step> {
        let floor = self.floor.map_or(0, |floor| floor.version);
        let later = self.open.iter().filter(move |step| step.version > floor);
        self.floor.iter().chain(later)
    }

    fn classify_item(&self, key: &Key, item: &Item) -> StateCheck {
        let mut possible = self.possible();
        if possible.any(|step| step.item(key).as_ref() == Some(item)) {
            return StateCheck::Expected;
        }
        let floor = self.floor.map_or(0, |floor| floor.version);
        match version_and_stamp(item) {
            Some((version, _)) if version < floor => StateCheck::Lost,
            _ => StateCheck::Phantom,
        }
    }

    fn classify_absence(&self, now_secs: u64) -> StateCheck {
        let mut possible = self.possible();
        let is_explained = self.floor.is_none()
            || possible.any(|step| match step.state {
                State::Set => false,
                State::Expiring(at) => at <= now_secs,
                State::Absent => true,
            });
        if is_explained {
            StateCheck::Expected
        } else {
            StateCheck::Lost
        }
    }

    fn settle(&mut self, found: Option<(u64, u64)>) {
        let newest = self.possible().copied().max_by_key(|step| step.version);
        let settled = match found {
            Some((version, stamp)) => self
                .possible()
                .find(|step| (step.version, step.stamp) == (version, stamp))
                .copied(),
            // Which of the open steps removed the item is unknown and irrelevant.
            None => newest.map(|step| Step {
                state: State::Absent,
                ..step
            }),
        };
        self.floor = settled.or(self.floor);
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("k", 1)
    }

    fn step(version: u64, stamp: u64, state: State) -> Step {
        Step {
            version,
            stamp,
            state,
        }
    }

    fn set(version: u64, stamp: u64) -> Step {
        step(version, stamp, State::Set)
    }

    fn intent(steps: &[(Key, Step)]) -> Record {
        Record::Intent(Operation {
            stamp: steps[0].1.stamp,
            effects: steps.to_vec(),
        })
    }

    fn ledger(records: &[Record]) -> Ledger {
        let mut ledger = Ledger::default();
        records.iter().for_each(|record| ledger.apply(record));
        ledger
    }

    fn judge(ledger: &Ledger, found: Option<Step>) -> StateCheck {
        let item = found.and_then(|step| step.item(&key()));
        ledger.classify(&key(), item.as_ref(), 100)
    }

    #[test]
    fn acknowledged_states_must_be_found() {
        let ledger = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Acked(10),
            intent(&[(key(), set(2, 11))]),
            Record::Acked(11),
            intent(&[(key(), set(3, 12))]),
        ]);
        assert_eq!(judge(&ledger, Some(set(2, 11))), StateCheck::Expected);
        assert_eq!(judge(&ledger, Some(set(3, 12))), StateCheck::Expected);
        assert_eq!(judge(&ledger, Some(set(1, 10))), StateCheck::Lost);
        assert_eq!(judge(&ledger, None), StateCheck::Lost);
        assert_eq!(judge(&ledger, Some(set(3, 13))), StateCheck::Phantom);
        assert_eq!(judge(&ledger, Some(set(4, 12))), StateCheck::Phantom);
    }

    #[test]
    fn item_with_a_changed_attribute_is_a_phantom() {
        let ledger = ledger(&[intent(&[(key(), set(1, 11))]), Record::Acked(11)]);
        let item = set(1, 11).item(&key()).unwrap().with("payload", "torn");
        assert_eq!(
            ledger.classify(&key(), Some(&item), 100),
            StateCheck::Phantom
        );
    }

    #[test]
    fn rejected_states_must_not_be_found() {
        let refused = ledger(&[intent(&[(key(), set(1, 10))]), Record::Refused(10)]);
        assert_eq!(judge(&refused, None), StateCheck::Expected);
        assert_eq!(judge(&refused, Some(set(1, 10))), StateCheck::Phantom);
        let failed = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Failed(10, "eio".into()),
        ]);
        assert_eq!(judge(&failed, None), StateCheck::Expected);
        assert_eq!(judge(&failed, Some(set(1, 10))), StateCheck::Expected);
    }

    #[test]
    fn absence_requires_a_delete_or_expiry() {
        let expiring = |at| {
            ledger(&[
                intent(&[(key(), step(1, 10, State::Expiring(at)))]),
                Record::Acked(10),
            ])
        };
        assert_eq!(judge(&expiring(100), None), StateCheck::Expected);
        assert_eq!(judge(&expiring(101), None), StateCheck::Lost);
        let removed = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Acked(10),
            intent(&[(key(), step(2, 11, State::Absent))]),
        ]);
        assert_eq!(judge(&removed, None), StateCheck::Expected);
        assert_eq!(judge(&removed, Some(set(1, 10))), StateCheck::Expected);
    }

    #[test]
    fn partially_applied_transaction_is_torn() {
        let (a, b) = (Key::new("k", 1), Key::new("k", 2));
        let first = [(a.clone(), set(1, 10)), (b.clone(), set(1, 10))];
        let second = [(a.clone(), set(2, 11)), (b.clone(), set(2, 11))];
        let ledger = ledger(&[intent(&first), Record::Acked(10), intent(&second)]);
        let check = |at_a: Step, at_b: Option<Step>, torn: bool| {
            let mut items = BTreeMap::from([(a.clone(), at_a.item(&a).unwrap())]);
            items.extend(at_b.map(|step| (b.clone(), step.item(&b).unwrap())));
            assert_eq!(
                ledger.is_torn(&items[&a], &items),
                torn,
                "{at_a:?} {at_b:?}"
            );
        };
        check(set(1, 10), Some(set(1, 10)), false);
        check(set(2, 11), Some(set(2, 11)), false);
        check(set(2, 11), Some(set(1, 10)), true);
        check(set(2, 11), None, true);
    }

    #[test]
    fn versions_acknowledged_twice_are_counted() {
        let ledger = ledger(&[
            intent(&[(key(), set(1, 10))]),
            intent(&[(key(), set(1, 11))]),
            Record::Acked(10),
            Record::Acked(11),
        ]);
        assert_eq!(ledger.tally.doubled, 1);
    }

    #[test]
    fn settling_resolves_open_operations() {
        let mut ledger = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Acked(10),
            intent(&[(key(), set(2, 11))]),
        ]);
        let found = BTreeMap::from([(key(), set(1, 10).item(&key()).unwrap())]);
        ledger.settle(&found);
        assert_eq!(judge(&ledger, Some(set(1, 10))), StateCheck::Expected);
        assert_eq!(judge(&ledger, Some(set(2, 11))), StateCheck::Phantom);
        ledger.settle(&BTreeMap::new());
        assert_eq!(judge(&ledger, None), StateCheck::Expected);
    }
}
