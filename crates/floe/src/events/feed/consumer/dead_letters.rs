//! The dead letters of a consumer: one item in the index table for each parked stream.
//!
//! | attribute | meaning |
//! |---|---|
//! | `p` | `$ReaderDeadLetters-<group>_<partition>` |
//! | `i` | a digest of the stream's name, larger than any index of a stream |
//! | `s` | the name of the stream |
//! | `f`, `t` | the index of the first event that is not handled, and the index after the last one |
//! | `r` | the error of the handler, or of reading the events |
//!
//! A dead letter is added or extended in a transaction that also checks or stores the consumer's position, so each
//! event is handled or in a dead letter before the position passes it. The item of the checkpoint stays small however
//! many dead letters there are.

use std::collections::BTreeMap;

use floe_store::expr::{Condition, KeyCondition, Path};
use floe_store::op::{DeleteItem, PutItem, Query, TransactWrite};
use floe_store::{Item, Value};
use sha2::{Digest, Sha256};

use super::parked_stream::ParkedStream;
use crate::error::{Error, ErrorKind, Result};
use crate::events::stored::{INDEX, STREAM};
use crate::events::{EventStore, StreamName};
use crate::request::ItemRequest;
use crate::tx::Tx;
use crate::tx::part::{Part, PartWrite, Rejection};
use crate::tx::reads::Reads;
use crate::tx::session::{Changes, PartContext};

const NAME: &str = "s";
const FROM: &str = "f";
const TO: &str = "t";
const REASON: &str = "r";

/// Above the index of every event and of the Tip.
const FIRST_INDEX: u64 = 1 << 60;

/// Two streams with the same digest are detected when the item is read.
const DIGEST_BYTES: usize = 7;

const MISSING: &str = "the index table is missing: call ensure_feed";

/// Maximum number of dead letters changed in one transaction, which also stores the checkpoint.
pub(super) const CHANGES_MAX: usize = 50;

/// The dead letters of a group in a partition.
#[derive(Clone, Debug)]
pub(super) struct DeadLetters {
    store: EventStore,
    table: String,
    partition_key: String,
}

impl DeadLetters {
    pub(super) fn of(store: &EventStore, (group, partition): &(String, u32)) -> Self {
        Self {
            store: store.clone(),
            table: store.feed_index().options().table.clone(),
            partition_key: format!("$ReaderDeadLetters-{group}_{partition}"),
        }
    }

    /// Lists all dead letters, ordered by the digests of their streams.
    ///
    /// # Errors
    ///
    /// Failures of the store, and [`InvalidEvent`](ErrorKind::InvalidEvent) if an item cannot be read.
    pub(super) async fn list(&self) -> Result<Vec<ParkedStream>> {
        let key = KeyCondition::partition(STREAM, self.partition_key.as_str());
        let mut query = Query::new(self.table.as_str(), key);
        query.consistent = true;
        let items = self.reads(None).query(query, None).await?;
        items.iter().map(decode).collect()
    }

    /// Reads the dead letter of a stream.
    ///
    /// # Errors
    ///
    /// As for [`list`](Self::list).
    pub(super) async fn get(&self, stream: &StreamName) -> Result<Option<ParkedStream>> {
        self.read_one(None, stream).await
    }

    /// Reads the dead letter of a stream in a transaction that may [replace](Self::replace) it.
    ///
    /// # Errors
    ///
    /// As for [`list`](Self::list).
    pub(super) async fn get_in(
        &self,
        tx: &Tx,
        stream: &StreamName,
    ) -> Result<Option<ParkedStream>> {
        self.read_one(Some(tx), stream).await
    }

    async fn read_one(&self, tx: Option<&Tx>, stream: &StreamName) -> Result<Option<ParkedStream>> {
        let item = self.reads(tx).item(&self.table, &self.key(stream)).await?;
        item.as_ref()
            .map(|item| decode_of(stream, item))
            .transpose()
    }

    /// Replaces or removes a dead letter. The transaction commits only if the stored one still has the indexes of
    /// `old`.
    ///
    /// # Errors
    ///
    /// If the transaction has ended.
    pub(super) fn replace(
        &self,
        tx: &Tx,
        old: Option<&ParkedStream>,
        new: Option<&ParkedStream>,
    ) -> Result<()> {
        let Some(stream) = old.or(new).map(|letter| &letter.stream) else {
            return Ok(());
        };
        let change = DeadLetterChange {
            table: self.table.clone(),
            stream: stream.clone(),
            key: self.key(stream),
            old: old.cloned(),
            new: new.cloned(),
        };
        tx.session()
            .with(|DeadLetterChanges(changes): &mut DeadLetterChanges| changes.push(change))
    }

    /// Adds dead letters. If a stream already has one, it is extended.
    ///
    /// # Errors
    ///
    /// As for [`list`](Self::list).
    pub(super) async fn add_in(&self, tx: &Tx, added: &[ParkedStream]) -> Result<()> {
        let mut by_stream: BTreeMap<&StreamName, ParkedStream> = BTreeMap::new();
        for letter in added {
            by_stream
                .entry(&letter.stream)
                .and_modify(|earlier| earlier.extend(letter))
                .or_insert_with(|| letter.clone());
        }
        let keys = by_stream.keys().map(|stream| ItemRequest {
            table: &self.table,
            key: self.key(stream),
            consistent: true,
        });
        let keys: Vec<_> = keys.collect();
        let stored = self.reads(Some(tx)).items(&keys).await?;
        for (item, letter) in stored.iter().zip(by_stream.values()) {
            let old = item.as_ref().map(|item| decode_of(&letter.stream, item));
            let old = old.transpose()?;
            let mut new = old.clone().unwrap_or_else(|| letter.clone());
            new.extend(letter);
            if old.as_ref() != Some(&new) {
                self.replace(tx, old.as_ref(), Some(&new))?;
            }
        }
        Ok(())
    }

    fn reads<'a>(&'a self, tx: Option<&'a Tx>) -> Reads<'a> {
        Reads::new(self.store.db(), tx, MISSING)
    }

    fn key(&self, stream: &StreamName) -> Item {
        let digest = Sha256::digest(stream.as_str().as_bytes());
        let digest = digest.iter().take(DIGEST_BYTES);
        let digest = digest.fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Item::with_capacity(2)
            .with(STREAM, self.partition_key.as_str())
            .with(INDEX, FIRST_INDEX + digest)
    }
}

/// Decodes the item of a dead letter.
fn decode(item: &Item) -> Result<ParkedStream> {
    let letter = || {
        let text = |name| item.get(name).and_then(Value::as_s);
        let number = |name| item.get(name).and_then(Value::as_n)?.to_u64();
        Some(ParkedStream {
            stream: StreamName::parse(text(NAME)?).ok()?,
            index: number(FROM)?,
            end: number(TO)?,
            reason: text(REASON)?.to_owned(),
        })
    };
    letter().ok_or_else(|| {
        let message = format!("cannot read a dead letter of the feed: item={item:?}");
        Error::new(ErrorKind::InvalidEvent, message)
    })
}

/// Decodes the item, and checks that it is the dead letter of this stream.
fn decode_of(stream: &StreamName, item: &Item) -> Result<ParkedStream> {
    let letter = decode(item)?;
    if letter.stream != *stream {
        let other = &letter.stream;
        let message = format!(
            "two streams with one digest cannot both have a dead letter: stream={stream} other={other}"
        );
        return Err(Error::new(ErrorKind::InvalidEvent, message));
    }
    Ok(letter)
}

/// The changes of dead letters in an attempt of a transaction.
#[derive(Debug, Default)]
struct DeadLetterChanges(Vec<DeadLetterChange>);

/// A change of one dead letter. `None` if there was none before, or is none afterwards.
#[derive(Debug)]
struct DeadLetterChange {
    table: String,
    stream: StreamName,
    key: Item,
    old: Option<ParkedStream>,
    new: Option<ParkedStream>,
}

impl Changes for DeadLetterChanges {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        let parts = self.0.into_iter();
        Ok(parts.map(|change| Box::new(change) as _).collect())
    }
}

impl DeadLetterChange {
    /// The condition that the stored dead letter has the expected indexes.
    fn condition(&self) -> Condition {
        match &self.old {
            None => Condition::attribute_not_exists(Path::attribute(STREAM)),
            Some(old) => Condition::eq(Path::attribute(FROM), old.index)
                .and(Condition::eq(Path::attribute(TO), old.end)),
        }
    }
}

impl Part for DeadLetterChange {
    fn is_write(&self) -> bool {
        true
    }

    fn read_only_error(&self) -> Error {
        let message = "a read-only transaction cannot change dead letters of the feed";
        Error::new(ErrorKind::ReadOnly, message)
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        vec![(self.table.clone(), "the feed")]
    }

    fn remedy(&self) -> &'static str {
        "call ensure_feed"
    }

    fn writes(&self) -> Result<Vec<PartWrite>> {
        let (table, key) = (self.table.as_str(), self.key.clone());
        let write = match &self.new {
            None => TransactWrite::from(DeleteItem::new(table, key).condition(self.condition())),
            Some(letter) => {
                let item = key
                    .with(NAME, letter.stream.as_str())
                    .with(FROM, letter.index)
                    .with(TO, letter.end)
                    .with(REASON, letter.reason.as_str());
                PutItem::new(table, item).condition(self.condition()).into()
            }
        };
        Ok(vec![write.into()])
    }

    fn condition_failed(&self, _: usize, _: Option<&Item>) -> Rejection {
        let stream = &self.stream;
        let message = format!("another process changed a dead letter of the feed: stream={stream}");
        Rejection::Conflict(Error::new(ErrorKind::TransactionFailed, message))
    }
}
