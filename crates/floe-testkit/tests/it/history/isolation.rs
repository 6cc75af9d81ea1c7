//! Histories of transactions.

use std::collections::BTreeMap;

use floe_store::env::SeededRandom;
use floe_testkit::history::isolation::{
    self, AnomalyKind, Level, Recorder, Report, Status, Step, Transaction,
};

use AnomalyKind::{
    DuplicateAppend, DuplicateValue, G0, G1a, G1b, G1c, G2, GSingle, IncompatibleOrder, Internal,
    LostUpdate, RealTime, UnknownValue,
};

type History = Vec<Transaction<&'static str, u64>>;

/// A transaction in short form: `x+1` appends 1 to x, `x=1,2` reads 1 and 2 from it. It is concurrent with all
/// others.
fn t(steps: &'static str) -> Transaction<&'static str, u64> {
    let step = |word: &'static str| match word.split_once('+') {
        Some((key, value)) => Step::Append {
            key,
            value: value.parse().unwrap(),
        },
        None => {
            let (key, values) = word.split_once('=').unwrap();
            let values = values.split(',').filter(|v| !v.is_empty());
            Step::Read {
                key,
                values: values.map(|v| v.parse().unwrap()).collect(),
            }
        }
    };
    Transaction {
        client: 0,
        steps: steps.split(' ').map(step).collect(),
        status: Status::Committed,
        invoked: 0,
        returned: Some(1000),
    }
}

fn aborted(steps: &'static str) -> Transaction<&'static str, u64> {
    Transaction {
        status: Status::Aborted,
        ..t(steps)
    }
}

fn unknown(steps: &'static str) -> Transaction<&'static str, u64> {
    Transaction {
        status: Status::Unknown,
        returned: None,
        ..t(steps)
    }
}

/// The same from one stamp to another.
fn at(invoked: u64, returned: u64, steps: &'static str) -> Transaction<&'static str, u64> {
    Transaction {
        invoked,
        returned: Some(returned),
        ..t(steps)
    }
}

#[track_caller]
fn finds(history: &[Transaction<&'static str, u64>], kinds: &[AnomalyKind]) -> Report {
    let report = isolation::check(history, Level::StrictSerializable);
    assert_eq!(report.kinds(), kinds, "{report}");
    report
}

#[test]
fn correct_histories_pass() {
    finds(&[], &[]);
    finds(&[t("x+1"), t("x=1 x+2"), t("x=1,2 y+3"), t("x=1 y=")], &[]);
    finds(&[t("x= y+1"), t("y=1 x+2"), t("x=2 y=1")], &[]);
    finds(&[t("x+1 x+2 x=1,2"), t("x=1,2 x+3 x=1,2,3 x=1,2,3")], &[]);
}

#[test]
fn duplicate_append_is_found() {
    finds(&[t("x+1"), t("x+1")], &[DuplicateAppend]);
    finds(&[t("x+1"), t("y+1")], &[]);
}

#[test]
fn value_without_append_is_found() {
    let report = finds(&[t("x+1"), t("x=1,7"), t("x=1,7")], &[UnknownValue]);
    assert_eq!(
        report.anomalies.len(),
        1,
        "each value is reported once: {report}"
    );
}

#[test]
fn append_applied_twice_is_found() {
    let report = finds(
        &[t("x+1"), t("x+2"), t("x=1,2,1"), t("x=1,2,1")],
        &[DuplicateValue],
    );
    assert_eq!(
        report.anomalies.len(),
        1,
        "each value is reported once: {report}"
    );
}

#[test]
fn transaction_must_see_its_own_steps() {
    finds(&[t("x+1 x=")], &[Internal]);
    finds(&[t("x+1"), t("x= x=1")], &[Internal]);
    finds(&[t("x+1"), t("x=1 x+2 x=1,2"), t("x=1,2")], &[]);
}

#[test]
fn contradictory_orders_are_found() {
    finds(
        &[t("x+1"), t("x+2"), t("x=1,2"), t("x=2")],
        &[IncompatibleOrder],
    );
}

#[test]
fn aborted_read_is_found() {
    finds(&[aborted("x+1"), t("x=1")], &[G1a]);
    finds(&[aborted("x+1"), t("x=")], &[]);
    // The reads of an aborted transaction impose no constraint.
    finds(&[t("x+1 y+2"), aborted("x=1 y=")], &[]);
}

#[test]
fn intermediate_read_is_found() {
    let report = finds(&[t("x+1 x+2"), t("x=1"), t("x=1,2")], &[G1b, GSingle]);
    assert_eq!(report.anomalies[0].transactions, [0, 1]);
}

#[test]
fn dirty_write_is_found() {
    let history = [t("x+1 y+2"), t("x+3 y+4"), t("x=1,3"), t("y=4,2")];
    let report = finds(&history, &[G0]);
    assert_eq!(report.anomalies[0].transactions, [0, 1]);
}

#[test]
fn circular_information_flow_is_found() {
    finds(&[t("x+1 y=2"), t("y+2 x=1")], &[G1c]);
}

#[test]
fn read_skew_is_found() {
    finds(&[t("x+1 y+2"), t("x=1 y="), t("y=2")], &[GSingle]);
    // Also if no transaction read the other half.
    finds(&[t("x+1 y+2"), t("x=1 y=")], &[GSingle]);
}

#[test]
fn lost_update_is_found() {
    let report = finds(
        &[t("x= x+1"), t("x= x+2"), t("x=1,2")],
        &[LostUpdate, GSingle],
    );
    assert_eq!(report.anomalies[0].transactions, [0, 1]);
    // No transaction needs to have read the result.
    finds(&[t("x= x+1"), t("x= x+2")], &[LostUpdate, G2]);
    finds(&[t("x= x+1"), t("x=1 x+2")], &[]);
}

#[test]
fn write_skew_is_a_cycle_of_two_anti_dependencies() {
    finds(&[t("x= y+1"), t("y= x+2"), t("x=2 y=1")], &[G2]);
}

#[test]
fn real_time_order_counts_only_for_strict_serializability() {
    // The reader began after the writer ended, and missed its append.
    let stale = [at(0, 1, "x+1"), at(2, 3, "x="), at(4, 5, "x=1")];
    finds(&stale, &[RealTime]);
    assert!(isolation::check(&stale, Level::Serializable).is_ok());
    // A lost append: no transaction ever read it.
    finds(&[at(0, 1, "x+1"), at(2, 3, "x=")], &[RealTime]);
    // Concurrent transactions can be in either order.
    finds(&[at(0, 3, "x+1"), at(2, 5, "x="), at(6, 7, "x=1")], &[]);
    // Across several transactions: the last read is older than what the first transaction saw.
    let chain = [
        at(0, 9, "x+1"),
        at(1, 2, "x=1 y+2"),
        at(3, 4, "y=2"),
        at(5, 6, "x="),
    ];
    finds(&chain, &[RealTime]);
}

#[test]
fn unknown_outcome_counts_as_committed_once_it_was_read() {
    finds(&[unknown("x+1 y+2"), t("x="), t("y=")], &[]);
    finds(&[unknown("x+1 y+2"), t("x=1 y=2")], &[]);
    finds(&[unknown("x+1 y+2"), t("x=1 y=")], &[GSingle]);
    // It may take effect long after it was sent, but not before.
    let late = |invoked| Transaction {
        invoked,
        ..unknown("x+1")
    };
    finds(
        &[late(0), at(1, 2, "x="), at(3, 4, "x="), at(5, 6, "x=1")],
        &[],
    );
    finds(&[late(7), at(5, 6, "x=1")], &[RealTime]);
    let report = finds(&[unknown("x+1"), unknown("y+2"), t("x=1")], &[]);
    assert_eq!((report.committed, report.unknown), (2, 1));
}

#[test]
fn unread_appends_are_no_contradiction() {
    // Each appender read the longest version, and none comes before itself.
    let history = [
        t("x+1"),
        t("x=1 y+2"),
        t("x=1 y+3"),
        t("x+4"),
        t("x+5"),
        t("x+6"),
    ];
    finds(&history, &[]);
}

#[test]
fn cycle_is_displayed_as_text() {
    let report = finds(&[t("x+1 y+2"), t("x=1 y=")], &[GSingle]);
    assert_eq!(
        report.to_string(),
        r#"transactions=2 committed=2 unknown=0 dependencies=4 anomalies=1
G-single read skew
  T1: client 0 [0..1000] committed, read "x" = [1], read "y" = []
  T0: client 0 [0..1000] committed, append 1 to "x", append 2 to "y"
  T1 before T0 (rw): its read lacks the append of 2 to "y" by T0
  T0 before T1 (wr): T1 read the append of 1 to "x" by T0"#
    );
}

#[test]
fn recorder_keeps_steps_and_outcomes() {
    let recorder = Recorder::new();
    let mut first = recorder.begin(1);
    first.append("x", 1);
    let mut second = recorder.begin(2);
    second.read("x", vec![]);
    first.committed();
    second.aborted();
    recorder.begin(3).lost();
    drop(recorder.begin(4));
    let history: History = recorder.into_transactions();
    let ends: Vec<_> = history
        .iter()
        .map(|t| (t.client, t.status, t.invoked, t.returned))
        .collect();
    assert_eq!(
        ends,
        [
            (1, Status::Committed, 0, Some(2)),
            (2, Status::Aborted, 1, Some(3)),
            (3, Status::Unknown, 4, None),
            (4, Status::Unknown, 5, None),
        ]
    );
    assert_eq!(history[0].steps, [Step::Append { key: "x", value: 1 }]);
}

/// The bug of the simulated store.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    /// Sometimes a transaction reads an older state of the lists.
    StaleSnapshot,
    /// Sometimes a transaction commits although its reads are outdated.
    NoCheck,
    /// Sometimes one half of the appends is applied later than the other.
    Torn,
    /// Sometimes an aborted transaction is applied.
    AppliesAborted,
    /// Sometimes a transaction whose response was lost is applied twice.
    DoubleApply,
}

type Lists = BTreeMap<u64, Vec<u64>>;
type Open = Transaction<u64, u64>;

/// A store of lists with optimistic transactions, and clients that use it, one small step at a time, in an order
/// determined by the seed.
struct Simulation {
    random: SeededRandom,
    bug: Bug,
    stamp: u64,
    value: u64,
    lists: Lists,
    old: Lists,
    /// Appends to be applied later.
    pending: Vec<Vec<Step<u64, u64>>>,
    history: Vec<Open>,
}

enum Client {
    Idle,
    Read(Open),
    Committed(Open),
}

impl Simulation {
    fn run(seed: u64, transactions: usize, keys: u64, bug: Bug) -> Report {
        let mut simulation = Self {
            random: SeededRandom::new(seed),
            bug,
            stamp: 0,
            value: 0,
            lists: Lists::new(),
            old: Lists::new(),
            pending: Vec::new(),
            history: Vec::new(),
        };
        let mut clients: Vec<Client> = (0..32).map(|_| Client::Idle).collect();
        while simulation.history.len() < transactions {
            let client = simulation.random.below(32);
            let state = std::mem::replace(&mut clients[client as usize], Client::Idle);
            clients[client as usize] = simulation.advance(client, state, keys);
        }
        // Operations in flight at the end never got a response.
        for client in clients {
            if let Client::Committed(mut open) = client {
                open.status = Status::Unknown;
                open.returned = None;
                simulation.history.push(open);
            }
        }
        isolation::check(&simulation.history, Level::StrictSerializable)
    }

    fn wrong(&self, bug: Bug) -> bool {
        self.bug == bug && self.random.below(300) == 0
    }

    fn advance(&mut self, client: u64, state: Client, keys: u64) -> Client {
        self.stamp += 1;
        if self.random.below(2000) == 0 {
            self.old = self.lists.clone();
        }
        if !self.pending.is_empty() && self.random.below(50) == 0 {
            let steps = self.pending.swap_remove(0);
            self.apply(&steps);
        }
        match state {
            Client::Idle => Client::Read(self.begin(client, keys)),
            Client::Read(open) => self.commit(open),
            Client::Committed(mut open) => {
                open.returned = Some(self.stamp);
                self.history.push(open);
                Client::Idle
            }
        }
    }

    /// Reads several keys at one moment and appends, mostly to keys that were read. New keys are used over time, so
    /// that lists stay short.
    fn begin(&mut self, client: u64, keys: u64) -> Open {
        let lists = if self.wrong(Bug::StaleSnapshot) {
            &self.old
        } else {
            &self.lists
        };
        let first_key = self.value / 2000 * keys;
        let mut picked: Vec<u64> = (0..3)
            .map(|_| first_key + self.random.below(keys))
            .collect();
        picked.sort_unstable();
        picked.dedup();
        let mut steps = Vec::new();
        for &key in &picked {
            steps.push(Step::Read {
                key,
                values: lists.get(&key).cloned().unwrap_or_default(),
            });
        }
        for key in picked {
            if self.random.below(3) > 0 {
                self.value += 1;
                steps.push(Step::Append {
                    key,
                    value: self.value,
                });
            }
        }
        Open {
            client,
            steps,
            status: Status::Committed,
            invoked: self.stamp,
            returned: None,
        }
    }

    fn commit(&mut self, mut open: Open) -> Client {
        let unchanged = open.steps.iter().all(|step| match step {
            Step::Read { key, values } => self.lists.get(key).map_or(&[][..], |l| l) == values,
            Step::Append { .. } => true,
        });
        // A read-only transaction reads one snapshot, so it needs no check.
        let read_only = open.steps.iter().all(|s| matches!(s, Step::Read { .. }));
        if !unchanged && !read_only && !self.wrong(Bug::NoCheck) {
            open.status = Status::Aborted;
            if self.wrong(Bug::AppliesAborted) {
                self.apply(&open.steps);
            }
            return Client::Committed(open);
        }
        if self.wrong(Bug::Torn) {
            let half = open.steps.len() - 1;
            self.apply(&open.steps[..half]);
            self.pending.push(open.steps[half..].to_vec());
            return Client::Committed(open);
        }
        self.apply(&open.steps);
        if self.random.below(20) == 0 {
            if self.wrong(Bug::DoubleApply) {
                self.pending.push(open.steps.clone());
            }
            open.status = Status::Unknown;
            self.history.push(open);
            return Client::Idle;
        }
        Client::Committed(open)
    }

    fn apply(&mut self, steps: &[Step<u64, u64>]) {
        for step in steps {
            if let Step::Append { key, value } = step {
                self.lists.entry(*key).or_default().push(*value);
            }
        }
    }
}

#[test]
fn correct_store_passes() {
    for seed in 0..10 {
        let report = Simulation::run(seed, 3000, 20, Bug::None);
        assert!(report.is_ok(), "seed={seed} {report}");
        assert!(
            report.committed > 500 && report.committed < 3000,
            "{report}"
        );
    }
}

#[test]
fn fifty_thousand_transactions_are_checked() {
    let report = Simulation::run(7, 50_000, 100, Bug::None);
    assert!(report.is_ok(), "{report}");
    assert!(report.dependencies > 100_000, "{report}");
}

#[test]
fn planted_bugs_are_found() {
    let expected = [
        (Bug::StaleSnapshot, RealTime),
        (Bug::NoCheck, LostUpdate),
        (Bug::Torn, GSingle),
        (Bug::AppliesAborted, G1a),
        (Bug::DoubleApply, DuplicateValue),
    ];
    for (bug, kind) in expected {
        let report = Simulation::run(3, 20_000, 30, bug);
        assert!(
            report.kinds().contains(&kind),
            "{bug:?} {:?}",
            report.kinds()
        );
    }
}

/// Tries all orders of the transactions for one that explains all reads and agrees with real time. Transactions of
/// unknown outcome may be left out.
fn explained_by_trying(history: &[Transaction<u64, u64>], lists: &Lists) -> bool {
    let committed = history.iter().filter(|t| t.status == Status::Committed);
    let Some(first_end) = committed.filter_map(|t| t.returned).min() else {
        return true;
    };
    (0..history.len()).any(|at| {
        let mut rest = history.to_vec();
        let transaction = rest.remove(at);
        let mut lists = lists.clone();
        transaction.invoked <= first_end
            && transaction.status != Status::Aborted
            && transaction.steps.iter().all(|step| match step {
                Step::Append { key, value } => {
                    lists.entry(*key).or_default().push(*value);
                    true
                }
                Step::Read { key, values } => lists.get(key).map_or(&[][..], |l| l) == values,
            })
            && explained_by_trying(&rest, &lists)
    })
}

/// Up to six consecutive transactions on two lists, some with a wrong read.
fn short_history(random: &SeededRandom) -> Vec<Transaction<u64, u64>> {
    let mut lists = Lists::new();
    let mut history = Vec::new();
    for n in 0..2 + random.below(5) {
        let mut steps = Vec::new();
        let unknown = random.below(5) == 0;
        let applied = !unknown || random.below(2) == 0;
        for step in 0..1 + random.below(3) {
            let (key, value) = (random.below(2), 10 * n + step);
            let list = lists.entry(key).or_default();
            if random.below(2) == 0 {
                steps.push(Step::Append { key, value });
                if applied {
                    list.push(value);
                }
            } else if applied {
                let keep = if random.below(6) == 0 {
                    random.below(3) as usize
                } else {
                    list.len()
                };
                let values = list.iter().copied().take(keep).collect();
                steps.push(Step::Read { key, values });
            }
        }
        let invoked = (4 * n).saturating_sub(random.below(8));
        history.push(Transaction {
            client: n,
            steps,
            status: if unknown {
                Status::Unknown
            } else {
                Status::Committed
            },
            invoked,
            returned: (!unknown).then(|| 4 * n + 2 + random.below(8)),
        });
    }
    history
}

#[test]
fn checker_agrees_with_trying_all_orders() {
    let random = SeededRandom::new(5);
    let (mut good, mut bad, mut missed) = (0, 0, 0);
    for round in 0..8_000 {
        let history = short_history(&random);
        let report = isolation::check(&history, Level::StrictSerializable);
        match (explained_by_trying(&history, &Lists::new()), report.is_ok()) {
            (true, true) => good += 1,
            (true, false) => panic!("round={round} {report}"),
            (false, false) => bad += 1,
            (false, true) => missed += 1,
        }
    }
    assert!(good > 500 && bad > 500, "good={good} bad={bad}");
    assert_eq!(missed, 0, "of bad={bad}");
}
