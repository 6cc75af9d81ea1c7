//! Changes of a registry inside of a transaction. Calls outside of one run in a transaction of their own.

use std::time::Duration;

use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::{Item, Timestamp};

use super::changes::Changes;
use super::history::Walk;
use super::keys::{GroupPlace, Place, next_number};
use super::reads::Reads;
use super::stored::{self, Facts};
use crate::attribute::Expiry;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;

/// A change of a registry.
pub(super) enum Op {
    Publish {
        content: Item,
        hash: String,
        /// Whether to leave it if the latest version has the same hash.
        if_changed: bool,
    },
    Retire(u64),
    Pin {
        number: u64,
        is_pinned: bool,
    },
    Alias {
        name: String,
        /// Where it is to lead; nowhere if it is removed.
        to: Option<u64>,
    },
}

/// What a change has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// The version that it is about.
    pub(super) number: u64,
    pub(super) is_changed: bool,
}

/// A transaction, and the group in which it works.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) tx: &'a Tx,
    pub(super) group: &'a GroupPlace,
    /// How long deprecated versions stay.
    pub(super) retention: Option<Duration>,
}

/// A version, where it is, and what is known of it.
struct Known {
    place: Place,
    item: Item,
    facts: Facts,
}

impl Work<'_> {
    pub(super) async fn apply(&self, op: &Op) -> Result<Done> {
        match op {
            Op::Publish {
                content,
                hash,
                if_changed,
            } => self.publish(content, hash, *if_changed).await,
            Op::Retire(number) => self.retire(*number).await,
            Op::Pin { number, is_pinned } => self.pin(*number, *is_pinned).await,
            Op::Alias { name, to } => self.alias(name, *to).await,
        }
    }

    fn now(&self) -> Timestamp {
        self.tx.db().engine().now()
    }

    /// When a version goes that is deprecated now.
    fn expiry(&self) -> Option<Expiry> {
        self.retention
            .map(|retention| Expiry::after(self.now(), retention))
    }

    fn reads(&self) -> Reads<'_> {
        Reads::of_registry(self.tx.db(), Some(self.tx))
    }

    async fn load(&self, place: &Place) -> Result<Option<Item>> {
        self.reads().load_one(self.group, place).await
    }

    /// The pointer and another item, by one request.
    async fn load_with_pointer(&self, place: &Place) -> Result<(Option<Item>, Option<Item>)> {
        let places = [self.group.pointer(), place.clone()];
        let mut items = self.reads().load(self.group, &places).await?.into_iter();
        Ok((items.next().flatten(), items.next().flatten()))
    }

    fn changes<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        self.tx.session().with(change)
    }

    fn put(&self, place: &Place, item: Option<Item>) -> Result<()> {
        self.changes(|changes| changes.put(place, item))
    }

    fn watch(&self, place: &Place) -> Result<()> {
        self.changes(|changes| changes.watch(place))
    }

    /// Leaves a version as it is, because of an item that must stay as it is too.
    fn unchanged(&self, place: &Place, number: u64) -> Result<Done> {
        self.watch(place)?;
        Ok(Done {
            number,
            is_changed: false,
        })
    }

    /// Takes note of what an item is by the word of the pointer, and gives it as the body sees it.
    fn tell(&self, place: &Place, told: Option<Item>) -> Result<Option<Item>> {
        self.changes(|changes| {
            changes.tell(self.group, place, told);
            changes.known(place).flatten()
        })
    }

    fn facts(&self, item: Option<&Item>) -> Result<Facts> {
        let facts = item.map(|item| Facts::of(self.group.schema, item));
        Ok(facts.transpose()?.unwrap_or_default())
    }

    async fn publish(&self, content: &Item, hash: &str, if_changed: bool) -> Result<Done> {
        let (group, schema) = (self.group, self.group.schema);
        let pointer_place = group.pointer();
        let pointer = self.load(&pointer_place).await?;
        let facts = self.facts(pointer.as_ref())?;
        if let (true, Some(number), Some(known)) = (if_changed, facts.number, &facts.hash)
            && known == hash
        {
            return self.unchanged(&pointer_place, number);
        }
        let number = next_number(group, facts.last)?;
        // Whatever the clocks of publishers say, a later version was not published earlier.
        let now = self.now();
        let published = facts.published.map_or(now, |last| last.max(now));
        let place = group.version(number);
        let version = stored::new_version(group, content, (number, hash, published));
        self.tell(&place, None)?;
        if let (Some(previous), Some(pointer)) = (facts.number, &pointer)
            && schema.status.is_some()
        {
            self.demote(previous, pointer)?;
        }
        let new_pointer = stored::pointer(group, &version, number, number);
        self.put(&pointer_place, Some(new_pointer))?;
        self.put(&place, Some(version))?;
        Ok(changed(number))
    }

    /// The pointer is a copy of the latest version, so that need not be read to be demoted.
    fn demote(&self, number: u64, pointer: &Item) -> Result<()> {
        let place = self.group.version(number);
        let told = stored::pointed_version(self.group, pointer, number);
        let version = self.tell(&place, Some(told))?;
        let demote = |version: &mut Item| stored::demote(self.group.schema, version);
        let demoted = version.map(|version| self.changed(version, &demote));
        self.put(&place, demoted.transpose()?)
    }

    async fn retire(&self, number: u64) -> Result<Done> {
        let (group, now) = (self.group, self.now());
        let (pointer_place, place) = (group.pointer(), group.version(number));
        let (pointer, item) = self.load_with_pointer(&place).await?;
        let item = item.ok_or_else(|| self.missing(number))?;
        let facts = self.facts(Some(&item))?;
        // What has expired goes its own way: who waits for its expiry is still to be told.
        if facts.gone(now).is_some() {
            return self.unchanged(&place, number);
        }
        if let [_, ..] = facts.aliases.as_slice() {
            return Err(self.aliased(number, &facts));
        }
        let tombstone = stored::tombstone(group.schema, &item, now);
        self.put(&place, Some(tombstone))?;
        let pointed = self.facts(pointer.as_ref())?;
        if pointed.number == Some(number) {
            self.step_back(&pointer_place, number, pointed.last).await?;
        } else if facts.is_latest(group.schema) {
            self.watch(&pointer_place)?;
        }
        Ok(changed(number))
    }

    /// The latest version is retired: the newest of those before it that is still deployed is the latest again.
    async fn step_back(&self, pointer: &Place, from: u64, last: u64) -> Result<()> {
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

    /// The newest version before this one that is deployed, as the transaction sees it.
    async fn newest_deployed(&self, before: u64) -> Result<Option<(u64, Item)>> {
        let mut newest: Option<(u64, Item)> = None;
        for (number, item) in self.changes(|changes| changes.versions(self.group))? {
            let is_newer = newest.as_ref().is_none_or(|(known, _)| number > *known);
            if number < before && is_newer && self.is_deployed(&item)? {
                newest = Some((number, item));
            }
        }
        let mut walk = Walk::new(self.reads(), self.group, true);
        (walk.after, walk.limit) = (Some(before), Some(BATCH_GET_ITEMS_MAX));
        while !walk.is_done {
            for (number, item) in walk.next().await? {
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

    /// A version as the transaction sees it, given what a query has found.
    fn found(&self, number: u64, item: Item) -> Result<Option<Item>> {
        let place = self.group.version(number);
        self.changes(|changes| {
            changes.settle(self.group, &place, Some(item));
            changes.known(&place).flatten()
        })
    }

    async fn pin(&self, number: u64, is_pinned: bool) -> Result<Done> {
        let place = self.group.version(number);
        let (_, item) = self.load_with_pointer(&place).await?;
        let known = self.deployed(place, item, number)?;
        if known.facts.is_pinned == is_pinned {
            return self.unchanged(&known.place, number);
        }
        let pin = |item: &mut Item| stored::pin(item, is_pinned);
        self.change(number, known, &pin).await?;
        Ok(changed(number))
    }

    async fn alias(&self, name: &str, to: Option<u64>) -> Result<Done> {
        let (group, schema) = (self.group, self.group.schema);
        let place = group.alias(name)?;
        let mut places = vec![place.clone(), group.pointer()];
        places.extend(to.map(|number| group.version(number)));
        let mut items = self.reads().load(group, &places).await?.into_iter();
        let from = self.facts(items.next().flatten().as_ref())?.number;
        let number = to.or(from).unwrap_or_default();
        if from == to {
            return self.unchanged(&place, number);
        }
        if let Some(number) = from {
            self.lead(name, number, false).await?;
        }
        if let Some(number) = to {
            self.lead(name, number, true).await?;
        }
        let item = to.map(|number| stored::alias(&place, schema, number));
        self.put(&place, item)?;
        Ok(changed(number))
    }

    /// Has an alias lead to a version, or no longer.
    async fn lead(&self, name: &str, number: u64, is_aliased: bool) -> Result<()> {
        let place = self.group.version(number);
        let item = self.load(&place).await?;
        let known = match (is_aliased, item) {
            (true, item) => self.deployed(place, item, number)?,
            // What it led to was taken away by hand: then there is nothing to let go.
            (false, None) => return Ok(()),
            (false, Some(item)) => self.known(place, item)?,
        };
        let lead = |item: &mut Item| stored::lead(item, name, is_aliased);
        self.change(number, known, &lead).await
    }

    /// Changes a version, and the pointer if that is a copy of it.
    async fn change(
        &self,
        number: u64,
        known: Known,
        change: &(dyn Fn(&mut Item) + Sync),
    ) -> Result<()> {
        let place = self.group.pointer();
        let pointer = self.load(&place).await?;
        self.put(&known.place, Some(self.changed(known.item, change)?))?;
        match pointer {
            Some(pointer) if self.facts(Some(&pointer))?.number == Some(number) => {
                self.put(&place, Some(self.changed(pointer, change)?))
            }
            // The pointer was read before it came to the version, or that may be: without a status, a version does not show it.
            _ if known.facts.is_latest(self.group.schema) => self.watch(&place),
            _ => Ok(()),
        }
    }

    /// An item after a change. One that nothing holds any more gets a new expiry.
    fn changed(&self, mut item: Item, change: &dyn Fn(&mut Item)) -> Result<Item> {
        change(&mut item);
        stored::expire(self.group.schema, &mut item, self.expiry())?;
        Ok(item)
    }

    fn known(&self, place: Place, item: Item) -> Result<Known> {
        Ok(Known {
            facts: self.facts(Some(&item))?,
            place,
            item,
        })
    }

    /// A version that is deployed.
    fn deployed(&self, place: Place, item: Option<Item>, number: u64) -> Result<Known> {
        let item = item.ok_or_else(|| self.missing(number))?;
        let known = self.known(place, item)?;
        if known.facts.is_deployed(self.group.schema, self.now()) {
            Ok(known)
        } else {
            Err(self.not_found("is not deployed any more", number))
        }
    }

    fn missing(&self, number: u64) -> Error {
        self.not_found("is not there", number)
    }

    fn not_found(&self, what: &str, number: u64) -> Error {
        let group = self.group;
        let message = format!("the version {what}: group={group} version={number}");
        Error::new(ErrorKind::NotFound, message)
    }

    fn aliased(&self, number: u64, facts: &Facts) -> Error {
        let (group, aliases) = (self.group, facts.aliases.join(","));
        let what = "aliases lead to the version; move or remove them first";
        let message = format!("{what}: group={group} version={number} aliases={aliases}");
        Error::new(ErrorKind::Restricted, message)
    }

    /// Whether a version is deployed by now.
    fn is_deployed(&self, item: &Item) -> Result<bool> {
        let facts = self.facts(Some(item))?;
        Ok(facts.is_deployed(self.group.schema, self.now()))
    }
}

const fn changed(number: u64) -> Done {
    Done {
        number,
        is_changed: true,
    }
}
