//! `#[derive(Registry)]`: implements a registry of versions for a struct.
//!
//! The struct and its `#[registry(..)]` attributes are parsed into a description (`parse`, with the texts of keys
//! in `template`), which is checked (`checks`), and from which code is generated (`code`). The runtime part of the
//! generated code is in `floe::registry`.

mod checks;
mod code;
mod definition;
mod parse;
mod template;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use definition::RegistryDef;

/// Generates the code of a registry.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    RegistryDef::parse(input).map(|def| code::generate(&def))
}

#[cfg(test)]
mod tests;
