//! The description of a variant of an event enum, from its attributes.

use syn::{Expr, Ident, LitInt, LitStr, Type};

use crate::attributes::SeenAttributes;
use crate::stored::StoredField;

/// A variant: one type of event.
pub(super) struct VariantDef {
    pub(super) ident: Ident,
    /// The name of the event type, and its literal if it was set.
    pub(super) name: String,
    pub(super) name_literal: Option<LitStr>,
    pub(super) aliases: Vec<LitStr>,
    /// The version of the body, from 1.
    pub(super) version: u32,
    pub(super) upcasters: Vec<Upcaster>,
    pub(super) body: BodyDef,
    pub(super) seen: SeenAttributes,
}

/// The body of a variant.
pub(super) enum BodyDef {
    Nothing,
    Whole(Box<Type>),
    Fields(Vec<StoredField>),
}

/// A function that converts a body of this version to the next one.
pub(super) struct Upcaster {
    pub(super) literal: LitInt,
    pub(super) version: u32,
    pub(super) function: Expr,
}

/// The stored name of a version.
pub(super) fn stored_name(name: &str, version: u32) -> String {
    match version {
        1 => name.to_owned(),
        _ => format!("{name}.v{version}"),
    }
}
