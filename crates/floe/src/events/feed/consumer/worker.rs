//! Workers: take leases, run over the partitions that they hold, and give them back.
//!
//! A worker beats: it says that it is alive, gives back what is beyond its share, takes what is free, and learns who else
//! is there. Beside that it runs over each of its partitions. All of it is one future: if it is dropped, everything ends.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::sync::watch;

use super::lease::{Beat, Members, ReaderGroup};
use super::options::Notice;
use super::{Consumer, ConsumerGroup, Orders, Patience, Ran, Worked, passes};
use crate::error::{Error, Result};
use crate::events::Stream;
use crate::events::feed::limits::BEATS_PER_LEASE;
use crate::events::feed::partition::{Partition, Partitions};
use crate::side_by_side::crowd::{Crowd, Ticket};
use crate::telemetry::feed as telemetry;

/// How often a worker tries to give its partitions back in the end. If it cannot, its lease runs out.
const LEAVE_TRIES: u32 = 3;

/// What a worker does with a partition.
pub(super) trait Works<'w>: Send + Sync {
    /// Runs over the partition, up to where the orders say.
    fn run(&'w self, consumer: Consumer, orders: Orders) -> BoxFuture<'w, Result<Ran>>;
}

/// A worker of a group.
pub(super) struct Worker<'w> {
    group: &'w ConsumerGroup,
    works: &'w dyn Works<'w>,
    /// Whether it goes on at the tail.
    follows: bool,
    /// Its name among the members.
    member: String,
    partitions: Option<Partitions>,
    held: BTreeMap<Partition, Held>,
    /// What it will not hold any more with the next beat, and the term of each.
    given_back: BTreeMap<Partition, u64>,
    others: BTreeMap<String, Other>,
    /// How many rounds of its timer have passed. A round lasts for as long as it is from one beat to the next.
    rounds: u32,
    beating: Beating,
    lease_end: Option<Ticket>,
    is_measuring: bool,
    is_stopping: bool,
    failed: Option<Error>,
    worked: Worked,
}

/// A partition that it holds.
struct Held {
    term: u64,
    state: State,
}

enum State {
    /// It runs over it, and can be told to stop.
    Runs(Ticket, watch::Sender<bool>),
    /// It will begin with the next beat that says that it still holds it.
    Waits,
    /// It is done with it.
    CaughtUp,
}

/// Another member, as it was seen last.
struct Other {
    beats: u64,
    /// In which round it was first seen with so many beats.
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
    /// The answer to a beat, and what waits for the end of the lease that it brings.
    Beaten(Result<(Option<Partitions>, Members)>, BoxFuture<'w, ()>),
    /// A round of the timer has passed.
    Round,
    /// A run over a partition has come to its end.
    Ended(Partition, Result<Ran>),
    /// There was no beat for as long as a lease lasts.
    LeaseEnded,
    /// How far it is behind was measured.
    Measured,
    /// It is to stop.
    Stop,
}

impl<'w> Worker<'w> {
    pub(super) fn new(
        group: &'w ConsumerGroup,
        works: &'w dyn Works<'w>,
        follows: bool,
    ) -> Result<Self> {
        group.options.check()?;
        Ok(Self {
            group,
            works,
            follows,
            member: group.store.db().env().uuid(),
            partitions: None,
            held: BTreeMap::new(),
            given_back: BTreeMap::new(),
            others: BTreeMap::new(),
            rounds: 0,
            beating: Beating::Not,
            lease_end: None,
            is_measuring: false,
            is_stopping: false,
            failed: None,
            worked: Worked::default(),
        })
    }

    /// Works until it is to stop, or until it has caught up.
    pub(super) async fn run(mut self, stop: BoxFuture<'w, ()>) -> Result<Worked> {
        let mut crowd: Crowd<'w, Heard<'w>> = Crowd::new();
        crowd.join(Box::pin(async move {
            stop.await;
            Heard::Stop
        }));
        self.wait_for_round(&mut crowd);
        self.beat(&mut crowd);
        while !self.has_ended() {
            match crowd.next().await {
                Heard::Beaten(answer, lease_end) => self.beaten(&mut crowd, answer, lease_end),
                Heard::Round => {
                    self.rounds = self.rounds.saturating_add(1);
                    self.wait_for_round(&mut crowd);
                    self.beat(&mut crowd);
                    self.measure(&mut crowd);
                }
                Heard::Measured => self.is_measuring = false,
                Heard::Ended(partition, ran) => self.ended(&mut crowd, partition, ran),
                Heard::LeaseEnded => self.lose_all(&mut crowd),
                Heard::Stop => self.stop(),
            }
        }
        drop(crowd);
        self.leave().await;
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.worked),
        }
    }

    /// Whether there is nothing left to do. A beat that is under way is waited for: what it takes must be given back.
    fn has_ended(&self) -> bool {
        if self.beating != Beating::Not || self.held.values().any(Held::runs) {
            return false;
        }
        self.is_stopping || !self.follows && self.has_caught_up()
    }

    /// Whether it is done with all that it can have.
    fn has_caught_up(&self) -> bool {
        let is_done = |held: &Held| matches!(held.state, State::CaughtUp);
        // Who was not seen to beat may be gone, and what it holds is nobody's then.
        let are_alive = self.others.values().all(|other| other.is_alive);
        are_alive && self.given_back.is_empty() && self.held.values().all(is_done)
    }

    fn wait_for_round(&self, crowd: &mut Crowd<'w, Heard<'w>>) {
        let round = self.sleep(self.group.options.beat());
        crowd.join(Box::pin(async move {
            round.await;
            Heard::Round
        }));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'w, ()> {
        self.group.store.db().timer().sleep(duration)
    }

    /// Measures how far it is behind, if somebody listens: this takes two reads for each partition.
    fn measure(&mut self, crowd: &mut Crowd<'w, Heard<'w>>) {
        if self.is_measuring || !telemetry::is_measured() {
            return;
        }
        self.is_measuring = true;
        let held = self.held.keys().map(|held| self.group.partition(*held));
        let held: Vec<Consumer> = held.collect();
        crowd.join(Box::pin(async move {
            for consumer in held {
                // It tells what it finds. What it cannot find now, it finds later.
                drop(consumer.lag().await);
            }
            Heard::Measured
        }));
    }

    /// Says that it is alive.
    fn beat(&mut self, crowd: &mut Crowd<'w, Heard<'w>>) {
        if self.beating != Beating::Not {
            self.beating = Beating::NowAndAgain;
            return;
        }
        self.beating = Beating::Now;
        let (group, known, beat) = (self.group, self.partitions, self.next_beat());
        // It counts from before the beat is sent, and for others from when they see it: they wait longer.
        let lease_end = self.sleep(group.options.lease);
        crowd.join(Box::pin(async move {
            let answer = send(group, known, beat).await;
            Heard::Beaten(answer, lease_end)
        }));
    }

    fn next_beat(&self) -> Beat {
        // A round may have been nearly over when the other was seen, so it does not count.
        let is_gone = |other: &Other| self.rounds - other.since > BEATS_PER_LEASE;
        let gone = self.others.iter().filter(|(_, other)| is_gone(other));
        Beat {
            member: self.member.clone(),
            partitions: None,
            gone: gone
                .map(|(member, other)| (member.clone(), other.beats))
                .collect(),
            given_back: self.given_back.keys().copied().collect(),
        }
    }

    fn beaten(
        &mut self,
        crowd: &mut Crowd<'w, Heard<'w>>,
        answer: Result<(Option<Partitions>, Members)>,
        lease_end: BoxFuture<'w, ()>,
    ) {
        let again = std::mem::replace(&mut self.beating, Beating::Not) == Beating::NowAndAgain;
        match answer {
            Ok((partitions, members)) => {
                self.partitions = partitions;
                if let Some(old) = self.lease_end.take() {
                    crowd.leave(old);
                }
                self.lease_end = Some(crowd.join(Box::pin(async move {
                    lease_end.await;
                    Heard::LeaseEnded
                })));
                self.learn(crowd, &members);
            }
            // The next round tries again.
            Err(error) if self.follows && passes(&error) => {
                telemetry::failed(&self.group.name, &error);
                let partition = None;
                let notice = Notice::Failed { partition, error };
                self.group.options.tell(&notice);
            }
            Err(error) => self.fail(error),
        }
        if again && !self.is_stopping {
            self.beat(crowd);
        }
    }

    /// Learns who else is there, and what it holds.
    fn learn(&mut self, crowd: &mut Crowd<'w, Heard<'w>>, members: &Members) {
        self.observe(members);
        let held = members.held(&self.member);
        self.given_back
            .retain(|partition, term| held.get(partition) == Some(term));
        let lost: Vec<Partition> = self
            .held
            .iter()
            .filter(|(partition, mine)| held.get(partition) != Some(&mine.term))
            .map(|(partition, _)| *partition)
            .collect();
        for partition in lost {
            self.lose(crowd, partition);
        }
        for (partition, term) in held {
            let waits = self.held.get(&partition).is_none_or(Held::waits);
            if waits && !self.is_stopping && !self.given_back.contains_key(&partition) {
                self.begin(crowd, partition, term);
            }
        }
        let surplus = self
            .partitions
            .map(|partitions| members.surplus(&self.member, partitions));
        for partition in surplus.unwrap_or_default() {
            self.give_back(crowd, partition);
        }
    }

    /// Notes which of the others have beaten since they were last seen.
    fn observe(&mut self, members: &Members) {
        let mut others = BTreeMap::new();
        for (member, beats) in members.beats() {
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
    fn begin(&mut self, crowd: &mut Crowd<'w, Heard<'w>>, partition: Partition, term: u64) {
        let (tell, told) = watch::channel(false);
        let orders = Orders {
            lease: Some(term),
            follows: self.follows,
            stop: Some(told),
        };
        let (consumer, works) = (self.group.partition(partition), self.works);
        let ticket = crowd.join(Box::pin(async move {
            let ran = works.run(consumer, orders).await;
            Heard::Ended(partition, ran)
        }));
        let state = State::Runs(ticket, tell);
        let before = self.held.insert(partition, Held { term, state });
        if before.is_none() {
            self.group.options.tell(&Notice::Taken(partition));
        }
    }

    /// Gives a partition back once nothing runs over it any more.
    fn give_back(&mut self, crowd: &mut Crowd<'w, Heard<'w>>, partition: Partition) {
        let Some(held) = self.held.get(&partition) else {
            return;
        };
        if let State::Runs(_, tell) = &held.state {
            tell.send_replace(true);
            return;
        }
        self.given_back.insert(partition, held.term);
        self.held.remove(&partition);
        self.group.options.tell(&Notice::GivenBack(partition));
        self.beat(crowd);
    }

    /// A run over a partition has come to its end.
    fn ended(&mut self, crowd: &mut Crowd<'w, Heard<'w>>, partition: Partition, ran: Result<Ran>) {
        let Some(held) = self.held.get_mut(&partition) else {
            return;
        };
        let was_told = held.is_told();
        match ran {
            Err(error) => {
                held.state = State::Waits;
                self.fail(error);
            }
            Ok(ran) => {
                held.state = match ran.is_fenced {
                    true => State::Waits,
                    false => State::CaughtUp,
                };
                self.worked.add(partition, ran.consumed);
                if ran.is_fenced {
                    self.group.options.tell(&Notice::Lost(partition));
                }
                if was_told && !self.is_stopping {
                    self.give_back(crowd, partition);
                } else if ran.is_fenced {
                    // Whether it still holds the partition is told by the next beat.
                    self.beat(crowd);
                }
            }
        }
    }

    /// A partition is not its own any more.
    fn lose(&mut self, crowd: &mut Crowd<'w, Heard<'w>>, partition: Partition) {
        if let Some(held) = self.held.remove(&partition) {
            if let State::Runs(ticket, _) = held.state {
                crowd.leave(ticket);
            }
            self.group.options.tell(&Notice::Lost(partition));
        }
    }

    fn lose_all(&mut self, crowd: &mut Crowd<'w, Heard<'w>>) {
        let held: Vec<Partition> = self.held.keys().copied().collect();
        for partition in held {
            self.lose(crowd, partition);
        }
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        for held in self.held.values() {
            if let State::Runs(_, tell) = &held.state {
                tell.send_replace(true);
            }
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
        self.stop();
    }

    /// Gives everything back. If that does not work, the lease runs out.
    async fn leave(&self) {
        let members = self.members();
        let decide = |members: &Members| {
            let is_member = members.beats().contains_key(&self.member);
            Ok::<_, Error>(is_member.then(|| members.without(&self.member)))
        };
        let mut patience = Patience {
            store: &self.group.store,
            group: self.group.name.as_str(),
            options: &self.group.options,
            partition: None,
            is_endless: true,
            failures: 0,
        };
        for _ in 0..LEAVE_TRIES {
            match members.transact(decide).await {
                Ok(()) => break,
                Err(error) => {
                    if patience.outlast(error).await.is_err() {
                        return;
                    }
                }
            }
        }
        for partition in self.held.keys() {
            self.group.options.tell(&Notice::GivenBack(*partition));
        }
    }

    fn members(&self) -> Stream<ReaderGroup> {
        super::members(&self.group.store, &self.group.name)
    }
}

/// Sends a beat. Asks first how many partitions there are, if that is not known.
async fn send(
    group: &ConsumerGroup,
    known: Option<Partitions>,
    mut beat: Beat,
) -> Result<(Option<Partitions>, Members)> {
    beat.partitions = match known {
        Some(known) => Some(known),
        None => group.store.feed_partitions().await?,
    };
    let decide = |members: &Members| {
        let after = members.after(&beat);
        Ok::<_, Error>((after.clone(), [after]))
    };
    let members = super::members(&group.store, &group.name);
    let members = members.transact(decide).await?;
    Ok((beat.partitions, members))
}

impl Held {
    const fn runs(&self) -> bool {
        matches!(self.state, State::Runs(..))
    }

    const fn waits(&self) -> bool {
        matches!(self.state, State::Waits)
    }

    /// Whether it was told to stop.
    fn is_told(&self) -> bool {
        match &self.state {
            State::Runs(_, tell) => *tell.borrow(),
            State::Waits | State::CaughtUp => false,
        }
    }
}
