//! The run of the process that delivers: reading, handling and storing, beside each other in one task.
//!
//! Tables are read ahead into their [backlogs](super::backlog), as far as there is room. What is stored is up to where
//! everything is done or parked, so whoever goes on from there misses nothing, and is given again what was handled beyond.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use floe_store::op::HoldChanges;
use floe_store::{BoxFuture, Item, Timestamp};
use tracing::Instrument;

use super::super::limits::{
    BYTES_AHEAD, CHANGES_PER_TURN, EMPTY_LOOKS, LOOKS_AHEAD, RECORDS_AHEAD, REMEMBERED,
};
use super::super::recent::Recent;
use super::super::work::Work;
use super::backlog::Backlog;
use super::lease::{self, Mine};
use super::notice::{Notice, Progress, Ran};
use super::parked::Items;
use super::source::{Look, Mark, Source};
use super::turn::Turn;
use super::{Consumer, position};
use crate::changes::stream::Positions;
use crate::error::Result;
use crate::side_by_side;
use crate::side_by_side::crowd::{Crowd, Ticket};
use crate::telemetry::changes as telemetry;

/// Why a run has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was told to stop, or has caught up.
    Done,
    /// Somebody else delivers by now, or may do so.
    Fenced,
}

/// What has come to its end.
enum Done<'c> {
    Looked(usize, Box<Source>, Result<Look>),
    Turned(usize, Item, Result<Turn>),
    Stored(Vec<(usize, Mark)>, Result<bool>),
    Waited(usize),
    Round,
    Beaten(Result<Option<u64>>, BoxFuture<'c, ()>),
    LeaseEnded,
    Listed(Result<Items>),
    GraceOver,
}

/// A table, and how far it is.
struct Table {
    name: Arc<str>,
    /// Absent while it reads.
    source: Option<Box<Source>>,
    backlog: Backlog<Work, Mark>,
    /// How often in a row there was nothing to do.
    idle: u32,
    /// Whether it waits for something new.
    waits: bool,
    /// Up to where it was read.
    read: Positions,
    /// What is held.
    holds: Vec<HoldChanges>,
}

/// A run.
pub(super) struct Run<'c> {
    consumer: &'c Consumer,
    mine: Arc<Mine>,
    follows: bool,
    tables: Vec<Table>,
    recent: Recent<()>,
    /// The items of which something is parked, by the number of their table.
    parked: HashSet<(usize, Item)>,
    parked_count: usize,
    /// Items whose parked changes are to be tried again.
    replays: VecDeque<(usize, Item)>,
    turns: Vec<(usize, Item, Ticket)>,
    is_storing: bool,
    is_beating: bool,
    is_listing: bool,
    lease_end: Option<Ticket>,
    is_stopping: bool,
    ran: Ran,
    /// When it was last told how it gets on, and how many changes were done by then.
    told: (Timestamp, u64),
    last_created: Timestamp,
}

impl<'c> Run<'c> {
    /// Makes everything ready; `None` if somebody else delivers by now.
    pub(super) async fn begin(
        consumer: &'c Consumer,
        mine: Mine,
        follows: bool,
        ran: Ran,
    ) -> Result<Option<Self>> {
        let mut tables = Vec::new();
        for name in consumer.tables() {
            let claimed = position::claim(&consumer.db, &consumer.name, &name, &mine).await?;
            let Some(positions) = claimed else {
                return Ok(None);
            };
            let accepts = consumer.options.accepts_trimmed;
            let before = positions.clone();
            let source = Source::open(&consumer.db, &name, positions, accepts).await?;
            source.check(consumer.needs(&name))?;
            let (mut backlog, mark) = (Backlog::default(), source.mark(&consumer.hold_name()));
            let read = mark.positions.clone();
            if read != before {
                // Shards are noted when they are found: one that is gone before it was read is missed then.
                backlog.push(mark, Vec::new());
            }
            tables.push(Table {
                name,
                source: Some(Box::new(source)),
                backlog,
                idle: 0,
                waits: false,
                read,
                holds: Vec::new(),
            });
        }
        let now = consumer.db.engine().now();
        let mut run = Self {
            consumer,
            mine: Arc::new(mine),
            follows,
            tables,
            recent: Recent::new(REMEMBERED),
            parked: HashSet::new(),
            parked_count: 0,
            replays: VecDeque::new(),
            turns: Vec::new(),
            is_storing: false,
            is_beating: false,
            is_listing: false,
            lease_end: None,
            is_stopping: false,
            ran,
            told: (now, 0),
            last_created: Timestamp::default(),
        };
        run.told.1 = run.done();
        run.learn_parked(consumer.parked().items().await?);
        Ok(Some(run))
    }

    /// Runs until nothing is left to do, or somebody else delivers.
    pub(super) async fn finish(
        &mut self,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<End> {
        let mut crowd: Crowd<'c, Done<'c>> = Crowd::new();
        self.await_round(&mut crowd);
        // The lease was taken just now.
        let lease_end = self.consumer.sleep(self.consumer.options.lease);
        self.await_lease_end(&mut crowd, lease_end);
        loop {
            self.begin_to_read(&mut crowd);
            self.begin_to_replay(&mut crowd);
            self.begin_turns(&mut crowd);
            self.begin_to_store(&mut crowd);
            if self.has_ended() {
                return Ok(End::Done);
            }
            let done = match self.is_stopping {
                true => Some(crowd.next().await),
                false => side_by_side::unless(stop.as_mut(), crowd.next()).await,
            };
            let Some(done) = done else {
                self.stop(&mut crowd);
                continue;
            };
            match self.take_in(&mut crowd, done)? {
                // Who is to stop anyway has no place to wait for.
                Some(End::Fenced) if self.is_stopping => return Ok(End::Done),
                Some(end) => return Ok(end),
                None => {}
            }
        }
    }

    fn take_in(&mut self, crowd: &mut Crowd<'c, Done<'c>>, done: Done<'c>) -> Result<Option<End>> {
        match done {
            Done::Looked(number, source, look) => self.looked(crowd, number, source, look?),
            Done::Turned(number, item, turn) => {
                let turn = turn?;
                if turn.is_fenced {
                    return Ok(Some(End::Fenced));
                }
                self.turned(number, item, &turn);
            }
            Done::Stored(marks, is_mine) => {
                self.is_storing = false;
                if !is_mine? {
                    return Ok(Some(End::Fenced));
                }
                self.stored(marks);
            }
            Done::Waited(number) => {
                if let Some(table) = self.tables.get_mut(number) {
                    table.waits = false;
                }
            }
            Done::Round => {
                self.await_round(crowd);
                self.beat(crowd);
            }
            Done::Beaten(asked, lease_end) => {
                self.is_beating = false;
                match asked {
                    Ok(Some(asked)) => self.beaten(crowd, asked, lease_end),
                    Ok(None) => return Ok(Some(End::Fenced)),
                    // The next round tries again, if the lease lasts so long.
                    Err(error) => self.consumer.tell_failed(error, Duration::ZERO)?,
                }
            }
            Done::LeaseEnded => return Ok(Some(End::Fenced)),
            Done::Listed(items) => {
                self.is_listing = false;
                self.learn_parked(items?);
            }
            Done::GraceOver => {
                for (_, _, ticket) in self.turns.drain(..) {
                    crowd.leave(ticket);
                }
            }
        }
        Ok(None)
    }

    fn has_ended(&self) -> bool {
        let is_busy = self.is_storing || self.is_listing || !self.turns.is_empty();
        let has_caught_up = |table: &Table| table.idle >= EMPTY_LOOKS && table.source.is_some();
        let reads_no_more =
            self.is_stopping || !self.follows && self.tables.iter().all(has_caught_up);
        reads_no_more && !is_busy && self.replays.is_empty()
    }

    fn begin_to_read(&mut self, crowd: &mut Crowd<'c, Done<'c>>) {
        let has_room = self.has_room();
        for (number, table) in self.tables.iter_mut().enumerate() {
            let has_caught_up = !self.follows && table.idle >= EMPTY_LOOKS;
            if self.is_stopping || table.waits || has_caught_up || !has_room {
                continue;
            }
            let Some(mut source) = table.source.take() else {
                continue;
            };
            let consumer = self.consumer;
            crowd.join(Box::pin(async move {
                let look = consumer.look(&mut source).await;
                Done::Looked(number, source, look)
            }));
        }
    }

    fn has_room(&self) -> bool {
        let (mut looks, mut records, mut bytes) = (0, 0, 0);
        for table in &self.tables {
            let (l, r, b) = table.backlog.len();
            (looks, records, bytes) = (looks + l, records + r, bytes + b);
        }
        looks < LOOKS_AHEAD && records < RECORDS_AHEAD && bytes < BYTES_AHEAD
    }

    fn looked(
        &mut self,
        crowd: &mut Crowd<'c, Done<'c>>,
        number: usize,
        source: Box<Source>,
        look: Look,
    ) {
        let mut works = Vec::with_capacity(look.changes.len());
        self.ran.records += look.changes.len() as u64;
        for change in look.changes {
            self.last_created = self.last_created.max(change.time());
            let id = match change.event_id() {
                "" => change.sequence(),
                id => id,
            };
            if !self.recent.note(id, ()) {
                self.ran.repeated += 1;
                continue;
            }
            match self.consumer.router.work(&change) {
                Some(work) => works.push((change.keys().clone(), work, change.bytes())),
                None => self.ran.unwanted += 1,
            }
        }
        let Some(table) = self.tables.get_mut(number) else {
            return;
        };
        table.source = Some(source);
        if table.read != look.mark.positions {
            table.read = look.mark.positions.clone();
            table.backlog.push(look.mark, works);
        }
        if !look.is_idle {
            table.idle = 0;
            return;
        }
        table.idle += 1;
        if self.follows {
            table.waits = true;
            let poll = self.consumer.sleep(self.consumer.options.poll);
            crowd.join(Box::pin(async move {
                poll.await;
                Done::Waited(number)
            }));
        }
    }

    fn begin_turns(&mut self, crowd: &mut Crowd<'c, Done<'c>>) {
        let at_once_max = self.consumer.options.at_once_max.max(1);
        let room = self.parked_room();
        for number in 0..self.tables.len() {
            while !self.is_stopping && self.turns.len() < at_once_max {
                let Some(table) = self.tables.get_mut(number) else {
                    return;
                };
                let Some((item, works)) = table.backlog.begin(CHANGES_PER_TURN) else {
                    break;
                };
                let is_parked = self.parked.contains(&(number, item.clone()));
                let (consumer, mine, keys) = (self.consumer, self.mine.clone(), item.clone());
                let span = telemetry::turn(&consumer.name, &table.name, works.len());
                let ticket = crowd.join(Box::pin(async move {
                    let turn = consumer.turn(&mine, works, is_parked, room);
                    let turn = turn.instrument(span).await;
                    Done::Turned(number, keys, turn)
                }));
                self.turns.push((number, item, ticket));
            }
        }
    }

    fn parked_room(&self) -> usize {
        let parked_max = self.consumer.options.parked_max;
        parked_max.saturating_sub(self.parked_count)
    }

    fn turned(&mut self, number: usize, item: Item, turn: &Turn) {
        self.turns
            .retain(|(table, other, _)| *table != number || *other != item);
        self.ran.handled += turn.handled;
        self.ran.parked += turn.parked;
        self.ran.replayed += turn.replayed;
        let parked = usize::try_from(turn.parked).unwrap_or(usize::MAX);
        let replayed = usize::try_from(turn.replayed).unwrap_or(usize::MAX);
        self.parked_count = (self.parked_count + parked).saturating_sub(replayed);
        let key = (number, item);
        match turn.is_parked {
            true => _ = self.parked.insert(key.clone()),
            false => _ = self.parked.remove(&key),
        }
        if let Some(table) = self.tables.get_mut(number) {
            table.backlog.end(key.1);
        }
    }

    fn begin_to_store(&mut self, crowd: &mut Crowd<'c, Done<'c>>) {
        if self.is_storing {
            return;
        }
        let mut marks = Vec::new();
        for (number, table) in self.tables.iter_mut().enumerate() {
            if let Some(mark) = table.backlog.pass_done() {
                marks.push((number, mark));
            }
        }
        if marks.is_empty() {
            return;
        }
        self.is_storing = true;
        let (consumer, mine) = (self.consumer, self.mine.clone());
        let places: Vec<(Arc<str>, Mark, Vec<HoldChanges>)> = marks
            .iter()
            .filter_map(|(number, mark)| {
                let table = self.tables.get(*number)?;
                Some((table.name.clone(), mark.clone(), table.holds.clone()))
            })
            .collect();
        crowd.join(Box::pin(async move {
            let stored = consumer.store(&mine, &places).await;
            Done::Stored(marks, stored)
        }));
    }

    fn stored(&mut self, marks: Vec<(usize, Mark)>) {
        for (number, mark) in marks {
            if let Some(table) = self.tables.get_mut(number) {
                table.holds = mark.holds;
            }
        }
        let (now, done) = (self.consumer.db.engine().now(), self.done());
        let seconds = now.since(self.told.0).as_secs_f64();
        let waiting = self.tables.iter().map(|table| table.backlog.len().1).sum();
        let progress = Progress {
            ran: self.ran,
            per_second: match seconds > 0.0 {
                true => (done - self.told.1) as f64 / seconds,
                false => 0.0,
            },
            lag: match waiting {
                0 => Duration::ZERO,
                _ => now.since(self.last_created),
            },
            waiting,
        };
        self.told = (now, done);
        self.consumer.tell(&Notice::Stored(&progress));
    }

    /// What it has done.
    pub(super) const fn ran(&self) -> Ran {
        self.ran
    }

    fn done(&self) -> u64 {
        self.ran.handled + self.ran.parked + self.ran.unwanted + self.ran.repeated
    }

    fn await_round(&self, crowd: &mut Crowd<'c, Done<'c>>) {
        let round = self.consumer.sleep(self.consumer.options.beat());
        crowd.join(Box::pin(async move {
            round.await;
            Done::Round
        }));
    }

    fn await_lease_end(&mut self, crowd: &mut Crowd<'c, Done<'c>>, lease_end: BoxFuture<'c, ()>) {
        if let Some(old) = self.lease_end.take() {
            crowd.leave(old);
        }
        self.lease_end = Some(crowd.join(Box::pin(async move {
            lease_end.await;
            Done::LeaseEnded
        })));
    }

    /// Says that it is alive.
    fn beat(&mut self, crowd: &mut Crowd<'c, Done<'c>>) {
        if std::mem::replace(&mut self.is_beating, true) {
            return;
        }
        let (consumer, mine) = (self.consumer, self.mine.clone());
        // It counts from before it is said, and for others from when they see it: they wait longer.
        let lease_end = consumer.sleep(consumer.options.lease);
        crowd.join(Box::pin(async move {
            let asked = lease::beat(&consumer.db, &consumer.name, &mine).await;
            Done::Beaten(asked, lease_end)
        }));
    }

    fn beaten(
        &mut self,
        crowd: &mut Crowd<'c, Done<'c>>,
        asked: u64,
        lease_end: BoxFuture<'c, ()>,
    ) {
        self.await_lease_end(crowd, lease_end);
        if self.mine.asked == asked || self.is_listing || self.is_stopping {
            return;
        }
        self.mine = Arc::new(Mine {
            asked,
            ..(*self.mine).clone()
        });
        self.is_listing = true;
        let consumer = self.consumer;
        crowd.join(Box::pin(async move {
            let mut patience = consumer.patience();
            loop {
                let error = match consumer.parked().items().await {
                    Ok(items) => return Done::Listed(Ok(items)),
                    Err(error) => error,
                };
                if let Err(error) = patience.outlast(error).await {
                    return Done::Listed(Err(error));
                }
            }
        }));
    }

    /// Learns what is parked, and what of it somebody has asked to try again. What it knows to be parked stays so: whether
    /// it still is, is looked at when it matters.
    fn learn_parked(&mut self, items: Items) {
        self.parked_count = items.count;
        for (name, item, is_asked) in items.items {
            let number = self.tables.iter().position(|table| *table.name == *name);
            // It is parked for a table that is not asked for any more.
            let Some(number) = number else { continue };
            self.parked.insert((number, item.clone()));
            let replay = (number, item);
            if is_asked && !self.replays.contains(&replay) {
                self.replays.push_back(replay);
            }
        }
    }

    fn begin_to_replay(&mut self, crowd: &mut Crowd<'c, Done<'c>>) {
        if self.is_stopping {
            self.replays.clear();
        }
        let at_once_max = self.consumer.options.at_once_max.max(1);
        for _ in 0..self.replays.len() {
            if self.turns.len() >= at_once_max {
                return;
            }
            let Some((number, item)) = self.replays.pop_front() else {
                return;
            };
            let Some(table) = self.tables.get_mut(number) else {
                continue;
            };
            if !table.backlog.block(&item) {
                // Its turn comes when the one that is under way is over.
                self.replays.push_back((number, item));
                continue;
            }
            let (consumer, mine) = (self.consumer, self.mine.clone());
            let (name, keys) = (table.name.clone(), item.clone());
            let ticket = crowd.join(Box::pin(async move {
                let turn = consumer.replay(&mine, &name, &keys).await;
                Done::Turned(number, keys, turn)
            }));
            self.turns.push((number, item, ticket));
        }
    }

    fn stop(&mut self, crowd: &mut Crowd<'c, Done<'c>>) {
        self.is_stopping = true;
        let grace = self.consumer.sleep(self.consumer.options.grace);
        crowd.join(Box::pin(async move {
            grace.await;
            Done::GraceOver
        }));
    }
}
