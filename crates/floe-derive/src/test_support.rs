//! Shared by the tests of all derives.

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

type Expand = fn(&DeriveInput) -> Result<TokenStream>;

/// The source text and message of each error, in order.
pub(crate) fn errors(expand: Expand, source: &str) -> Vec<(String, String)> {
    let input = syn::parse_str(source).unwrap();
    let Err(errors) = expand(&input) else {
        return Vec::new();
    };
    let errors = errors.into_iter().map(|error| {
        let place = error.span().source_text().unwrap_or_default();
        (place, error.to_string())
    });
    errors.collect()
}

/// Checks that there is exactly this error, at this source text.
#[track_caller]
pub(crate) fn check(expand: Expand, source: &str, place: &str, message: &str) {
    let expected = [(place.to_owned(), message.to_owned())];
    assert_eq!(errors(expand, source), expected);
}
