//! `#[derive(Entity)]`: implements an entity of the graph for a struct.
//!
//! The struct and its `#[entity(..)]` attributes are parsed into a description (`parse`), from which code is
//! generated (`code`). The runtime part of the generated code is in `floe::graph::support`.

mod code;
mod parse;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

/// Generates the code of an entity.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    parse::EntityDef::parse(input).map(|def| code::generate(&def))
}

#[cfg(test)]
mod tests;
