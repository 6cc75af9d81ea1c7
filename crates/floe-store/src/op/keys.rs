//! Checks of keys against a table and its indexes.

use std::hash::{Hash, Hasher};

use super::constraint::invalid;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::key_length::{key_bytes, partition_too_long, sort_too_long};
use crate::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use crate::table::{IndexDef, KeyAttribute, KeyKind, KeySchema, TableDef};
use crate::text::Name;
use crate::value::{Value, ValueType};

/// What is wrong with the key in an item.
#[derive(Debug)]
enum KeyFault<'a> {
    /// Attributes are missing, or there are others.
    Shape(Option<&'a Name>),
    /// An attribute is of another type.
    Type(&'a KeyAttribute, ValueType),
    /// An attribute is empty.
    Empty(&'a Name, KeyKind),
    /// The partition key is too long.
    PartitionTooLong,
    /// The sort key is too long.
    SortTooLong,
}

/// In whose words a fault of a key is told.
#[derive(Clone, Copy)]
enum Wording {
    /// PutItem's, which names the attribute.
    Item,
    /// That of the operations that take a key.
    Key,
}

const MISMATCH: &str = "The provided key element does not match the schema";

impl KeyFault<'_> {
    fn into_error(self, wording: Wording) -> Error {
        match (self, wording) {
            (Self::Shape(Some(name)), Wording::Item) => {
                invalid(format_args!("Missing the key {name} in the item"))
            }
            (Self::Type(attribute, actual), Wording::Item) => invalid(format_args!(
                "Type mismatch for key {} expected: {} actual: {actual}",
                attribute.name,
                attribute.kind.as_str()
            )),
            (Self::Shape(_) | Self::Type(..), _) => Error::validation(MISMATCH),
            (Self::Empty(name, kind), _) => Error::Validation(format!(
                "One or more parameter values are not valid. The AttributeValue for a key \
                 attribute cannot contain an empty {} value. Key: {name}",
                kind_word(kind)
            )),
            (Self::PartitionTooLong, _) => partition_too_long(),
            (Self::SortTooLong, _) => sort_too_long(),
        }
    }
}

const fn kind_word(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::B => "binary",
        KeyKind::S | KeyKind::N => "string",
    }
}

/// Checks a key: exactly the attributes of the schema, of their types, not empty, not too long.
pub(super) fn check_key(schema: &KeySchema, key: &Item) -> Result<()> {
    let result = if key.len() == schema.attributes().count() {
        check_parts(schema, key)
    } else {
        Err(KeyFault::Shape(None))
    };
    result.map_err(|fault| fault.into_error(Wording::Key))
}

/// Checks the key inside an item that is put.
pub(super) fn check_item_key(schema: &KeySchema, item: &Item) -> Result<()> {
    check_parts(schema, item).map_err(|fault| fault.into_error(Wording::Item))
}

/// Checks the key inside an item that a batch puts, which has the words of the operations on keys.
pub(super) fn check_batch_item_key(schema: &KeySchema, item: &Item) -> Result<()> {
    check_parts(schema, item).map_err(|fault| fault.into_error(Wording::Key))
}

/// Checks only that no attribute of the key is empty: the one fault of a key that refuses a
/// transaction as a whole instead of cancelling it for a reason.
pub(super) fn check_key_filled(schema: &KeySchema, item: &Item) -> Result<()> {
    let empty = schema.attributes().find(|attribute| {
        item.get(&attribute.name)
            .is_some_and(|value| attribute.kind.matches(value) && is_empty(value))
    });
    empty.map_or(Ok(()), |attribute| {
        Err(KeyFault::Empty(&attribute.name, attribute.kind).into_error(Wording::Key))
    })
}

fn check_parts<'a>(schema: &'a KeySchema, item: &Item) -> Result<(), KeyFault<'a>> {
    let partition_max = (PARTITION_KEY_BYTES_MAX, KeyFault::PartitionTooLong);
    check_part(&schema.partition, item, partition_max)?;
    check_part(
        &schema.sort,
        item,
        (SORT_KEY_BYTES_MAX, KeyFault::SortTooLong),
    )
}

/// Checks the attributes of one part of a key, and that they are short enough together.
fn check_part<'a>(
    attributes: &'a [KeyAttribute],
    item: &Item,
    (bytes_max, too_long): (usize, KeyFault<'a>),
) -> Result<(), KeyFault<'a>> {
    let mut bytes = 0;
    for attribute in attributes {
        let value = item
            .get(&attribute.name)
            .ok_or(KeyFault::Shape(Some(&attribute.name)))?;
        if !attribute.kind.matches(value) {
            return Err(KeyFault::Type(attribute, value.value_type()));
        }
        if is_empty(value) {
            return Err(KeyFault::Empty(&attribute.name, attribute.kind));
        }
        bytes += key_bytes(value);
    }
    if bytes > bytes_max {
        return Err(too_long);
    }
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::S(text) => text.is_empty(),
        Value::B(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// Checks the keys of the indexes inside an item that is put: an attribute may be missing, but if it is
/// there, it must be fit for the index.
pub(super) fn check_index_keys(table: &TableDef, item: &Item) -> Result<()> {
    let fault = first_index_fault(table, |index| index_fault(table, index, item, |_| true));
    fault.map_or(Ok(()), |(index, fault)| {
        Err(fault.into_error(index, Writer::Put))
    })
}

/// Checks the keys of the indexes as far as an update has changed them.
pub(super) fn check_changed_index_keys(table: &TableDef, old: &Item, new: &Item) -> Result<()> {
    let fault = first_index_fault(table, |index| {
        index_fault(table, index, new, |name| old.get(name) != new.get(name))
    });
    fault.map_or(Ok(()), |(index, fault)| {
        Err(fault.into_error(index, Writer::Update))
    })
}

/// Checks a value that an update sets, whatever the item is.
pub(super) fn check_index_key_value(table: &TableDef, name: &Name, value: &Value) -> Result<()> {
    let fault = first_index_fault(table, |index| {
        let attribute = index.key.attributes().find(|a| a.name == *name)?;
        value_fault(attribute, value)
    });
    fault.map_or(Ok(()), |(index, fault)| {
        Err(fault.into_error(index, Writer::Update))
    })
}

/// Checks only that a value which an update sets does not empty the key of an index; see [`check_key_filled`].
pub(super) fn check_index_key_value_filled(
    table: &TableDef,
    name: &Name,
    value: &Value,
) -> Result<()> {
    let fault = first_index_fault(table, |index| {
        let attribute = index.key.attributes().find(|a| a.name == *name)?;
        value_fault(attribute, value).filter(|fault| matches!(fault, IndexFault::Empty(_)))
    });
    fault.map_or(Ok(()), |(index, fault)| {
        Err(fault.into_error(index, Writer::Update))
    })
}

/// The fault of the index that comes first by name, which is the one that DynamoDB names.
fn first_index_fault<'t>(
    table: &'t TableDef,
    fault: impl Fn(&'t IndexDef) -> Option<IndexFault<'t>>,
) -> Option<(&'t IndexDef, IndexFault<'t>)> {
    table
        .indexes
        .iter()
        .filter_map(|index| Some((index, fault(index)?)))
        .min_by_key(|(index, _)| index.name.as_str())
}

/// What makes a value unfit for the key of an index.
#[derive(Debug)]
enum IndexFault<'t> {
    Type(&'t KeyAttribute, ValueType),
    Empty(&'t KeyAttribute),
    PartitionTooLong,
    SortTooLong,
}

/// Which kind of write brought a value into the key of an index.
#[derive(Clone, Copy)]
enum Writer {
    Put,
    Update,
}

impl IndexFault<'_> {
    fn into_error(self, index: &IndexDef, writer: Writer) -> Error {
        match (self, writer) {
            (Self::Type(attribute, actual), _) => invalid(format_args!(
                "Type mismatch for Index Key {} Expected: {} Actual: {actual} IndexName: {}",
                attribute.name,
                attribute.kind.as_str(),
                index.name
            )),
            (Self::Empty(attribute), Writer::Put) => Error::Validation(format!(
                "One or more parameter values are not valid. A value specified for a secondary \
                 index key is not supported. The AttributeValue for a key attribute cannot contain \
                 an empty {} value. IndexName: {}, IndexKey: {}",
                kind_word(attribute.kind),
                index.name,
                attribute.name
            )),
            (Self::Empty(attribute), Writer::Update) => Error::Validation(format!(
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

/// Checks only that no attribute of an index key is empty; see [`check_key_filled`].
pub(super) fn check_index_keys_filled(table: &TableDef, item: &Item) -> Result<()> {
    let fault = first_index_fault(table, |index| {
        match index_fault(table, index, item, |_| true)? {
            empty @ IndexFault::Empty(_) => Some(empty),
            _ => None,
        }
    });
    fault.map_or(Ok(()), |(index, fault)| {
        Err(fault.into_error(index, Writer::Put))
    })
}

fn index_fault<'t>(
    table: &TableDef,
    index: &'t IndexDef,
    item: &Item,
    changed: impl Fn(&Name) -> bool,
) -> Option<IndexFault<'t>> {
    // Attributes of the table's own key have been checked as such.
    let is_own = |a: &&KeyAttribute| !table.key.contains(&a.name) && changed(&a.name);
    for attribute in index.key.attributes().filter(is_own) {
        let Some(value) = item.get(&attribute.name) else {
            continue;
        };
        if let Some(fault) = value_fault(attribute, value) {
            return Some(fault);
        }
    }
    if key_length(&index.key.partition, item) > PARTITION_KEY_BYTES_MAX
        && index.key.partition.iter().any(|a| changed(&a.name))
    {
        return Some(IndexFault::PartitionTooLong);
    }
    if key_length(&index.key.sort, item) > SORT_KEY_BYTES_MAX
        && index.key.sort.iter().any(|a| changed(&a.name))
    {
        return Some(IndexFault::SortTooLong);
    }
    None
}

fn value_fault<'t>(attribute: &'t KeyAttribute, value: &Value) -> Option<IndexFault<'t>> {
    if !attribute.kind.matches(value) {
        Some(IndexFault::Type(attribute, value.value_type()))
    } else if is_empty(value) {
        Some(IndexFault::Empty(attribute))
    } else {
        None
    }
}

fn key_length(attributes: &[KeyAttribute], item: &Item) -> usize {
    attributes
        .iter()
        .filter_map(|a| item.get(&a.name))
        .map(key_bytes)
        .sum()
}

/// The key inside an item, by reference: equal and hashed as the key alone.
#[derive(Clone, Copy)]
pub(super) struct KeyRef<'a> {
    table: &'a TableDef,
    item: &'a Item,
}

impl<'a> KeyRef<'a> {
    /// The key of the item; `None` if the item has no sound key, which other checks report.
    pub(super) fn new(table: &'a TableDef, item: &'a Item) -> Option<Self> {
        check_parts(&table.key, item)
            .is_ok()
            .then_some(Self { table, item })
    }

    fn values(&self) -> impl Iterator<Item = Option<&'a Value>> {
        let item = self.item;
        self.table
            .key
            .attributes()
            .map(move |attribute| item.get(&attribute.name))
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
        for value in self.values() {
            value.hash(state);
        }
    }
}
