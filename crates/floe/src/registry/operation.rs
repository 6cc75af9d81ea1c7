//! Changes of a registry as part of a transaction: the caller's, or their own.

use std::time::Duration;

use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::{Item, Timestamp};

use super::changes::Changes;
use super::history::VersionReader;
use super::keys::{GroupKey, ItemKey, next_number};
use super::reads::Reads;
use super::stored::{self, Metadata};
use crate::attribute::Expiry;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;

/// A change of a registry.
pub(super) enum Operation {
    Publish {
        content: Item,
        hash: String,
        /// Whether to publish only if the hash of the latest version differs.
        if_changed: bool,
    },
    Retire(u64),
    Pin {
        number: u64,
        is_pinned: bool,
    },
    Alias {
        name: String,
        /// The version of the alias; `None` removes the alias.
        to: Option<u64>,
    },
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OperationOutcome {
    /// The version it concerns.
    pub(super) number: u64,
    pub(super) is_changed: bool,
}

/// A transaction, and the group of the change.
#[derive(Clone, Copy)]
pub(super) struct OperationContext<'a> {
    pub(super) tx: &'a Tx,
    pub(super) group: &'a GroupKey,
    /// Retention of deprecated versions.
    pub(super) retention: Option<Duration>,
}

/// A loaded version.
struct LoadedVersion {
    key: ItemKey,
    item: Item,
    metadata: Metadata,
}

impl OperationContext<'_> {
    pub(super) async fn apply(&self, op: &Operation) -> Result<OperationOutcome> {
        match op {
            Operation::Publish {
                content,
                hash,
                if_changed,
            } => self.publish(content, hash, *if_changed).await,
            Operation::Retire(number) => self.retire(*number).await,
            Operation::Pin { number, is_pinned } => self.pin(*number, *is_pinned).await,
            Operation::Alias { name, to } => self.alias(name, *to).await,
        }
    }

    fn now(&self) -> Timestamp {
        self.tx.db().engine().now()
    }

    /// The expiry of a version that is deprecated now.
    fn expiry(&self) -> Option<Expiry> {
        self.retention
            .map(|retention| Expiry::after(self.now(), retention))
    }

    fn reads(&self) -> Reads<'_> {
        Reads::of_registry(self.tx.db(), Some(self.tx))
    }

    async fn load(&self, key: &ItemKey) -> Result<Option<Item>> {
        self.reads().load_one(self.group, key).await
    }

    /// Loads the pointer and another item in one request.
    async fn load_with_pointer(&self, key: &ItemKey) -> Result<(Option<Item>, Option<Item>)> {
        let keys = [self.group.pointer(), key.clone()];
        let mut items = self.reads().load(self.group, &keys).await?.into_iter();
        Ok((items.next().flatten(), items.next().flatten()))
    }

    fn changes<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        self.tx.session().with(change)
    }

    fn put(&self, key: &ItemKey, item: Option<Item>) -> Result<()> {
        self.changes(|changes| changes.put(key, item))
    }

    fn watch(&self, key: &ItemKey) -> Result<()> {
        self.changes(|changes| changes.watch(key))
    }

    /// Changes nothing, because of an item that must stay unchanged until the commit.
    fn unchanged(&self, key: &ItemKey, number: u64) -> Result<OperationOutcome> {
        self.watch(key)?;
        Ok(OperationOutcome {
            number,
            is_changed: false,
        })
    }

    /// Records an item inferred from the pointer, and returns it as the body sees it.
    fn record_inferred(&self, key: &ItemKey, inferred: Option<Item>) -> Result<Option<Item>> {
        self.changes(|changes| {
            changes.record_inferred(self.group, key, inferred);
            changes.current(key).flatten()
        })
    }

    fn metadata(&self, item: Option<&Item>) -> Result<Metadata> {
        let metadata = item.map(|item| Metadata::of(self.group.schema, item));
        Ok(metadata.transpose()?.unwrap_or_default())
    }

    async fn publish(
        &self,
        content: &Item,
        hash: &str,
        if_changed: bool,
    ) -> Result<OperationOutcome> {
        let (group, schema) = (self.group, self.group.schema);
        let pointer_key = group.pointer();
        let pointer = self.load(&pointer_key).await?;
        let metadata = self.metadata(pointer.as_ref())?;
        if let (true, Some(number), Some(known)) = (if_changed, metadata.number, &metadata.hash)
            && known == hash
        {
            return self.unchanged(&pointer_key, number);
        }
        let number = next_number(group, metadata.last)?;
        // Publication times never decrease, even if the clocks of publishers differ.
        let now = self.now();
        let published = metadata.published.map_or(now, |last| last.max(now));
        let key = group.version(number);
        let version = stored::new_version(group, content, (number, hash, published));
        self.record_inferred(&key, None)?;
        if let (Some(previous), Some(pointer)) = (metadata.number, &pointer)
            && schema.status.is_some()
        {
            self.demote(previous, pointer)?;
        }
        let new_pointer = stored::pointer(group, &version, number, number);
        self.put(&pointer_key, Some(new_pointer))?;
        self.put(&key, Some(version))?;
        Ok(changed(number))
    }

    /// Deprecates the previous latest version. It is not read, because the pointer is a copy of it.
    fn demote(&self, number: u64, pointer: &Item) -> Result<()> {
        let key = self.group.version(number);
        let inferred = stored::pointed_version(self.group, pointer, number);
        let version = self.record_inferred(&key, Some(inferred))?;
        let demote = |version: &mut Item| stored::demote(self.group.schema, version);
        let demoted = version.map(|version| self.changed(version, &demote));
        self.put(&key, demoted.transpose()?)
    }

    async fn retire(&self, number: u64) -> Result<OperationOutcome> {
        let (group, now) = (self.group, self.now());
        let (pointer_key, key) = (group.pointer(), group.version(number));
        let (pointer, item) = self.load_with_pointer(&key).await?;
        let item = item.ok_or_else(|| self.missing(number))?;
        let metadata = self.metadata(Some(&item))?;
        // An expired version is not retired, because its expiry handler has yet to run.
        if metadata.deleted_at(now).is_some() {
            return self.unchanged(&key, number);
        }
        if let [_, ..] = metadata.aliases.as_slice() {
            return Err(self.aliased(number, &metadata));
        }
        let tombstone = stored::tombstone(group.schema, &item, now);
        self.put(&key, Some(tombstone))?;
        let pointed = self.metadata(pointer.as_ref())?;
        if pointed.number == Some(number) {
            self.step_back(&pointer_key, number, pointed.last).await?;
        } else if metadata.is_latest(group.schema) {
            self.watch(&pointer_key)?;
        }
        Ok(changed(number))
    }

    /// Moves the pointer from a retired version to the newest earlier version that is still deployed.
    async fn step_back(&self, pointer: &ItemKey, from: u64, last: u64) -> Result<()> {
        let (group, schema) = (self.group, self.group.schema);
        let new_pointer = match self.newest_deployed(from).await? {
            Some((number, item)) => {
                let promoted = stored::promoted(schema, &item);
                let new_pointer = stored::pointer(group, &promoted, number, last);
                if schema.status.is_some() {
                    self.put(&group.version(number), Some(promoted))?;
                }
                self.watch(&group.version(number))?;
                new_pointer
            }
            None => stored::empty_pointer(group, last),
        };
        self.put(pointer, Some(new_pointer))
    }

    /// Returns the newest deployed version before this one, as the transaction sees it.
    async fn newest_deployed(&self, before: u64) -> Result<Option<(u64, Item)>> {
        let mut newest: Option<(u64, Item)> = None;
        for (number, item) in self.changes(|changes| changes.versions(self.group))? {
            let is_newer = newest.as_ref().is_none_or(|(known, _)| number > *known);
            if number < before && is_newer && self.is_deployed(&item)? {
                newest = Some((number, item));
            }
        }
        let mut reader = VersionReader::new(self.reads(), self.group, true);
        (reader.after, reader.limit) = (Some(before), Some(BATCH_GET_ITEMS_MAX));
        while !reader.is_done {
            for (number, item) in reader.next().await? {
                if newest.as_ref().is_some_and(|(known, _)| number <= *known) {
                    return Ok(newest);
                }
                if let Some(item) = self.found(number, item)?
                    && self.is_deployed(&item)?
                {
                    return Ok(Some((number, item)));
                }
            }
        }
        Ok(newest)
    }

    /// A version as the transaction sees it, given the result of a query.
    fn found(&self, number: u64, item: Item) -> Result<Option<Item>> {
        let key = self.group.version(number);
        self.changes(|changes| {
            changes.record_read(self.group, &key, Some(item));
            changes.current(&key).flatten()
        })
    }

    async fn pin(&self, number: u64, is_pinned: bool) -> Result<OperationOutcome> {
        let key = self.group.version(number);
        let (_, item) = self.load_with_pointer(&key).await?;
        let version = self.deployed(key, item, number)?;
        if version.metadata.is_pinned == is_pinned {
            return self.unchanged(&version.key, number);
        }
        let pin = |item: &mut Item| stored::pin(item, is_pinned);
        self.change(number, version, &pin).await?;
        Ok(changed(number))
    }

    async fn alias(&self, name: &str, to: Option<u64>) -> Result<OperationOutcome> {
        let (group, schema) = (self.group, self.group.schema);
        let key = group.alias(name)?;
        let mut keys = vec![key.clone(), group.pointer()];
        keys.extend(to.map(|number| group.version(number)));
        let mut items = self.reads().load(group, &keys).await?.into_iter();
        let from = self.metadata(items.next().flatten().as_ref())?.number;
        let number = to.or(from).unwrap_or_default();
        if from == to {
            return self.unchanged(&key, number);
        }
        if let Some(number) = from {
            self.set_alias(name, number, false).await?;
        }
        if let Some(number) = to {
            self.set_alias(name, number, true).await?;
        }
        let item = to.map(|number| stored::alias(&key, schema, number));
        self.put(&key, item)?;
        Ok(changed(number))
    }

    /// Adds an alias to a version, or removes it.
    async fn set_alias(&self, name: &str, number: u64, is_aliased: bool) -> Result<()> {
        let key = self.group.version(number);
        let item = self.load(&key).await?;
        let version = match (is_aliased, item) {
            (true, item) => self.deployed(key, item, number)?,
            // Another program deleted the version of the alias: there is nothing to change.
            (false, None) => return Ok(()),
            (false, Some(item)) => self.loaded(key, item)?,
        };
        let set_alias = |item: &mut Item| stored::set_alias(item, name, is_aliased);
        self.change(number, version, &set_alias).await
    }

    /// Changes a version, and the pointer if it is a copy of it.
    async fn change(
        &self,
        number: u64,
        version: LoadedVersion,
        change: &(dyn Fn(&mut Item) + Sync),
    ) -> Result<()> {
        let key = self.group.pointer();
        let pointer = self.load(&key).await?;
        self.put(&version.key, Some(self.changed(version.item, change)?))?;
        match pointer {
            Some(pointer) if self.metadata(Some(&pointer))?.number == Some(number) => {
                self.put(&key, Some(self.changed(pointer, change)?))
            }
            // The pointer may have moved to the version after it was read; without a status, the version does not show
            // it.
            _ if version.metadata.is_latest(self.group.schema) => self.watch(&key),
            _ => Ok(()),
        }
    }

    /// An item after a change. A deprecated version that is no longer pinned or aliased gets a new expiry.
    fn changed(&self, mut item: Item, change: &dyn Fn(&mut Item)) -> Result<Item> {
        change(&mut item);
        stored::expire(self.group.schema, &mut item, self.expiry())?;
        Ok(item)
    }

    fn loaded(&self, key: ItemKey, item: Item) -> Result<LoadedVersion> {
        Ok(LoadedVersion {
            metadata: self.metadata(Some(&item))?,
            key,
            item,
        })
    }

    /// Checks that a version is deployed.
    fn deployed(&self, key: ItemKey, item: Option<Item>, number: u64) -> Result<LoadedVersion> {
        let item = item.ok_or_else(|| self.missing(number))?;
        let version = self.loaded(key, item)?;
        if version.metadata.is_deployed(self.group.schema, self.now()) {
            Ok(version)
        } else {
            Err(self.not_found("is no longer deployed", number))
        }
    }

    fn missing(&self, number: u64) -> Error {
        self.not_found("does not exist", number)
    }

    fn not_found(&self, what: &str, number: u64) -> Error {
        let group = self.group;
        let message = format!("the version {what}: group={group} version={number}");
        Error::new(ErrorKind::NotFound, message)
    }

    fn aliased(&self, number: u64, metadata: &Metadata) -> Error {
        let (group, aliases) = (self.group, metadata.aliases.join(","));
        let what = "aliases refer to the version: move or remove them first";
        let message = format!("{what}: group={group} version={number} aliases={aliases}");
        Error::new(ErrorKind::Restricted, message)
    }

    /// Whether a version is deployed now.
    fn is_deployed(&self, item: &Item) -> Result<bool> {
        let metadata = self.metadata(Some(item))?;
        Ok(metadata.is_deployed(self.group.schema, self.now()))
    }
}

const fn changed(number: u64) -> OperationOutcome {
    OperationOutcome {
        number,
        is_changed: true,
    }
}
