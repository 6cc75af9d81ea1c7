//! Checks of keys against the schemas of a table and its indexes.

use std::hash::{Hash, Hasher};

use super::constraint::invalid;
use crate::error::{Error, Result, ensure, ensure_none};
use crate::item::Item;
use crate::key_length::{empty_value, key_bytes, partition_too_long, sort_too_long};
use crate::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use crate::table::{IndexDef, KeyAttribute, KeyKind, KeySchema, TableDef};
use crate::text::Name;
use crate::value::{Value, ValueType};

/// A fault of a key in an item: the key of the table or of an index.
#[derive(Debug)]
enum KeyFault<'a> {
    /// Attributes are missing or superfluous.
    Shape(Option<&'a Name>),
    /// An attribute has the wrong type.
    Type(&'a KeyAttribute, ValueType),
    /// An attribute is empty.
    Empty(&'a KeyAttribute),
    /// The partition key is too long.
    PartitionTooLong,
    /// The sort key is too long.
    SortTooLong,
}

/// The operation whose error messages are used.
#[derive(Clone, Copy)]
pub(super) enum Wording<'a> {
    /// PutItem, which names the attribute.
    Item,
    /// Operations that take a key.
    Key,
    /// A put that sets an attribute of an index key.
    IndexPut(&'a IndexDef),
    /// An update that sets an attribute of an index key.
    IndexUpdate(&'a IndexDef),
}

pub(super) const MISMATCH: &str = "The provided key element does not match the schema";

impl KeyFault<'_> {
    fn into_error(self, wording: Wording<'_>) -> Error {
        use Wording::{IndexPut, IndexUpdate, Item, Key};
        match (self, wording) {
            (Self::Shape(Some(name)), Item) => {
                invalid(format_args!("Missing the key {name} in the item"))
            }
            (Self::Type(KeyAttribute { name, kind }, actual), Item) => invalid(format_args!(
                "Type mismatch for key {name} expected: {} actual: {actual}",
                kind.as_str()
            )),
            (Self::Type(KeyAttribute { name, kind }, actual), IndexPut(i) | IndexUpdate(i)) => {
                invalid(format_args!(
                    "Type mismatch for Index Key {name} Expected: {} Actual: {actual} IndexName: {}",
                    kind.as_str(),
                    i.name
                ))
            }
            (Self::Shape(_) | Self::Type(..), _) => Error::validation(MISMATCH),
            (Self::Empty(KeyAttribute { name, kind }), Item | Key) => {
                empty_value(kind_word(*kind), name)
            }
            (Self::Empty(KeyAttribute { name, kind }), IndexPut(index)) => {
                Error::Validation(format!(
                    "One or more parameter values are not valid. A value specified for a secondary \
                     index key is not supported. The AttributeValue for a key attribute cannot \
                     contain an empty {} value. IndexName: {}, IndexKey: {name}",
                    kind_word(*kind),
                    index.name
                ))
            }
            (Self::Empty(attribute), IndexUpdate(_)) => Error::Validation(format!(
                "One or more parameter values are not valid. The update expression attempted to \
                 update a secondary index key to a value that is not supported. The AttributeValue \
                 for a key attribute cannot contain an empty {} value.",
                kind_word(attribute.kind)
            )),
            (Self::PartitionTooLong, _) => partition_too_long(),
            (Self::SortTooLong, _) => sort_too_long(),
        }
    }
}

/// Which faults in the key of an index are errors.
#[derive(Clone, Copy)]
pub(super) enum RejectedFaults {
    All,
    /// Only empty values; see [`check_key_filled`].
    EmptyOnly,
}

impl RejectedFaults {
    const fn includes(self, fault: &KeyFault<'_>) -> bool {
        matches!((self, fault), (Self::All, _) | (_, KeyFault::Empty(_)))
    }
}

const fn kind_word(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::B => "binary",
        KeyKind::S | KeyKind::N => "string",
    }
}

/// Checks a key: exactly the attributes of the schema, with the right types, not empty and not too long.
pub(super) fn check_key(schema: &KeySchema, key: &Item) -> Result<()> {
    let whole = key.len() == schema.attributes().count();
    ensure(whole, || KeyFault::Shape(None).into_error(Wording::Key))?;
    check_item_key(schema, key, Wording::Key)
}

/// Checks the key inside an item: PutItem has its own messages, batches use those of the operations on keys.
pub(super) fn check_item_key(schema: &KeySchema, item: &Item, wording: Wording<'_>) -> Result<()> {
    check_parts(schema, item).map_err(|fault| fault.into_error(wording))
}

/// Checks only that no key attribute is empty, the one key fault that rejects a transaction as a whole instead of
/// cancelling it with a reason.
pub(super) fn check_key_filled(schema: &KeySchema, item: &Item) -> Result<()> {
    let is_empty = |attribute: &&KeyAttribute| {
        let value = item.get(&attribute.name);
        value.is_some_and(|value| attribute.kind.matches(value) && is_empty(value))
    };
    ensure_none(schema.attributes().find(is_empty), |attribute| {
        KeyFault::Empty(attribute).into_error(Wording::Key)
    })
}

fn check_parts<'a>(schema: &'a KeySchema, item: &Item) -> Result<(), KeyFault<'a>> {
    let partition_max = (PARTITION_KEY_BYTES_MAX, KeyFault::PartitionTooLong);
    let sort_max = (SORT_KEY_BYTES_MAX, KeyFault::SortTooLong);
    check_part(&schema.partition, item, partition_max)?;
    check_part(&schema.sort, item, sort_max)
}

/// Checks the attributes of one part of a key, and their total length.
fn check_part<'a>(
    attributes: &'a [KeyAttribute],
    item: &Item,
    (bytes_max, too_long): (usize, KeyFault<'a>),
) -> Result<(), KeyFault<'a>> {
    let mut bytes = 0;
    for attribute in attributes {
        let missing = KeyFault::Shape(Some(&attribute.name));
        let value = item.get(&attribute.name).ok_or(missing)?;
        value_fault(attribute, value).map_or(Ok(()), Err)?;
        bytes += key_bytes(value);
    }
    ensure(bytes <= bytes_max, || too_long)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::S(text) => text.is_empty(),
        Value::B(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// Checks the index keys inside an item that is put: an attribute may be missing, but if it exists, it must be valid
/// for the index.
pub(super) fn check_index_keys(
    table: &TableDef,
    item: &Item,
    rejected: RejectedFaults,
) -> Result<()> {
    check_indexes(table, Wording::IndexPut, |index| {
        index_fault(table, index, item, |_| true).filter(|fault| rejected.includes(fault))
    })
}

/// Checks the index keys that an update has changed.
pub(super) fn check_changed_index_keys(table: &TableDef, old: &Item, new: &Item) -> Result<()> {
    check_indexes(table, Wording::IndexUpdate, |index| {
        index_fault(table, index, new, |name| old.get(name) != new.get(name))
    })
}

/// Checks a value that an update sets, independently of the item.
pub(super) fn check_index_key_value(
    table: &TableDef,
    name: &Name,
    value: &Value,
    rejected: RejectedFaults,
) -> Result<()> {
    check_indexes(table, Wording::IndexUpdate, |index| {
        let attribute = index.key.attributes().find(|a| a.name == *name)?;
        value_fault(attribute, value).filter(|fault| rejected.includes(fault))
    })
}

/// Checks that a value has the type of an index key attribute.
pub(super) fn check_index_type(
    attribute: &KeyAttribute,
    value: &Value,
    index: &IndexDef,
) -> Result<()> {
    ensure(attribute.kind.matches(value), || {
        KeyFault::Type(attribute, value.value_type()).into_error(Wording::IndexPut(index))
    })
}

/// Returns the error of the index that comes first by name, which is the one that DynamoDB reports.
fn check_indexes<'t>(
    table: &'t TableDef,
    wording: fn(&'t IndexDef) -> Wording<'t>,
    fault: impl Fn(&'t IndexDef) -> Option<KeyFault<'t>>,
) -> Result<()> {
    let indexes = table.indexes.iter();
    let faults = indexes.filter_map(|index| Some((index, fault(index)?)));
    let first = faults.min_by_key(|(index, _)| index.name.as_str());
    ensure_none(first, |(index, fault)| fault.into_error(wording(index)))
}

fn index_fault<'t>(
    table: &TableDef,
    index: &'t IndexDef,
    item: &Item,
    changed: impl Fn(&Name) -> bool,
) -> Option<KeyFault<'t>> {
    // Attributes of the table's key have already been checked.
    let is_own = |a: &&KeyAttribute| !table.key.contains(&a.name) && changed(&a.name);
    let mut own = index.key.attributes().filter(is_own);
    let fault = own.find_map(|a| value_fault(a, item.get(&a.name)?));
    if fault.is_some() {
        return fault;
    }
    let too_long = |attributes: &[KeyAttribute], bytes_max| {
        key_length(attributes, item) > bytes_max && attributes.iter().any(|a| changed(&a.name))
    };
    if too_long(&index.key.partition, PARTITION_KEY_BYTES_MAX) {
        return Some(KeyFault::PartitionTooLong);
    }
    too_long(&index.key.sort, SORT_KEY_BYTES_MAX).then_some(KeyFault::SortTooLong)
}

fn value_fault<'t>(attribute: &'t KeyAttribute, value: &Value) -> Option<KeyFault<'t>> {
    if !attribute.kind.matches(value) {
        Some(KeyFault::Type(attribute, value.value_type()))
    } else if is_empty(value) {
        Some(KeyFault::Empty(attribute))
    } else {
        None
    }
}

fn key_length(attributes: &[KeyAttribute], item: &Item) -> usize {
    let values = attributes.iter().filter_map(|a| item.get(&a.name));
    values.map(key_bytes).sum()
}

/// A reference to the key inside an item. Compares and hashes like the key alone.
#[derive(Clone, Copy)]
pub(super) struct KeyRef<'a> {
    table: &'a TableDef,
    item: &'a Item,
}

impl<'a> KeyRef<'a> {
    /// References the key of an item. Returns `None` if it is invalid, which other checks report.
    pub(super) fn new(table: &'a TableDef, item: &'a Item) -> Option<Self> {
        check_parts(&table.key, item).ok()?;
        Some(Self { table, item })
    }

    fn values(&self) -> impl Iterator<Item = Option<&'a Value>> {
        let item = self.item;
        self.table.key.attributes().map(|a| item.get(&a.name))
    }
}

impl PartialEq for KeyRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.table.name == other.table.name && self.values().eq(other.values())
    }
}

impl Eq for KeyRef<'_> {}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.table.name.hash(state);
        self.values().for_each(|value| value.hash(state));
    }
}
