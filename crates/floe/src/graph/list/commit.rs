//! Changes a list in one commit, which may be the caller's.

use super::plan::{ListChange, Plan, plan};
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
        let fits = |items| !context.is_own || items <= context.items_max();
        if !fits(self.change.items_min()) {
            return Ok(Outcome::TooWide);
        }
        let plan = self.plan(context).await?;
        if !fits(plan.items(&self.subject)) {
            return Ok(Outcome::TooWide);
        }
        self.record(context, plan).await.map(Outcome::Completed)
    }
}

impl Change {
    /// Plans the change of the list as the transaction sees it.
    pub(super) async fn plan(&self, context: OperationContext<'_>) -> Result<Plan> {
        check_part("predicate", &self.predicate)?;
        let subject = context.scoped_key(&self.subject)?;
        if let Some(intent) = context.require(&subject).await?.list_change {
            // The process that started it may have stopped. The steps are no part of this transaction.
            let outside = context.outside();
            Box::pin(outside.complete_list_of(&subject, &intent)).await?;
            return Err(context.tx.retry(list_change_in_progress(&subject)));
        }
        let old = self.edges(context, &subject).await?;
        plan(
            context.schema(),
            &subject,
            &self.predicate,
            &old,
            &self.change,
        )
    }

    /// Records a planned change. Returns the number of removed edges.
    pub(super) async fn record(&self, context: OperationContext<'_>, plan: Plan) -> Result<u64> {
        let subject = context.scoped_key(&self.subject)?;
        let removed = plan.difference.removed();
        context
            .read_unexpected(plan.difference.removed_objects())
            .await?;
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
            Ok(removed)
        })?
    }

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
    let what = "another change of its edges is in progress: retry, or run Graph::repair if it has no record";
    scoped_key.error(ErrorKind::TransactionFailed, what)
}
