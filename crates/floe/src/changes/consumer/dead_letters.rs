//! Dead letters: changes that handlers could not process, kept until they are replayed or discarded.
//!
//! A change becomes a dead letter after its last failed attempt or after a permanent failure. Later changes of the
//! same item become dead letters behind it, so that its order is kept; other items continue. Requests through
//! [`DeadLetters`] need no handlers: the active process sees them within a fraction of its lease, and replays the
//! changes of the item in order, up to the first that fails again.

use std::sync::Arc;

use floe_store::{Item, Timestamp};

use super::super::change::Change;
use super::super::work::Pending;
use super::lease;
use super::stored::{ConsumerLease, DeadLetterPart, DeadLetterRecord, item_name};
use crate::db::Db;
use crate::delivery::Token;
use crate::error::{Error, ErrorKind, Result};

/// A change that was set aside after its last attempt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Identifies the dead letter in requests.
    pub id: DeadLetterId,
    /// The change.
    pub change: Change,
    /// The handlers that have not completed it.
    pub handlers: Vec<String>,
    /// The last error of the first of them.
    pub error: String,
    /// Number of attempts; 0 if it waits behind an earlier change of its item.
    pub attempts: u32,
    /// When it became a dead letter, or was last replayed.
    pub time: Timestamp,
    /// Whether a replay of the item was requested.
    pub replay_requested: bool,
}

/// The id of a dead letter: table, item and sequence number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeadLetterId {
    table: String,
    item: String,
    sequence: String,
}

impl std::fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.table, self.item, self.sequence)
    }
}

impl std::str::FromStr for DeadLetterId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [table, item, sequence] = parts[..] else {
            let message = format!("invalid dead letter id: id={text}");
            return Err(Error::new(ErrorKind::InvalidUse, message));
        };
        Ok(Self {
            table: table.to_owned(),
            item: item.to_owned(),
            sequence: sequence.to_owned(),
        })
    }
}

impl DeadLetterId {
    fn of(record: &DeadLetterRecord) -> Self {
        Self {
            table: record.table.clone(),
            item: record.item.clone(),
            sequence: record.sequence.clone(),
        }
    }

    fn key(&self, consumer: &str) -> (String, String, String, String) {
        (
            consumer.to_owned(),
            self.table.clone(),
            self.item.clone(),
            self.sequence.clone(),
        )
    }
}

/// The dead letters of a consumer. Needs no router.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    db: Db,
    consumer: Arc<str>,
}

impl DeadLetters {
    /// The dead letters of the consumer with this name.
    pub fn of(db: &Db, consumer: impl Into<Arc<str>>) -> Self {
        Self {
            db: db.clone(),
            consumer: consumer.into(),
        }
    }

    /// Lists all dead letters by table and item, the changes of an item in order.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn list(&self) -> Result<Vec<DeadLetter>> {
        let mut records = self.records().stream()?;
        let mut dead_letters = Vec::new();
        while let Some(record) = records.next().await? {
            dead_letters.push(self.read(record).await?);
        }
        Ok(dead_letters)
    }

    /// Requests a replay of the item that this dead letter belongs to, from the item's first dead letter.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if the item has no dead letters; failures of the store.
    pub async fn replay(&self, id: &DeadLetterId) -> Result<()> {
        let first = self.first_of(&id.table, &id.item).await?;
        let first = first.ok_or_else(|| {
            let message = format!("dead letter not found: id={id}");
            Error::new(ErrorKind::NotFound, message)
        })?;
        self.mark(&DeadLetterId::of(&first)).await?;
        lease::request_replay(&self.db, &self.consumer).await
    }

    /// Requests a replay of all dead letters. Returns the number of items.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn replay_all(&self) -> Result<usize> {
        let mut firsts: Vec<DeadLetterId> = Vec::new();
        let mut records = self.records().stream()?;
        while let Some(record) = records.next().await? {
            let id = DeadLetterId::of(&record);
            let is_new = firsts
                .last()
                .is_none_or(|last| (&last.table, &last.item) != (&id.table, &id.item));
            if is_new {
                firsts.push(id);
            }
        }
        for first in &firsts {
            self.mark(first).await?;
        }
        if !firsts.is_empty() {
            lease::request_replay(&self.db, &self.consumer).await?;
        }
        Ok(firsts.len())
    }

    /// Deletes a dead letter without handling it. Later changes of the item remain dead letters until they are
    /// replayed. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn discard(&self, id: &DeadLetterId) -> Result<bool> {
        let is_discarded = self.remove(id, None).await?;
        Ok(is_discarded == WriteOutcome::Applied)
    }

    fn records(&self) -> crate::model::query::Query<Db, DeadLetterRecord> {
        self.db
            .query::<DeadLetterRecord>(|p| p.consumer.eq(&*self.consumer))
    }

    /// The first dead letter of an item.
    async fn first_of(&self, table: &str, item: &str) -> Result<Option<DeadLetterRecord>> {
        let consumer = &*self.consumer;
        let records = self.db.query::<DeadLetterRecord>(|p| {
            let of_table = p.consumer.eq(consumer).and(p.table.eq(table));
            of_table.and(p.item.eq(item))
        });
        records.first().await
    }

    /// Marks the first dead letter of an item for replay.
    async fn mark(&self, id: &DeadLetterId) -> Result<()> {
        let key = id.key(&self.consumer);
        self.db
            .transact(async |tx| {
                if let Some(mut record) = tx.get::<DeadLetterRecord>(key.clone()).await? {
                    record.asked.set(true)?;
                }
                Ok::<_, Error>(())
            })
            .await
    }

    /// Reads the change of a record and its parts.
    async fn read(&self, record: DeadLetterRecord) -> Result<DeadLetter> {
        let mut rest = String::new();
        if record.parts > 0 {
            let parts = self.db.query::<DeadLetterPart>(|p| {
                let of_item = p
                    .consumer
                    .eq(&record.consumer)
                    .and(p.table.eq(&record.table));
                let of_item = of_item.and(p.item.eq(&record.item));
                of_item.and(p.sequence.eq(&record.sequence))
            });
            for part in parts.all().await? {
                rest.push_str(&part.text);
            }
        }
        Ok(DeadLetter {
            id: DeadLetterId::of(&record),
            change: record.change(&rest)?,
            handlers: record.handlers,
            error: record.error,
            attempts: record.attempts,
            time: record.parked,
            replay_requested: record.asked,
        })
    }

    /// The items with dead letters, each with its key and whether a replay was requested.
    pub(super) async fn items(&self) -> Result<DeadLetterItems> {
        let (mut items, mut last) = (DeadLetterItems::default(), None);
        let mut records = self.records().stream()?;
        while let Some(record) = records.next().await? {
            items.count += 1;
            let item = (record.table.clone(), record.item.clone());
            let replay_requested = record.asked;
            if last.as_ref() == Some(&item) {
                continue;
            }
            last = Some(item);
            let dead_letter = self.read(record).await?;
            let keys = dead_letter.change.keys().clone();
            items
                .items
                .push((dead_letter.id.table, keys, replay_requested));
        }
        Ok(items)
    }

    /// The first dead letter of the item with these keys.
    pub(super) async fn first(&self, table: &str, keys: &Item) -> Result<Option<DeadLetter>> {
        match self.first_of(table, &item_name(keys)).await? {
            Some(record) => Ok(Some(self.read(record).await?)),
            None => Ok(None),
        }
    }

    /// Stores a dead letter if the lease is still held. An existing one stays unchanged.
    pub(super) async fn add(
        &self,
        token: &Token,
        change: &Change,
        pending: &[Pending],
        attempts: u32,
    ) -> Result<WriteOutcome> {
        let now = self.db.engine().now();
        let (record, parts) = DeadLetterRecord::new(&self.consumer, change, pending, attempts, now);
        let key = DeadLetterId::of(&record).key(&self.consumer);
        self.db
            .transact(async |tx| {
                if !holds(tx, &self.consumer, token).await? {
                    return Ok::<_, Error>(WriteOutcome::Fenced);
                }
                if tx.get::<DeadLetterRecord>(key.clone()).await?.is_some() {
                    return Ok(WriteOutcome::Unchanged);
                }
                tx.create(record.clone())?;
                for part in &parts {
                    tx.create(part.clone())?;
                }
                Ok(WriteOutcome::Applied)
            })
            .await
    }

    /// Records a failed replay of a dead letter. Returns whether the lease is still held.
    pub(super) async fn record_attempts(
        &self,
        token: &Token,
        dead_letter: &DeadLetter,
        pending: &[Pending],
        attempts: u32,
    ) -> Result<bool> {
        let now = self.db.engine().now();
        let (after, _) =
            DeadLetterRecord::new(&self.consumer, &dead_letter.change, pending, attempts, now);
        let key = dead_letter.id.key(&self.consumer);
        self.db
            .transact(async |tx| {
                if !holds(tx, &self.consumer, token).await? {
                    return Ok::<_, Error>(false);
                }
                if let Some(mut record) = tx.get::<DeadLetterRecord>(key.clone()).await? {
                    record.handlers.set(after.handlers.clone())?;
                    record.error.set(after.error.clone())?;
                    record
                        .attempts
                        .set(dead_letter.attempts.saturating_add(attempts))?;
                    record.parked.set(now)?;
                    record.asked.set(false)?;
                }
                Ok(true)
            })
            .await
    }

    /// Removes a dead letter, if the lease is still held. Without a token, always.
    pub(super) async fn remove(
        &self,
        id: &DeadLetterId,
        token: Option<&Token>,
    ) -> Result<WriteOutcome> {
        let key = id.key(&self.consumer);
        self.db
            .transact(async |tx| {
                if let Some(token) = token
                    && !holds(tx, &self.consumer, token).await?
                {
                    return Ok::<_, Error>(WriteOutcome::Fenced);
                }
                let Some(record) = tx.get::<DeadLetterRecord>(key.clone()).await? else {
                    return Ok(WriteOutcome::Unchanged);
                };
                for number in 1..=*record.parts {
                    let (consumer, table, item, sequence) = key.clone();
                    let part = (consumer, table, item, sequence, number);
                    tx.delete_key::<DeadLetterPart>(part)?;
                }
                tx.delete(record);
                Ok(WriteOutcome::Applied)
            })
            .await
    }
}

/// The outcome of adding or removing a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    Applied,
    /// Nothing had to be changed.
    Unchanged,
    /// Another process has taken over.
    Fenced,
}

/// The items with dead letters.
#[derive(Debug, Default)]
pub(super) struct DeadLetterItems {
    /// Table, keys, and whether a replay was requested.
    pub(super) items: Vec<(String, Item, bool)>,
    /// The number of dead letters.
    pub(super) count: usize,
}

/// Whether the lease is held. The commit succeeds only if that is still true.
async fn holds(tx: &crate::Tx, consumer: &str, token: &Token) -> Result<bool> {
    let lease = tx.get::<ConsumerLease>(consumer).await?;
    Ok(lease.is_some_and(|lease| {
        lease.holder.as_ref() == Some(&token.member) && *lease.term == token.term
    }))
}
