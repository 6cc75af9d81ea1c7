//! Changes a list in one commit, which may be the caller's.

use super::plan::{ListChange, plan};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::EdgeChangeKind;
use crate::graph::keys::{EntityKey, ScopedKey, check_part};
use crate::graph::operation::{Operation, OperationContext, Outcome};
use crate::graph::reads;
use crate::graph::stored::Edge;
use crate::graph::writes::missing;

/// A change of a list. As an operation, it returns the number of removed edges.
pub(super) struct Change {
    pub(super) subject: EntityKey,
    pub(super) predicate: String,
    pub(super) change: ListChange,
}

impl Operation for Change {
    type Output = Outcome<u64>;

    async fn apply(&self, context: OperationContext<'_>) -> Result<Outcome<u64>> {
        check_part("predicate", &self.predicate)?;
        let subject = context.scoped_key(&self.subject)?;
        let fits = |items| !context.is_own || items <= context.items_max();
        if !fits(self.change.items_min()) {
            return Ok(Outcome::TooWide);
        }
        if context.require(&subject).await?.list_change.is_some() {
            return Err(context.tx.retry(list_change_in_progress(&subject)));
        }
        let old = self.edges(context, &subject).await?;
        let plan = plan(
            context.schema(),
            &subject,
            &self.predicate,
            &old,
            &self.change,
        )?;
        if !fits(plan.difference.items(&subject.key)) {
            return Ok(Outcome::TooWide);
        }
        let removed = plan.difference.removed();
        context.changes(|changes| {
            for (edge, kind) in plan.difference.0 {
                let object = context.scoped_key(&edge.object)?;
                let is_absent = || matches!(changes.current(&object), Some(None));
                if kind == EdgeChangeKind::Add && is_absent() {
                    return Err(missing(&object));
                }
                changes.state(&subject).is_list_changed = true;
                changes.change_edge(subject.clone(), edge, kind)?;
            }
            Ok(Outcome::Completed(removed))
        })?
    }
}

impl Change {
    /// The edges of the list as the transaction sees them. For an append, only the last remaining edge.
    async fn edges(&self, context: OperationContext<'_>, subject: &ScopedKey) -> Result<Vec<Edge>> {
        let predicate = self.predicate.as_str();
        let is_new = context.changes(|changes| changes.is_created(subject))?;
        let stored = match &self.change {
            _ if is_new => Vec::new(),
            ListChange::Append(_) => {
                let query = reads::outgoing_query(context.schema(), subject, Some(predicate));
                let query = query.consistent().backward();
                let removed = context.changes(|changes| changes.removed(subject, predicate))?;
                reads::edges(&context.reads().query(query, Some(1 + removed)).await?)?
            }
            _ => {
                context
                    .reads()
                    .outgoing(subject, Some(predicate), None)
                    .await?
            }
        };
        context.changes(|changes| {
            changes.watch_list(subject);
            changes.outgoing(subject, Some(predicate), stored)
        })?
    }
}

pub(super) fn list_change_in_progress(scoped_key: &ScopedKey) -> Error {
    let what = "another change of its edges is in progress: Graph::resume completes it";
    scoped_key.error(ErrorKind::TransactionFailed, what)
}
