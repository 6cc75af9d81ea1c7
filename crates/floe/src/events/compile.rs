//! Appending: compiles events into the single request that adds them to a stream.
//!
//! ```text
//! no stream yet                  PutItem of the Tip, if it does not exist
//! the Tip has room               UpdateItem of the Tip, if it is as expected
//! the Tip is full                TransactWriteItems: PutItem of a calf with the events of the Tip, if it does not
//!                                exist, and UpdateItem of the Tip, which then holds only the new events
//! ```
//!
//! The request has a new etag. If the response is lost, the request is sent again; if that fails, the Tip in the
//! response shows whether the first one was applied: by the etag, or by the same events at the expected index.

mod outcome;
mod part;
#[cfg(test)]
mod tests;

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{PutItem, TransactWrite, UpdateItem, WriteItem};
use floe_store::size::{CONTAINER_BYTES, attribute_size};
use floe_store::{Item, Name, Text, Value};

use super::changes::{Change, Guard};
use super::keys::StreamName;
use super::limits::{TIP_BYTES_MAX, TipLimits};
use super::position::{LastWrite, StreamPosition};
use super::send::Writes;
use super::stored::{
    APPENDED, Batch, CALVED_BYTES, ETAG, EVENT_TYPES, EVENTS, Events, INDEX, NEXT, STREAM, Size,
    StoredEvent, StoredUnfold, TIP_INDEX, UNFOLDS, key, lists_of, unfolds_of,
};
use crate::error::{Error, ErrorKind, Result};
use crate::tx::part::PartWrite;

pub(crate) use outcome::AppendOutcome;

/// A compiled append.
#[derive(Debug)]
pub(crate) struct StreamAppend<'a> {
    table: &'a str,
    stream: &'a StreamName,
    /// The position of the stream before; `None` if it does not exist.
    before: Option<&'a StreamPosition>,
    change: &'a Change,
    /// Whether the events of the Tip are calved.
    calves: bool,
    /// The position of the stream afterwards.
    pub(crate) after: StreamPosition,
    /// Size of the Tip afterwards.
    bytes: usize,
}

impl<'a> StreamAppend<'a> {
    /// Compiles an append to a stream at a position, or to a new stream.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) if the Tip would not fit into an item,
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if the Tip cannot be read.
    pub(crate) fn new(
        table: &'a str,
        stream: &'a StreamName,
        position: Option<&'a StreamPosition>,
        change: &'a Change,
        limits: &TipLimits,
        etag: Text,
    ) -> Result<Self> {
        let no_events = Events::default();
        let tip = position.map_or(&no_events, |position| &position.tip);
        let held = tip.size()?;
        let new: Size = change.events.iter().map(StoredEvent::size).sum();
        let unfolds: Size = change.unfolds.iter().map(StoredUnfold::size).sum();
        let count = tip.len() + change.events.len();
        let calves = !tip.is_empty() && is_full(count, held + new, unfolds, limits);
        let (kept, kept_size, calved) = if calves {
            (&no_events, Size::default(), held.estimate as u64)
        } else {
            (tip, held, 0)
        };
        let appended = change.events.len() as u64;
        let calved_bytes = position.map_or(0, |position| position.calved_bytes) + calved;
        let after = StreamPosition {
            version: position.map_or(0, |position| position.version) + appended,
            etag: Some(etag),
            calved_bytes,
            tip: kept.and(&change.events),
            last_write: Some(LastWrite {
                appended,
                calved_bytes,
                has_unfolds: !change.unfolds.is_empty(),
            }),
        };
        let bytes = tip_bytes(stream, &after, appended, kept_size + new, unfolds);
        check_size(stream, bytes)?;
        Ok(Self {
            table,
            stream,
            before: position,
            change,
            calves,
            after,
            bytes,
        })
    }

    /// The writes, in order.
    pub(crate) fn writes(&self) -> Vec<TransactWrite> {
        let tip = self.write_tip().into();
        self.put_calf().into_iter().chain([tip]).collect()
    }

    /// The writes, with the size of each item.
    pub(crate) fn writes_with_sizes(&self) -> Vec<PartWrite> {
        let tip = PartWrite {
            write: self.write_tip().into(),
            bytes: self.bytes,
        };
        let calf = self.put_calf().map(PartWrite::from);
        calf.into_iter().chain([tip]).collect()
    }

    fn request(&self) -> Writes {
        if self.calves {
            return Writes::Transaction(self.writes());
        }
        Writes::Single(self.write_tip())
    }

    /// The write of the Tip.
    fn write_tip(&self) -> WriteItem {
        let Some(position) = self.before else {
            return put_new(self.table, self.new_tip()).into();
        };
        let mut update = UpdateItem::new(self.table, key(self.stream, TIP_INDEX), self.update())
            .return_old_on_failure();
        update.condition = Some(condition(position, self.change.guard));
        update.into()
    }

    fn new_tip(&self) -> Item {
        let tip = Batch {
            stream: self.stream.clone(),
            index: TIP_INDEX,
            next: self.after.version,
            events: self.after.tip.clone(),
            unfolds: self.change.unfolds.clone(),
            appended: self.change.events.len() as u64,
            calved_bytes: self.after.calved_bytes,
            etag: self.after.etag.clone(),
        };
        tip.into_item()
    }

    /// The events of the Tip as a calf, if they are calved.
    fn put_calf(&self) -> Option<TransactWrite> {
        let position = self.before.filter(|_| self.calves)?;
        let index = position.version - position.tip.len() as u64;
        let (stream, events) = (self.stream.clone(), position.tip.clone());
        let calf = Batch::calf(stream, index, position.version, events);
        Some(put_new(self.table, calf.into_item()).into())
    }

    /// The update of the Tip. Existing events stay, unless they are calved or there are none.
    fn update(&self) -> Update {
        let (change, after) = (self.change, &self.after);
        let replaces = self.calves || self.before.is_none_or(|before| before.tip.is_empty());
        let appended = change.events.len() as u64;
        let last_write = self.before.and_then(|before| before.last_write);
        let mut update = Update {
            // Most appends change four attributes: the etag, the version, and both lists.
            set: Vec::with_capacity(4),
            ..Update::default()
        };
        if last_write.is_none_or(|last| last.appended != appended) {
            update = update.set(APPENDED, Value::from(appended));
        }
        if last_write.is_none_or(|last| last.calved_bytes != after.calved_bytes) {
            update = update.set(CALVED_BYTES, Value::from(after.calved_bytes));
        }
        if last_write.is_none_or(|last| last.has_unfolds) || !change.unfolds.is_empty() {
            update = update.set(UNFOLDS, unfolds_of(&change.unfolds));
        }
        if let Some(etag) = &after.etag {
            update = update.set(ETAG, Value::S(etag.clone()));
        }
        let has_events = !change.events.is_empty();
        if has_events {
            update = update.set(NEXT, Value::from(after.version));
        }
        let (types, events) = lists_of(change.events.iter());
        for (name, list) in [(EVENTS, events), (EVENT_TYPES, types)] {
            if replaces {
                update = update.set(name, list);
            } else if has_events {
                let path = Path::attribute(name);
                let stored = if self.before.is_some_and(|before| before.etag.is_some()) {
                    SetOperand::Path(path.clone())
                } else {
                    // Other writers may omit an empty list, and without an etag the Tip may have changed.
                    SetOperand::if_not_exists(path.clone(), Value::L(Vec::new()))
                };
                update = update.set(path, SetOperand::list_append(stored, list));
            }
        }
        update
    }
}

/// Whether a Tip with these contents must calve.
fn is_full(count: usize, events: Size, unfolds: Size, limits: &TipLimits) -> bool {
    limits.events_max.is_some_and(|max| count > max)
        || events.estimate > limits.event_bytes_max
        || events.estimate + unfolds.estimate > limits.bytes_max
        || events.item + unfolds.item > TIP_BYTES_MAX
}

/// Computes the size of the Tip without building the item.
fn tip_bytes(
    stream: &StreamName,
    after: &StreamPosition,
    appended: u64,
    events: Size,
    unfolds: Size,
) -> usize {
    let number = |name: &Name, number: u64| attribute_size(name, &Value::from(number));
    let etag = after
        .etag
        .as_ref()
        .map_or(0, |etag| ETAG.len() + etag.len());
    let lists = [&EVENTS, &EVENT_TYPES, &UNFOLDS].map(|name| name.len() + CONTAINER_BYTES);
    STREAM.len()
        + stream.as_str().len()
        + number(&INDEX, TIP_INDEX)
        + number(&NEXT, after.version)
        + number(&APPENDED, appended)
        + number(&CALVED_BYTES, after.calved_bytes)
        + etag
        + lists.iter().sum::<usize>()
        + events.item
        + unfolds.item
}

fn check_size(stream: &StreamName, bytes: usize) -> Result<()> {
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "an append with its unfolds does not fit into an item: stream={stream} bytes={bytes} max={ITEM_BYTES_MAX}"
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}

fn put_new(table: &str, item: Item) -> PutItem {
    let mut put = PutItem::new(table, item).return_old_on_failure();
    put.condition = Some(Condition::attribute_not_exists(Path::attribute(STREAM)));
    put
}

/// The condition on the Tip. The version alone would miss a prune or a calving, and the remembered Tip would become
/// wrong.
pub(crate) fn condition(position: &StreamPosition, guard: Guard) -> Condition {
    let version = || Condition::eq(Path::attribute(NEXT), Value::from(position.version));
    let etag = position.etag.as_ref();
    let etag = etag.map(|etag| Condition::eq(Path::attribute(ETAG), Value::S(etag.clone())));
    match (guard, etag) {
        (Guard::Etag, Some(etag)) => etag,
        (Guard::Version, Some(etag)) => version().and(etag),
        (_, None) => version(),
    }
}
