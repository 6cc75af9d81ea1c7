//! The part of models in a commit: their plans, and how a single one is sent.
//!
//! A plain write without a token whose response was lost is reconciled by the stamp on the item: the stamp of the commit
//! means applied, the one that was read means not applied, any other means unknown.

use floe_store::expr::{Condition, Path};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::TransactWrite;
use floe_store::op::{ConditionCheck, DeleteItem, GetItem, PutItem, UpdateItem, WriteItem};
use floe_store::{Error as StoreError, Item, Value};

use super::changes::ModelChanges;
use super::compile::{self, Action, Plan, Presence};
use super::expressions;
use super::schema::{PARTITION_ATTRIBUTE, STAMP_ATTRIBUTE};
use crate::error::{Error, ErrorItem, ErrorKind, Result};
use crate::request::{self, Reconciled, SendAttempt, Write, WriteOutcome, repeat, with_token};
use crate::telemetry::transaction as telemetry;
use crate::tx::commit::{store_failure, unknown};
use crate::tx::part::{
    CommitId, Failure, Part, PartWrite, Rejection, SinglePart, SinglePartFailure, SinglePartResult,
};
use crate::tx::session::{Changes, PartContext};

/// The part of models in a commit.
#[derive(Debug)]
pub(crate) struct ModelPart {
    plans: Vec<Plan>,
    commit: Option<CommitId>,
}

impl ModelPart {
    pub(crate) const fn new(plans: Vec<Plan>) -> Self {
        let commit = None;
        Self { plans, commit }
    }
}

impl Changes for ModelChanges {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        let entries = self.finish()?;
        let mut plans = Vec::with_capacity(entries.len());
        for entry in entries {
            plans.extend(compile::plan(entry)?);
        }
        if plans.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Box::new(ModelPart::new(plans))])
    }
}

impl Part for ModelPart {
    fn is_write(&self) -> bool {
        self.plans.iter().any(Plan::is_write)
    }

    fn read_only_error(&self) -> Error {
        let mut message = "a read-only transaction cannot write".to_owned();
        if let Some(plan) = self.plans.iter().find(|plan| plan.is_write()) {
            message += &format!(": model={} key={}", plan.schema.model, plan.key);
        }
        Error::new(ErrorKind::ReadOnly, message)
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        let schemas = self.plans.iter().map(|plan| plan.schema);
        schemas
            .map(|schema| (schema.table.to_owned(), schema.model))
            .collect()
    }

    fn remedy(&self) -> &'static str {
        "pass the schemas of all models to ensure_tables"
    }

    fn prepare(&mut self, commit: &CommitId) -> Result<()> {
        for plan in &mut self.plans {
            plan.stamp(&commit.stamp);
        }
        self.commit = Some(commit.clone());
        for plan in &self.plans {
            if plan.size > ITEM_BYTES_MAX {
                return Err(too_large(plan));
            }
            expressions::check(plan, commit.now)?;
        }
        Ok(())
    }

    fn writes(&self) -> Result<Vec<PartWrite>> {
        let Some(commit) = &self.commit else {
            return Ok(Vec::new());
        };
        let writes = self.plans.iter().map(|plan| PartWrite {
            write: transact_write(plan, commit),
            bytes: plan.size,
        });
        Ok(writes.collect())
    }

    fn condition_failed(&self, at: usize, item: Option<&Item>) -> Rejection {
        match (self.plans.get(at), &self.commit) {
            (Some(plan), Some(commit)) => rejection(plan, commit, item),
            _ => Rejection::Conflict(Error::new(ErrorKind::TransactionFailed, "a conflict")),
        }
    }

    fn rewrite(&mut self, at: usize) {
        if let Some(plan) = self.plans.get_mut(at) {
            plan.replace_expired();
        }
    }

    fn items(&self) -> Vec<ErrorItem> {
        let written = self.plans.iter().filter(|plan| plan.is_write());
        written.map(|plan| plan.error_item(None)).collect()
    }

    /// Conflicts of models are recorded with the retry, item by item.
    fn record_conflict(&self, _: u32) {}

    /// Sends one plain write, which is reconciled by its token or by the stamp on the item.
    fn send_single<'a>(&'a mut self, single: SinglePart<'a>) -> Option<SinglePartResult<'a>> {
        let [plan] = self.plans.as_mut_slice() else {
            return None;
        };
        let can = single.db.engine().capabilities();
        // A transaction of one item supports a token where a plain write does not.
        let is_exact = single.options.exactly_once || plan.schema.exactly_once;
        if !plan.is_write() || (is_exact && !can.write_tokens) {
            return None;
        }
        Some(Box::pin(send_plain(plan, single)))
    }
}

fn too_large(plan: &Plan) -> Error {
    let message = format!(
        "the item is too large: model={} key={} bytes={} max={ITEM_BYTES_MAX}",
        plan.schema.model, plan.key, plan.size
    );
    Error::new(ErrorKind::TooLarge, message).with_items(vec![plan.error_item(None)])
}

async fn send_plain(plan: &mut Plan, single: SinglePart<'_>) -> Result<(), SinglePartFailure> {
    let can = single.db.engine().capabilities();
    // A write that is never resent need not be cloned.
    let is_once = !can.loses_responses && plan.replacement.is_none();
    let mut write = PlainWrite {
        first: is_once.then(|| std::mem::replace(&mut plan.action, Action::Check)),
        single,
        plan,
        has_token: can.write_tokens && can.loses_responses,
        attempts: 0,
    };
    match request::write(single.db, single.budget, &mut write).await {
        WriteOutcome::Applied => Ok(()),
        WriteOutcome::Rejected(result) => result,
        WriteOutcome::Failed(error) => Err(store_failure(error).into()),
        WriteOutcome::Unknown(error) => Err(unknown_outcome(plan, error).into()),
    }
}

/// Sends one plain write.
struct PlainWrite<'a> {
    single: SinglePart<'a>,
    plan: &'a Plan,
    /// The action, if it is sent only once.
    first: Option<Action>,
    /// Whether resending has no further effect.
    has_token: bool,
    attempts: u32,
}

impl Write for PlainWrite<'_> {
    type Rejection = Result<(), SinglePartFailure>;

    async fn send(&mut self, attempt: SendAttempt) -> Result<(), StoreError> {
        self.attempts = attempt.number;
        let action = self.first.take();
        let action = action.unwrap_or_else(|| self.plan.action.clone());
        // Found not to be applied, an earlier attempt may still come late: then this one must not be applied too.
        let only_as_read = attempt.in_doubt && !self.has_token;
        let commit = self.single.commit;
        let stamp = self.plan.stamp.as_ref().filter(|_| only_as_read);
        let is_as_read =
            |stamp: &Value| Condition::eq(Path::attribute(STAMP_ATTRIBUTE), stamp.clone());
        let condition = self.plan.condition(commit.now).into_iter();
        let condition = condition.chain(stamp.map(is_as_read));
        let write = write_item(self.plan, action, condition.reduce(Condition::and));
        let token = self.has_token.then(|| commit.token.as_str().to_owned());
        let write = with_token(write, token);
        self.single.db.engine().write_item(write).await.map(drop)
    }

    fn rejection(
        &mut self,
        error: StoreError,
        attempt: SendAttempt,
    ) -> Result<Self::Rejection, StoreError> {
        let StoreError::ConditionalCheckFailed { item } = &error else {
            return Err(error);
        };
        let (item, plan, commit) = (item.as_deref(), self.plan, self.single.commit);
        Ok(match reconcile_item(plan, commit, item) {
            Reconciled::Applied => {
                telemetry::reconciled("stamp", true, attempt.number);
                Ok(())
            }
            // An earlier attempt may have come late, and another writer has changed the item since.
            Reconciled::Unknown if attempt.in_doubt && !self.has_token => {
                Err(unknown_outcome(plan, error.clone()).into())
            }
            _ => Err(SinglePartFailure::Rejected(rejection(plan, commit, item))),
        })
    }

    async fn reconcile(&mut self) -> Reconciled {
        if self.has_token {
            return Reconciled::Resend;
        }

        let reconciled = reconcile_by_read(self.plan, &self.single).await;
        if reconciled != Reconciled::Unknown {
            let is_applied = reconciled == Reconciled::Applied;
            telemetry::reconciled("stamp", is_applied, self.attempts);
        }
        reconciled
    }
}

/// Reads the item to determine whether a write whose response was lost was applied.
async fn reconcile_by_read(plan: &Plan, single: &SinglePart<'_>) -> Reconciled {
    let get = || {
        let get = GetItem::new(plan.schema.table, plan.key.to_item());
        single.db.engine().get_item(get)
    };
    match repeat(single.db, single.budget, get).await {
        Ok(output) => reconcile_item(plan, single.commit, output.item.as_ref()),
        Err(_) => Reconciled::Unknown,
    }
}

/// Determines from the current item whether the commit was applied.
fn reconcile_item(plan: &Plan, commit: &CommitId, item: Option<&Item>) -> Reconciled {
    let stamp = item.and_then(|item| item.get(STAMP_ATTRIBUTE));
    let is_as_read = match plan.precondition.presence {
        Presence::Absent | Presence::New => {
            item.is_none_or(|item| plan.schema.is_expired(item, commit.now))
        }
        Presence::Present => item.is_some() && plan.stamp.is_some() && stamp == plan.stamp.as_ref(),
        Presence::Any | Presence::AbsentOrEqual => false,
    };
    if stamp == Some(&commit.stamp) {
        Reconciled::Applied
    } else if is_as_read {
        Reconciled::Resend
    } else {
        Reconciled::Unknown
    }
}

/// The request of a plan, with this condition.
fn write_item(plan: &Plan, action: Action, condition: Option<Condition>) -> WriteItem {
    let table = plan.schema.table;
    match action {
        Action::Put(item) => {
            let mut put = PutItem::new(table, item).return_old_on_failure();
            put.condition = condition;
            put.into()
        }
        Action::Update(update) => {
            let key = plan.key.to_item();
            let mut write = UpdateItem::new(table, key, update).return_old_on_failure();
            write.condition = condition;
            write.into()
        }
        Action::Delete | Action::Check => {
            let key = plan.key.to_item();
            let mut delete = DeleteItem::new(table, key).return_old_on_failure();
            delete.condition = condition;
            delete.into()
        }
    }
}

fn transact_write(plan: &Plan, commit: &CommitId) -> TransactWrite {
    let condition = plan.condition(commit.now);
    if plan.is_write() {
        return write_item(plan, plan.action.clone(), condition).into();
    }
    // An item that was read was present or absent, so there is always a condition.
    let always = || Condition::attribute_exists(Path::attribute(PARTITION_ATTRIBUTE));
    let condition = condition.unwrap_or_else(always);
    let mut check = ConditionCheck::new(plan.schema.table, plan.key.to_item(), condition);
    check.return_old_on_failure = true;
    check.into()
}

/// Interprets a failed condition, given the current item.
fn rejection(plan: &Plan, commit: &CommitId, item: Option<&Item>) -> Rejection {
    let error_item = || plan.error_item(item);
    if plan.precondition.presence == Presence::New {
        let (model, key) = (plan.schema.model, &plan.key);
        let message = format!("the item already exists: model={model} key={key}");
        let error = Error::new(ErrorKind::AlreadyExists, message);
        return Rejection::Final(error.with_items(vec![error_item()]));
    }
    if plan.conflicts_with_expired(item, commit.now) {
        return Rejection::Rewrite;
    }
    let has_expired = plan.precondition.presence == Presence::Present
        && item.is_some_and(|item| plan.schema.is_expired(item, commit.now));
    let item = error_item();
    let text = if has_expired {
        let (model, key) = (item.model, &item.key);
        format!("the item expired before the commit: model={model} key={key}")
    } else {
        conflict_text(&item)
    };
    let error = Error::new(ErrorKind::TransactionFailed, text);
    Rejection::Conflict(error.with_items(vec![item]))
}

fn conflict_text(item: &ErrorItem) -> String {
    let (model, key) = (item.model, &item.key);
    match item.fields.as_slice() {
        [] => format!("another writer created or deleted the item: model={model} key={key}"),
        fields => {
            let fields = fields.join(",");
            format!("another writer changed the item: model={model} key={key} fields={fields}")
        }
    }
}

fn unknown_outcome(plan: &Plan, error: StoreError) -> Failure {
    unknown(error, vec![plan.error_item(None)], "")
}
