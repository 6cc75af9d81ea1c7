//! Sends the changes of an attempt: one plain write, or one transaction of all parts.
//!
//! Every commit has an id, which patterns may stamp on the items that they write. After a lost response, resending the
//! commit is safe if it carries the id as its token. A single part may have a cheaper way to reconcile its outcome.

use std::collections::BTreeSet;

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::limits::{ITEM_BYTES_MAX, TRANSACT_BYTES_MAX};
use floe_store::op::{TransactWrite, TransactWriteItems, WriteItem};
use floe_store::{Error as StoreError, Timestamp, Value};

use super::part::{
    CommitId, CommitOptions, Failure, Part, PartWrite, Rejection, SinglePart, SinglePartFailure,
};
use crate::db::Db;
use crate::error::{Error, ErrorItem, ErrorKind};
use crate::request::{self, Budget, SendAttempt, Write, WriteOutcome, with_token};

/// Commits the parts of an attempt, and returns how many items were written.
pub(crate) async fn commit(
    db: &Db,
    parts: Vec<Box<dyn Part>>,
    now: Timestamp,
    options: CommitOptions,
) -> Result<usize, Failure> {
    if !is_sent(&parts, options) {
        return Ok(0);
    }
    let mut commit = Commit::new(db, parts, now, options);
    commit.prepare().map_err(Failure::Final)?;
    loop {
        match commit.send().await {
            Ok(()) => {
                commit.parts.iter().for_each(|part| part.committed());
                return Ok(commit.items_written());
            }
            Err(SendError::Failed(failure)) => return Err(commit.with_missing_table(failure)),
            Err(SendError::Rewrite(writes)) => commit.rewrite(&writes).map_err(Failure::Final)?,
        }
    }
}

/// Whether a commit of these parts sends anything.
pub(crate) fn is_sent(parts: &[Box<dyn Part>], options: CommitOptions) -> bool {
    let has_writes = parts.iter().any(|part| part.is_write());
    has_writes || (options.verified && !parts.is_empty())
}

/// Why a commit was not applied as it was sent.
enum SendError {
    Failed(Failure),
    /// The items that these writes conflict with may be overwritten.
    Rewrite(Vec<WritePosition>),
}

impl From<Failure> for SendError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<SinglePartFailure> for SendError {
    fn from(failure: SinglePartFailure) -> Self {
        Self::Failed(match failure {
            SinglePartFailure::Failed(failure) => failure,
            SinglePartFailure::Rejected(Rejection::Conflict(error)) => Failure::Retry(error),
            SinglePartFailure::Rejected(Rejection::Invalid(error) | Rejection::Final(error)) => {
                Failure::Final(error)
            }
            SinglePartFailure::Rejected(Rejection::Rewrite) => {
                return Self::Rewrite(vec![WritePosition { part: 0, write: 0 }]);
            }
        })
    }
}

/// The position of a write in a commit.
#[derive(Clone, Copy, Debug)]
struct WritePosition {
    part: usize,
    write: usize,
}

struct Commit<'a> {
    db: &'a Db,
    options: CommitOptions,
    id: CommitId,
    parts: Vec<Box<dyn Part>>,
    writes: Vec<(WritePosition, PartWrite)>,
}

impl<'a> Commit<'a> {
    fn new(db: &'a Db, parts: Vec<Box<dyn Part>>, now: Timestamp, options: CommitOptions) -> Self {
        let id = db.env().ordered_uuid();
        let id = CommitId {
            stamp: Value::S(id.clone()),
            token: id.clone(),
            id,
            now,
        };
        Self {
            db,
            options,
            id,
            parts,
            writes: Vec::new(),
        }
    }

    fn prepare(&mut self) -> crate::Result<()> {
        for part in &mut self.parts {
            part.prepare(&self.id)?;
        }
        self.collect_writes()
    }

    fn collect_writes(&mut self) -> crate::Result<()> {
        self.writes.clear();
        for (part, of_part) in self.parts.iter().enumerate() {
            let writes = of_part.writes()?.into_iter().enumerate();
            let writes = writes.map(|(write, planned)| (WritePosition { part, write }, planned));
            self.writes.extend(writes);
        }
        self.check_size()
    }

    /// Replaces writes by ones that overwrite the conflicting items. That is a different request, which needs a new token.
    fn rewrite(&mut self, positions: &[WritePosition]) -> crate::Result<()> {
        for position in positions {
            if let Some(part) = self.parts.get_mut(position.part) {
                part.rewrite(position.write);
            }
        }
        self.id.token = self.db.env().ordered_uuid();
        self.collect_writes()
    }

    /// Rejects a commit that exceeds the size limits of the store, before anything is sent.
    fn check_size(&self) -> crate::Result<()> {
        let max = self.db.engine().capabilities().transact_items_max;
        let items = self.writes.len();
        let sizes = self.writes.iter().map(|(_, planned)| planned.bytes);
        let largest = sizes.clone().max().unwrap_or(0);
        let bytes: usize = sizes.sum();
        let message = if items > max {
            format!("too many items in one transaction: items={items} max={max}")
        } else if largest > ITEM_BYTES_MAX {
            format!("the item is too large: bytes={largest} max={ITEM_BYTES_MAX}")
        } else if bytes > TRANSACT_BYTES_MAX {
            format!("the transaction is too large: bytes={bytes} max={TRANSACT_BYTES_MAX}")
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    fn items_written(&self) -> usize {
        let is_write = |write: &TransactWrite| !matches!(write, TransactWrite::Check(_));
        let writes = self.writes.iter();
        writes.filter(|(_, it)| is_write(&it.write)).count()
    }

    async fn send(&mut self) -> Result<(), SendError> {
        let budget = Budget::for_commit(self.options.deadline);
        let single = SinglePart {
            db: self.db,
            commit: &self.id,
            options: self.options,
            budget,
        };
        if let [part] = self.parts.as_mut_slice()
            && let Some(sent) = part.send_single(single)
        {
            return sent.await.map_err(SendError::from);
        }
        if !self.db.engine().capabilities().transactions && self.plain_write().is_none() {
            return Err(Failure::Final(without_transactions(self.writes.len())).into());
        }
        match request::write(self.db, budget, &mut CommitWrite(self)).await {
            WriteOutcome::Applied => Ok(()),
            WriteOutcome::Rejected(error) => Err(error),
            WriteOutcome::Failed(error) => Err(store_failure(error).into()),
            WriteOutcome::Unknown(error) => Err(self.unknown(error).into()),
        }
    }

    /// Returns the only write of the commit, if it may be sent as a plain write. Where responses can be lost and plain
    /// writes take no token, only a transaction can be reconciled.
    fn plain_write(&self) -> Option<WriteItem> {
        let can = self.db.engine().capabilities();
        let is_safe = can.write_tokens || (!can.loses_responses && !self.options.exactly_once);
        let ([(_, only)], true) = (self.writes.as_slice(), is_safe) else {
            return None;
        };
        let token = can
            .loses_responses
            .then(|| self.id.token.as_str().to_owned());
        let write = match only.write.clone() {
            TransactWrite::Put(put) => put.into(),
            TransactWrite::Update(update) => update.into(),
            TransactWrite::Delete(delete) => delete.into(),
            TransactWrite::Check(_) => return None,
        };
        Some(with_token(write, token))
    }

    /// Interprets a canceled transaction: a conflict, or a permanent failure.
    fn canceled(&self, reasons: &[CancellationReason], error: &StoreError) -> SendError {
        let (mut conflicts, mut invalid, mut rewrites) = (Vec::new(), None, Vec::new());
        let mut has_fault = false;
        for ((position, _), reason) in self.writes.iter().zip(reasons) {
            match (reason.code, self.parts.get(position.part)) {
                (CancellationCode::None, _) => {}
                (CancellationCode::ConditionalCheckFailed, Some(part)) => {
                    match part.condition_failed(position.write, reason.item.as_ref()) {
                        Rejection::Final(error) => return Failure::Final(error).into(),
                        Rejection::Conflict(error) => {
                            part.record_conflict(self.options.attempt);
                            conflicts.push(error);
                        }
                        Rejection::Invalid(error) => _ = invalid.get_or_insert(error),
                        Rejection::Rewrite => rewrites.push(*position),
                    }
                }
                (code, _) => has_fault |= !code.is_retryable(),
            }
        }
        // A fault of the request itself outweighs conflicts and throttled items, which are transient.
        if has_fault {
            return store_failure(error.clone()).into();
        }
        // A write may be invalid only because of another conflict.
        match (Error::join(conflicts), invalid) {
            (Some(conflict), _) => Failure::Retry(conflict).into(),
            (None, Some(invalid)) => Failure::Final(invalid).into(),
            (None, None) if rewrites.is_empty() => store_failure(error.clone()).into(),
            (None, None) => SendError::Rewrite(rewrites),
        }
    }

    fn unknown(&self, error: StoreError) -> Failure {
        let items: Vec<_> = self.parts.iter().flat_map(|part| part.items()).collect();
        let tables: Vec<_> = self.tables().into_iter().map(|(table, _)| table).collect();
        let tables = format!("tables={}", tables.join(","));
        unknown(error, items, &tables)
    }

    /// The tables of all parts, with their contents.
    fn tables(&self) -> BTreeSet<(String, &'static str)> {
        self.parts.iter().flat_map(|part| part.tables()).collect()
    }

    /// Adds the tables of the commit to the error about a missing table, which the store does not name.
    fn with_missing_table(&self, failure: Failure) -> Failure {
        let Failure::Final(error) = &failure else {
            return failure;
        };
        let Some(source @ StoreError::ResourceNotFound(_)) = error.store_error() else {
            return failure;
        };
        let needed = self.tables().into_iter();
        let needed: Vec<_> = needed.map(|(table, of)| format!("{table}({of})")).collect();
        let remedies: BTreeSet<_> = self.parts.iter().map(|part| part.remedy()).collect();
        let remedies: Vec<_> = remedies.into_iter().collect();
        let (remedies, needed) = (remedies.join(", and "), needed.join(","));
        let message = format!("a table is missing; {remedies}: tables={needed}");
        Failure::Final(Error::new(ErrorKind::Table, message).with_source(source.clone()))
    }
}

/// Sends a commit as one transaction, or as a plain write where that is safe.
struct CommitWrite<'c, 'a>(&'c Commit<'a>);

impl Write for CommitWrite<'_, '_> {
    type Rejection = SendError;

    async fn send(&mut self, _: SendAttempt) -> Result<(), StoreError> {
        let engine = self.0.db.engine();
        if let Some(write) = self.0.plain_write() {
            let written = engine.write_item(write).await;
            return written.map(drop).map_err(as_canceled);
        }
        let writes = self.0.writes.iter().map(|(_, it)| it.write.clone());
        let request = TransactWriteItems::new(writes).token(self.0.id.token.as_str());
        engine.transact_write_items(request).await.map(drop)
    }

    fn rejection(
        &mut self,
        error: StoreError,
        attempt: SendAttempt,
    ) -> Result<SendError, StoreError> {
        match &error {
            // After a lost response, a conflict may be with an earlier attempt: retry.
            StoreError::TransactionCanceled { reasons }
                if !attempt.in_doubt || !error.is_retryable() =>
            {
                Ok(self.0.canceled(reasons, &error))
            }
            _ => Err(error),
        }
    }
}

/// Converts the rejection of a plain write to that of a transaction of one.
fn as_canceled(error: StoreError) -> StoreError {
    match error {
        StoreError::ConditionalCheckFailed { item } => {
            let code = CancellationCode::ConditionalCheckFailed;
            let mut reason = CancellationReason::new(code, "The conditional request failed");
            reason.item = item.map(|item| *item);
            let reasons = vec![reason];
            StoreError::TransactionCanceled { reasons }
        }
        error => error,
    }
}

/// The error of a commit whose outcome cannot be determined. `facts` identify it if there are no items.
pub(crate) fn unknown(error: StoreError, items: Vec<ErrorItem>, facts: &str) -> Failure {
    let facts = match items.first() {
        Some(item) => format!("model={} key={}", item.model, item.key),
        None => facts.to_owned(),
    };
    let message = format!("commit outcome unknown: the response was lost: {facts}");
    let unknown = Error::new(ErrorKind::OutcomeUnknown, message).with_items(items);
    Failure::Final(unknown.with_source(error))
}

/// A failure reported by the store.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    Failure::of(error.into())
}

fn without_transactions(items: usize) -> Error {
    let message = format!(
        "the engine has no transactions, but the commit has several items or is verified or \
         exactly_once: items={items}"
    );
    Error::new(ErrorKind::Unsupported, message)
}
