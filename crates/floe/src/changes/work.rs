//! What is to be done about one change: by whom, in which order, and how far it is.
//!
//! Each handler is a lane of its own, so that one that fails holds no other. The messages of an outbox record are one
//! lane: a message waits for the one before it, and the record is removed when all are done.

use std::collections::VecDeque;
use std::time::Duration;

use floe_store::op::{ChangeKind, DeleteItem, WriteItem};

use super::change::Change;
use super::envelope::Envelope;
use super::handler::{Failure, Handled};
use super::outbox::{Message, OutboxRecord};
use super::router::{OutboxEnd, Route, Router, Target};
use crate::db::Db;
use crate::delivery::{Timeout, guard};
use crate::model::Model;

/// What is left to be done about a change.
pub(super) struct Work {
    envelope: Envelope,
    lanes: Vec<Lane>,
    /// The messages, if it is about a record of the outbox.
    messages: Vec<Message>,
}

/// Steps of which each waits for the one before it.
#[derive(Debug)]
struct Lane {
    steps: VecDeque<Step>,
    /// Why it stands still.
    failure: Option<Failure>,
    /// What it is called, if it can never be gone.
    lost: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The handler of this place takes the change.
    Take(usize),
    /// The handler of this place takes the message of this number.
    Message(usize, usize),
    /// The record of the outbox is removed.
    Remove,
    /// What cannot be done.
    Never,
}

/// A handler that is not done with a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// What it is called, with the number of the message where there is one.
    pub(super) name: String,
    pub(super) failure: Failure,
}

const OUTBOX: &str = "outbox";
const REMOVE: &str = "outbox removal";

impl Router {
    /// What is to be done about a change; `None` if nobody wants it.
    pub(super) fn work(&self, change: &Change) -> Option<Work> {
        let envelope = self.envelope(change);
        let takes = |(place, route): (usize, &Route)| match &route.target {
            Target::Change(target) if target.wants(&envelope) => {
                Some(Lane::of([Step::Take(place)]))
            }
            _ => None,
        };
        let mut lanes: Vec<Lane> = self.routes.iter().enumerate().filter_map(takes).collect();
        let mut messages = Vec::new();
        if self.has_outbox() && is_outbox(change) {
            lanes.extend(self.outbox_lane(change, &mut messages));
        }
        (!lanes.is_empty()).then_some(Work {
            envelope,
            lanes,
            messages,
        })
    }

    /// What is left to be done about a change of which these handlers are not done.
    pub(super) fn work_left(&self, change: &Change, pending: &[String]) -> Option<Work> {
        let mut work = self.work(change).unwrap_or_else(|| Work {
            envelope: self.envelope(change),
            lanes: Vec::new(),
            messages: Vec::new(),
        });
        let mut lost: Vec<&String> = pending.iter().collect();
        for lane in &mut work.lanes {
            // Of a lane that was begun, the steps from the one that was left on.
            let names = lane.steps.iter().map(|step| lane.name(self, *step));
            let names: Vec<String> = names.collect();
            let left = names.iter().position(|name| pending.contains(name));
            let begun = left.unwrap_or(lane.steps.len());
            lane.steps.drain(..begun);
            lost.retain(|name| !names.contains(name));
        }
        work.lanes.retain(|lane| !lane.steps.is_empty());
        work.lanes.extend(lost.into_iter().map(|name| {
            let message = format!("the router has no such handler: handler={name:?}");
            Lane::lost(name, Failure::permanent(message))
        }));
        (!work.lanes.is_empty()).then_some(work)
    }

    pub(super) fn has_outbox(&self) -> bool {
        let is_outbox = |route: &Route| matches!(route.target, Target::Outbox(..));
        self.routes.iter().any(is_outbox)
    }

    fn outbox_lane(&self, change: &Change, messages: &mut Vec<Message>) -> Option<Lane> {
        let record = match change.new_image().map(OutboxRecord::from_item) {
            Some(Ok(record)) => record,
            Some(Err(error)) => return Some(Lane::lost(OUTBOX, Failure::permanent(error))),
            None => {
                let message = "the change stream of the outbox holds no new images";
                return Some(Lane::lost(OUTBOX, Failure::permanent(message)));
            }
        };
        *messages = Message::all_of(record);
        let (mut steps, mut has_all) = (VecDeque::new(), true);
        for (number, message) in messages.iter().enumerate() {
            let before = steps.len();
            for (place, route) in self.routes.iter().enumerate() {
                if let Target::Outbox(topics, _) = &route.target
                    && topics.has(&message.topic)
                {
                    steps.push_back(Step::Message(place, number));
                }
            }
            has_all &= steps.len() > before;
        }
        // A message that nobody takes is not delivered, so its record stays.
        if has_all && self.removes_outbox() {
            steps.push_back(Step::Remove);
        }
        (!steps.is_empty()).then(|| Lane::of(steps))
    }

    fn step_name(&self, step: Step) -> String {
        let route = |place: usize| self.routes.get(place).map_or("", |route| &route.name);
        match step {
            Step::Take(place) => route(place).to_owned(),
            Step::Message(place, number) => format!("{number}:{}", route(place)),
            Step::Remove => REMOVE.to_owned(),
            Step::Never => OUTBOX.to_owned(),
        }
    }
}

/// Whether the change is a new record of the outbox.
fn is_outbox(change: &Change) -> bool {
    change.kind() == ChangeKind::Insert && change.table() == OutboxRecord::SCHEMA.table
}

impl Lane {
    fn of(steps: impl Into<VecDeque<Step>>) -> Self {
        Self {
            steps: steps.into(),
            failure: None,
            lost: None,
        }
    }

    /// A lane that can never be gone.
    fn lost(name: &str, failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            lost: Some(name.to_owned()),
            ..Self::of([Step::Never])
        }
    }

    fn name(&self, router: &Router, step: Step) -> String {
        let lost = self.lost.clone();
        lost.unwrap_or_else(|| router.step_name(step))
    }

    fn is_stuck(&self) -> bool {
        self.failure.as_ref().is_some_and(Failure::is_permanent)
    }
}

impl Work {
    pub(super) fn change(&self) -> &Change {
        self.envelope.change()
    }

    /// Tries to do what is left, each handler once. `true` if all is done then.
    pub(super) async fn attempt(
        &mut self,
        router: &Router,
        db: Option<&Db>,
        timeout: Option<Timeout<'_>>,
    ) -> bool {
        for lane in &mut self.lanes {
            if lane.is_stuck() {
                continue;
            }
            lane.failure = None;
            while let Some(step) = lane.steps.front() {
                let handled = run(*step, router, db, &self.envelope, &self.messages);
                let handled = guard(timeout, handled).await;
                if let Err(failure) = handled.unwrap_or_else(|cut| Err(cut.into())) {
                    lane.failure = Some(failure);
                    break;
                }
                lane.steps.pop_front();
            }
        }
        self.lanes.retain(|lane| lane.failure.is_some());
        self.is_done()
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Whether trying again cannot help.
    pub(super) fn is_stuck(&self) -> bool {
        self.lanes.iter().all(Lane::is_stuck)
    }

    /// How long handlers have asked to be left alone.
    pub(super) fn pause(&self) -> Option<Duration> {
        let failures = self.lanes.iter().filter_map(|lane| lane.failure.as_ref());
        failures.filter_map(Failure::pause).max()
    }

    /// Who is not done, and why.
    pub(super) fn pending(&self, router: &Router) -> Vec<Pending> {
        let lanes = self.lanes.iter();
        lanes
            .filter_map(|lane| {
                let step = *lane.steps.front()?;
                Some(Pending {
                    name: lane.name(router, step),
                    failure: lane
                        .failure
                        .clone()
                        .unwrap_or_else(|| Failure::new("it was not tried")),
                })
            })
            .collect()
    }
}

async fn run(
    step: Step,
    router: &Router,
    db: Option<&Db>,
    envelope: &Envelope,
    messages: &[Message],
) -> Handled {
    let route = |place: usize| router.routes.get(place).map(|route| &route.target);
    match step {
        Step::Take(place) => match route(place) {
            Some(Target::Change(target)) => target.take(envelope).await,
            _ => Ok(()),
        },
        Step::Message(place, number) => match (route(place), messages.get(number)) {
            (Some(Target::Outbox(_, handler)), Some(message)) => {
                handler.call(message.clone()).await
            }
            _ => Ok(()),
        },
        Step::Remove => match (&router.outbox, db) {
            (OutboxEnd::RemovedFrom(db), _) | (OutboxEnd::Removed, Some(db)) => {
                let change = envelope.change();
                let delete = DeleteItem::new(change.table(), change.keys().clone());
                db.engine().write_item(WriteItem::Delete(delete)).await?;
                Ok(())
            }
            _ => Ok(()),
        },
        Step::Never => Ok(()),
    }
}
