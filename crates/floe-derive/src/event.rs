//! `#[derive(Event)]`: implements names and bodies of events for an enum.
//!
//! The enum and its `#[event(..)]` attributes are parsed into a description (`parse`), which is checked as a whole
//! (`checks`), and from which code is generated (`code`). The runtime part of the generated code is in
//! `floe::events::support`.

mod case;
mod checks;
mod code;
mod definition;
mod parse;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

/// Generates the code of an event enum.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    parse::EnumDef::parse(input).map(|def| code::generate(&def))
}

#[cfg(test)]
mod tests;
