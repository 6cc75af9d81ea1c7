//! The worker: takes leases, runs over the partitions that it holds, and gives them back.
//!
//! It sends heartbeats: that it is alive, which leases it gives back and which members are gone. From the answer it learns
//! which leases it holds. Beside that it runs over each of its partitions. All of it is one future: if it is dropped,
//! everything ends.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::sync::watch;

use super::members::{Beat, Members, Token};
use super::options::{BEATS_PER_LEASE, LEAVE_ATTEMPTS, StoreRetry};
use super::stream::passes;
use super::{Host, Orders, Signal};
use crate::error::{Error, Result};
use crate::side_by_side::crowd::{Crowd, Ticket};

/// A group whose members share partitions.
pub(crate) trait Group: Send + Sync {
    /// Its options, and what it reports to.
    fn host(&self) -> &dyn Host;

    /// Stores a heartbeat, and returns the state after it.
    fn beat(&self, beat: Beat) -> impl Future<Output = Result<Standing>> + Send;

    /// Removes a member, so that its leases are free at once.
    fn leave(&self, member: &str) -> impl Future<Output = Result<()>> + Send;

    /// Runs over a partition, up to where the orders say.
    fn run(&self, orders: Orders) -> impl Future<Output = Result<End>> + Send;

    /// What happens to leases.
    fn noticed(&self, notice: Notice);

    /// Measures how far the partitions are behind, if that is worth it.
    fn measure(&self, _: Vec<u32>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// What a heartbeat has brought.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) members: Members,
    /// The number of partitions, if it is known.
    pub(crate) partitions: Option<u32>,
    /// How often the group was asked to look at its dead letters.
    pub(crate) asked: u64,
}

/// Why a run over a partition has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was told to stop, or has caught up.
    Done,
    /// Another worker has taken over, or the checkpoint was moved.
    Fenced,
}

/// What happens to leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The worker has taken a partition.
    Taken(u32),
    /// The worker has given a partition back.
    GivenBack(u32),
    /// The partition is not the worker's any more, or it cannot know that it is.
    Lost(u32),
    /// Other members hold all partitions.
    Waits,
}

/// A worker of a group.
pub(crate) struct Worker<'w, G> {
    group: &'w G,
    crowd: Crowd<'w, Heard<'w>>,
    /// Whether it goes on at the tail.
    follows: bool,
    /// Whether it waits for a store that fails.
    is_patient: bool,
    /// Its name among the members.
    member: String,
    held: BTreeMap<u32, Held>,
    /// The partitions that it has given back or lost, and the term of each, until a heartbeat has said so. Until then it
    /// begins no run: there are never two under one term.
    left: BTreeMap<u32, u64>,
    others: BTreeMap<String, Other>,
    /// Whether a heartbeat was answered.
    is_known: bool,
    /// Whether it was reported that it waits.
    waits: bool,
    asked: u64,
    /// How many rounds of its timer have passed. A round lasts from one heartbeat to the next.
    rounds: u32,
    beating: Beating,
    lease_end: Option<Ticket>,
    is_measuring: bool,
    is_stopping: bool,
    failed: Option<Error>,
}

/// A partition that it holds.
struct Held {
    term: u64,
    signal: watch::Sender<Signal>,
    /// Its run; `None` if it has ended.
    run: Option<Ticket>,
}

/// Another member, as it was seen last.
struct Other {
    beats: u64,
    /// The round in which it was first seen with this count of heartbeats.
    since: u32,
    /// Whether it was seen to beat.
    is_alive: bool,
}

#[derive(PartialEq, Eq)]
enum Beating {
    Not,
    Now,
    /// And once more, for what has come up since.
    NowAndAgain,
}

/// What a worker hears.
enum Heard<'w> {
    /// The answer to a heartbeat, and the end of the lease that it brings.
    Beaten(Result<Standing>, BoxFuture<'w, ()>),
    /// A round of the timer has passed.
    Round,
    /// A run over a partition has ended.
    Ended(u32, Result<End>),
    /// No heartbeat was answered for as long as a lease lasts.
    LeaseEnded,
    Measured,
    Stop,
}

impl<'w, G: Group> Worker<'w, G> {
    /// A worker that goes on at the tail, or ends there; and that waits for a store that fails, or ends.
    ///
    /// # Errors
    ///
    /// As for [`Options::check`](super::Options::check).
    pub(crate) fn new(group: &'w G, follows: bool, is_patient: bool) -> Result<Self> {
        group.host().options().check()?;
        Ok(Self {
            group,
            crowd: Crowd::new(),
            follows,
            is_patient,
            member: group.host().db().env().uuid(),
            held: BTreeMap::new(),
            left: BTreeMap::new(),
            others: BTreeMap::new(),
            is_known: false,
            waits: false,
            asked: 0,
            rounds: 0,
            beating: Beating::Not,
            lease_end: None,
            is_measuring: false,
            is_stopping: false,
            failed: None,
        })
    }

    /// Works until `stop` is done, or until it has caught up.
    ///
    /// # Errors
    ///
    /// What a run or a heartbeat fails with.
    pub(crate) async fn run(mut self, stop: BoxFuture<'w, ()>) -> Result<()> {
        self.crowd.join(Box::pin(async move {
            stop.await;
            Heard::Stop
        }));
        self.wait_for_round();
        self.beat();
        while !self.has_ended() {
            match self.crowd.next().await {
                Heard::Beaten(answer, lease_end) => self.beaten(answer, lease_end),
                Heard::Round => {
                    self.rounds = self.rounds.saturating_add(1);
                    self.wait_for_round();
                    self.beat();
                    self.measure();
                }
                Heard::Measured => self.is_measuring = false,
                Heard::Ended(partition, end) => self.ended(partition, end),
                Heard::LeaseEnded => self.lose_all(),
                Heard::Stop => self.stop(),
            }
        }
        self.crowd = Crowd::new();
        self.leave().await;
        self.failed.map_or(Ok(()), Err)
    }

    /// Whether nothing is left to do. A heartbeat that is under way is waited for: what it takes must be given back.
    fn has_ended(&self) -> bool {
        let is_running = self.held.values().any(|held| held.run.is_some());
        if self.beating != Beating::Not || is_running {
            return false;
        }
        self.is_stopping || !self.follows && self.has_caught_up()
    }

    /// Whether it is done with all that it can have. A member that was not seen to beat may be gone, and what it holds is
    /// free then.
    fn has_caught_up(&self) -> bool {
        let are_alive = self.others.values().all(|other| other.is_alive);
        self.is_known && are_alive && self.left.is_empty()
    }

    fn wait_for_round(&mut self) {
        let round = self.sleep(self.group.host().options().beat());
        self.crowd.join(Box::pin(async move {
            round.await;
            Heard::Round
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
        self.crowd.join(Box::pin(async move {
            group.measure(held).await;
            Heard::Measured
        }));
    }

    /// Sends a heartbeat.
    fn beat(&mut self) {
        if self.beating != Beating::Not {
            self.beating = Beating::NowAndAgain;
            return;
        }
        self.beating = Beating::Now;
        // A round may have been nearly over when the other was seen, so it does not count.
        let is_gone = |other: &Other| self.rounds - other.since > BEATS_PER_LEASE;
        let gone = self.others.iter().filter(|(_, other)| is_gone(other));
        let beat = Beat {
            member: self.member.clone(),
            given_back: self.left.keys().copied().collect(),
            gone: gone
                .map(|(member, other)| (member.clone(), other.beats))
                .collect(),
        };
        // It counts from before the heartbeat is sent, and for others from when they see it: they wait longer.
        let (group, lease_end) = (self.group, self.sleep(self.group.host().options().lease));
        self.crowd.join(Box::pin(async move {
            Heard::Beaten(group.beat(beat).await, lease_end)
        }));
    }

    fn beaten(&mut self, answer: Result<Standing>, lease_end: BoxFuture<'w, ()>) {
        let again = std::mem::replace(&mut self.beating, Beating::Not) == Beating::NowAndAgain;
        match answer {
            Ok(standing) => {
                if let Some(old) = self.lease_end.take() {
                    self.crowd.leave(old);
                }
                self.lease_end = Some(self.crowd.join(Box::pin(async move {
                    lease_end.await;
                    Heard::LeaseEnded
                })));
                self.learn(&standing);
            }
            // The next round tries again.
            Err(error) if self.is_patient && passes(&error) => {
                self.group.host().store_failed(&error, Duration::ZERO);
            }
            Err(error) => self.fail(error),
        }
        if again && !self.is_stopping {
            self.beat();
        }
    }

    /// Learns which leases it holds.
    fn learn(&mut self, standing: &Standing) {
        let members = &standing.members;
        self.is_known = true;
        self.observe(members);
        let held = members.held(&self.member);
        let is_lost = |(partition, mine): (&u32, &Held)| {
            (held.get(partition) != Some(&mine.term)).then_some(*partition)
        };
        let lost: Vec<u32> = self.held.iter().filter_map(is_lost).collect();
        for partition in lost {
            self.lose(partition);
        }
        self.left
            .retain(|partition, term| held.get(partition) == Some(term));
        self.asked = standing.asked;
        for held in self.held.values() {
            held.signal(|signal| signal.asked = standing.asked);
        }
        for (partition, term) in held {
            let is_known = self.held.contains_key(&partition) || self.left.contains_key(&partition);
            if !is_known && !self.is_stopping {
                self.begin(partition, term);
            }
        }
        if let Some(partitions) = standing.partitions {
            for partition in members.surplus(&self.member, partitions) {
                self.give_back(partition);
            }
        }
        if self.held.is_empty() && !self.others.is_empty() && !self.is_stopping && !self.waits {
            self.waits = true;
            self.group.noticed(Notice::Waits);
        }
    }

    /// Notes which of the others have beaten since they were last seen.
    fn observe(&mut self, members: &Members) {
        let mut others = BTreeMap::new();
        for (member, beats) in &members.beats {
            if *member == self.member {
                continue;
            }
            let other = match self.others.remove(member) {
                Some(known) if known.beats == *beats => known,
                known => Other {
                    beats: *beats,
                    since: self.rounds,
                    is_alive: known.is_some(),
                },
            };
            others.insert(member.clone(), other);
        }
        self.others = others;
    }

    /// Begins to run over a partition.
    fn begin(&mut self, partition: u32, term: u64) {
        let (signal, signals) = watch::channel(Signal {
            stop: false,
            asked: self.asked,
        });
        let orders = Orders {
            partition,
            lease: Some(Token {
                member: self.member.clone(),
                term,
            }),
            follows: self.follows,
            is_patient: self.is_patient,
            signals: Some(signals),
        };
        self.waits = false;
        self.group.noticed(Notice::Taken(partition));
        let group = self.group;
        let run = self.crowd.join(Box::pin(async move {
            Heard::Ended(partition, group.run(orders).await)
        }));
        let run = Some(run);
        self.held.insert(partition, Held { term, signal, run });
    }

    /// Gives a partition back once nothing runs over it any more.
    fn give_back(&mut self, partition: u32) {
        let Some(held) = self.held.get(&partition) else {
            return;
        };
        if held.run.is_some() {
            held.signal(|signal| signal.stop = true);
            return;
        }
        self.left.insert(partition, held.term);
        self.held.remove(&partition);
        self.group.noticed(Notice::GivenBack(partition));
        self.beat();
    }

    fn ended(&mut self, partition: u32, end: Result<End>) {
        let Some(held) = self.held.get_mut(&partition) else {
            return;
        };
        held.run = None;
        let was_told = held.signal.borrow().stop;
        match end {
            Err(error) => self.fail(error),
            Ok(End::Fenced) => {
                self.lose(partition);
                // Whether it still holds the partition is known by the next heartbeat.
                if !self.is_stopping {
                    self.beat();
                }
            }
            Ok(End::Done) if was_told && !self.is_stopping => self.give_back(partition),
            Ok(End::Done) => {}
        }
    }

    /// A partition is not its own any more.
    fn lose(&mut self, partition: u32) {
        if let Some(held) = self.held.remove(&partition) {
            if let Some(run) = held.run {
                self.crowd.leave(run);
            }
            self.left.insert(partition, held.term);
            self.waits = true;
            self.group.noticed(Notice::Lost(partition));
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

    /// Gives everything back. If that does not work, the leases run out.
    async fn leave(&mut self) {
        let mut retry = StoreRetry::new(self.group.host(), true);
        for _ in 0..LEAVE_ATTEMPTS {
            match self.group.leave(&self.member).await {
                Ok(()) => break,
                Err(error) => {
                    if retry.outlast(error).await.is_err() {
                        return;
                    }
                }
            }
        }
        for partition in self.held.keys() {
            self.group.noticed(Notice::GivenBack(*partition));
        }
    }
}

impl Held {
    /// Tells its run something, unless it knows.
    fn signal(&self, change: impl FnOnce(&mut Signal)) {
        self.signal.send_if_modified(|signal| {
            let before = *signal;
            change(signal);
            *signal != before
        });
    }
}
