//! `#[derive(Entity)]`: from a struct to an entity of the graph.
//!
//! The struct and its `#[entity(..)]` attributes are read into a description (`parse`), and code is written from that
//! (`code`). What the generated code does at run time is in `floe::graph::support`.

mod code;
mod parse;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

/// The code of an entity.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    parse::EntityDef::parse(input).map(|def| code::generate(&def))
}

#[cfg(test)]
mod tests;
