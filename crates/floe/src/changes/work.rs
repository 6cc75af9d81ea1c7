//! The work of one change: its handlers, their order, and what is completed.
//!
//! Each handler has its own queue of steps, so a failure blocks no other handler. The messages of an outbox record
//! share one queue: a message waits for the previous one, and the record is removed after the last.

use std::collections::VecDeque;
use std::time::Duration;

use floe_store::op::{ChangeKind, DeleteItem, WriteItem};

use super::change::Change;
use super::envelope::Envelope;
use super::handler::{Failure, HandlerResult};
use super::outbox::{Message, OutboxRecord};
use super::router::{OutboxRemoval, Route, Router, Target};
use crate::db::Db;
use crate::delivery::{Timeout, guard};
use crate::model::Model;

/// The remaining work of a change.
pub(super) struct ChangeWork {
    envelope: Envelope,
    queues: Vec<StepQueue>,
    /// The messages of an outbox record.
    messages: Vec<Message>,
}

/// Steps that run one after another.
#[derive(Debug)]
struct StepQueue {
    steps: VecDeque<Step>,
    /// Why the first step failed.
    failure: Option<Failure>,
    /// The name of the queue, if it can never complete.
    blocked: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Pass the change to the handler with this index.
    Handle(usize),
    /// Pass the message (second index) to the handler (first index).
    Message(usize, usize),
    /// Remove the outbox record.
    Remove,
    /// A step that cannot run.
    Blocked,
}

/// A handler that has not completed a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// The name of the handler, with the number of the message, if any.
    pub(super) name: String,
    pub(super) failure: Failure,
}

const OUTBOX: &str = "outbox";
const REMOVE: &str = "outbox removal";

impl Router {
    /// Returns the work for a change; `None` if no handler selects it.
    pub(super) fn work(&self, change: &Change) -> Option<ChangeWork> {
        let envelope = self.envelope(change);
        let select = |(index, route): (usize, &Route)| match &route.target {
            Target::Change(target) if target.matches(&envelope) => {
                Some(StepQueue::of([Step::Handle(index)]))
            }
            _ => None,
        };
        let mut queues: Vec<StepQueue> =
            self.routes.iter().enumerate().filter_map(select).collect();
        let mut messages = Vec::new();
        if self.has_outbox() && is_outbox(change) {
            queues.extend(self.outbox_queue(change, &mut messages));
        }
        (!queues.is_empty()).then_some(ChangeWork {
            envelope,
            queues,
            messages,
        })
    }

    /// Returns the remaining work for a change that these handlers did not complete.
    pub(super) fn remaining_work(&self, change: &Change, pending: &[String]) -> Option<ChangeWork> {
        let mut work = self.work(change).unwrap_or_else(|| ChangeWork {
            envelope: self.envelope(change),
            queues: Vec::new(),
            messages: Vec::new(),
        });
        let mut unknown: Vec<&String> = pending.iter().collect();
        for queue in &mut work.queues {
            // Of a started queue, keep the steps from the pending one.
            let names = queue.steps.iter().map(|step| queue.name(self, *step));
            let names: Vec<String> = names.collect();
            let left = names.iter().position(|name| pending.contains(name));
            let begun = left.unwrap_or(queue.steps.len());
            queue.steps.drain(..begun);
            unknown.retain(|name| !names.contains(name));
        }
        work.queues.retain(|queue| !queue.steps.is_empty());
        work.queues.extend(unknown.into_iter().map(|name| {
            let message = format!("the router has no such handler: handler={name:?}");
            StepQueue::blocked(name, Failure::permanent(message))
        }));
        (!work.queues.is_empty()).then_some(work)
    }

    pub(super) fn has_outbox(&self) -> bool {
        let is_outbox = |route: &Route| matches!(route.target, Target::Outbox(..));
        self.routes.iter().any(is_outbox)
    }

    fn outbox_queue(&self, change: &Change, messages: &mut Vec<Message>) -> Option<StepQueue> {
        let record = match change.new_image().map(OutboxRecord::from_item) {
            Some(Ok(record)) => record,
            Some(Err(error)) => return Some(StepQueue::blocked(OUTBOX, Failure::permanent(error))),
            None => {
                let message = "the change stream of the outbox lacks new images";
                return Some(StepQueue::blocked(OUTBOX, Failure::permanent(message)));
            }
        };
        *messages = Message::all_of(record);
        let (mut steps, mut has_all) = (VecDeque::new(), true);
        for (number, message) in messages.iter().enumerate() {
            let before = steps.len();
            for (index, route) in self.routes.iter().enumerate() {
                if let Target::Outbox(topics, _) = &route.target
                    && topics.has(&message.topic)
                {
                    steps.push_back(Step::Message(index, number));
                }
            }
            has_all &= steps.len() > before;
        }
        // A message without a handler is undelivered, so its record stays.
        if has_all && self.removes_outbox() {
            steps.push_back(Step::Remove);
        }
        (!steps.is_empty()).then(|| StepQueue::of(steps))
    }

    fn step_name(&self, step: Step) -> String {
        let route = |index: usize| self.routes.get(index).map_or("", |route| &route.name);
        match step {
            Step::Handle(index) => route(index).to_owned(),
            Step::Message(index, number) => format!("{number}:{}", route(index)),
            Step::Remove => REMOVE.to_owned(),
            Step::Blocked => OUTBOX.to_owned(),
        }
    }
}

/// Whether the change is a new outbox record.
fn is_outbox(change: &Change) -> bool {
    change.kind() == ChangeKind::Insert && change.table() == OutboxRecord::SCHEMA.table
}

impl StepQueue {
    fn of(steps: impl Into<VecDeque<Step>>) -> Self {
        Self {
            steps: steps.into(),
            failure: None,
            blocked: None,
        }
    }

    /// Creates a queue that can never complete.
    fn blocked(name: &str, failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            blocked: Some(name.to_owned()),
            ..Self::of([Step::Blocked])
        }
    }

    fn name(&self, router: &Router, step: Step) -> String {
        let blocked = self.blocked.clone();
        blocked.unwrap_or_else(|| router.step_name(step))
    }

    fn is_permanent(&self) -> bool {
        self.failure.as_ref().is_some_and(Failure::is_permanent)
    }
}

impl ChangeWork {
    pub(super) fn change(&self) -> &Change {
        self.envelope.change()
    }

    /// Attempts the remaining steps, each handler once. Returns whether all work is done.
    pub(super) async fn attempt(
        &mut self,
        router: &Router,
        db: Option<&Db>,
        timeout: Option<Timeout<'_>>,
    ) -> bool {
        for queue in &mut self.queues {
            if queue.is_permanent() {
                continue;
            }
            queue.failure = None;
            while let Some(step) = queue.steps.front() {
                let handled = run(*step, router, db, &self.envelope, &self.messages);
                let handled = guard(timeout, handled).await;
                if let Err(failure) = handled.unwrap_or_else(|cut| Err(cut.into())) {
                    queue.failure = Some(failure);
                    break;
                }
                queue.steps.pop_front();
            }
        }
        self.queues.retain(|queue| queue.failure.is_some());
        self.is_done()
    }

    /// Whether no work remains.
    pub(super) fn is_done(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether retries cannot help.
    pub(super) fn is_permanent(&self) -> bool {
        self.queues.iter().all(StepQueue::is_permanent)
    }

    /// The longest pause that handlers requested.
    pub(super) fn pause(&self) -> Option<Duration> {
        let failures = self
            .queues
            .iter()
            .filter_map(|queue| queue.failure.as_ref());
        failures.filter_map(Failure::pause).max()
    }

    /// The pending handlers and their failures.
    pub(super) fn pending(&self, router: &Router) -> Vec<Pending> {
        let queues = self.queues.iter();
        queues
            .filter_map(|queue| {
                let step = *queue.steps.front()?;
                Some(Pending {
                    name: queue.name(router, step),
                    failure: queue
                        .failure
                        .clone()
                        .unwrap_or_else(|| Failure::new("not attempted")),
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
) -> HandlerResult {
    let route = |index: usize| router.routes.get(index).map(|route| &route.target);
    match step {
        Step::Handle(index) => match route(index) {
            Some(Target::Change(target)) => target.handle(envelope).await,
            _ => Ok(()),
        },
        Step::Message(index, number) => match (route(index), messages.get(number)) {
            (Some(Target::Outbox(_, handler)), Some(message)) => {
                handler.call(message.clone()).await
            }
            _ => Ok(()),
        },
        Step::Remove => match (&router.outbox, db) {
            (OutboxRemoval::From(db), _) | (OutboxRemoval::ByConsumer, Some(db)) => {
                let change = envelope.change();
                let delete = DeleteItem::new(change.table(), change.keys().clone());
                db.engine().write_item(WriteItem::Delete(delete)).await?;
                Ok(())
            }
            _ => Ok(()),
        },
        Step::Blocked => Ok(()),
    }
}
