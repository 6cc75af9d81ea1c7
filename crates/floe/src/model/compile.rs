//! Turns what a body did with an item into a plan: the write, and the condition under which it may be applied.
//!
//! The condition contains exactly the fields that the outcome depends on: those that were read, and those whose new value
//! was derived from the old one. Each is compared with the attribute as it was stored.

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::size::{attribute_size, item_size};
use floe_store::{Item, Name, Timestamp, Value};

use super::changes::{BlindWrite, Entry, Origin};
use super::field::{Addition, Change, Limit};
use super::keys::EncodedKey;
use super::report::FieldReport;
use super::schema::{PARTITION_ATTRIBUTE, STAMP_ATTRIBUTE, Schema};
use crate::error::{Error, ErrorItem, Result};

/// The attribute of the stamp.
const STAMP: Name = Name::new_static(STAMP_ATTRIBUTE);

/// The planned write or check of one item.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) schema: &'static Schema,
    pub(crate) key: EncodedKey,
    pub(crate) action: Action,
    pub(crate) precondition: Precondition,
    /// The stamp on the item when it was read.
    pub(crate) stamp: Option<Value>,
    /// Size of the item after the write; 0 if unknown.
    pub(crate) size: usize,
    /// The replacement item of a write that may create it. It replaces an expired item, of which nothing may remain.
    pub(crate) replacement: Option<Item>,
}

/// The action on an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Only the precondition is checked.
    Check,
    Put(Item),
    Update(Update),
    Delete,
}

/// What must hold for an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Precondition {
    pub(crate) presence: Presence,
    /// The attributes that must be unchanged; absent where `None`.
    pub(crate) attributes: Vec<(Name, Option<Value>)>,
    /// The limits of the attributes that the store increments.
    pub(crate) limits: Vec<AttributeLimit>,
}

/// The limit of an attribute that the store increments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttributeLimit {
    name: Name,
    limit: Limit,
    /// Whether the attribute may be absent.
    may_be_absent: bool,
}

impl AttributeLimit {
    fn condition(&self) -> Condition {
        let path = || Path::attribute(self.name.clone());
        let within = match self.limit {
            Limit::AtMost(max) => Condition::le(path(), Value::N(max)),
            Limit::AtLeast(min) => Condition::ge(path(), Value::N(min)),
        };
        if self.may_be_absent {
            Condition::attribute_not_exists(path()).or(within)
        } else {
            within
        }
    }

    fn holds(&self, item: &Item) -> bool {
        match (item.get(&self.name), self.limit) {
            (None, _) => self.may_be_absent,
            (Some(Value::N(stored)), Limit::AtMost(max)) => *stored <= max,
            (Some(Value::N(stored)), Limit::AtLeast(min)) => *stored >= min,
            (Some(_), _) => false,
        }
    }
}

/// Whether an item must exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It may or may not exist.
    #[default]
    Any,
    /// It must exist; an expired item counts as absent.
    Present,
    /// It must not exist; an expired item counts as absent.
    Absent,
    /// Like `Absent`, but if it exists, the body does not run again.
    New,
    /// It must not exist, or have the expected attributes and not be expired.
    AbsentOrEqual,
}

impl Plan {
    /// Plans the creation of an item that is not a row of the body.
    pub(crate) fn new_item(schema: &'static Schema, key: EncodedKey, item: Item) -> Self {
        Self {
            schema,
            key,
            size: item_size(&item),
            action: Action::Put(item),
            precondition: Precondition::presence(Presence::New),
            stamp: None,
            replacement: None,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.action != Action::Check
    }

    /// The condition to send, if there is one.
    pub(crate) fn condition(&self, now: Timestamp) -> Option<Condition> {
        let present = || Condition::attribute_exists(Path::attribute(PARTITION_ATTRIBUTE));
        let absent = || Condition::attribute_not_exists(Path::attribute(PARTITION_ATTRIBUTE));
        let expired = || {
            let expires = self.schema.expires.map(Path::attribute);
            expires.map(|path| Condition::le(path, Value::from(now.as_secs())))
        };
        let equal = self.precondition.attributes.iter().map(|(name, value)| {
            let path = Path::attribute(name.as_str());
            match value {
                Some(value) => Condition::eq(path, value.clone()),
                None => Condition::attribute_not_exists(path),
            }
        });
        match self.precondition.presence {
            Presence::Any => equal.reduce(Condition::and),
            Presence::Present => {
                let Precondition {
                    attributes, limits, ..
                } = &self.precondition;
                // An attribute with a value implies that the item exists.
                let has_value = attributes.iter().any(|(_, value)| value.is_some())
                    || limits.iter().any(|limit| !limit.may_be_absent);
                let present = (!has_value).then(present);
                let limits = limits.iter().map(AttributeLimit::condition);
                let alive = expired().map(Condition::not);
                let all = present.into_iter().chain(equal).chain(limits).chain(alive);
                all.reduce(Condition::and)
            }
            Presence::Absent | Presence::New => {
                Some(expired().into_iter().fold(absent(), Condition::or))
            }
            Presence::AbsentOrEqual => {
                let alive = equal.chain(expired().map(Condition::not));
                let alive = alive.reduce(Condition::and)?;
                Some(absent().or(alive))
            }
        }
    }

    /// Adds the stamp of a commit to the write.
    pub(crate) fn stamp(&mut self, stamp: &Value) {
        match &mut self.action {
            Action::Put(item) => _ = item.insert(STAMP, stamp.clone()),
            Action::Update(update) => {
                let path = Path::attribute(STAMP);
                *update = std::mem::take(update).set(path, stamp.clone());
            }
            Action::Check | Action::Delete => return,
        }
        if let Some(replacement) = &mut self.replacement {
            replacement.insert(STAMP, stamp.clone());
        }
        // The size of an item that was read with a stamp already includes one.
        if self.stamp.is_none() {
            self.size += attribute_size(&STAMP, stamp);
        }
    }

    /// Whether the write failed because of an expired item, which it treats as absent.
    pub(crate) fn conflicts_with_expired(&self, current: Option<&Item>, now: Timestamp) -> bool {
        self.replacement.is_some() && current.is_some_and(|item| self.schema.is_expired(item, now))
    }

    /// Puts the replacement item over an expired one, instead of changing it.
    pub(crate) fn replace_expired(&mut self) {
        if let Some(item) = self.replacement.take() {
            self.action = Action::Put(item);
            self.precondition = Precondition::presence(Presence::Absent);
        }
    }

    /// The item for an error, with the fields that differ from the precondition in the current item.
    pub(crate) fn error_item(&self, current: Option<&Item>) -> ErrorItem {
        let attributes = self.precondition.attributes.iter();
        let differing = attributes
            .filter(|(name, value)| current.is_some_and(|item| item.get(name) != value.as_ref()));
        let differing = differing.map(|(name, _)| name);
        let limits = self.precondition.limits.iter();
        let exceeded = limits.filter(|limit| current.is_some_and(|item| !limit.holds(item)));
        let exceeded = exceeded.map(|limit| &limit.name);
        let fields = differing
            .chain(exceeded)
            .map(|name| self.schema.field_of(name));
        ErrorItem {
            model: self.schema.model,
            key: self.key.clone(),
            fields: fields.collect(),
        }
    }
}

/// Plans the write or check of an entry; `None` if the commit does not depend on it.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if a changed field has a value that is not allowed.
pub(crate) fn plan(entry: Entry) -> Result<Option<Plan>> {
    let created = |item: &Item, presence| {
        let item = entry.changed(item)?;
        let size = item_size(&item);
        Ok::<_, Error>((
            Action::Put(item),
            Precondition::presence(presence),
            None,
            size,
        ))
    };
    let check = |presence| (Action::Check, Precondition::presence(presence), None, 0);
    let (action, precondition, stamp, size) = match &entry.origin {
        // The read failed, and the body continued without it.
        Origin::Pending | Origin::Abandoned => return Ok(None),
        Origin::Missing => check(Presence::Absent),
        // Created and deleted again: it must not exist.
        Origin::Created(_) if entry.is_deleted => check(Presence::New),
        Origin::CreatedAfterMissing(_) if entry.is_deleted => check(Presence::Absent),
        Origin::Created(item) => created(item, Presence::New)?,
        Origin::CreatedAfterMissing(item) => created(item, Presence::Absent)?,
        Origin::Replaced(replaced) => {
            let precondition = locks(&replaced.fields, &replaced.read);
            let stamp = replaced.read.get(STAMP_ATTRIBUTE).cloned();
            if entry.is_deleted {
                (Action::Delete, precondition, stamp, 0)
            } else {
                let item = entry.changed(&replaced.item)?;
                let size = item_size(&item);
                (Action::Put(item), precondition, stamp, size)
            }
        }
        // What was deleted without a read may or may not exist.
        Origin::CreatedAfterDelete(_) if entry.is_deleted => deleted_blind(),
        Origin::CreatedAfterDelete(item) => created(item, Presence::Any)?,
        Origin::Found(item) => {
            let (action, precondition) = plan_found(&entry, item)?;
            let size = match action {
                Action::Update(_) => changed_size(&entry, item),
                _ => 0,
            };
            (
                action,
                precondition,
                item.get(STAMP_ATTRIBUTE).cloned(),
                size,
            )
        }
        Origin::Delete => deleted_blind(),
        Origin::Update(blind) => blind_write(blind, Presence::Present),
        Origin::Put(blind) => blind_write(blind, Presence::AbsentOrEqual),
    };
    let replacement = match &entry.origin {
        Origin::Put(blind) if entry.schema.expires.is_some() => {
            let mut item = entry.key.to_item();
            for (name, value) in blind.set.iter() {
                item.insert(name.clone(), value.clone());
            }
            Some(item)
        }
        _ => None,
    };
    Ok(Some(Plan {
        schema: entry.schema,
        key: entry.key,
        action,
        precondition,
        stamp,
        size,
        replacement,
    }))
}

impl Precondition {
    /// The number of attributes that it names.
    pub(crate) fn fields(&self) -> usize {
        self.attributes.len() + self.limits.len()
    }

    const fn presence(presence: Presence) -> Self {
        Self {
            presence,
            attributes: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Requires that the attribute of a field is as it was read.
    fn lock(&mut self, field: &FieldReport, item: &Item) {
        let stored = item.get(field.attribute).cloned();
        let name = Name::new_static(field.attribute);
        self.attributes.push((name, stored));
    }

    /// Requires that the field can hold the sum of an increment.
    fn limit(&mut self, field: &FieldReport, item: &Item) {
        let Some(Ok(Some(limit))) = field.limit() else {
            return;
        };
        self.limits.push(AttributeLimit {
            name: Name::new_static(field.attribute),
            limit,
            may_be_absent: !item.contains(field.attribute),
        });
    }
}

/// A delete of an item that was not read.
const fn deleted_blind() -> (Action, Precondition, Option<Value>, usize) {
    let precondition = Precondition::presence(Presence::Any);
    (Action::Delete, precondition, None, 0)
}

/// What a commit depends on that deletes or replaces an item which was read: its existence and the locked fields.
fn locks(fields: &[FieldReport], item: &Item) -> Precondition {
    let mut precondition = Precondition::presence(Presence::Present);
    for field in fields.iter().filter(|field| is_locked(field)) {
        precondition.lock(field, item);
    }
    precondition
}

/// The size of an item with all changes of its fields.
fn changed_size(entry: &Entry, item: &Item) -> usize {
    let changed = entry.changed_fields();
    changed.fold(item_size(item), |size, field| {
        let size_of = |value: &Value| attribute_size(field.attribute, value);
        let new = field.value.as_ref().ok().and_then(Option::as_ref);
        let old = item.get(field.attribute).map_or(0, size_of);
        (size + new.map_or(0, size_of)).saturating_sub(old)
    })
}

fn plan_found(entry: &Entry, item: &Item) -> Result<(Action, Precondition)> {
    let mut precondition = Precondition::presence(Presence::Present);
    let mut update = Update::new();
    for field in &entry.fields {
        if is_locked(field) {
            precondition.lock(field, item);
        } else {
            precondition.limit(field, item);
        }
        update = change(update, field, item.get(field.attribute))?;
    }
    if entry.is_deleted {
        return Ok((Action::Delete, locks(&entry.fields, item)));
    }
    let action = if update.is_empty() {
        Action::Check
    } else {
        Action::Update(update)
    };
    Ok((action, precondition))
}

/// Whether the outcome depends on the old value of the field.
fn is_locked(field: &FieldReport) -> bool {
    match field.change {
        Change::None => field.is_read,
        Change::Written => true,
        // Without a limit, the value that was read must be the one that is incremented.
        Change::Incremented(_) => field.limit().is_some_and(|limit| limit.is_err()),
        Change::Overwritten => false,
    }
}

fn change(update: Update, field: &FieldReport, stored: Option<&Value>) -> Result<Update> {
    let new = field.value.clone()?;
    let changes = match &field.change {
        Change::None => false,
        Change::Written => new.as_ref() != stored,
        Change::Overwritten => true,
        Change::Incremented(addition) => !addition.amount.is_zero(),
    };
    if !changes {
        return Ok(update);
    }
    if field.read_only {
        return Err(field.read_only_error());
    }
    let path = Path::attribute(Name::new_static(field.attribute));
    Ok(match (&field.change, new) {
        (Change::Incremented(addition), _) => increment(update, path, addition, stored),
        (_, Some(value)) => update.set(path, value),
        (_, None) => update.remove(path),
    })
}

/// Adds to the value stored at commit time.
fn increment(update: Update, path: Path, addition: &Addition, stored: Option<&Value>) -> Update {
    let operand = match stored {
        None => SetOperand::if_not_exists(path.clone(), Value::N(addition.base)),
        Some(_) => SetOperand::from(path.clone()),
    };
    update.set_sum(path, operand, Value::N(addition.amount))
}

fn blind_write(
    blind: &BlindWrite,
    presence: Presence,
) -> (Action, Precondition, Option<Value>, usize) {
    let mut update = Update::new();
    for (name, value) in blind.set.iter() {
        update = update.set(Path::attribute(name.clone()), value.clone());
    }
    for name in &blind.remove {
        update = update.remove(Path::attribute(name.clone()));
    }
    let precondition = Precondition {
        attributes: blind.expected.clone(),
        ..Precondition::presence(presence)
    };
    (
        Action::Update(update),
        precondition,
        None,
        item_size(&blind.set),
    )
}
