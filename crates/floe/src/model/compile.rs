//! From what a body did with an item to what is sent for it: the write, and the condition under which it
//! may be applied.
//!
//! The condition names exactly the fields that the outcome depends on: those read, and those whose new
//! value was made from the old. Each is compared with the attribute as it was stored.

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::size::{attribute_size, item_size};
use floe_store::{Item, Name, Number, Timestamp, Value};

use super::changes::{Blind, Entry, Origin};
use super::field::Change;
use super::keys::EncodedKey;
use super::report::FieldReport;
use super::schema::{PARTITION_ATTRIBUTE, STAMP_ATTRIBUTE, Schema};
use crate::error::{Error, ErrorItem, Result};

/// The attribute of the stamp.
const STAMP: Name = Name::new_static(STAMP_ATTRIBUTE);

/// What is sent for one item.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) schema: &'static Schema,
    pub(crate) key: EncodedKey,
    pub(crate) action: Action,
    pub(crate) expects: Expects,
    /// The stamp on the item when it was read.
    pub(crate) stamp: Option<Value>,
    /// What the item weighs once it is written, as far as is known; 0 if it is not.
    pub(crate) size: usize,
    /// The whole item of a write that may create it: for when an expired one is found in its place, of which
    /// nothing must stay.
    pub(crate) whole: Option<Item>,
}

/// What is done with an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// It must only be as it was.
    Check,
    Put(Item),
    Update(Update),
    Delete,
}

/// What must hold of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Expects {
    pub(crate) presence: Presence,
    /// The attributes that must be as they were; absent where `None`.
    pub(crate) attributes: Vec<(Name, Option<Value>)>,
}

/// Whether an item must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It does not matter.
    #[default]
    Any,
    /// It must be there.
    Present,
    /// It must be there and not be expired.
    Alive,
    /// It must not be there; an expired item counts as absent.
    Absent,
    /// As `Absent`, and it is the caller's fault if it is there.
    New,
    /// It must not be there, or be as expected and not expired.
    AbsentOrEqual,
}

impl Plan {
    /// An item that is created without being a row of the body.
    pub(crate) fn new_item(schema: &'static Schema, key: EncodedKey, item: Item) -> Self {
        Self {
            schema,
            key,
            size: item_size(&item),
            action: Action::Put(item),
            expects: Expects::presence(Presence::New),
            stamp: None,
            whole: None,
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
        let equal = self.expects.attributes.iter().map(|(name, value)| {
            let path = Path::attribute(name.as_str());
            match value {
                Some(value) => Condition::eq(path, value.clone()),
                None => Condition::attribute_not_exists(path),
            }
        });
        match self.expects.presence {
            Presence::Any => equal.reduce(Condition::and),
            Presence::Present | Presence::Alive => {
                let is_alive = self.expects.presence == Presence::Alive;
                let alive = is_alive.then(expired).flatten().map(Condition::not);
                // What is equal to something is there.
                let mut values = self.expects.attributes.iter().map(|(_, value)| value);
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

    /// Puts the stamp of a commit on what is written.
    pub(crate) fn stamp(&mut self, stamp: &Value) {
        match &mut self.action {
            Action::Put(item) => _ = item.insert(STAMP, stamp.clone()),
            Action::Update(update) => {
                let path = Path::attribute(STAMP);
                *update = std::mem::take(update).set(path, stamp.clone());
            }
            Action::Check | Action::Delete => return,
        }
        if let Some(whole) = &mut self.whole {
            whole.insert(STAMP, stamp.clone());
        }
        // An item that was read with a stamp has the weight of one already.
        if self.stamp.is_none() {
            self.size += attribute_size(&STAMP, stamp);
        }
    }

    /// Whether it failed because an expired item is there that it takes for absent.
    pub(crate) fn meets_expired(&self, now: Option<&Item>, moment: Timestamp) -> bool {
        self.whole.is_some() && now.is_some_and(|item| self.schema.is_expired(item, moment))
    }

    /// Puts the whole item over an expired one, instead of changing it.
    pub(crate) fn replace_expired(&mut self) {
        if let Some(item) = self.whole.take() {
            self.action = Action::Put(item);
            self.expects = Expects::presence(Presence::Absent);
        }
    }

    /// The item for an error, with the attributes that are no longer as expected, given the item as it is
    /// now.
    pub(crate) fn error_item(&self, now: Option<&Item>) -> ErrorItem {
        let attributes = self.expects.attributes.iter();
        let differing = attributes
            .filter(|(name, value)| now.is_some_and(|item| item.get(name) != value.as_ref()));
        let fields = differing.map(|(name, _)| self.schema.field_of(name));
        ErrorItem {
            model: self.schema.model,
            key: self.key.clone(),
            fields: fields.collect(),
        }
    }
}

/// What is sent for an entry; `None` if nothing is known of it that could matter.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a field was left with a value that is not allowed.
pub(crate) fn plan(entry: Entry) -> Result<Option<Plan>> {
    let created = |item: &Item, presence| {
        let item = entry.changed(item)?;
        let size = item_size(&item);
        Ok::<_, Error>((Action::Put(item), Expects::presence(presence), None, size))
    };
    let check = |presence| (Action::Check, Expects::presence(presence), None, 0);
    let (action, expects, stamp, size) = match &entry.origin {
        // The read failed, and the body went on without it.
        Origin::Pending | Origin::Forgotten => return Ok(None),
        Origin::Missing => check(Presence::Absent),
        // Created and removed again: it must not be there, and is not.
        Origin::Created(_) if entry.is_deleted => check(Presence::New),
        Origin::Absent(_) if entry.is_deleted => check(Presence::Absent),
        Origin::Created(item) => created(item, Presence::New)?,
        Origin::Absent(item) => created(item, Presence::Absent)?,
        Origin::Found(item) => {
            let (action, expects) = found(&entry, item)?;
            let size = match action {
                Action::Update(_) => changed_size(&entry, item),
                _ => 0,
            };
            (action, expects, item.get(STAMP_ATTRIBUTE).cloned(), size)
        }
        Origin::Delete => (Action::Delete, Expects::presence(Presence::Any), None, 0),
        Origin::Update(blind) => blind_write(blind, Presence::Alive),
        Origin::Put(blind) => blind_write(blind, Presence::AbsentOrEqual),
    };
    let whole = match &entry.origin {
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
        expects,
        stamp,
        size,
        whole,
    }))
}

impl Expects {
    const fn presence(presence: Presence) -> Self {
        let attributes = Vec::new();
        Self {
            presence,
            attributes,
        }
    }
}

/// What an item weighs with all that was done to its fields.
fn changed_size(entry: &Entry, item: &Item) -> usize {
    let changed = entry.changed_fields();
    changed.fold(item_size(item), |size, field| {
        let weight = |value: &Value| attribute_size(field.attribute, value);
        let new = field.value.as_ref().ok().and_then(Option::as_ref);
        let old = item.get(field.attribute).map_or(0, weight);
        (size + new.map_or(0, weight)).saturating_sub(old)
    })
}

fn found(entry: &Entry, item: &Item) -> Result<(Action, Expects)> {
    let mut expects = Expects::presence(Presence::Present);
    let mut update = Update::new();
    for field in &entry.fields {
        let stored = item.get(field.attribute);
        if is_locked(field) {
            let locked = (Name::new_static(field.attribute), stored.cloned());
            expects.attributes.push(locked);
        }
        update = change(update, field, stored)?;
    }
    let action = match (entry.is_deleted, update.is_empty()) {
        (true, _) => Action::Delete,
        (false, true) => Action::Check,
        (false, false) => Action::Update(update),
    };
    Ok((action, expects))
}

/// Whether the outcome depends on what the field was.
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

/// Adds to whatever is stored by then. Where nothing was stored, the default counts as stored.
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

fn blind_write(blind: &Blind, presence: Presence) -> (Action, Expects, Option<Value>, usize) {
    let mut update = Update::new();
    for (name, value) in blind.set.iter() {
        update = update.set(Path::attribute(name.clone()), value.clone());
    }
    for name in &blind.remove {
        update = update.remove(Path::attribute(name.clone()));
    }
    let expects = Expects {
        presence,
        attributes: blind.expected.clone(),
    };
    (Action::Update(update), expects, None, item_size(&blind.set))
}
