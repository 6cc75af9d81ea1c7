//! Turns what a body did with an item into a plan: the write, and the condition under which it may be applied.
//!
//! The condition contains exactly the fields that the outcome depends on: those that were read, and those whose new value
//! was derived from the old one. Each is compared with the attribute as it was stored.

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::size::{attribute_size, item_size};
use floe_store::{Item, Name, Number, Timestamp, Value};

use super::changes::{BlindWrite, Entry, Origin};
use super::field::Change;
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
}

/// Whether an item must exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It may or may not exist.
    #[default]
    Any,
    /// It must exist.
    Present,
    /// It must exist and not be expired.
    Alive,
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
            Presence::Present | Presence::Alive => {
                let is_alive = self.precondition.presence == Presence::Alive;
                let alive = is_alive.then(expired).flatten().map(Condition::not);
                // An equal attribute implies that the item exists.
                let mut values = self.precondition.attributes.iter().map(|(_, value)| value);
                let present = (!values.any(Option::is_some)).then(present);
                let all = present.into_iter().chain(equal).chain(alive);
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
        let fields = differing.map(|(name, _)| self.schema.field_of(name));
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
        Origin::Delete => (
            Action::Delete,
            Precondition::presence(Presence::Any),
            None,
            0,
        ),
        Origin::Update(blind) => blind_write(blind, Presence::Alive),
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
    const fn presence(presence: Presence) -> Self {
        let attributes = Vec::new();
        Self {
            presence,
            attributes,
        }
    }
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
        let stored = item.get(field.attribute);
        if is_locked(field) {
            let locked = (Name::new_static(field.attribute), stored.cloned());
            precondition.attributes.push(locked);
        }
        update = change(update, field, stored)?;
    }
    let action = if entry.is_deleted {
        Action::Delete
    } else if update.is_empty() {
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
        Change::Overwritten | Change::Incremented(_) => false,
    }
}

fn change(update: Update, field: &FieldReport, stored: Option<&Value>) -> Result<Update> {
    let new = field.value.clone()?;
    let changes = match &field.change {
        Change::None => false,
        Change::Written => new.as_ref() != stored,
        Change::Overwritten => true,
        Change::Incremented(amount) => !amount.is_zero(),
    };
    if !changes {
        return Ok(update);
    }
    if field.read_only {
        return Err(field.read_only_error());
    }
    let path = Path::attribute(Name::new_static(field.attribute));
    Ok(match (&field.change, new) {
        (Change::Incremented(amount), sum) => increment(update, path, *amount, stored, sum),
        (_, Some(value)) => update.set(path, value),
        (_, None) => update.remove(path),
    })
}

/// Adds to the value stored at commit time. If the attribute was absent, its default is the base.
fn increment(
    update: Update,
    path: Path,
    amount: Number,
    stored: Option<&Value>,
    sum: Option<Value>,
) -> Update {
    let base = match (stored, sum) {
        (None, Some(Value::N(sum))) => sum.checked_sub(amount).ok().map(Value::N),
        _ => None,
    };
    let operand = match base {
        Some(base) => SetOperand::if_not_exists(path.clone(), base),
        None => SetOperand::from(path.clone()),
    };
    update.set_sum(path, operand, Value::N(amount))
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
        presence,
        attributes: blind.expected.clone(),
    };
    (
        Action::Update(update),
        precondition,
        None,
        item_size(&blind.set),
    )
}
