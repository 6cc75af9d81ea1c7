//! Compile-time checks of event enums. Each error points at the code and says what to do instead.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::{Error, LitInt, LitStr, Result};

use super::definition::{BodyDef, VariantDef, stored_name};
use crate::attributes::{Errors, error_at, error_if};
use crate::stored::StoredField;

/// Every version before the current one requires a function, so no enum has more versions than this.
const VERSION_MAX: u32 = 999;

/// Checks the name of an event type.
pub(super) fn type_name(name: LitStr) -> Result<LitStr> {
    error_if(
        name.value().is_empty(),
        &name,
        "the event type name cannot be empty",
    )?;
    Ok(name)
}

pub(super) fn version(literal: &LitInt) -> Result<u32> {
    let version = literal.base10_parse().ok();
    version
        .filter(|version| (1..=VERSION_MAX).contains(version))
        .ok_or_else(|| {
            let message = format!("a version must be between 1 and {VERSION_MAX}");
            Error::new_spanned(literal, message)
        })
}

/// Checks that a versioned variant has a body, and an upcaster for each earlier version.
pub(super) fn variant(variant: &VariantDef) -> Result<()> {
    if matches!(variant.body, BodyDef::Nothing) {
        return nothing_to_version(variant);
    }
    let mut errors = Errors::default();
    let mut seen = BTreeSet::new();
    for upcaster in &variant.upcasters {
        let error_at = |message: String| error_at(&upcaster.literal, message);
        let (from, current) = (upcaster.version, variant.version);
        errors.note(if from >= current {
            error_at(format!(
                "cannot upcast version {from}: the current version of `{}` is {current}",
                variant.ident
            ))
        } else if !seen.insert(from) {
            error_at(format!("duplicate upcaster for version {from}"))
        } else {
            Ok(())
        });
    }
    let missing = (1..variant.version).find(|version| !seen.contains(version));
    if let Some(missing) = missing {
        let message = format!(
            "missing upcaster for version {missing}\nhelp: add `upcast({missing} = function)`; the function converts \
                    the body to version {}",
            missing + 1
        );
        let place = variant.ident.span();
        errors.add(variant.seen.error("version", place, message));
    }
    errors.finish(())
}

fn nothing_to_version(variant: &VariantDef) -> Result<()> {
    let words = ["version", "upcast"];
    let Some(word) = words.into_iter().find(|word| variant.seen.has(word)) else {
        return Ok(());
    };
    let message = format!(
        "`{word}` requires a body, but variant `{}` has none\nhelp: remove `{word}`",
        variant.ident
    );
    Err(variant.seen.error(word, variant.ident.span(), message))
}

/// Checks that each stored name belongs to one variant.
pub(super) fn stored_names(variants: &[VariantDef]) -> Result<()> {
    let mut errors = Errors::default();
    let mut seen = BTreeMap::new();
    for variant in variants {
        for (place, name) in places(variant) {
            if let Some(first) = seen.insert(name.clone(), &variant.ident) {
                let message = format!(
                    "duplicate stored name `{name}`: variant `{first}` already uses it\nhelp: choose another name with `name = \"..\"`"
                );
                errors.add(Error::new(place, message));
            }
        }
    }
    errors.finish(())
}

/// The stored names of a variant, with the spans that define them.
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

/// Checks that each name in a body belongs to one field.
pub(super) fn field_names(fields: &[StoredField]) -> Result<()> {
    let mut errors = Errors::default();
    let mut seen = BTreeMap::new();
    for field in fields {
        if let Some(first) = seen.insert(field.attribute.as_str(), &field.ident) {
            let message = format!(
                "duplicate field name `{}` in the body: field `{first}` already uses it\nhelp: choose another name with `rename = \"..\"`",
                field.attribute
            );
            errors.add(Error::new_spanned(&field.ident, message));
        }
    }
    errors.finish(())
}
