//! What is refused of an enum of events, each with the place and what to do instead.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::{Error, LitInt, LitStr, Result};

use super::definition::{BodyDef, VariantDef, stored_name};
use crate::attributes::{Errors, refuse_if, refused};
use crate::stored::StoredField;

/// Every version before the current has a function, so this many are more than anybody writes.
const VERSION_MAX: u32 = 999;

/// The name of a type, as it was given.
pub(super) fn type_name(name: LitStr) -> Result<LitStr> {
    refuse_if(
        name.value().is_empty(),
        &name,
        "the name of a type of event is not empty",
    )?;
    Ok(name)
}

pub(super) fn version(literal: &LitInt) -> Result<u32> {
    let version = literal.base10_parse().ok();
    version
        .filter(|version| (1..=VERSION_MAX).contains(version))
        .ok_or_else(|| {
            let message = format!("versions are counted from 1 and go up to {VERSION_MAX}");
            Error::new_spanned(literal, message)
        })
}

/// The versions of a variant have a body to change, and a function for each step.
pub(super) fn variant(variant: &VariantDef) -> Result<()> {
    if matches!(variant.body, BodyDef::Nothing) {
        return nothing_to_version(variant);
    }
    let mut errors = Errors::default();
    let mut seen = BTreeSet::new();
    for upcaster in &variant.upcasters {
        let refused = |message: String| refused(&upcaster.literal, message);
        let (from, current) = (upcaster.version, variant.version);
        errors.note(if from >= current {
            refused(format!(
                "there is nothing to upcast version {from} to: the version of `{}` is {current}",
                variant.ident
            ))
        } else if !seen.insert(from) {
            refused(format!("version {from} is upcast twice"))
        } else {
            Ok(())
        });
    }
    let missing = (1..variant.version).find(|version| !seen.contains(version));
    if let Some(missing) = missing {
        let message = format!(
            "version {missing} has no upcaster: add `upcast({missing} = function)`, which makes version {} of its \
             body",
            missing + 1
        );
        let place = variant.ident.span();
        errors.add(variant.given.error("version", place, message));
    }
    errors.finish(())
}

fn nothing_to_version(variant: &VariantDef) -> Result<()> {
    let words = ["version", "upcast"];
    let Some(word) = words.into_iter().find(|word| variant.given.has(word)) else {
        return Ok(());
    };
    let message = format!(
        "`{word}` is for variants with a body: `{}` has none, and ignores those that are stored",
        variant.ident
    );
    Err(variant.given.error(word, variant.ident.span(), message))
}

/// A stored name means one variant.
pub(super) fn stored_names(variants: &[VariantDef]) -> Result<()> {
    let mut errors = Errors::default();
    let mut seen = BTreeMap::new();
    for variant in variants {
        for (place, name) in places(variant) {
            if let Some(first) = seen.insert(name.clone(), &variant.ident) {
                let message = format!(
                    "the stored name `{name}` is taken by `{first}`: choose another with `name = \"..\"`"
                );
                errors.add(Error::new(place, message));
            }
        }
    }
    errors.finish(())
}

/// The names under which a variant is stored, with the places that say so.
fn places(variant: &VariantDef) -> impl Iterator<Item = (Span, String)> {
    let name = variant.name_literal.as_ref();
    let place = name.map_or(variant.ident.span(), LitStr::span);
    let aliases = variant
        .aliases
        .iter()
        .map(|alias| (alias.span(), alias.value()));
    let names = std::iter::once((place, variant.name.clone())).chain(aliases);
    names.flat_map(|(place, name)| {
        (1..=variant.version).map(move |version| (place, stored_name(&name, version)))
    })
}

/// A name in a body means one field.
pub(super) fn field_names(fields: &[StoredField]) -> Result<()> {
    let mut errors = Errors::default();
    let mut seen = BTreeMap::new();
    for field in fields {
        if let Some(first) = seen.insert(field.attribute.as_str(), &field.ident) {
            let message = format!(
                "the name `{}` in the body is taken by `{first}`: choose another with `rename = \"..\"`",
                field.attribute
            );
            errors.add(Error::new_spanned(&field.ident, message));
        }
    }
    errors.finish(())
}
