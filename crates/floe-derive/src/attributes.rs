//! Parses the names inside `#[model(..)]`, `#[event(..)]` and the like, and rejects unknown and duplicate ones.

use proc_macro2::Span;
use quote::ToTokens;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::Paren;
use syn::{Attribute, Error, Expr, Generics, LitStr, Path, Result, Token, parenthesized};

/// The attributes seen so far, with their spans.
#[derive(Default)]
pub(crate) struct SeenAttributes(Vec<(String, Span)>);

impl SeenAttributes {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.find(word).is_some()
    }

    /// An error at an attribute, or at the fallback if the attribute is not present.
    pub(crate) fn error(
        &self,
        word: &str,
        fallback: Span,
        message: impl std::fmt::Display,
    ) -> Error {
        Error::new(self.find(word).unwrap_or(fallback), message)
    }

    fn find(&self, word: &str) -> Option<Span> {
        let found = self.0.iter().find(|(name, _)| name == word);
        found.map(|(_, span)| *span)
    }

    fn note(&mut self, word: &str, span: Span) -> Result<()> {
        if self.has(word) {
            return Err(Error::new(span, format!("duplicate attribute `{word}`")));
        }
        self.0.push((word.to_owned(), span));
        Ok(())
    }
}

/// The attributes that a struct, a field or another attribute supports.
pub(crate) struct KnownAttributes {
    place: &'static str,
    /// The supported names, separated by spaces.
    known: &'static str,
    repeated: &'static str,
}

impl KnownAttributes {
    /// Creates a set of attributes, each allowed once. `place` is named in errors.
    pub(crate) const fn new(place: &'static str, known: &'static str) -> Self {
        Self::repeating("", place, known)
    }

    /// As [`new`](Self::new), but `repeated` is allowed more than once.
    pub(crate) const fn repeating(
        repeated: &'static str,
        place: &'static str,
        known: &'static str,
    ) -> Self {
        Self {
            place,
            known,
            repeated,
        }
    }

    /// Parses the next name. Rejects unknown and duplicate names.
    pub(crate) fn word(
        &self,
        meta: &ParseNestedMeta<'_>,
        seen: &mut SeenAttributes,
    ) -> Result<String> {
        let word = meta.path.get_ident().map(ToString::to_string);
        let Some(word) = word.filter(|word| self.known.split(' ').any(|known| known == word))
        else {
            return Err(self.unknown(meta));
        };
        if word != self.repeated {
            seen.note(&word, meta.path.span())?;
        }
        Ok(word)
    }

    fn unknown(&self, meta: &ParseNestedMeta<'_>) -> Error {
        let segments = meta.path.segments.iter().map(|s| s.ident.to_string());
        let word = segments.collect::<Vec<_>>().join("::");
        let known = list(self.known.split(' '));
        let place = self.place;
        Error::new_spanned(
            &meta.path,
            format!("unknown attribute `{word}`\nhelp: the attributes of {place} are {known}"),
        )
    }
}

/// Returns an error at these tokens.
pub(crate) fn error_at<T>(at: impl ToTokens, message: impl std::fmt::Display) -> Result<T> {
    Err(Error::new_spanned(at, message))
}

/// Returns an error at these tokens if the condition holds.
pub(crate) fn error_if(
    condition: bool,
    at: impl ToTokens,
    message: impl std::fmt::Display,
) -> Result<()> {
    if condition {
        error_at(at, message)
    } else {
        Ok(())
    }
}

/// Rejects generic parameters: stored data has one form.
pub(crate) fn reject_generics(generics: &Generics, message: &str) -> Result<()> {
    error_if(!generics.params.is_empty(), generics, message)
}

/// Quotes the words and separates them by commas.
pub(crate) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted = words.into_iter().map(|word| format!("`{word}`"));
    quoted.collect::<Vec<_>>().join(", ")
}

/// Calls `each` for every name inside the attributes named `name`. Returns all errors, at most one for each
/// attribute.
pub(crate) fn for_each(
    name: &str,
    attributes: &[Attribute],
    mut each: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let mut errors = Errors::default();
    for attribute in attributes {
        if attribute.path().is_ident(name) {
            errors.note(attribute.parse_nested_meta(|meta| each(&meta)));
        }
    }
    errors.finish(())
}

/// Calls `each` for every name in the parentheses after this one. Returns an error with `message` if they are
/// empty.
pub(crate) fn nested(
    meta: &ParseNestedMeta<'_>,
    message: &str,
    each: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    if meta.input.peek(Paren) && is_empty(&meta.input.fork())? {
        return error_at(&meta.path, message);
    }
    meta.parse_nested_meta(each)
}

fn is_empty(parentheses: ParseStream<'_>) -> Result<bool> {
    let content;
    parenthesized!(content in parentheses);
    Ok(content.is_empty())
}

/// Parses the path after `crate`.
pub(crate) fn crate_path(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    text(meta)?.parse_with(Path::parse_mod_style)
}

/// Parses the list in the parentheses after a name. Returns an error with `message` if it is empty.
pub(crate) fn list_of<T: Parse>(meta: &ParseNestedMeta<'_>, message: &str) -> Result<Vec<T>> {
    let content;
    parenthesized!(content in meta.input);
    let list = Punctuated::<T, Token![,]>::parse_terminated(&content)?;
    error_if(list.is_empty(), &meta.path, message)?;
    Ok(list.into_iter().collect())
}

/// The default of a field: an expression, or `None` for the default of its type.
pub(crate) type Default = Option<Expr>;

/// Parses the string after a name: `name = ".."`.
pub(crate) fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    meta.value()?.parse()
}

/// Parses the expression after a name: `name = 1 + 2`.
pub(crate) fn expression(meta: &ParseNestedMeta<'_>) -> Result<Expr> {
    meta.value()?.parse()
}

/// Parses the optional expression after a name.
pub(crate) fn optional_expression(meta: &ParseNestedMeta<'_>) -> Result<Option<Expr>> {
    meta.input
        .peek(Token![=])
        .then(|| expression(meta))
        .transpose()
}

/// Collects errors, to report them together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Returns the value, or records the error and returns `None`.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                match &mut self.0 {
                    Some(errors) => errors.combine(error),
                    None => self.0 = Some(error),
                }
                None
            }
        }
    }

    /// Records an error.
    pub(crate) fn add(&mut self, error: Error) {
        self.note::<()>(Err(error));
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
