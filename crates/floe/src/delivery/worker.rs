//! The worker: acquires leases, runs over the partitions it holds, and releases them.
//!
//! Its heartbeats prove that it is alive and state which leases it releases and which members failed. The response
//! lists the leases it holds. Meanwhile it runs over each of its partitions. All of it is one future: dropping it
//! ends everything.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::sync::watch;

use super::members::{Heartbeat, Members, Token};
use super::options::{HEARTBEATS_PER_LEASE, LEAVE_ATTEMPTS, StoreRetry};
use super::stream::is_transient;
use super::{Host, RunContext, Signal};
use crate::concurrent::task_set::{TaskHandle, TaskSet};
use crate::error::{Error, Result};

/// A group whose members share partitions.
pub(crate) trait Group: Send + Sync {
    /// The environment of the group.
    fn host(&self) -> &dyn Host;

    /// Stores a heartbeat. Returns the state after it.
    fn heartbeat(&self, heartbeat: Heartbeat) -> impl Future<Output = Result<GroupState>> + Send;

    /// Removes a member, which frees its leases at once.
    fn leave(&self, member: &str) -> impl Future<Output = Result<()>> + Send;

    /// Runs over a partition.
    fn run(&self, context: RunContext) -> impl Future<Output = Result<RunOutcome>> + Send;

    /// Reports a change of a lease.
    fn noticed(&self, notice: LeaseNotice);

    /// Measures the lag of the partitions, if it is worth it.
    fn measure(&self, _: Vec<u32>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The state of a group after a heartbeat.
#[derive(Clone, Debug)]
pub(crate) struct GroupState {
    pub(crate) members: Members,
    /// The number of partitions, if known.
    pub(crate) partitions: Option<u32>,
    /// How often a replay of dead letters was requested.
    pub(crate) replay_requests: u64,
}

/// How a run over a partition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// It was stopped or has caught up.
    Completed,
    /// Another worker took over, or the checkpoint was moved.
    Fenced,
}

/// A change of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseNotice {
    /// The worker acquired a partition.
    Acquired(u32),
    /// The worker released a partition.
    Released(u32),
    /// The worker lost a partition, or cannot know whether it still holds it.
    Lost(u32),
    /// Other members hold all partitions.
    Waiting,
}

/// A worker of a group.
pub(crate) struct Worker<'w, G> {
    group: &'w G,
    tasks: TaskSet<'w, WorkerEvent<'w>>,
    /// Whether it continues at the tail.
    follows: bool,
    /// Whether failures of the store are retried without limit.
    retries_forever: bool,
    /// Its name among the members.
    member: String,
    held: BTreeMap<u32, HeldPartition>,
    /// Released or lost partitions with their terms, until a heartbeat confirms it. Until then no run starts over
    /// them: a term never has two runs.
    released: BTreeMap<u32, u64>,
    peers: BTreeMap<String, Peer>,
    /// Whether a heartbeat has succeeded.
    has_state: bool,
    /// Whether the wait for a lease was reported.
    has_reported_waiting: bool,
    replay_requests: u64,
    /// Completed rounds of its timer. A round is the interval between heartbeats.
    rounds: u32,
    heartbeat_state: HeartbeatState,
    lease_end: Option<TaskHandle>,
    is_measuring: bool,
    is_stopping: bool,
    failed: Option<Error>,
}

/// A partition held by the worker.
struct HeldPartition {
    term: u64,
    signal: watch::Sender<Signal>,
    /// Its run; `None` after it ended.
    run: Option<TaskHandle>,
}

/// Another member, as last seen.
struct Peer {
    heartbeats: u64,
    /// The round in which this heartbeat count was first seen.
    since: u32,
    /// Whether its heartbeat count was seen to change.
    is_alive: bool,
}

#[derive(PartialEq, Eq)]
enum HeartbeatState {
    Idle,
    InFlight,
    /// In flight, and another one is due.
    InFlightAndDue,
}

/// An event of a worker.
enum WorkerEvent<'w> {
    /// A heartbeat has completed; the future ends with the lease that it renews.
    HeartbeatDone(Result<GroupState>, BoxFuture<'w, ()>),
    /// A round of the timer has passed.
    RoundPassed,
    /// A run over a partition has ended.
    RunEnded(u32, Result<RunOutcome>),
    /// No heartbeat succeeded for the duration of a lease.
    LeaseExpired,
    Measured,
    Stop,
}

impl<'w, G: Group> Worker<'w, G> {
    /// Creates a worker that continues at the tail or ends there, and that retries failures of the store or ends with
    /// them.
    ///
    /// # Errors
    ///
    /// As for [`Options::check`](super::Options::check).
    pub(crate) fn new(group: &'w G, follows: bool, retries_forever: bool) -> Result<Self> {
        group.host().options().check()?;
        Ok(Self {
            group,
            tasks: TaskSet::new(),
            follows,
            retries_forever,
            member: group.host().db().env().uuid(),
            held: BTreeMap::new(),
            released: BTreeMap::new(),
            peers: BTreeMap::new(),
            has_state: false,
            has_reported_waiting: false,
            replay_requests: 0,
            rounds: 0,
            heartbeat_state: HeartbeatState::Idle,
            lease_end: None,
            is_measuring: false,
            is_stopping: false,
            failed: None,
        })
    }

    /// Runs until `stop` completes, or until it has caught up.
    ///
    /// # Errors
    ///
    /// The error of a run or a heartbeat.
    pub(crate) async fn run(mut self, stop: BoxFuture<'w, ()>) -> Result<()> {
        self.tasks.add(Box::pin(async move {
            stop.await;
            WorkerEvent::Stop
        }));
        self.start_round();
        self.send_heartbeat();
        while !self.has_ended() {
            match self.tasks.next().await {
                WorkerEvent::HeartbeatDone(result, lease_end) => {
                    self.heartbeat_done(result, lease_end);
                }
                WorkerEvent::RoundPassed => {
                    self.rounds = self.rounds.saturating_add(1);
                    self.start_round();
                    self.send_heartbeat();
                    self.measure();
                }
                WorkerEvent::Measured => self.is_measuring = false,
                WorkerEvent::RunEnded(partition, outcome) => self.run_ended(partition, outcome),
                WorkerEvent::LeaseExpired => self.lose_all(),
                WorkerEvent::Stop => self.stop(),
            }
        }
        self.tasks = TaskSet::new();
        self.leave().await;
        self.failed.map_or(Ok(()), Err)
    }

    /// Whether nothing is left to do. Waits for a heartbeat in flight, because the leases that it acquires must be
    /// released.
    fn has_ended(&self) -> bool {
        let is_running = self.held.values().any(|held| held.run.is_some());
        if self.heartbeat_state != HeartbeatState::Idle || is_running {
            return false;
        }
        self.is_stopping || !self.follows && self.has_caught_up()
    }

    /// Whether it is done with everything it can get. A member without new heartbeats may have failed, which frees
    /// its leases.
    fn has_caught_up(&self) -> bool {
        let are_alive = self.peers.values().all(|peer| peer.is_alive);
        self.has_state && are_alive && self.released.is_empty()
    }

    fn start_round(&mut self) {
        let round = self.sleep(self.group.host().options().heartbeat_interval());
        self.tasks.add(Box::pin(async move {
            round.await;
            WorkerEvent::RoundPassed
        }));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'w, ()> {
        self.group.host().db().timer().sleep(duration)
    }

    fn measure(&mut self) {
        if self.is_measuring {
            return;
        }
        self.is_measuring = true;
        let (group, held) = (self.group, self.held.keys().copied().collect());
        self.tasks.add(Box::pin(async move {
            group.measure(held).await;
            WorkerEvent::Measured
        }));
    }

    /// Sends a heartbeat.
    fn send_heartbeat(&mut self) {
        if self.heartbeat_state != HeartbeatState::Idle {
            self.heartbeat_state = HeartbeatState::InFlightAndDue;
            return;
        }
        self.heartbeat_state = HeartbeatState::InFlight;
        // The peer may have been seen near the end of a round, so the first round does not count.
        let is_gone = |peer: &Peer| self.rounds - peer.since > HEARTBEATS_PER_LEASE;
        let gone = self.peers.iter().filter(|(_, peer)| is_gone(peer));
        let heartbeat = Heartbeat {
            member: self.member.clone(),
            released: self.released.keys().copied().collect(),
            suspects: gone
                .map(|(member, peer)| (member.clone(), peer.heartbeats))
                .collect(),
        };
        // Starts before the heartbeat is sent; other members measure from when they see it, so they wait longer.
        let (group, lease_end) = (self.group, self.sleep(self.group.host().options().lease));
        self.tasks.add(Box::pin(async move {
            WorkerEvent::HeartbeatDone(group.heartbeat(heartbeat).await, lease_end)
        }));
    }

    fn heartbeat_done(&mut self, result: Result<GroupState>, lease_end: BoxFuture<'w, ()>) {
        let again = std::mem::replace(&mut self.heartbeat_state, HeartbeatState::Idle)
            == HeartbeatState::InFlightAndDue;
        match result {
            Ok(state) => {
                if let Some(old) = self.lease_end.take() {
                    self.tasks.cancel(old);
                }
                self.lease_end = Some(self.tasks.add(Box::pin(async move {
                    lease_end.await;
                    WorkerEvent::LeaseExpired
                })));
                self.apply(&state);
            }
            // The next round retries.
            Err(error) if self.retries_forever && is_transient(&error) => {
                self.group.host().store_failed(&error, Duration::ZERO);
            }
            Err(error) => self.fail(error),
        }
        if again && !self.is_stopping {
            self.send_heartbeat();
        }
    }

    /// Updates the leases it holds.
    fn apply(&mut self, state: &GroupState) {
        let members = &state.members;
        self.has_state = true;
        self.observe(members);
        let held = members.held(&self.member);
        let is_lost = |(partition, mine): (&u32, &HeldPartition)| {
            (held.get(partition) != Some(&mine.term)).then_some(*partition)
        };
        let lost: Vec<u32> = self.held.iter().filter_map(is_lost).collect();
        for partition in lost {
            self.lose(partition);
        }
        self.released
            .retain(|partition, term| held.get(partition) == Some(term));
        self.replay_requests = state.replay_requests;
        for held in self.held.values() {
            held.signal(|signal| signal.replay_requests = state.replay_requests);
        }
        for (partition, term) in held {
            let is_known =
                self.held.contains_key(&partition) || self.released.contains_key(&partition);
            if !is_known && !self.is_stopping {
                self.start_run(partition, term);
            }
        }
        if let Some(partitions) = state.partitions {
            for partition in members.surplus(&self.member, partitions) {
                self.release(partition);
            }
        }
        if self.held.is_empty()
            && !self.peers.is_empty()
            && !self.is_stopping
            && !self.has_reported_waiting
        {
            self.has_reported_waiting = true;
            self.group.noticed(LeaseNotice::Waiting);
        }
    }

    /// Records which peers sent heartbeats since they were last seen.
    fn observe(&mut self, members: &Members) {
        let mut peers = BTreeMap::new();
        for (member, heartbeats) in &members.heartbeats {
            if *member == self.member {
                continue;
            }
            let peer = match self.peers.remove(member) {
                Some(known) if known.heartbeats == *heartbeats => known,
                known => Peer {
                    heartbeats: *heartbeats,
                    since: self.rounds,
                    is_alive: known.is_some(),
                },
            };
            peers.insert(member.clone(), peer);
        }
        self.peers = peers;
    }

    /// Starts a run over a partition.
    fn start_run(&mut self, partition: u32, term: u64) {
        let (signal, signals) = watch::channel(Signal {
            stop: false,
            replay_requests: self.replay_requests,
        });
        let context = RunContext {
            partition,
            lease: Some(Token {
                member: self.member.clone(),
                term,
            }),
            follows: self.follows,
            retries_forever: self.retries_forever,
            signals: Some(signals),
        };
        self.has_reported_waiting = false;
        self.group.noticed(LeaseNotice::Acquired(partition));
        let group = self.group;
        let run = self.tasks.add(Box::pin(async move {
            WorkerEvent::RunEnded(partition, group.run(context).await)
        }));
        let run = Some(run);
        self.held
            .insert(partition, HeldPartition { term, signal, run });
    }

    /// Releases a partition after its run has ended.
    fn release(&mut self, partition: u32) {
        let Some(held) = self.held.get(&partition) else {
            return;
        };
        if held.run.is_some() {
            held.signal(|signal| signal.stop = true);
            return;
        }
        self.released.insert(partition, held.term);
        self.held.remove(&partition);
        self.group.noticed(LeaseNotice::Released(partition));
        self.send_heartbeat();
    }

    fn run_ended(&mut self, partition: u32, outcome: Result<RunOutcome>) {
        let Some(held) = self.held.get_mut(&partition) else {
            return;
        };
        held.run = None;
        let stop_was_requested = held.signal.borrow().stop;
        match outcome {
            Err(error) => self.fail(error),
            Ok(RunOutcome::Fenced) => {
                self.lose(partition);
                // The next heartbeat shows whether it still holds the partition.
                if !self.is_stopping {
                    self.send_heartbeat();
                }
            }
            Ok(RunOutcome::Completed) if stop_was_requested && !self.is_stopping => {
                self.release(partition);
            }
            Ok(RunOutcome::Completed) => {}
        }
    }

    /// Handles the loss of a partition.
    fn lose(&mut self, partition: u32) {
        if let Some(held) = self.held.remove(&partition) {
            if let Some(run) = held.run {
                self.tasks.cancel(run);
            }
            self.released.insert(partition, held.term);
            self.has_reported_waiting = true;
            self.group.noticed(LeaseNotice::Lost(partition));
        }
    }

    fn lose_all(&mut self) {
        let held: Vec<u32> = self.held.keys().copied().collect();
        for partition in held {
            self.lose(partition);
        }
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        for held in self.held.values() {
            held.signal(|signal| signal.stop = true);
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
        self.stop();
    }

    /// Releases everything. If that fails, the leases expire.
    async fn leave(&mut self) {
        let mut retry = StoreRetry::new(self.group.host(), true);
        for _ in 0..LEAVE_ATTEMPTS {
            match self.group.leave(&self.member).await {
                Ok(()) => break,
                Err(error) => {
                    if retry.wait_if_transient(error).await.is_err() {
                        return;
                    }
                }
            }
        }
        for partition in self.held.keys() {
            self.group.noticed(LeaseNotice::Released(*partition));
        }
    }
}

impl HeldPartition {
    /// Sends a signal to its run, if it changes anything.
    fn signal(&self, change: impl FnOnce(&mut Signal)) {
        self.signal.send_if_modified(|signal| {
            let before = *signal;
            change(signal);
            *signal != before
        });
    }
}
