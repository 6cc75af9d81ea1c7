//! `#[derive(Event)]`: from an enum to the names and bodies of its events.
//!
//! The enum and its `#[event(..)]` attributes are read into a description (`parse`), which is checked as a whole
//! (`checks`), and code is written from that (`code`). What the generated code does at run time is in
//! `floe::events::support`.

mod case;
mod checks;
mod code;
mod definition;
mod parse;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

/// The code of an enum of events.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    parse::EnumDef::parse(input).map(|def| code::generate(&def))
}

#[cfg(test)]
mod tests;
