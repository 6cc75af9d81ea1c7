//! Appending: from events to the one request that adds them to a stream.
//!
//! ```text
//! no stream yet                  PutItem of the Tip, if there is none
//! the Tip has room               UpdateItem of the Tip, if it is as expected
//! the Tip is full                TransactWriteItems: PutItem of a calf with the events of the Tip, if there is none,
//!                                and UpdateItem of the Tip, which holds the new events alone
//! ```
//!
//! The request carries a new etag. When the answer is lost, the request is sent again; if it then fails, the Tip that
//! comes back tells whether it had been applied: by the etag, or by the very events at the expected index.

use floe_store::error::CancellationCode;
use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{PutItem, TransactWrite, TransactWriteItems, UpdateItem, WriteItem};
use floe_store::size::item_size;
use floe_store::{BoxFuture, Error as StoreError, Item, Number, Text, Value};

use super::limits::{SENDS_MAX, TIP_BYTES_MAX, TipLimits};
use super::load;
use super::name::StreamName;
use super::schema::{
    APPENDED, Batch, CALVED_BYTES, CASES, ETAG, EVENTS, NEXT, STREAM, StoredEvent, StoredUnfold,
    TIP_INDEX, UNFOLDS, key, lists_of, unfolds_of,
};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::backoff::Backoff;

/// Where a stream stands, as far as one must know to append to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Position {
    /// How many events it has.
    pub(crate) version: u64,
    pub(crate) etag: Option<Text>,
    /// What the events in calved batches weigh.
    pub(crate) calved_bytes: u64,
    /// The events in the Tip.
    pub(crate) tip: Vec<StoredEvent>,
}

impl Position {
    pub(crate) fn of_tip(tip: &Batch) -> Self {
        Self {
            version: tip.next,
            etag: tip.etag.clone(),
            calved_bytes: tip.calved_bytes,
            tip: tip.events.clone(),
        }
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        weigh(&self.tip) + 200
    }
}

/// What shall be written.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) events: Vec<StoredEvent>,
    /// What stands beside the events from then on, instead of what stood there.
    pub(crate) unfolds: Vec<StoredUnfold>,
    /// What must not have changed.
    pub(crate) guard: Guard,
}

/// What must not have changed since a stream was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Its version.
    Version,
    /// Anything: what is written depends on the unfolds.
    Etag,
}

/// One append, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Sync {
    pub(crate) writes: Vec<TransactWrite>,
    /// Where the stream stands once it is applied.
    pub(crate) after: Position,
    /// The events that it appends, and where.
    events: Vec<StoredEvent>,
    start: u64,
}

impl Sync {
    /// The append of this change to a stream that stands there, or is not there yet.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when the Tip would not fit into an item.
    pub(crate) fn new(
        table: &str,
        stream: &StreamName,
        position: Option<&Position>,
        change: &Change,
        limits: &TipLimits,
        etag: Text,
    ) -> Result<Self> {
        let start = position.map_or(0, |position| position.version);
        let calf = position.filter(|position| is_full(position, change, limits));
        let kept = position
            .filter(|_| calf.is_none())
            .map_or(&[][..], |position| &position.tip);
        let calved_bytes = position.map_or(0, |position| position.calved_bytes)
            + calf.map_or(0, |position| weigh(&position.tip) as u64);
        let after = Position {
            version: start + change.events.len() as u64,
            etag: Some(etag),
            calved_bytes,
            tip: kept.iter().chain(&change.events).cloned().collect(),
        };
        let tip = Batch {
            stream: stream.clone(),
            index: TIP_INDEX,
            next: after.version,
            events: after.tip.clone(),
            unfolds: change.unfolds.clone(),
            appended: change.events.len() as u64,
            calved_bytes,
            etag: after.etag.clone(),
        }
        .into_item();
        check_size(stream, &tip)?;
        let mut writes = Vec::new();
        let events = change.events.clone();
        if let Some(position) = calf {
            writes.push(put_calf(table, stream, position));
        }
        writes.push(match position {
            None => put_new(table, tip).into(),
            Some(position) => {
                let replaces = calf.is_some() || position.tip.is_empty();
                let mut update = UpdateItem::new(
                    table,
                    key(stream, TIP_INDEX),
                    update(change, &after, replaces),
                )
                .return_old_on_failure();
                update.condition = Some(condition(position, change.guard));
                update.into()
            }
        });
        Ok(Self {
            writes,
            after,
            events,
            start,
        })
    }
}

/// Whether the events of the Tip must make room.
fn is_full(position: &Position, change: &Change, limits: &TipLimits) -> bool {
    if position.tip.is_empty() {
        return false;
    }
    let events = position.tip.len() + change.events.len();
    let event_bytes = weigh(&position.tip) + weigh(&change.events);
    let bytes = event_bytes
        + change
            .unfolds
            .iter()
            .map(StoredUnfold::bytes)
            .sum::<usize>();
    limits.events_max.is_some_and(|most| events > most)
        || event_bytes > limits.event_bytes_max
        || bytes > limits.bytes_max.min(TIP_BYTES_MAX)
}

fn weigh(events: &[StoredEvent]) -> usize {
    events.iter().map(StoredEvent::bytes).sum()
}

fn check_size(stream: &StreamName, tip: &Item) -> Result<()> {
    let bytes = item_size(tip);
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        format!(
            "an append and its unfolds do not fit into an item: stream={stream} bytes={bytes} max={ITEM_BYTES_MAX}"
        ),
    ))
}

/// The events of the Tip as a batch that never changes.
fn put_calf(table: &str, stream: &StreamName, position: &Position) -> TransactWrite {
    let calf = Batch {
        stream: stream.clone(),
        index: position.version - position.tip.len() as u64,
        next: position.version,
        events: position.tip.clone(),
        unfolds: Vec::new(),
        appended: 0,
        calved_bytes: 0,
        etag: None,
    };
    put_new(table, calf.into_item()).into()
}

fn put_new(table: &str, item: Item) -> PutItem {
    let mut put = PutItem::new(table, item).return_old_on_failure();
    put.condition = Some(Condition::attribute_not_exists(Path::attribute(STREAM)));
    put
}

/// What must hold of the Tip. The version alone would let a prune pass unnoticed, or a calving, and what is
/// known of the Tip from then on would be wrong.
pub(crate) fn condition(position: &Position, guard: Guard) -> Condition {
    let version = || {
        Condition::eq(
            Path::attribute(NEXT),
            Value::N(Number::from(position.version)),
        )
    };
    let etag = position.etag.as_ref();
    let etag = etag.map(|etag| Condition::eq(Path::attribute(ETAG), Value::S(etag.clone())));
    match (guard, etag) {
        (Guard::Etag, Some(etag)) => etag,
        (Guard::Version, Some(etag)) => version().and(etag),
        (_, None) => version(),
    }
}

/// The update of the Tip. What it had stays unless it was calved or was nothing.
fn update(change: &Change, after: &Position, replaces: bool) -> Update {
    let has_events = !change.events.is_empty();
    let count = Number::from(change.events.len() as u64);
    let mut update = Update::new()
        .set(Path::attribute(APPENDED), Value::N(count))
        .set(
            Path::attribute(CALVED_BYTES),
            Value::N(Number::from(after.calved_bytes)),
        )
        .set(Path::attribute(UNFOLDS), unfolds_of(change.unfolds.clone()));
    if let Some(etag) = &after.etag {
        update = update.set(Path::attribute(ETAG), Value::S(etag.clone()));
    }
    if has_events {
        update = update.set(Path::attribute(NEXT), Value::N(Number::from(after.version)));
    }
    let (cases, events) = lists_of(change.events.clone());
    for (name, list) in [(EVENTS, events), (CASES, cases)] {
        update = match (replaces, has_events) {
            (true, _) => update.set(Path::attribute(name), list),
            (false, true) => {
                let path = Path::attribute(name);
                // Some leave out a list that is empty.
                let had = SetOperand::if_not_exists(path.clone(), Value::L(Vec::new()));
                update.set(path, SetOperand::list_append(had, list))
            }
            (false, false) => update,
        };
    }
    update
}

/// What became of an append.
#[derive(Debug)]
pub(crate) enum Synced {
    /// It was applied.
    Written(Position),
    /// Somebody else was faster. The Tip as it is now; `None` if there is none.
    Conflict(Option<Box<Batch>>),
}

impl Sync {
    /// Sends it until its outcome is known.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) when the store refuses it or fails, [`Unsupported`](ErrorKind::Unsupported) when it
    /// takes transactions that the engine does not have, [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) when the store
    /// does not come back, when nothing but unfolds was written and somebody else has written since, or when the stream
    /// was pruned since.
    pub(crate) async fn send(self, db: &Db, stream: &StreamName) -> Result<Synced> {
        let can = db.engine().capabilities();
        if self.writes.len() > 1 && !can.transactions {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the engine has no transactions, which calving needs: stream={stream}"),
            ));
        }
        let token = (can.loses_answers && (can.write_tokens || self.writes.len() > 1))
            .then(|| db.env().ordered_uuid());
        let (mut sent, mut in_doubt) = (0, false);
        loop {
            sent += 1;
            let error = match self.send_once(db, token.as_deref()).await {
                Ok(()) => return Ok(Synced::Written(self.after)),
                Err(error) => error,
            };
            if let Some(tip) = conflict(&error) {
                let settled = self.settle(db, stream, tip?, in_doubt).await;
                return settled.map_err(|error| match error.store_error().cloned() {
                    Some(source) if in_doubt => unknown(stream, source),
                    _ => error,
                });
            }
            in_doubt |= error.may_have_applied();
            // An engine that loses no answers has failed if it does not know, and takes no further writes.
            let may_pass = match error.may_have_applied() {
                true => can.loses_answers,
                false => error.is_retryable(),
            };
            if !may_pass || sent >= SENDS_MAX {
                return Err(match in_doubt {
                    true => unknown(stream, error),
                    false => load::failed(error, self.table()),
                });
            }
            let pause = Backoff::default().pause(sent, db.env().next_u64());
            db.timer().sleep(pause).await;
        }
    }

    async fn send_once(&self, db: &Db, token: Option<&str>) -> std::result::Result<(), StoreError> {
        if let [only] = self.writes.as_slice()
            && let Some(write) = single(only, token)
        {
            return db.engine().write_item(write).await.map(drop);
        }
        let mut request = TransactWriteItems::new(self.writes.iter().cloned());
        request.token = token.map(str::to_owned);
        db.engine().transact_write_items(request).await.map(drop)
    }

    /// What became of an append that the Tip stood in the way of.
    async fn settle(
        self,
        db: &Db,
        stream: &StreamName,
        tip: Option<Batch>,
        in_doubt: bool,
    ) -> Result<Synced> {
        let tip = match tip {
            // The reasons of a transaction need not hold the Tip.
            None if self.writes.len() > 1 || self.start > 0 => {
                persistently(db, || Box::pin(load::tip(db, self.table(), stream, true))).await?
            }
            tip => tip,
        };
        let Some(tip) = tip else {
            return Ok(Synced::Conflict(None));
        };
        if tip.etag == self.after.etag {
            return Ok(Synced::Written(self.after));
        }
        if in_doubt {
            if self.events.is_empty() {
                let error =
                    StoreError::OutcomeUnknown("somebody else has written since".to_owned());
                return Err(unknown(stream, error));
            }
            match persistently(db, || Box::pin(self.stands_in(db, stream, &tip))).await? {
                // Others may have appended since: what they did is no part of what follows from this append.
                Some(true) => return Ok(Synced::Written(self.after)),
                Some(false) => {}
                None => {
                    let error =
                        StoreError::OutcomeUnknown("the stream was pruned since".to_owned());
                    return Err(unknown(stream, error));
                }
            }
        }
        Ok(Synced::Conflict(Some(Box::new(tip))))
    }

    fn table(&self) -> &str {
        self.writes.first().map_or("", TransactWrite::table_name)
    }

    /// Whether the very events stand where they were to be appended; `None` if nobody can tell, because what stands there
    /// is gone.
    async fn stands_in(&self, db: &Db, stream: &StreamName, tip: &Batch) -> Result<Option<bool>> {
        let end = self.start + self.events.len() as u64;
        // The last write is somebody else's, so what it has appended is not ours, however alike.
        if tip.next.saturating_sub(tip.appended) < end {
            return Ok(Some(false));
        }
        let stored = load::stored_between(db, self.table(), stream, tip, self.start, end).await?;
        if stored.len() < self.events.len() {
            return Ok(None);
        }
        Ok(Some(stored == self.events))
    }
}

/// Reads what settles an append, as often as a request is sent: an append is not left unknown for the sake of a read.
async fn persistently<'r, T>(db: &Db, read: impl Fn() -> BoxFuture<'r, Result<T>>) -> Result<T> {
    let mut sent = 0;
    loop {
        sent += 1;
        let error = match read().await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let may_pass = error.store_error().is_some_and(StoreError::is_retryable);
        if !may_pass || sent >= SENDS_MAX {
            return Err(error);
        }
        let pause = Backoff::default().pause(sent, db.env().next_u64());
        db.timer().sleep(pause).await;
    }
}

/// The Tip that stood in the way, if something did.
fn conflict(error: &StoreError) -> Option<Result<Option<Batch>>> {
    let item = match error {
        StoreError::ConditionalCheckFailed { item } => item.as_deref(),
        StoreError::TransactionCanceled { reasons } => {
            let is_conflict = |code| code == CancellationCode::ConditionalCheckFailed;
            let has_fault = reasons.iter().any(|reason| {
                !(is_conflict(reason.code)
                    || reason.code == CancellationCode::None
                    || reason.code.is_retryable())
            });
            let mut lost = reasons
                .iter()
                .filter(|reason| is_conflict(reason.code))
                .peekable();
            if has_fault || lost.peek().is_none() {
                return None;
            }
            let tips = lost.filter_map(|reason| reason.item.as_ref());
            let mut tips = tips.filter(|item| {
                item.get(&super::schema::INDEX).and_then(Value::as_n)
                    == Some(Number::from(TIP_INDEX))
            });
            tips.next()
        }
        _ => return None,
    };
    Some(item.map(Batch::of_item).transpose())
}

fn single(write: &TransactWrite, token: Option<&str>) -> Option<WriteItem> {
    let token = token.map(str::to_owned);
    match write.clone() {
        TransactWrite::Put(put) => Some(PutItem { token, ..put }.into()),
        TransactWrite::Update(update) => Some(UpdateItem { token, ..update }.into()),
        TransactWrite::Delete(_) | TransactWrite::Check(_) => None,
    }
}

fn unknown(stream: &StreamName, error: StoreError) -> Error {
    let message = format!(
        "the answer was lost and nobody can know whether the append was applied: stream={stream}"
    );
    Error::new(ErrorKind::OutcomeUnknown, message).with_source(error)
}
