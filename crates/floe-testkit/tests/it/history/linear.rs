//! Histories of single keys.

use std::collections::BTreeMap;
use std::thread;

use floe_store::env::SeededRandom;
use floe_testkit::history::linear::{
    self, CounterOp, Effect, Event, Limits, Operation, Recorder, RegisterOp, Report,
};

use RegisterOp::{Delete, Read, Rejected, RejectedWith, Write};

type Register = RegisterOp<u64>;

/// An operation on the only key, by its own client.
fn at<O>(invoked: u64, returned: u64, operation: O) -> Event<&'static str, O> {
    Event {
        client: invoked,
        key: "k",
        operation,
        invoked,
        returned: Some(returned),
    }
}

fn lost<O>(invoked: u64, operation: O) -> Event<&'static str, O> {
    Event {
        returned: None,
        ..at(invoked, 0, operation)
    }
}

fn swap(expected: impl Into<Option<u64>>, new: impl Into<Option<u64>>) -> Register {
    RegisterOp::Swap {
        expected: expected.into(),
        new: new.into(),
    }
}

#[track_caller]
fn explained<O: Operation>(events: &[Event<&'static str, O>]) {
    let report = linear::check(events);
    assert!(report.is_linearizable(), "{report}");
}

/// Checks that the history is contradictory and that its window consists of the events invoked at these stamps.
#[track_caller]
fn contradicted<O: Operation>(events: &[Event<&'static str, O>], window: &[u64]) {
    let report = linear::check(events);
    assert_eq!(report.violations.len(), 1, "{report}");
    let invoked: Vec<u64> = report.violations[0]
        .window
        .iter()
        .map(|e| e.invoked)
        .collect();
    assert_eq!(invoked, window, "{report}");
}

#[test]
fn empty_history_is_linearizable() {
    explained::<Register>(&[]);
}

#[test]
fn reads_return_the_last_write() {
    explained(&[
        at(0, 1, Read(None)),
        at(2, 3, Write(1)),
        at(4, 5, Read(Some(1))),
        at(6, 7, Delete),
        at(8, 9, Read(None)),
    ]);
}

#[test]
fn read_during_a_write_may_return_either_value() {
    for found in [None, Some(1)] {
        explained(&[at(0, 10, Write(1)), at(1, 2, Read(found))]);
    }
}

#[test]
fn read_after_a_write_must_not_miss_it() {
    contradicted(&[at(0, 1, Write(1)), at(2, 3, Read(None))], &[0, 2]);
}

#[test]
fn read_must_not_return_a_future_write() {
    contradicted(&[at(0, 1, Read(Some(1))), at(2, 3, Write(1))], &[0]);
}

#[test]
fn reads_during_a_write_must_not_go_back() {
    explained(&[
        at(0, 20, Write(1)),
        at(1, 2, Read(None)),
        at(3, 4, Read(Some(1))),
    ]);
    contradicted(
        &[
            at(0, 20, Write(1)),
            at(1, 2, Read(Some(1))),
            at(3, 4, Read(None)),
        ],
        &[0, 1, 3],
    );
}

#[test]
fn only_one_of_concurrent_swaps_succeeds() {
    explained(&[
        at(0, 1, Write(1)),
        at(2, 9, swap(1, 2)),
        at(3, 8, Rejected { expected: Some(1) }),
        at(10, 11, Read(Some(2))),
    ]);
    contradicted(
        &[
            at(0, 1, Write(1)),
            at(2, 9, swap(1, 2)),
            at(3, 8, swap(1, 3)),
        ],
        &[2, 3],
    );
}

#[test]
fn rejected_write_requires_another_value() {
    contradicted(
        &[at(0, 1, Write(1)), at(2, 3, Rejected { expected: Some(1) })],
        &[0, 2],
    );
    let by = |expected, found| RejectedWith { expected, found };
    explained(&[at(0, 1, Write(1)), at(2, 3, by(Some(2), Some(1)))]);
    contradicted(&[at(0, 1, Write(1)), at(2, 3, by(Some(2), None))], &[0, 2]);
    contradicted(&[at(0, 1, Write(1)), at(2, 3, by(Some(1), Some(1)))], &[2]);
}

#[test]
fn conditional_creation_and_deletion_are_swaps_with_an_absent_value() {
    explained(&[
        at(0, 1, swap(None, 1)),
        at(2, 3, Rejected { expected: None }),
        at(4, 5, swap(1, None)),
        at(6, 7, swap(None, 2)),
    ]);
    contradicted(&[at(0, 1, swap(None, 1)), at(2, 3, swap(None, 2))], &[0, 2]);
}

#[test]
fn lost_write_may_take_effect_late_or_never_but_only_once() {
    let read = |at_, found| at(at_, at_ + 1, Read(found));
    let start = [at(0, 1, Write(1)), lost(2, Write(2))];
    let with = |rest: &[Event<&'static str, Register>]| [&start[..], rest].concat();
    explained(&with(&[read(10, Some(1)), read(12, Some(1))]));
    explained(&with(&[read(10, Some(1)), read(12, Some(2))]));
    explained(&with(&[
        read(10, Some(2)),
        at(12, 13, Write(3)),
        read(14, Some(3)),
    ]));
    contradicted(&with(&[read(10, Some(2)), read(12, Some(1))]), &[10, 12]);
    contradicted(
        &with(&[
            read(10, Some(2)),
            at(12, 13, Write(3)),
            read(14, Some(3)),
            read(16, Some(2)),
        ]),
        &[0, 2, 10, 12, 14, 16],
    );
    // But not before it was sent.
    contradicted(&[at(0, 1, Read(Some(2))), lost(2, Write(2))], &[0]);
}

#[test]
fn lost_operations_can_depend_on_each_other() {
    explained(&[
        lost(0, Write(1)),
        lost(1, swap(1, 2)),
        lost(2, swap(2, 3)),
        lost(3, Write(9)),
        at(10, 11, Read(Some(3))),
        at(12, 13, Read(Some(9))),
    ]);
    // The chain has one start, so it can run only once.
    contradicted(
        &[
            lost(0, Write(1)),
            lost(1, swap(1, 2)),
            at(10, 11, Read(Some(2))),
            at(12, 13, Write(5)),
            at(14, 15, Read(Some(5))),
            at(16, 17, Read(Some(2))),
        ],
        &[0, 1, 10, 12, 14, 16],
    );
}

#[test]
fn equal_lost_operations_are_counted_separately() {
    let add = |at_| lost(at_, CounterOp::Add(1));
    let read = |at_, found| at(at_, at_ + 1, CounterOp::Read(found));
    explained(&[add(0), add(1), add(2), read(3, 1), read(5, 3)]);
    contradicted(
        &[add(0), add(1), add(2), read(3, 1), read(5, 4)],
        &[0, 1, 2, 3, 5],
    );
}

#[test]
fn returned_sums_must_be_consistent() {
    let add = |by, sum| CounterOp::AddReturning { by, sum };
    explained(&[
        at(0, 9, add(1, 3)),
        at(1, 8, add(2, 2)),
        at(10, 11, CounterOp::Read(3)),
    ]);
    contradicted(&[at(0, 9, add(1, 1)), at(1, 8, add(1, 1))], &[0, 1]);
}

#[test]
fn window_excludes_earlier_and_later_operations() {
    let mut events = Vec::new();
    for n in 0..200 {
        events.push(at(4 * n, 4 * n + 1, Write(n)));
        events.push(at(4 * n + 2, 4 * n + 3, Read(Some(n))));
    }
    explained(&events);
    events[201].operation = Read(Some(99));
    contradicted(&events, &[400, 402]);
    let report = linear::check(&events);
    assert_eq!(
        report.to_string().lines().skip(1).collect::<Vec<_>>(),
        [
            "no order of these operations explains their responses, from any state before them: key=\"k\"",
            "  client 400 [400..401] write 100",
            "  client 402 [402..403] read: found 99",
        ]
    );
}

#[test]
fn keys_are_checked_separately() {
    let mut other = at(0, 1, Write(1));
    other.key = "other";
    let report = linear::check(&[other, at(2, 3, Read(Some(1)))]);
    assert_eq!(report.keys, 2);
    assert_eq!(report.violations.len(), 1);
    assert_eq!(report.violations[0].key, "k");
}

#[test]
fn search_beyond_its_limit_is_undecided() {
    // Sums of distinct powers: every subset of the additions is another configuration.
    let add = |n: u64| at(n, 100 + n, CounterOp::Add(1 << n));
    let mut events: Vec<_> = (0..10).map(add).collect();
    events.push(at(200, 201, CounterOp::Read(7777)));
    let report = linear::check_with(
        &events,
        Limits {
            configurations_max: 50,
        },
    );
    assert_eq!(report.undecided, ["k"]);
    assert!(!report.is_linearizable());
    assert!(!linear::check(&events).violations.is_empty());
}

#[test]
fn recorder_orders_operations_of_threads() {
    let recorder: Recorder<u64, Register> = Recorder::new();
    let cell = std::sync::Mutex::new(None);
    thread::scope(|scope| {
        for client in 0..8_u64 {
            let (recorder, cell) = (&recorder, &cell);
            scope.spawn(move || {
                for n in 0..200 {
                    let value = client * 1000 + n;
                    let write = recorder.call(client, 0, Some(Write(value)));
                    *cell.lock().unwrap() = Some(value);
                    write.returned(Write(value));
                    let read = recorder.call(client, 0, None);
                    let found = *cell.lock().unwrap();
                    read.returned(Read(found));
                }
            });
        }
    });
    let report = linear::check(&recorder.into_events());
    assert_eq!(report.operations, 3200);
    assert!(report.is_linearizable(), "{report}");
}

#[test]
fn recorder_keeps_lost_writes_and_drops_failed_writes_and_lost_reads() {
    let recorder = Recorder::new();
    recorder.call(1, "k", Some(Write(1))).lost();
    drop(recorder.call(1, "k", Some(Write(2))));
    recorder.call(1, "k", Some(Write(3))).failed();
    recorder.call(1, "k", None).lost();
    let events = recorder.into_events();
    let operations: Vec<_> = events.iter().map(|e| (&e.operation, e.returned)).collect();
    assert_eq!(operations, [(&Write(1), None), (&Write(2), None)]);
}

/// The bug of the simulated store.
#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// Sometimes a read returns the value before the last write.
    StaleRead,
    /// Sometimes a conditional write ignores its condition.
    UncheckedSwap,
    /// Sometimes an acknowledged write is lost.
    LostWrite,
    /// Sometimes an operation whose response was lost is applied twice.
    DoubleApply,
}

/// A store of registers and clients that use it, one small step at a time, in an order determined by the seed.
struct Simulation {
    random: SeededRandom,
    bug: Bug,
    stamp: u64,
    values: u64,
    /// The value of each key, and the previous one.
    store: BTreeMap<u64, (Option<u64>, Option<u64>)>,
    /// Lost operations that may be applied at any time.
    pending: Vec<(u64, Register)>,
    events: Vec<Event<u64, Register>>,
}

/// The state of a client's operation.
enum Client {
    Idle,
    Called(u64, u64, Register),
    Applied(u64, u64, Register),
}

impl Simulation {
    fn run(
        seed: u64,
        operations: usize,
        clients: usize,
        keys: u64,
        bug: Bug,
    ) -> Report<u64, Register> {
        let mut simulation = Self {
            random: SeededRandom::new(seed),
            bug,
            stamp: 0,
            values: 0,
            store: BTreeMap::new(),
            pending: Vec::new(),
            events: Vec::new(),
        };
        let mut states: Vec<Client> = (0..clients).map(|_| Client::Idle).collect();
        while simulation.events.len() < operations {
            let client = simulation.random.below(clients as u64);
            let state = std::mem::replace(&mut states[client as usize], Client::Idle);
            states[client as usize] = simulation.advance(client, state, keys);
        }
        // Operations in flight at the end never got a response.
        for (client, state) in (0..).zip(states) {
            if let Client::Called(invoked, key, op) | Client::Applied(invoked, key, op) = state
                && !matches!(op, Read(_) | RejectedWith { .. })
            {
                simulation.push(client, key, op, invoked, None);
            }
        }
        linear::check(&simulation.events)
    }

    fn chance(&self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    fn advance(&mut self, client: u64, state: Client, keys: u64) -> Client {
        match state {
            Client::Idle => {
                let key = self.random.below(keys);
                let operation = self.random_operation(key);
                Client::Called(self.stamp(), key, operation)
            }
            Client::Called(invoked, key, operation) if self.chance(4) => {
                if !matches!(operation, Read(_)) {
                    self.pending.push((key, operation.clone()));
                    if self.bug == Bug::DoubleApply {
                        self.pending.push((key, operation.clone()));
                    }
                    self.push(client, key, operation, invoked, None);
                }
                Client::Idle
            }
            Client::Called(invoked, key, operation) => {
                let done = self.apply(key, operation);
                Client::Applied(invoked, key, done)
            }
            Client::Applied(invoked, key, done) => {
                if !self.pending.is_empty() && self.chance(10) {
                    let at = self.random.below(self.pending.len() as u64);
                    let (key, operation) = self.pending.swap_remove(at as usize);
                    self.apply(key, operation);
                }
                let returned = self.stamp();
                self.push(client, key, done, invoked, Some(returned));
                Client::Idle
            }
        }
    }

    fn random_operation(&mut self, key: u64) -> Register {
        self.values += 1;
        let current = self.store.get(&key).and_then(|(now, _)| *now);
        match self.random.below(10) {
            0..4 => Read(None),
            4..6 => Write(self.values),
            6 => Delete,
            _ => swap(current, self.values),
        }
    }

    fn apply(&mut self, key: u64, operation: Register) -> Register {
        let (now, before) = self.store.get(&key).copied().unwrap_or_default();
        // An ignored condition usually holds anyway, so this bug must occur more often.
        let one_in = if self.bug == Bug::UncheckedSwap {
            20
        } else {
            500
        };
        let wrong = self.bug != Bug::None && self.random.below(one_in) == 0;
        let set = |store: &mut BTreeMap<_, _>, value| {
            if !(wrong && self.bug == Bug::LostWrite) {
                store.insert(key, (value, now));
            }
        };
        match operation {
            Read(_) if wrong && self.bug == Bug::StaleRead => Read(before),
            Read(_) => Read(now),
            RegisterOp::Swap { expected, .. }
                if expected != now && !(wrong && self.bug == Bug::UncheckedSwap) =>
            {
                RejectedWith {
                    expected,
                    found: now,
                }
            }
            _ => {
                let value = match operation {
                    Write(value) => Some(value),
                    RegisterOp::Swap { new, .. } => new,
                    _ => None,
                };
                set(&mut self.store, value);
                operation
            }
        }
    }

    fn push(
        &mut self,
        client: u64,
        key: u64,
        operation: Register,
        invoked: u64,
        returned: Option<u64>,
    ) {
        self.events.push(Event {
            client,
            key,
            operation,
            invoked,
            returned,
        });
    }
}

#[test]
fn correct_store_passes() {
    for seed in 0..20 {
        let report = Simulation::run(seed, 2000, 16, 5, Bug::None);
        assert!(report.is_linearizable(), "seed={seed} {report}");
        assert!(
            report.unknown > 20,
            "the history contains lost responses: {report}"
        );
    }
}

#[test]
fn fifty_thousand_operations_of_32_clients_are_checked() {
    let report = Simulation::run(7, 50_000, 32, 300, Bug::None);
    assert!(report.is_linearizable(), "{report}");
    // The work is close to one configuration per operation; an inefficient search visits many more.
    assert!(report.configurations < 100_000, "{report}");
}

#[test]
fn hot_keys_need_no_more_work_than_cold_keys() {
    for keys in [1, 3, 10] {
        let report = Simulation::run(3, 5_000, 32, keys, Bug::None);
        assert!(report.is_linearizable(), "{report}");
        assert!(report.configurations < 10_000, "{report}");
    }
}

#[test]
fn planted_bugs_are_found() {
    for bug in [
        Bug::StaleRead,
        Bug::UncheckedSwap,
        Bug::LostWrite,
        Bug::DoubleApply,
    ] {
        let found = (0..3)
            .map(|seed| Simulation::run(seed, 20_000, 32, 100, bug))
            .inspect(|report| assert_eq!(report.undecided, [0; 0]))
            .filter(|report| !report.violations.is_empty())
            .count();
        assert_eq!(found, 3, "bug {}", bug as u8);
    }
}

#[test]
fn violation_is_displayed_in_a_few_lines() {
    let report = Simulation::run(1, 20_000, 32, 100, Bug::StaleRead);
    for violation in &report.violations {
        let lines = violation.to_string().lines().count();
        assert!((2..=20).contains(&lines), "{violation}");
    }
}

/// Tries all orders of the required operations and of any of the lost ones for one that explains the history.
fn explained_by_trying<O: Operation>(events: &[Event<&'static str, O>], state: &O::State) -> bool {
    let Some(first_end) = events.iter().filter_map(|e| e.returned).min() else {
        return true;
    };
    (0..events.len()).any(|at| {
        let mut rest = events.to_vec();
        let event = rest.remove(at);
        event.invoked <= first_end
            && (event.operation.step(state)).is_some_and(|next| explained_by_trying(&rest, &next))
    })
}

fn random_register_op(random: &SeededRandom) -> Register {
    let value = || (random.below(3) > 0).then(|| random.below(2));
    match random.below(8) {
        0..3 => Read(value()),
        3 => Write(random.below(2)),
        4 => Delete,
        5 => Rejected { expected: value() },
        _ => swap(value(), value()),
    }
}

fn random_counter_op(random: &SeededRandom) -> CounterOp {
    let number = || random.below(4) as i64;
    match random.below(4) {
        0 => CounterOp::Read(number()),
        1 => CounterOp::Add(1 + number() % 2),
        _ => CounterOp::AddReturning {
            by: 1,
            sum: number(),
        },
    }
}

/// Checks that the search agrees with trying all orders on short histories, correct and incorrect.
fn agree<O: Operation>(operation: fn(&SeededRandom) -> O) {
    let random = SeededRandom::new(1);
    let (mut good, mut bad) = (0, 0);
    for round in 0..10_000 {
        let mut stamps: Vec<u64> = (0..14).collect();
        let mut stamp = || stamps.remove(random.below(stamps.len() as u64) as usize);
        let events: Vec<_> = (0..2 + random.below(5))
            .map(|_| {
                let (a, b, operation) = (stamp(), stamp(), operation(&random));
                match random.below(4) {
                    0 if operation.effect() != Effect::Observes => lost(a, operation),
                    _ => at(a.min(b), a.max(b), operation),
                }
            })
            .collect();
        let expected = explained_by_trying(&events, &O::initial());
        let report = linear::check(&events);
        assert_eq!(report.is_linearizable(), expected, "round={round} {report}");
        if expected {
            good += 1;
        } else {
            bad += 1;
        }
    }
    assert!(good > 1000 && bad > 1000, "good={good} bad={bad}");
}

#[test]
fn search_agrees_with_trying_all_orders() {
    agree(random_register_op);
    agree(random_counter_op);
}
