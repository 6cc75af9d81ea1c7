//! Changing a list in one commit, which may be the caller's.

use super::plan::{ListChange, plan};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::EdgeChangeKind;
use crate::graph::keys::{EntityKey, Place, check_part};
use crate::graph::reads;
use crate::graph::stored::Edge;
use crate::graph::work::{Operation, Outcome, Work};
use crate::graph::writes::missing;

/// A change of a list. As an operation it returns how many edges are removed.
pub(super) struct Change {
    pub(super) subject: EntityKey,
    pub(super) predicate: String,
    pub(super) change: ListChange,
}

impl Operation for Change {
    type Done = Outcome<u64>;

    async fn apply(&self, work: Work<'_>) -> Result<Outcome<u64>> {
        check_part("predicate", &self.predicate)?;
        let subject = work.place(&self.subject)?;
        let fits = |items| !work.is_own || items <= work.items_max();
        if !fits(self.change.items_min()) {
            return Ok(Outcome::Wide);
        }
        if work.require(&subject).await?.busy.is_some() {
            return Err(work.tx.retry(busy(&subject)));
        }
        let old = self.edges(work, &subject).await?;
        let plan = plan(work.schema(), &subject, &self.predicate, &old, &self.change)?;
        if !fits(plan.difference.items(&subject.key)) {
            return Ok(Outcome::Wide);
        }
        let removed = plan.difference.removed();
        work.changes(|changes| {
            for (edge, kind) in plan.difference.0 {
                let object = work.place(&edge.object)?;
                let is_absent = || matches!(changes.known(&object), Some(None));
                if kind == EdgeChangeKind::Add && is_absent() {
                    return Err(missing(&object));
                }
                changes.state(&subject).is_list_changed = true;
                changes.change_edge(subject.clone(), edge, kind)?;
            }
            Ok(Outcome::Done(removed))
        })?
    }
}

impl Change {
    /// The edges of the list as the transaction sees them; for an append, the last that stays is enough.
    async fn edges(&self, work: Work<'_>, subject: &Place) -> Result<Vec<Edge>> {
        let predicate = self.predicate.as_str();
        let is_new = work.changes(|changes| changes.is_created(subject))?;
        let stored = match &self.change {
            _ if is_new => Vec::new(),
            ListChange::Append(_) => {
                let query = reads::outgoing_query(work.schema(), subject, Some(predicate));
                let query = query.consistent().backward();
                let removed = work.changes(|changes| changes.removed(subject, predicate))?;
                reads::edges(&work.reads().query(query, Some(1 + removed)).await?)?
            }
            _ => {
                work.reads()
                    .outgoing(subject, Some(predicate), None)
                    .await?
            }
        };
        work.changes(|changes| {
            changes.watch_list(subject);
            changes.outgoing(subject, Some(predicate), stored)
        })?
    }
}

pub(super) fn busy(place: &Place) -> Error {
    let what = "a change of its edges is under way; Graph::resume ends it";
    place.error(ErrorKind::TransactionFailed, what)
}
