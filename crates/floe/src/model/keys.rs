//! Keys: the components of a model's key, and the two attributes in which they are stored.
//!
//! `_id` contains the components of the partition key sorted by name: text unchanged, other values as JSON, joined by
//! NUL. A single number is stored as a number. `_sk` contains the components of the sort key in the order of the struct,
//! with numbers encoded such that the text sorts like the numbers; with [`SortKeyEncoding::Json`] it is encoded like
//! `_id`, which is compatible with the JavaScript library.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use floe_store::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use floe_store::{Item, Value};

use super::Model;
use super::schema::{
    FieldKind, FieldSchema, PARTITION_ATTRIBUTE, Role, SORT_ATTRIBUTE, Schema, SortKeyEncoding,
};
use crate::attribute::Invalid;
use crate::attribute::document::{from_json_text, to_json_text};
use crate::error::{Error, Result};
pub use crate::key::EncodedKey;
use crate::key::{ordered_number, read_ordered_number};

/// Separates the components of a key.
const SEPARATOR: char = '\0';

/// The key of an item of a model.
pub struct Key<M> {
    encoded: EncodedKey,
    model: PhantomData<fn() -> M>,
}

impl EncodedKey {
    /// The key of a stored item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if this model does not write such a key.
    pub(crate) fn of_item(schema: &Schema, item: &Item) -> Result<Self> {
        let id = item.get(PARTITION_ATTRIBUTE).cloned();
        let sort = item.get(SORT_ATTRIBUTE).cloned();
        match (id, sort, has_sort_key(schema)) {
            (Some(id), sort @ Some(_), true) => Ok(Self { id, sort }),
            (Some(id), _, false) => Ok(Self { id, sort: None }),
            _ => Err(mismatched_key(schema, PARTITION_ATTRIBUTE)),
        }
    }
}

/// Anything that identifies an item of a model: a [`Key`], its generated key struct, or its components.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of `{M}`",
    label = "not a key of `{M}`",
    note = "pass the components of the key in the order of the struct, or the generated key struct"
)]
pub trait IntoKey<M> {
    /// The key.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a component is not allowed.
    fn into_key(self) -> Result<Key<M>>;
}

impl<M> IntoKey<M> for Key<M> {
    fn into_key(self) -> Result<Self> {
        Ok(self)
    }
}

impl<M> IntoKey<M> for &Key<M> {
    fn into_key(self) -> Result<Key<M>> {
        Ok(self.clone())
    }
}

/// The name and value of each component, in any order.
#[doc(hidden)]
pub type Components<'a> = &'a [(&'static str, Result<Option<Value>>)];

impl<M: Model> Key<M> {
    /// The key with these components, which the derive passes.
    #[doc(hidden)]
    pub fn of(components: Components<'_>) -> Result<Self> {
        encode(M::SCHEMA, components).map(Self::new)
    }

    /// The stored key.
    pub const fn encoded(&self) -> &EncodedKey {
        &self.encoded
    }
}

impl<M> Key<M> {
    const fn new(encoded: EncodedKey) -> Self {
        let model = PhantomData;
        Self { encoded, model }
    }
}

impl<M> Clone for Key<M> {
    fn clone(&self) -> Self {
        Self::new(self.encoded.clone())
    }
}

impl<M> PartialEq for Key<M> {
    fn eq(&self, other: &Self) -> bool {
        self.encoded == other.encoded
    }
}

impl<M> Eq for Key<M> {}

impl<M> Hash for Key<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encoded.hash(state);
    }
}

impl<M: Model> fmt::Debug for Key<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", M::SCHEMA.model, self.encoded)
    }
}

/// The fields of the partition key in the order in which they are stored.
pub(crate) fn partition_fields(schema: &Schema) -> Vec<&'static FieldSchema> {
    let mut fields: Vec<_> = schema.partition().collect();
    fields.sort_by_key(|field| field.attribute);
    fields
}

/// The fields of the sort key in the order in which they are stored, after the constant.
pub(crate) fn sort_fields(schema: &Schema) -> Vec<&'static FieldSchema> {
    let mut fields: Vec<_> = schema.sort().collect();
    if !is_ordered(schema) {
        fields.sort_by_key(|field| field.attribute);
    }
    fields
}

/// Whether `_id` is a number: the key is a single number.
pub(crate) fn has_number_id(schema: &Schema) -> bool {
    single(schema.partition()).is_some_and(|only| only.kind == FieldKind::Number)
}

/// Whether items of the model have a sort key.
pub(crate) fn has_sort_key(schema: &Schema) -> bool {
    schema.sort_constant.is_some() || schema.sort().next().is_some()
}

fn encode(schema: &Schema, components: Components<'_>) -> Result<EncodedKey> {
    let value = |field: &FieldSchema| {
        let found = components.iter().find(|(name, _)| *name == field.name);
        let value = found.map_or(Ok(None), |(_, value)| value.clone())?;
        let value = value.ok_or_else(|| Invalid::new("a component of the key is missing"));
        let value = value.and_then(|value| of_kind(field, value));
        value.map_err(|e| Error::invalid(schema.model, field.name, &e))
    };
    Ok(EncodedKey {
        id: encode_id(schema, value)?,
        sort: encode_sort(schema, value)?,
    })
}

/// Rejects a value of another kind, which would be read back as a different value.
fn of_kind(field: &FieldSchema, value: Value) -> Result<Value, Invalid> {
    let (expected, actual) = (field.kind, value.value_type());
    let kind = expected.key_kind();
    if kind.is_some_and(|kind| !kind.matches(&value)) {
        return Err(Invalid::new(format!(
            "a component of the key has another type: expected={expected:?} actual={actual}"
        )));
    }
    Ok(value)
}

/// Encodes `_id`.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if a component cannot be in a key.
pub(crate) fn encode_id(
    schema: &Schema,
    value: impl Fn(&FieldSchema) -> Result<Value>,
) -> Result<Value> {
    if let Some(only) = single(schema.partition()) {
        let encoded = encode_single(only, value(only)?);
        return encoded.map_err(|e| Error::invalid(schema.model, only.name, &e));
    }
    let fields = partition_fields(schema);
    let text = join(schema, None, &fields, value, false)?;
    check_length(&text, PARTITION_KEY_BYTES_MAX)
        .map_err(|e| Error::invalid(schema.model, PARTITION_ATTRIBUTE, &e))?;
    Ok(Value::from(text))
}

/// The only field, if there is just one.
fn single(mut fields: impl Iterator<Item = &'static FieldSchema>) -> Option<&'static FieldSchema> {
    let first = fields.next()?;
    fields.next().is_none().then_some(first)
}

/// Encodes a key of one component: text and numbers are stored unchanged.
fn encode_single(field: &FieldSchema, value: Value) -> Result<Value, Invalid> {
    let text = match (field.kind, value) {
        (FieldKind::Number, number) => return Ok(number),
        (FieldKind::Text, Value::S(text)) => {
            check_text(&text)?;
            text
        }
        (_, value) => component_text(field, &value, false)?.into(),
    };
    check_length(&text, PARTITION_KEY_BYTES_MAX)?;
    Ok(Value::S(text))
}

fn encode_sort(
    schema: &Schema,
    value: impl Fn(&FieldSchema) -> Result<Value>,
) -> Result<Option<Value>> {
    if !has_sort_key(schema) {
        return Ok(None);
    }
    let fields = sort_fields(schema);
    let ordered = is_ordered(schema);
    let text = join(schema, schema.sort_constant, &fields, value, ordered)?;
    // The name of the key in errors: its only component, or the attribute.
    let whole = single(schema.sort()).map_or(SORT_ATTRIBUTE, |only| only.name);
    check_length(&text, SORT_KEY_BYTES_MAX).map_err(|e| Error::invalid(schema.model, whole, &e))?;
    Ok(Some(Value::from(text)))
}

/// Whether the text of numbers in the sort key sorts like the numbers.
pub(crate) fn is_ordered(schema: &Schema) -> bool {
    schema.sort_key_encoding == SortKeyEncoding::Ordered
}

fn check_length(text: &str, bytes_max: usize) -> Result<(), Invalid> {
    match text.len() {
        0 => Err(Invalid::new("the key is empty")),
        bytes if bytes > bytes_max => Err(Invalid::new(format!(
            "the key is too long: bytes={bytes} bytes_max={bytes_max}"
        ))),
        _ => Ok(()),
    }
}

/// Joins the constant and the texts of the components with NUL.
fn join(
    schema: &Schema,
    constant: Option<&str>,
    fields: &[&'static FieldSchema],
    value: impl Fn(&FieldSchema) -> Result<Value>,
    ordered: bool,
) -> Result<String> {
    let mut joined = constant.unwrap_or_default().to_owned();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 || constant.is_some() {
            joined.push(SEPARATOR);
        }
        let text = component_text(field, &value(field)?, ordered);
        joined += &text.map_err(|e| Error::invalid(schema.model, field.name, &e))?;
    }
    Ok(joined)
}

fn check_text(text: &str) -> Result<(), Invalid> {
    if text.contains(SEPARATOR) {
        return Err(Invalid::new("text in a key cannot contain NUL"));
    }
    Ok(())
}

/// The text of a component of a sort key.
///
/// # Errors
///
/// If the value cannot be in a key.
pub(crate) fn sort_text(
    schema: &Schema,
    field: &FieldSchema,
    value: &Value,
) -> Result<String, Invalid> {
    component_text(field, value, is_ordered(schema))
}

/// The text of a component. Different values of a field have different texts.
fn component_text(field: &FieldSchema, value: &Value, ordered: bool) -> Result<String, Invalid> {
    match value {
        Value::S(text) => {
            check_text(text)?;
            // If a component can be text or another type, text that looks like another type is quoted.
            if field.kind == FieldKind::Other && read_other(text, ordered).is_some() {
                return to_json_text(value);
            }
            Ok(text.as_str().to_owned())
        }
        Value::N(number) if ordered => Ok(ordered_number(number)),
        other => to_json_text(other),
    }
}

/// Reads a component of kind `Other` from a text; `None` if the value is the text itself.
fn read_other(text: &str, ordered: bool) -> Option<Value> {
    let number = ordered.then(|| read_ordered_number(text)).flatten();
    number.map(Value::N).or_else(|| from_json_text(text))
}

fn read_text(field: &FieldSchema, text: &str, ordered: bool) -> Option<Value> {
    match field.kind {
        FieldKind::Text => Some(Value::from(text)),
        FieldKind::Number if ordered => read_ordered_number(text).map(Value::N),
        FieldKind::Number | FieldKind::Bytes => from_json_text(text),
        FieldKind::Other => Some(read_other(text, ordered).unwrap_or_else(|| Value::from(text))),
    }
}

/// Reads a component of the key of a stored item.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if this model does not write such a key.
#[doc(hidden)]
pub fn component(schema: &Schema, item: &Item, name: &str) -> Result<Value> {
    let field = schema.field(name);
    let value = field.and_then(|field| match field.role {
        Role::Partition => id_component(schema, item, field),
        Role::Sort => sort_component(schema, item, field),
        Role::Plain => None,
    });
    value.ok_or_else(|| mismatched_key(schema, name))
}

fn mismatched_key(schema: &Schema, name: &str) -> Error {
    let mismatch = Invalid::new("the stored key does not belong to this model");
    Error::invalid(schema.model, name, &mismatch)
}

fn id_component(schema: &Schema, item: &Item, field: &FieldSchema) -> Option<Value> {
    match item.get(PARTITION_ATTRIBUTE)? {
        number @ Value::N(_) if has_number_id(schema) => Some(number.clone()),
        Value::S(text) if !has_number_id(schema) => {
            let part = match single(schema.partition()) {
                Some(_) => check_text(text).is_ok().then_some(text.as_str())?,
                None => part_of(text, &partition_fields(schema), field)?,
            };
            read_text(field, part, false)
        }
        _ => None,
    }
}

fn sort_component(schema: &Schema, item: &Item, field: &FieldSchema) -> Option<Value> {
    let text = item.get(SORT_ATTRIBUTE)?.as_s()?;
    let text = match schema.sort_constant {
        Some(constant) => text.strip_prefix(constant)?.strip_prefix(SEPARATOR)?,
        None => text,
    };
    let part = part_of(text, &sort_fields(schema), field)?;
    read_text(field, part, is_ordered(schema))
}

/// The text of a field's component among all of them.
fn part_of<'t>(
    text: &'t str,
    fields: &[&'static FieldSchema],
    field: &FieldSchema,
) -> Option<&'t str> {
    let at = fields.iter().position(|other| other.name == field.name)?;
    let mut parts = text.split(SEPARATOR);
    (parts.clone().count() == fields.len()).then(|| parts.nth(at))?
}

#[cfg(test)]
mod tests;
