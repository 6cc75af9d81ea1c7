//! Writes without a read: what is expected and what is to be, from two patches.

use super::changes::Blind;
use super::patch::PatchField;
use super::schema::Role;
use super::{Key, Model, Patch, keys};
use crate::attribute::Invalid;
use crate::error::{Error, Result};

/// A change of an item that must be there. The old value of each field that it changes must be given:
/// what a value is made of must not have changed.
pub(super) fn update<M: Model>(expected: Patch<M>, new: Patch<M>) -> Result<Blind> {
    let (expected, new) = (expected.into_fields()?, new.into_fields()?);
    for field in &new {
        if field.read_only {
            let reason = Invalid::new("the field is read-only");
            return Err(Error::invalid(M::SCHEMA.model, field.field, &reason));
        }
        if !expected.iter().any(|known| known.field == field.field) {
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

/// A change of an item that may be there. If it is not, what is set is all that it has, so no field that
/// the model requires may be left out; the components of the key that an index needs come from the key.
pub(super) fn put<M: Model>(key: &Key<M>, expected: Patch<M>, new: Patch<M>) -> Result<Blind> {
    let (expected, new) = (expected.into_fields()?, new.into_fields()?);
    let mut fields = M::SCHEMA.fields.iter();
    let left_out = fields.find(|field| {
        let is_given = new.iter().any(|given| given.field == field.name);
        field.role == Role::Plain && field.is_required() && !is_given
    });
    if let Some(field) = left_out {
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

fn blind(expected: Vec<PatchField>, new: Vec<PatchField>) -> Blind {
    let mut blind = Blind::default();
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
