//! Sending what a run has written: one plain write, or one transaction.
//!
//! Every commit has an id, which is stamped on each item that it writes. When the answer to a commit is
//! lost, sending it again is safe if it carries the id as its token; a plain write without a token is
//! settled by the stamp on the item: the commit's own means applied, the one that was read means not
//! applied, any other means that nobody can know.

use std::collections::BTreeSet;

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::expr::{Condition, Path};
use floe_store::limits::{ITEM_BYTES_MAX, TRANSACT_BYTES_MAX};
use floe_store::op::{
    ConditionCheck, DeleteItem, GetItem, PutItem, TransactWrite, TransactWriteItems, UpdateItem,
    WriteItem,
};
use floe_store::{Error as StoreError, Item, Text, Timestamp, Value};

use super::lock::{Action, Plan, Presence};
use super::part::Part;
use crate::changes::outbox::{self, OutboxMessage};
use crate::db::Db;
use crate::error::{Error, ErrorItem, ErrorKind};
use crate::model::schema::{PARTITION_ATTRIBUTE, STAMP_ATTRIBUTE};
use crate::request::{self, Budget, Outcome, Reconciled, Sending, Write, repeat};
use crate::telemetry::transaction as telemetry;

/// Why a commit was not made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody else was faster, or the store is busy: the body may run again.
    Retry(Error),
    /// Running again cannot help, or must not be done.
    Final(Error),
}

impl Failure {
    /// Whether the body may run again after an error.
    pub(crate) fn of(error: Error) -> Self {
        let is_known = error.kind() != ErrorKind::OutcomeUnknown;
        let is_busy = error.store_error().is_some_and(StoreError::is_retryable);
        if is_known && is_busy {
            Self::Retry(error)
        } else {
            Self::Final(error)
        }
    }
}

/// How to commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Checks what was read even if nothing is written.
    pub(crate) verified: bool,
    /// Sends even one item so that its outcome is always known.
    pub(crate) exactly_once: bool,
    /// When to give up sending again.
    pub(crate) end: Option<Timestamp>,
    /// Which run of the body it is, counted from 1.
    pub(crate) attempt: u32,
}

/// Sends the plans of a run, and its messages. Tells how many items were written.
pub(crate) async fn commit(
    db: &Db,
    mut plans: Vec<Plan>,
    messages: Vec<OutboxMessage>,
    parts: Vec<Box<dyn Part>>,
    manner: Manner,
) -> Result<usize, Failure> {
    let has_writes = parts.iter().any(|part| part.is_write());
    let writes = plans.iter().any(Plan::is_write) || !messages.is_empty() || has_writes;
    if !writes && (plans.is_empty() && parts.is_empty() || !manner.verified) {
        return Ok(0);
    }
    let mut commit = Commit::new(db, manner, parts);
    let outbox = outbox::plan(&commit.id, commit.now, messages);
    plans.extend(outbox.map_err(Failure::Final)?);
    plans.iter_mut().for_each(|plan| plan.stamp(&commit.stamp));
    commit.plan_parts().map_err(Failure::Final)?;
    check_size(db, &plans, commit.writes.len()).map_err(Failure::Final)?;
    let items = commit.items_written(&plans);
    loop {
        match commit.send(&mut plans).await {
            Ok(()) => {
                commit.parts.iter().for_each(|part| part.committed());
                return Ok(items);
            }
            Err(Refusal::Failed(failure)) => {
                return Err(with_missing_table(failure, &plans, &commit.parts));
            }
            Err(Refusal::OverExpired(places)) => {
                let over = plans.iter_mut().enumerate();
                over.filter(|(at, _)| places.contains(at))
                    .for_each(|(_, plan)| plan.replace_expired());
                // It is another request now, which needs a token of its own.
                commit.token = db.env().ordered_uuid();
            }
        }
    }
}

/// Why a commit was not made as it was sent.
enum Refusal {
    Failed(Failure),
    /// The plans at these places have met an expired item, over which they must be put whole.
    OverExpired(Vec<usize>),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Names the tables of a commit, of which one is missing: the store tells at most that one is.
fn with_missing_table(failure: Failure, plans: &[Plan], parts: &[Box<dyn Part>]) -> Failure {
    let source = match &failure {
        Failure::Final(error) => error.store_error().cloned(),
        Failure::Retry(_) => None,
    };
    let Some(source @ StoreError::ResourceNotFound(_)) = source else {
        return failure;
    };
    let models = plans
        .iter()
        .map(|plan| (plan.schema.table.to_owned(), plan.schema.model));
    let others = parts.iter().flat_map(|part| part.tables());
    let needed: BTreeSet<_> = models.chain(others).collect();
    let needed: Vec<_> = needed
        .into_iter()
        .map(|(table, model)| format!("{table}({model})"))
        .collect();
    let besides: BTreeSet<_> = parts.iter().map(|part| part.ensured_by()).collect();
    let besides: String = besides
        .into_iter()
        .map(|call| format!(", and call {call}"))
        .collect();
    let message = format!(
        "a table is missing; pass the schemas of all models to ensure_tables{besides}: tables={}",
        needed.join(",")
    );
    Failure::Final(Error::new(ErrorKind::Table, message).with_source(source))
}

fn without_transactions(items: usize) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "the engine has no transactions, which a commit of several items, a verified one and one \
             that is made exactly once need: items={items}"
        ),
    )
}

struct Commit<'a> {
    db: &'a Db,
    manner: Manner,
    id: Text,
    token: Text,
    stamp: Value,
    /// The moment by which items have expired: the same in every sending, which its token requires.
    now: Timestamp,
    /// What other patterns than models have done.
    parts: Vec<Box<dyn Part>>,
    /// What is sent for them, with the place of the part and the place in it.
    writes: Vec<(usize, usize, TransactWrite)>,
}

impl<'a> Commit<'a> {
    fn new(db: &'a Db, manner: Manner, parts: Vec<Box<dyn Part>>) -> Self {
        let id = db.env().ordered_uuid();
        Self {
            db,
            manner,
            stamp: Value::S(id.clone()),
            token: id.clone(),
            id,
            now: db.engine().now(),
            parts,
            writes: Vec::new(),
        }
    }

    fn plan_parts(&mut self) -> crate::Result<()> {
        for (place, part) in self.parts.iter().enumerate() {
            let writes = part.writes(&self.id)?.into_iter().enumerate();
            self.writes
                .extend(writes.map(|(at, write)| (place, at, write)));
        }
        Ok(())
    }

    fn items_written(&self, plans: &[Plan]) -> usize {
        let is_write = |write: &TransactWrite| !matches!(write, TransactWrite::Check(_));
        let others = self.writes.iter().filter(|(_, _, write)| is_write(write));
        plans.iter().filter(|plan| plan.is_write()).count() + others.count()
    }

    async fn send(&self, plans: &mut [Plan]) -> Result<(), Refusal> {
        if let ([], [part]) = (&*plans, self.parts.as_slice())
            && !self.manner.exactly_once
            && let Some(sent) = part
                .send_alone(self.db, &self.id, self.budget())
                .map_err(Failure::Final)?
        {
            return Ok(sent.await?);
        }
        match plans {
            [only] if self.parts.is_empty() && only.is_write() && !self.needs_transaction(only) => {
                self.send_one(only).await
            }
            plans
                if self.db.engine().capabilities().transactions
                    || self.plain_write(plans).is_some() =>
            {
                self.send_all(plans).await
            }
            plans => {
                let items = plans.len() + self.writes.len();
                Err(Failure::Final(without_transactions(items)).into())
            }
        }
    }

    /// The only write of the commit, if it is one of a part and may go out plain: where an answer can get lost and a
    /// plain write takes no token, only a transaction tells what became of it.
    fn plain_write(&self, plans: &[Plan]) -> Option<WriteItem> {
        let can = self.db.engine().capabilities();
        let is_safe = !self.manner.exactly_once && (can.write_tokens || !can.loses_answers);
        let ([], [(_, _, only)], true) = (plans, self.writes.as_slice(), is_safe) else {
            return None;
        };
        let token = can.loses_answers.then(|| self.token.as_str().to_owned());
        match only.clone() {
            TransactWrite::Put(put) => Some(PutItem { token, ..put }.into()),
            TransactWrite::Update(update) => Some(UpdateItem { token, ..update }.into()),
            TransactWrite::Delete(delete) => Some(DeleteItem { token, ..delete }.into()),
            TransactWrite::Check(_) => None,
        }
    }

    /// Sends everything at once: as one transaction, unless it is one write that may go out plain.
    async fn send_once(&self, plans: &[Plan]) -> Result<(), StoreError> {
        if let Some(write) = self.plain_write(plans) {
            let written = self.db.engine().write_item(write).await;
            return written.map(drop).map_err(as_canceled);
        }
        let actions = plans.iter().map(|plan| self.transact_write(plan));
        let actions = actions.chain(self.writes.iter().map(|(_, _, write)| write.clone()));
        let request = TransactWriteItems::new(actions).token(self.token.as_str());
        let written = self.db.engine().transact_write_items(request).await;
        written.map(drop)
    }

    /// A transaction of one takes a token where a plain write does not.
    fn needs_transaction(&self, plan: &Plan) -> bool {
        let tokens = self.db.engine().capabilities().write_tokens;
        (self.manner.exactly_once || plan.schema.exactly_once) && !tokens
    }

    /// How often the commit is sent.
    fn budget(&self) -> Budget {
        Budget::for_commit(self.manner.end)
    }

    async fn send_one(&self, plan: &mut Plan) -> Result<(), Refusal> {
        let can = self.db.engine().capabilities();
        // What is never sent again need not be kept.
        let is_once = !can.loses_answers && plan.whole.is_none();
        let mut write = PlainWrite {
            first: is_once.then(|| std::mem::replace(&mut plan.action, Action::Check)),
            commit: self,
            plan,
            has_token: can.write_tokens && can.loses_answers,
            sent: 0,
        };
        match request::write(self.db, self.budget(), &mut write).await {
            Outcome::Applied => Ok(()),
            Outcome::Refused(refused) => refused,
            Outcome::Failed(error) => Err(store_failure(error).into()),
            Outcome::Unknown(error) => Err(unknown(plan, error).into()),
        }
    }

    async fn send_all(&self, plans: &[Plan]) -> Result<(), Refusal> {
        let mut write = TransactionWrite {
            commit: self,
            plans,
        };
        let error = match request::write(self.db, self.budget(), &mut write).await {
            Outcome::Applied => return Ok(()),
            Outcome::Refused(refusal) => return Err(refusal),
            Outcome::Failed(error) => return Err(store_failure(error).into()),
            Outcome::Unknown(error) => error,
        };
        let written = plans.iter().find(|plan| plan.is_write());
        Err(match written.or(plans.first()) {
            Some(plan) => unknown(plan, error),
            None => self.unknown_parts(error),
        }
        .into())
    }

    /// A transaction was refused: because of an item that should not be there, of races, or for good.
    fn canceled(
        &self,
        plans: &[Plan],
        reasons: &[CancellationReason],
        error: &StoreError,
    ) -> Refusal {
        let (mut lost, mut expired, mut has_fault) = (Vec::new(), Vec::new(), false);
        for (at, (plan, reason)) in plans.iter().zip(reasons).enumerate() {
            let item = reason.item.as_ref();
            match reason.code {
                CancellationCode::None => {}
                CancellationCode::ConditionalCheckFailed => {
                    if plan.expects.presence == Presence::New {
                        return lost_race(plan, item).into();
                    }
                    match plan.meets_expired(item, self.now) {
                        true => expired.push(at),
                        false => lost.push(plan.error_item(item)),
                    }
                }
                code => has_fault |= !code.is_retryable(),
            }
        }
        let (mut again, mut for_good) = (None, None);
        let refused = self.writes.iter().zip(reasons.iter().skip(plans.len()));
        for ((place, at, _), reason) in refused {
            match (reason.code, self.parts.get(*place)) {
                (CancellationCode::None, _) => {}
                (CancellationCode::ConditionalCheckFailed, Some(part)) => {
                    let failure = part.refused(*at, reason.item.as_ref());
                    if matches!(failure, Failure::Retry(_)) {
                        part.tell_lost(self.manner.attempt);
                    }
                    match failure {
                        Failure::Retry(error) => again.get_or_insert(error),
                        Failure::Final(error) => for_good.get_or_insert(error),
                    };
                }
                (code, _) => has_fault |= !code.is_retryable(),
            }
        }
        if let (false, Some(error)) = (has_fault, again) {
            return Failure::Retry(error).into();
        }
        // What is wrong for good may only be so because something else has changed as well.
        if let (false, true, Some(error)) = (has_fault, lost.is_empty(), for_good) {
            return Failure::Final(error).into();
        }
        // Beside a lost race, a conflict or a throttled item passes; what is wrong in itself does not.
        match (has_fault, lost.is_empty(), expired.is_empty()) {
            (false, true, false) => Refusal::OverExpired(expired),
            (false, false, _) => lost_races(lost).into(),
            _ => store_failure(error.clone()).into(),
        }
    }

    fn unknown_parts(&self, error: StoreError) -> Failure {
        let tables: BTreeSet<_> = self.parts.iter().flat_map(|part| part.tables()).collect();
        let tables: Vec<_> = tables.into_iter().map(|(table, _)| table).collect();
        let message = format!(
            "the answer was lost and nobody can know whether the commit was applied: tables={}",
            tables.join(",")
        );
        Failure::Final(Error::new(ErrorKind::OutcomeUnknown, message).with_source(error))
    }

    fn is_own(&self, item: Option<&Item>) -> bool {
        item.and_then(|item| item.get(STAMP_ATTRIBUTE)) == Some(&self.stamp)
    }

    /// Looks at the item whether a write whose response was lost has been applied.
    async fn settle(&self, plan: &Plan) -> Settled {
        let get = || {
            let get = GetItem::new(plan.schema.table, plan.key.to_item());
            self.db.engine().get_item(get)
        };
        let budget = Budget::for_write().deadline(self.manner.end);
        match repeat(self.db, budget, get).await {
            Ok(output) => self.judge(plan, output.item.as_ref()),
            Err(_) => Settled::Unknown,
        }
    }

    /// Whether the commit has been applied to the item as it is now.
    fn judge(&self, plan: &Plan, item: Option<&Item>) -> Settled {
        let stamp = item.and_then(|item| item.get(STAMP_ATTRIBUTE));
        let is_as_read = match plan.expects.presence {
            Presence::Absent | Presence::New => {
                item.is_none_or(|item| plan.schema.is_expired(item, self.now))
            }
            Presence::Present | Presence::Alive => {
                item.is_some() && plan.stamp.is_some() && stamp == plan.stamp.as_ref()
            }
            Presence::Any | Presence::AbsentOrEqual => false,
        };
        if self.is_own(item) {
            Settled::Applied
        } else if is_as_read {
            Settled::NotApplied
        } else {
            Settled::Unknown
        }
    }

    /// The request of a plan; if asked, only for an item whose stamp is the one that was read.
    fn write_item(
        &self,
        plan: &Plan,
        action: Action,
        has_token: bool,
        only_as_read: bool,
    ) -> WriteItem {
        let stamp = plan.stamp.as_ref().filter(|_| only_as_read);
        let as_read =
            stamp.map(|stamp| Condition::eq(Path::attribute(STAMP_ATTRIBUTE), stamp.clone()));
        let condition = plan.condition(self.now).into_iter().chain(as_read);
        let condition = condition.reduce(Condition::and);
        let token = has_token.then(|| self.token.as_str().to_owned());
        let table = plan.schema.table;
        match action {
            Action::Put(item) => {
                let mut put = PutItem::new(table, item).return_old_on_failure();
                (put.condition, put.token) = (condition, token);
                put.into()
            }
            Action::Update(update) => {
                let key = plan.key.to_item();
                let mut write = UpdateItem::new(table, key, update).return_old_on_failure();
                (write.condition, write.token) = (condition, token);
                write.into()
            }
            Action::Delete | Action::Check => {
                let key = plan.key.to_item();
                let mut delete = DeleteItem::new(table, key).return_old_on_failure();
                (delete.condition, delete.token) = (condition, token);
                delete.into()
            }
        }
    }

    fn transact_write(&self, plan: &Plan) -> TransactWrite {
        if plan.is_write() {
            return match self.write_item(plan, plan.action.clone(), false, false) {
                WriteItem::Put(put) => put.into(),
                WriteItem::Update(update) => update.into(),
                WriteItem::Delete(delete) => delete.into(),
            };
        }
        let (table, key) = (plan.schema.table, plan.key.to_item());
        let condition = plan.condition(self.now);
        let mut check = ConditionCheck::new(table, key, condition.unwrap_or_else(always));
        check.return_old_on_failure = true;
        check.into()
    }
}

/// One plain write on its way.
struct PlainWrite<'a> {
    commit: &'a Commit<'a>,
    plan: &'a Plan,
    /// What the only sending writes, if there is only one.
    first: Option<Action>,
    /// Whether sending it again has no further effect.
    has_token: bool,
    sent: u32,
}

impl Write for PlainWrite<'_> {
    type Refusal = Result<(), Refusal>;

    async fn send(&mut self, sending: Sending) -> Result<(), StoreError> {
        self.sent = sending.number;
        let action = self.first.take();
        let action = action.unwrap_or_else(|| self.plan.action.clone());
        // Found not to be applied, an earlier sending may still come late: then this one must not be applied too.
        let only_as_read = sending.in_doubt && !self.has_token;
        let write = (self.commit).write_item(self.plan, action, self.has_token, only_as_read);
        self.commit.db.engine().write_item(write).await.map(drop)
    }

    fn refused(
        &mut self,
        error: StoreError,
        sending: Sending,
    ) -> Result<Self::Refusal, StoreError> {
        let StoreError::ConditionalCheckFailed { item } = &error else {
            return Err(error);
        };
        let (item, plan) = (item.as_deref(), self.plan);
        Ok(match self.commit.judge(plan, item) {
            Settled::Applied => {
                telemetry::settled("stamp", true, sending.number);
                Ok(())
            }
            // An earlier sending may have come late, and another writer has changed the item since.
            Settled::Unknown if sending.in_doubt && !self.has_token => {
                Err(unknown(plan, error.clone()).into())
            }
            _ if plan.meets_expired(item, self.commit.now) => Err(Refusal::OverExpired(vec![0])),
            _ => Err(lost_race(plan, item).into()),
        })
    }

    async fn reconcile(&mut self) -> Reconciled {
        if self.has_token {
            return Reconciled::Resend;
        }
        match self.commit.settle(self.plan).await {
            Settled::Applied => {
                telemetry::settled("stamp", true, self.sent);
                Reconciled::Applied
            }
            Settled::NotApplied => {
                telemetry::settled("stamp", false, self.sent);
                Reconciled::Resend
            }
            Settled::Unknown => Reconciled::Unknown,
        }
    }
}

/// A transaction on its way, or one write of a part.
struct TransactionWrite<'a> {
    commit: &'a Commit<'a>,
    plans: &'a [Plan],
}

impl Write for TransactionWrite<'_> {
    type Refusal = Refusal;

    async fn send(&mut self, _: Sending) -> Result<(), StoreError> {
        self.commit.send_once(self.plans).await
    }

    fn refused(&mut self, error: StoreError, sending: Sending) -> Result<Refusal, StoreError> {
        match &error {
            // Once a response was lost, a conflict is waited for.
            StoreError::TransactionCanceled { reasons }
                if !sending.in_doubt || !error.is_retryable() =>
            {
                Ok(self.commit.canceled(self.plans, reasons, &error))
            }
            _ => Err(error),
        }
    }
}

/// The refusal of a plain write as that of a transaction of one.
fn as_canceled(error: StoreError) -> StoreError {
    match error {
        StoreError::ConditionalCheckFailed { item } => {
            let code = CancellationCode::ConditionalCheckFailed;
            let mut reason = CancellationReason::new(code, "The conditional request failed");
            reason.item = item.map(|item| *item);
            StoreError::TransactionCanceled {
                reasons: vec![reason],
            }
        }
        error => error,
    }
}

/// A check without a condition does not come up: whatever was read was there or was not.
fn always() -> Condition {
    Condition::attribute_exists(Path::attribute(PARTITION_ATTRIBUTE))
}

enum Settled {
    Applied,
    NotApplied,
    Unknown,
}

/// Refuses what the store would refuse for its size, before anything is sent.
fn check_size(db: &Db, plans: &[Plan], others: usize) -> crate::Result<()> {
    let max = db.engine().capabilities().transact_items_max;
    let items = plans.len() + others;
    if items > max {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("too many items in one transaction: items={items} max={max}"),
        ));
    }
    if let Some(plan) = plans.iter().find(|plan| plan.size > ITEM_BYTES_MAX) {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "the item is too large: model={} key={} bytes={} max={ITEM_BYTES_MAX}",
                plan.schema.model, plan.key, plan.size
            ),
        )
        .with_items(vec![plan.error_item(None)]));
    }
    let bytes: usize = plans.iter().map(|plan| plan.size).sum();
    if bytes > TRANSACT_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("the transaction is too large: bytes={bytes} max={TRANSACT_BYTES_MAX}"),
        ));
    }
    Ok(())
}

fn unknown(plan: &Plan, error: StoreError) -> Failure {
    let message = format!(
        "the answer was lost and nobody can know whether the write was applied: model={} key={}",
        plan.schema.model, plan.key
    );
    let unknown = Error::new(ErrorKind::OutcomeUnknown, message)
        .with_items(vec![plan.error_item(None)])
        .with_source(error);
    Failure::Final(unknown)
}

fn store_failure(error: StoreError) -> Failure {
    let retry = error.is_retryable();
    let error = Error::from(error);
    match retry {
        true => Failure::Retry(error),
        false => Failure::Final(error),
    }
}

/// The item was not as expected.
fn lost_race(plan: &Plan, item: Option<&Item>) -> Failure {
    let items = vec![plan.error_item(item)];
    if plan.expects.presence == Presence::New {
        let (model, key) = (plan.schema.model, &plan.key);
        let message = format!("the item exists already: model={model} key={key}");
        return Failure::Final(Error::new(ErrorKind::AlreadyExists, message).with_items(items));
    }
    lost_races(items)
}

/// Others have changed these items.
fn lost_races(items: Vec<ErrorItem>) -> Failure {
    let texts: Vec<String> = items.iter().map(race_text).collect();
    let error = Error::new(ErrorKind::TransactionFailed, texts.join("; "));
    Failure::Retry(error.with_items(items))
}

fn race_text(item: &ErrorItem) -> String {
    let (model, key) = (item.model, &item.key);
    match item.fields.as_slice() {
        [] => format!("somebody else created or removed the item: model={model} key={key}"),
        fields => format!(
            "somebody else changed the item: model={model} key={key} fields={}",
            fields.join(",")
        ),
    }
}
