//! `#[derive(Registry)]`: from a struct to a registry of its versions.
//!
//! The struct and its `#[registry(..)]` attributes are read into a description (`parse`, with the texts of keys in
//! `template`), which is checked (`checks`), and code is written from that (`code`). What the generated code does at run
//! time is in `floe::registry`.

mod checks;
mod code;
mod definition;
mod parse;
mod template;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use definition::RegistryDef;

/// The code of a registry.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    RegistryDef::parse(input).map(|def| code::generate(&def))
}

#[cfg(test)]
mod tests;
