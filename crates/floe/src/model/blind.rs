//! Blind writes: an update or put without a read, from a patch of expected and a patch of new values.

use super::changes::BlindWrite;
use super::field::read_only_error;
use super::patch::PatchField;
use super::schema::Role;
use super::{Key, Model, Patch, keys};
use crate::error::{Error, Result};

/// A change of an item that must exist. The expected value of each changed field must be given, because the new value
/// may depend on it.
pub(super) fn update<M: Model>(expected: Patch<M>, new: Patch<M>) -> Result<BlindWrite> {
    let (expected, new) = (expected.into_fields()?, new.into_fields()?);
    for field in &new {
        if field.read_only {
            return Err(read_only_error(M::SCHEMA.model, field.field));
        }
        if !expected.iter().any(|given| given.field == field.field) {
            return Err(Error::invalid_use(format!(
                "an update without a read needs the old value of each field that it changes: \
                 model={} field={}",
                M::SCHEMA.model,
                field.field
            )));
        }
    }
    Ok(blind(expected, new))
}

/// A change of an item that may not exist. Then the new values are the whole item, so all fields that the model requires
/// must be given; key components that an index needs are taken from the key.
pub(super) fn put<M: Model>(key: &Key<M>, expected: Patch<M>, new: Patch<M>) -> Result<BlindWrite> {
    let (expected, new) = (expected.into_fields()?, new.into_fields()?);
    let mut fields = M::SCHEMA.fields.iter();
    let missing = fields.find(|field| {
        let is_given = new.iter().any(|given| given.field == field.name);
        field.role == Role::Plain && field.is_required() && !is_given
    });
    if let Some(field) = missing {
        return Err(Error::invalid_use(format!(
            "a write that may create the item needs every field that the model requires: \
             model={} field={}",
            M::SCHEMA.model,
            field.name
        )));
    }
    let mut blind = blind(expected, new);
    let key = key.encoded().to_item();
    let stored = M::SCHEMA.fields.iter();
    for field in stored.filter(|field| field.role != Role::Plain && M::SCHEMA.is_stored(field)) {
        let component = keys::component(M::SCHEMA, &key, field.name)?;
        blind.set.insert(field.attribute, component);
    }
    Ok(blind)
}

fn blind(expected: Vec<PatchField>, new: Vec<PatchField>) -> BlindWrite {
    let mut blind = BlindWrite::default();
    let expected = expected.into_iter();
    blind.expected = expected
        .map(|field| (field.attribute, field.value))
        .collect();
    for field in new {
        match field.value {
            Some(value) => _ = blind.set.insert(field.attribute, value),
            None => blind.remove.push(field.attribute),
        }
    }
    blind
}
