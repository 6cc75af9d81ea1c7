//! The description of a variant of an enum of events, as its attributes give it.

use syn::{Expr, Ident, LitInt, LitStr, Type};

use crate::attributes::Given;
use crate::stored::StoredField;

/// A variant: one type of event.
pub(super) struct VariantDef {
    pub(super) ident: Ident,
    /// The name of the type, and where it was given.
    pub(super) name: String,
    pub(super) name_literal: Option<LitStr>,
    pub(super) aliases: Vec<LitStr>,
    /// The version of the body, from 1.
    pub(super) version: u32,
    pub(super) upcasters: Vec<Upcaster>,
    pub(super) body: BodyDef,
    pub(super) given: Given,
}

/// What a variant holds.
pub(super) enum BodyDef {
    Nothing,
    Whole(Box<Type>),
    Fields(Vec<StoredField>),
}

/// What makes the next version of a body of this version.
pub(super) struct Upcaster {
    pub(super) literal: LitInt,
    pub(super) version: u32,
    pub(super) function: Expr,
}

/// The name under which a version is stored.
pub(super) fn stored_name(name: &str, version: u32) -> String {
    match version {
        1 => name.to_owned(),
        _ => format!("{name}.v{version}"),
    }
}
