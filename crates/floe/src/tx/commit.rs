//! Sending what a run has written: one plain write, or one transaction of all parts.
//!
//! Every commit has an id, which patterns may stamp on the items that they write. When a response is lost, sending the
//! commit again is safe if it carries the id as its token. A part that is alone may know a cheaper way to find out what
//! became of it.

use std::collections::BTreeSet;

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::limits::{ITEM_BYTES_MAX, TRANSACT_BYTES_MAX};
use floe_store::op::{TransactWrite, TransactWriteItems, WriteItem};
use floe_store::{Error as StoreError, Timestamp, Value};

use super::part::{
    Alone, AloneFailure, CommitId, CommitOptions, Failure, Part, PartWrite, Refusal,
};
use crate::db::Db;
use crate::error::{Error, ErrorItem, ErrorKind};
use crate::request::{self, Budget, Outcome, Sending, Write, with_token};

/// Sends the parts of a run, and returns how many items were written.
pub(crate) async fn commit(
    db: &Db,
    parts: Vec<Box<dyn Part>>,
    now: Timestamp,
    options: CommitOptions,
) -> Result<usize, Failure> {
    let has_writes = parts.iter().any(|part| part.is_write());
    if !has_writes && (parts.is_empty() || !options.verified) {
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
            Err(Refused::Failed(failure)) => return Err(commit.with_missing_table(failure)),
            Err(Refused::Rewrite(places)) => commit.rewrite(&places).map_err(Failure::Final)?,
        }
    }
}

/// Why a commit was not made as it was sent.
enum Refused {
    Failed(Failure),
    /// What stands in the way of the writes at these places does not count.
    Rewrite(Vec<Place>),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<AloneFailure> for Refused {
    fn from(failure: AloneFailure) -> Self {
        Self::Failed(match failure {
            AloneFailure::Failed(failure) => failure,
            AloneFailure::Refused(Refusal::Lost(error)) => Failure::Retry(error),
            AloneFailure::Refused(Refusal::Invalid(error) | Refusal::Final(error)) => {
                Failure::Final(error)
            }
            AloneFailure::Refused(Refusal::Rewrite) => {
                return Self::Rewrite(vec![Place { part: 0, write: 0 }]);
            }
        })
    }
}

/// The place of a write in a commit.
#[derive(Clone, Copy, Debug)]
struct Place {
    part: usize,
    write: usize,
}

struct Commit<'a> {
    db: &'a Db,
    options: CommitOptions,
    id: CommitId,
    parts: Vec<Box<dyn Part>>,
    writes: Vec<(Place, PartWrite)>,
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
            let writes = writes.map(|(write, planned)| (Place { part, write }, planned));
            self.writes.extend(writes);
        }
        self.check_size()
    }

    /// Writes over what stands in the way. It is another request, which needs a token of its own.
    fn rewrite(&mut self, places: &[Place]) -> crate::Result<()> {
        for place in places {
            if let Some(part) = self.parts.get_mut(place.part) {
                part.rewrite(place.write);
            }
        }
        self.id.token = self.db.env().ordered_uuid();
        self.collect_writes()
    }

    /// Refuses what the store would refuse for its size, before anything is sent.
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

    async fn send(&mut self) -> Result<(), Refused> {
        let budget = Budget::for_commit(self.options.deadline);
        let alone = Alone {
            db: self.db,
            commit: &self.id,
            options: self.options,
            budget,
        };
        if let [part] = self.parts.as_mut_slice()
            && let Some(sent) = part.send_alone(alone)
        {
            return sent.await.map_err(Refused::from);
        }
        if !self.db.engine().capabilities().transactions && self.plain_write().is_none() {
            return Err(Failure::Final(without_transactions(self.writes.len())).into());
        }
        match request::write(self.db, budget, &mut CommitWrite(self)).await {
            Outcome::Applied => Ok(()),
            Outcome::Refused(refused) => Err(refused),
            Outcome::Failed(error) => Err(store_failure(error).into()),
            Outcome::Unknown(error) => Err(self.unknown(error).into()),
        }
    }

    /// The only write of the commit, if it may be sent plain: where a response can get lost and a plain write takes no
    /// token, only a transaction shows what became of it.
    fn plain_write(&self) -> Option<WriteItem> {
        let can = self.db.engine().capabilities();
        let is_safe = can.write_tokens || (!can.loses_answers && !self.options.exactly_once);
        let ([(_, only)], true) = (self.writes.as_slice(), is_safe) else {
            return None;
        };
        let token = can.loses_answers.then(|| self.id.token.as_str().to_owned());
        let write = match only.write.clone() {
            TransactWrite::Put(put) => put.into(),
            TransactWrite::Update(update) => update.into(),
            TransactWrite::Delete(delete) => delete.into(),
            TransactWrite::Check(_) => return None,
        };
        Some(with_token(write, token))
    }

    /// The store refused the transaction: because of lost races, or for good.
    fn canceled(&self, reasons: &[CancellationReason], error: &StoreError) -> Refused {
        let (mut lost, mut invalid, mut rewrites) = (Vec::new(), None, Vec::new());
        let mut has_fault = false;
        for ((place, _), reason) in self.writes.iter().zip(reasons) {
            match (reason.code, self.parts.get(place.part)) {
                (CancellationCode::None, _) => {}
                (CancellationCode::ConditionalCheckFailed, Some(part)) => {
                    match part.refused(place.write, reason.item.as_ref()) {
                        Refusal::Final(error) => return Failure::Final(error).into(),
                        Refusal::Lost(error) => {
                            part.record_lost(self.options.attempt);
                            lost.push(error);
                        }
                        Refusal::Invalid(error) => _ = invalid.get_or_insert(error),
                        Refusal::Rewrite => rewrites.push(*place),
                    }
                }
                (code, _) => has_fault |= !code.is_retryable(),
            }
        }
        // Beside a lost race, a conflict or a throttled item passes; what is wrong in itself does not.
        if has_fault {
            return store_failure(error.clone()).into();
        }
        // What is invalid may only be so because something else has changed as well.
        match (Error::join(lost), invalid) {
            (Some(lost), _) => Failure::Retry(lost).into(),
            (None, Some(invalid)) => Failure::Final(invalid).into(),
            (None, None) if rewrites.is_empty() => store_failure(error.clone()).into(),
            (None, None) => Refused::Rewrite(rewrites),
        }
    }

    fn unknown(&self, error: StoreError) -> Failure {
        let items: Vec<_> = self.parts.iter().flat_map(|part| part.items()).collect();
        let tables: Vec<_> = self.tables().into_iter().map(|(table, _)| table).collect();
        let tables = format!("tables={}", tables.join(","));
        unknown(error, items, &tables)
    }

    /// The tables of all parts, and what is in them.
    fn tables(&self) -> BTreeSet<(String, &'static str)> {
        self.parts.iter().flat_map(|part| part.tables()).collect()
    }

    /// Names the tables of the commit, of which one is missing: the store says at most that one is.
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

/// A commit on its way: as one transaction, unless it is one write that may be sent plain.
struct CommitWrite<'c, 'a>(&'c Commit<'a>);

impl Write for CommitWrite<'_, '_> {
    type Refusal = Refused;

    async fn send(&mut self, _: Sending) -> Result<(), StoreError> {
        let engine = self.0.db.engine();
        if let Some(write) = self.0.plain_write() {
            let written = engine.write_item(write).await;
            return written.map(drop).map_err(as_canceled);
        }
        let writes = self.0.writes.iter().map(|(_, it)| it.write.clone());
        let request = TransactWriteItems::new(writes).token(self.0.id.token.as_str());
        engine.transact_write_items(request).await.map(drop)
    }

    fn refused(&mut self, error: StoreError, sending: Sending) -> Result<Refused, StoreError> {
        match &error {
            // Once a response was lost, a conflict is waited for.
            StoreError::TransactionCanceled { reasons }
                if !sending.in_doubt || !error.is_retryable() =>
            {
                Ok(self.0.canceled(reasons, &error))
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
            let reasons = vec![reason];
            StoreError::TransactionCanceled { reasons }
        }
        error => error,
    }
}

/// The error for a commit of which it cannot be known whether it was applied. `facts` name it where no item does.
pub(crate) fn unknown(error: StoreError, items: Vec<ErrorItem>, facts: &str) -> Failure {
    let what = match items.first() {
        Some(item) => format!("model={} key={}", item.model, item.key),
        None => facts.to_owned(),
    };
    let message = format!("commit outcome unknown: the response was lost: {what}");
    let unknown = Error::new(ErrorKind::OutcomeUnknown, message).with_items(items);
    Failure::Final(unknown.with_source(error))
}

/// The store's own failure.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    Failure::of(error.into())
}

fn without_transactions(items: usize) -> Error {
    let message = format!(
        "the engine has no transactions, which a commit of several items, a verified one and one \
         that is made exactly once need: items={items}"
    );
    Error::new(ErrorKind::Unsupported, message)
}
