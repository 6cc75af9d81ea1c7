//! Parked changes: those that handlers did not get on with, kept until somebody asks to try them again or to forget them.
//!
//! A change is parked when it was tried often enough, or when trying again cannot help. The later changes of the same item
//! are parked behind it, so that its order is kept; other items go on. Whoever asks, by [`ParkedChanges`], needs no
//! handlers: the process that delivers looks at what was asked within a fraction of its lease, and tries the changes of the
//! item in their order, up to the first that fails again.

use std::sync::Arc;

use floe_store::{Item, Timestamp};

use super::super::change::Change;
use super::super::work::Pending;
use super::lease;
use super::stored::{ConsumerLease, ParkedPart, ParkedRecord, item_name};
use crate::db::Db;
use crate::delivery::Token;
use crate::error::{Error, ErrorKind, Result};

/// A change that is parked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parked {
    /// What it is called, for those who ask about it.
    pub id: ParkedId,
    /// The change.
    pub change: Change,
    /// The handlers that are not done with it.
    pub handlers: Vec<String>,
    /// What the first of them said last.
    pub error: String,
    /// How often it was tried; 0 if it waits behind an earlier change of its item.
    pub attempts: u32,
    /// When it was parked, or tried last.
    pub time: Timestamp,
    /// Whether somebody has asked to try the changes of the item again.
    pub is_asked: bool,
}

/// What a parked change is called: its table, its item, its place in the order of changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParkedId {
    table: String,
    item: String,
    sequence: String,
}

impl std::fmt::Display for ParkedId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.table, self.item, self.sequence)
    }
}

impl std::str::FromStr for ParkedId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [table, item, sequence] = parts[..] else {
            let message = format!("not the id of a parked change: id={text}");
            return Err(Error::new(ErrorKind::InvalidUse, message));
        };
        Ok(Self {
            table: table.to_owned(),
            item: item.to_owned(),
            sequence: sequence.to_owned(),
        })
    }
}

impl ParkedId {
    fn of(record: &ParkedRecord) -> Self {
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

/// What is parked of a consumer. It needs no router.
#[derive(Clone, Debug)]
pub struct ParkedChanges {
    db: Db,
    consumer: Arc<str>,
}

impl ParkedChanges {
    /// What is parked of the consumer of this name.
    pub fn of(db: &Db, consumer: impl Into<Arc<str>>) -> Self {
        Self {
            db: db.clone(),
            consumer: consumer.into(),
        }
    }

    /// All of it: by table and item, the changes of an item in their order.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn list(&self) -> Result<Vec<Parked>> {
        let mut records = self.records().stream()?;
        let mut parked = Vec::new();
        while let Some(record) = records.next().await? {
            parked.push(self.read(record).await?);
        }
        Ok(parked)
    }

    /// Asks to try the changes of an item again, from its first on: that of this change.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when nothing of it is parked; as the store fails.
    pub async fn replay(&self, id: &ParkedId) -> Result<()> {
        let first = self.first_of(&id.table, &id.item).await?;
        let first = first.ok_or_else(|| {
            let message = format!("no such change is parked: id={id}");
            Error::new(ErrorKind::NotFound, message)
        })?;
        self.mark(&ParkedId::of(&first)).await?;
        lease::ask(&self.db, &self.consumer).await
    }

    /// Asks to try everything again. Tells of how many items.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn replay_all(&self) -> Result<usize> {
        let mut firsts: Vec<ParkedId> = Vec::new();
        let mut records = self.records().stream()?;
        while let Some(record) = records.next().await? {
            let id = ParkedId::of(&record);
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
            lease::ask(&self.db, &self.consumer).await?;
        }
        Ok(firsts.len())
    }

    /// Forgets a parked change: its handlers never get it. Later changes of the item stay parked until they are replayed.
    /// `false` if it was not parked.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn discard(&self, id: &ParkedId) -> Result<bool> {
        let is_discarded = self.remove(id, None).await?;
        Ok(is_discarded == Written::Done)
    }

    fn records(&self) -> crate::model::query::Query<Db, ParkedRecord> {
        self.db
            .query::<ParkedRecord>(|p| p.consumer.eq(&*self.consumer))
    }

    /// The first parked change of an item.
    async fn first_of(&self, table: &str, item: &str) -> Result<Option<ParkedRecord>> {
        let consumer = &*self.consumer;
        let records = self.db.query::<ParkedRecord>(|p| {
            let of_table = p.consumer.eq(consumer).and(p.table.eq(table));
            of_table.and(p.item.eq(item))
        });
        records.first().await
    }

    /// Notes on the first change of an item that somebody has asked.
    async fn mark(&self, id: &ParkedId) -> Result<()> {
        let key = id.key(&self.consumer);
        self.db
            .transact(async |tx| {
                if let Some(mut record) = tx.get::<ParkedRecord>(key.clone()).await? {
                    record.asked.set(true)?;
                }
                Ok::<_, Error>(())
            })
            .await
    }

    /// The change of a record, with the parts that did not fit.
    async fn read(&self, record: ParkedRecord) -> Result<Parked> {
        let mut rest = String::new();
        if record.parts > 0 {
            let parts = self.db.query::<ParkedPart>(|p| {
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
        Ok(Parked {
            id: ParkedId::of(&record),
            change: record.change(&rest)?,
            handlers: record.handlers,
            error: record.error,
            attempts: record.attempts,
            time: record.parked,
            is_asked: record.asked,
        })
    }

    /// The items of which something is parked, with the keys of each, and whether somebody has asked.
    pub(super) async fn items(&self) -> Result<Items> {
        let (mut items, mut last) = (Items::default(), None);
        let mut records = self.records().stream()?;
        while let Some(record) = records.next().await? {
            items.count += 1;
            let place = (record.table.clone(), record.item.clone());
            let is_asked = record.asked;
            if last.as_ref() == Some(&place) {
                continue;
            }
            last = Some(place);
            let parked = self.read(record).await?;
            let keys = parked.change.keys().clone();
            items.items.push((parked.id.table, keys, is_asked));
        }
        Ok(items)
    }

    /// The first parked change of the item with these keys.
    pub(super) async fn first(&self, table: &str, keys: &Item) -> Result<Option<Parked>> {
        match self.first_of(table, &item_name(keys)).await? {
            Some(record) => Ok(Some(self.read(record).await?)),
            None => Ok(None),
        }
    }

    /// Parks a change, if the lease is still one's own. What is parked already stays as it is.
    pub(super) async fn park(
        &self,
        token: &Token,
        change: &Change,
        pending: &[Pending],
        attempts: u32,
    ) -> Result<Written> {
        let now = self.db.engine().now();
        let (record, parts) = ParkedRecord::new(&self.consumer, change, pending, attempts, now);
        let key = ParkedId::of(&record).key(&self.consumer);
        self.db
            .transact(async |tx| {
                if !holds(tx, &self.consumer, token).await? {
                    return Ok::<_, Error>(Written::Fenced);
                }
                if tx.get::<ParkedRecord>(key.clone()).await?.is_some() {
                    return Ok(Written::Unchanged);
                }
                tx.create(record.clone())?;
                for part in &parts {
                    tx.create(part.clone())?;
                }
                Ok(Written::Done)
            })
            .await
    }

    /// A parked change was tried again, and has not got on.
    pub(super) async fn tried(
        &self,
        token: &Token,
        parked: &Parked,
        pending: &[Pending],
        attempts: u32,
    ) -> Result<bool> {
        let now = self.db.engine().now();
        let (after, _) = ParkedRecord::new(&self.consumer, &parked.change, pending, attempts, now);
        let key = parked.id.key(&self.consumer);
        self.db
            .transact(async |tx| {
                if !holds(tx, &self.consumer, token).await? {
                    return Ok::<_, Error>(false);
                }
                if let Some(mut record) = tx.get::<ParkedRecord>(key.clone()).await? {
                    record.handlers.set(after.handlers.clone())?;
                    record.error.set(after.error.clone())?;
                    record
                        .attempts
                        .set(parked.attempts.saturating_add(attempts))?;
                    record.parked.set(now)?;
                    record.asked.set(false)?;
                }
                Ok(true)
            })
            .await
    }

    /// Removes a parked change, if the lease is still one's own, where there is one.
    pub(super) async fn remove(&self, id: &ParkedId, token: Option<&Token>) -> Result<Written> {
        let key = id.key(&self.consumer);
        self.db
            .transact(async |tx| {
                if let Some(token) = token
                    && !holds(tx, &self.consumer, token).await?
                {
                    return Ok::<_, Error>(Written::Fenced);
                }
                let Some(record) = tx.get::<ParkedRecord>(key.clone()).await? else {
                    return Ok(Written::Unchanged);
                };
                for number in 1..=*record.parts {
                    let (consumer, table, item, sequence) = key.clone();
                    let part = (consumer, table, item, sequence, number);
                    tx.delete_key::<ParkedPart>(part)?;
                }
                tx.delete(record);
                Ok(Written::Done)
            })
            .await
    }
}

/// What became of a change that was to be parked, or to be no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    /// There was nothing to do.
    Unchanged,
    /// Somebody else delivers by now.
    Fenced,
}

/// The items of which something is parked.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// Table and keys of each, and whether somebody has asked.
    pub(super) items: Vec<(String, Item, bool)>,
    /// How many changes are parked.
    pub(super) count: usize,
}

/// Whether the lease is one's own; the commit is made only if it is then.
async fn holds(tx: &crate::Tx, consumer: &str, token: &Token) -> Result<bool> {
    let lease = tx.get::<ConsumerLease>(consumer).await?;
    Ok(lease.is_some_and(|lease| {
        lease.holder.as_ref() == Some(&token.member) && *lease.term == token.term
    }))
}
