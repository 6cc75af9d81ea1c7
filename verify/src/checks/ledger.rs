//! What a check knows of each key from the records of a writing process, and so which states of it
//! may be found after the process has died.

use std::collections::{BTreeMap, HashMap};

use floe_store::Item;

use super::record::{Operation, Record};
use super::stage::{Key, State, Step, version_and_stamp};

/// All that was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    keys: BTreeMap<Key, History>,
    /// Operations without an outcome.
    open: HashMap<u64, Operation>,
    /// Operations on several items that may have been applied.
    joint: HashMap<u64, Operation>,
    pub(super) tally: Tally,
}

/// How many operations had which outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) intents: u64,
    pub(super) acked: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Acknowledged operations that made the same version of a key: a condition did not hold.
    pub(super) doubled: u64,
}

#[derive(Clone, Debug, Default)]
struct History {
    /// The newest acknowledged state.
    floor: Option<Step>,
    /// States that may have come about, or may still.
    open: Vec<Step>,
}

/// How a state that was found compares with what was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It is the newest acknowledged state or one sent after it.
    Fine,
    /// An acknowledged state is gone.
    Lost,
    /// Nobody wrote this, or it was refused.
    Phantom,
}

impl Ledger {
    /// Takes in one record.
    pub(super) fn take(&mut self, record: &Record) {
        match record {
            Record::Intent(operation) => self.intent(operation),
            Record::Acked(stamp) => self.acked(*stamp),
            Record::Refused(stamp) => self.refused(*stamp),
            Record::Failed(..) => self.tally.failed += 1,
            Record::Opened(_) | Record::ReadFailed(_) | Record::Broken(_) | Record::Done => {}
        }
    }

    /// The keys that were ever named.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.keys()
    }

    /// Judges what was found at a key, at this moment in epoch seconds.
    pub(super) fn judge(&self, key: &Key, found: Option<&Item>, now_secs: u64) -> Finding {
        let nothing = History::default();
        let history = self.keys.get(key).unwrap_or(&nothing);
        match found {
            Some(item) => history.judge_item(key, item),
            None => history.judge_absence(now_secs),
        }
    }

    /// What is known of a key, in words.
    pub(super) fn tell(&self, key: &Key) -> String {
        match self.keys.get(key) {
            Some(history) => format!("{:?}", history.possible().collect::<Vec<_>>()),
            None => "nothing".to_owned(),
        }
    }

    /// Whether an operation on several items has been applied in part: it made this item, and another
    /// of its keys still stands at an older version.
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

    /// Takes what was found as the truth from now on: what is open was either found or will never be.
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
    /// Acknowledges a step; `false` if another was acknowledged at the same version.
    fn raise_floor(&mut self, step: Step) -> bool {
        self.open.retain(|open| *open != step);
        let floor = self.floor.map_or(0, |floor| floor.version);
        if step.version > floor {
            self.floor = Some(step);
        }
        step.version != floor
    }

    /// The states in which the key may be: the newest acknowledged one, and those sent after it.
    fn possible(&self) -> impl Iterator<Item = &Step> {
        let floor = self.floor.map_or(0, |floor| floor.version);
        let later = self.open.iter().filter(move |step| step.version > floor);
        self.floor.iter().chain(later)
    }

    fn judge_item(&self, key: &Key, item: &Item) -> Finding {
        let mut possible = self.possible();
        if possible.any(|step| step.item(key).as_ref() == Some(item)) {
            return Finding::Fine;
        }
        let floor = self.floor.map_or(0, |floor| floor.version);
        match version_and_stamp(item) {
            Some((version, _)) if version < floor => Finding::Lost,
            _ => Finding::Phantom,
        }
    }

    fn judge_absence(&self, now_secs: u64) -> Finding {
        let mut possible = self.possible();
        let is_explained = self.floor.is_none()
            || possible.any(|step| match step.state {
                State::Set => false,
                State::Expiring(at) => at <= now_secs,
                State::Absent => true,
            });
        if is_explained {
            Finding::Fine
        } else {
            Finding::Lost
        }
    }

    fn settle(&mut self, found: Option<(u64, u64)>) {
        let newest = self.possible().copied().max_by_key(|step| step.version);
        let settled = match found {
            Some((version, stamp)) => self
                .possible()
                .find(|step| (step.version, step.stamp) == (version, stamp))
                .copied(),
            // Which of the open steps removed it cannot be told, and does not matter.
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
        records.iter().for_each(|record| ledger.take(record));
        ledger
    }

    fn judge(ledger: &Ledger, found: Option<Step>) -> Finding {
        let item = found.and_then(|step| step.item(&key()));
        ledger.judge(&key(), item.as_ref(), 100)
    }

    #[test]
    fn an_acknowledged_state_must_be_there() {
        let ledger = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Acked(10),
            intent(&[(key(), set(2, 11))]),
            Record::Acked(11),
            intent(&[(key(), set(3, 12))]),
        ]);
        assert_eq!(judge(&ledger, Some(set(2, 11))), Finding::Fine);
        assert_eq!(judge(&ledger, Some(set(3, 12))), Finding::Fine);
        assert_eq!(judge(&ledger, Some(set(1, 10))), Finding::Lost);
        assert_eq!(judge(&ledger, None), Finding::Lost);
        assert_eq!(judge(&ledger, Some(set(3, 13))), Finding::Phantom);
        assert_eq!(judge(&ledger, Some(set(4, 12))), Finding::Phantom);
    }

    #[test]
    fn a_changed_attribute_is_no_state_that_anybody_wrote() {
        let ledger = ledger(&[intent(&[(key(), set(1, 11))]), Record::Acked(11)]);
        let item = set(1, 11).item(&key()).unwrap().with("payload", "torn");
        assert_eq!(ledger.judge(&key(), Some(&item), 100), Finding::Phantom);
    }

    #[test]
    fn what_was_refused_must_not_be_there() {
        let refused = ledger(&[intent(&[(key(), set(1, 10))]), Record::Refused(10)]);
        assert_eq!(judge(&refused, None), Finding::Fine);
        assert_eq!(judge(&refused, Some(set(1, 10))), Finding::Phantom);
        let failed = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Failed(10, "eio".into()),
        ]);
        assert_eq!(judge(&failed, None), Finding::Fine);
        assert_eq!(judge(&failed, Some(set(1, 10))), Finding::Fine);
    }

    #[test]
    fn absence_needs_a_removal_or_an_expiry() {
        let expiring = |at| {
            ledger(&[
                intent(&[(key(), step(1, 10, State::Expiring(at)))]),
                Record::Acked(10),
            ])
        };
        assert_eq!(judge(&expiring(100), None), Finding::Fine);
        assert_eq!(judge(&expiring(101), None), Finding::Lost);
        let removed = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Acked(10),
            intent(&[(key(), step(2, 11, State::Absent))]),
        ]);
        assert_eq!(judge(&removed, None), Finding::Fine);
        assert_eq!(judge(&removed, Some(set(1, 10))), Finding::Fine);
    }

    #[test]
    fn a_joint_operation_is_whole_or_not_there() {
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
    fn two_acknowledgements_of_one_version_are_counted() {
        let ledger = ledger(&[
            intent(&[(key(), set(1, 10))]),
            intent(&[(key(), set(1, 11))]),
            Record::Acked(10),
            Record::Acked(11),
        ]);
        assert_eq!(ledger.tally.doubled, 1);
    }

    #[test]
    fn settling_closes_what_was_open() {
        let mut ledger = ledger(&[
            intent(&[(key(), set(1, 10))]),
            Record::Acked(10),
            intent(&[(key(), set(2, 11))]),
        ]);
        let found = BTreeMap::from([(key(), set(1, 10).item(&key()).unwrap())]);
        ledger.settle(&found);
        assert_eq!(judge(&ledger, Some(set(1, 10))), Finding::Fine);
        assert_eq!(judge(&ledger, Some(set(2, 11))), Finding::Phantom);
        ledger.settle(&BTreeMap::new());
        assert_eq!(judge(&ledger, None), Finding::Fine);
    }
}
