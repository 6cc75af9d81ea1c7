//! The words inside `#[model(..)]` and `#[event(..)]`: which there are, each at most once, each with the place of it.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::token::Paren;
use syn::{Attribute, Error, Expr, LitStr, Result, Token, parenthesized};

/// The words that were given, with their places.
#[derive(Default)]
pub(crate) struct Given(Vec<(String, Span)>);

impl Given {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.find(word).is_some()
    }

    /// An error at a word; at the fallback if it was not given.
    pub(crate) fn error(
        &self,
        word: &str,
        fallback: Span,
        message: impl std::fmt::Display,
    ) -> Error {
        Error::new(self.find(word).unwrap_or(fallback), message)
    }

    fn find(&self, word: &str) -> Option<Span> {
        let found = self.0.iter().find(|(given, _)| given == word);
        found.map(|(_, span)| *span)
    }

    fn note(&mut self, word: &str, span: Span) -> Result<()> {
        if self.has(word) {
            return Err(Error::new(span, format!("`{word}` is given twice")));
        }
        self.0.push((word.to_owned(), span));
        Ok(())
    }
}

/// A list of words in which each stands for something: those of a struct, of a field, of an index.
pub(crate) struct Vocabulary {
    /// Where the words stand, for errors.
    pub(crate) place: &'static str,
    pub(crate) known: &'static [&'static str],
    /// The words that may be given more than once.
    pub(crate) repeated: &'static [&'static str],
}

impl Vocabulary {
    /// The word at which the parser is, which is a known one and not there yet.
    pub(crate) fn word(&self, meta: &ParseNestedMeta<'_>, given: &mut Given) -> Result<String> {
        let word = meta.path.get_ident().map(ToString::to_string);
        let Some(word) = word.filter(|word| self.known.contains(&word.as_str())) else {
            return Err(self.unknown(meta));
        };
        if !self.repeated.contains(&word.as_str()) {
            given.note(&word, meta.path.span())?;
        }
        Ok(word)
    }

    fn unknown(&self, meta: &ParseNestedMeta<'_>) -> Error {
        let segments = meta.path.segments.iter().map(|s| s.ident.to_string());
        let word = segments.collect::<Vec<_>>().join("::");
        let known = list(self.known);
        let place = self.place;
        Error::new_spanned(
            &meta.path,
            format!("unknown attribute `{word}`: the attributes of {place} are {known}"),
        )
    }
}

/// The words in quotes, separated by commas.
pub(crate) fn list(words: &[impl AsRef<str>]) -> String {
    let quoted = words.iter().map(|word| format!("`{}`", word.as_ref()));
    quoted.collect::<Vec<_>>().join(", ")
}

/// Calls `each` for every word inside the attributes of this name among these. All errors are told, at
/// most one for each attribute.
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

/// Calls `each` for every word in the parentheses after this one. The message is told where there is none.
pub(crate) fn nested(
    meta: &ParseNestedMeta<'_>,
    message: &str,
    each: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    if meta.input.peek(Paren) && is_empty(&meta.input.fork())? {
        return Err(Error::new_spanned(&meta.path, message));
    }
    meta.parse_nested_meta(each)
}

fn is_empty(parentheses: ParseStream<'_>) -> Result<bool> {
    let content;
    parenthesized!(content in parentheses);
    Ok(content.is_empty())
}

/// The value after a word that takes one: `word = ".."`.
pub(crate) fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    meta.value()?.parse()
}

/// The expression after a word that takes one: `word = 1 + 2`.
pub(crate) fn expression(meta: &ParseNestedMeta<'_>) -> Result<Expr> {
    meta.value()?.parse()
}

/// The expression after a word that may have one.
pub(crate) fn optional_expression(meta: &ParseNestedMeta<'_>) -> Result<Option<Expr>> {
    meta.input
        .peek(Token![=])
        .then(|| expression(meta))
        .transpose()
}

/// Errors that are gathered and told together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// The value, or nothing and the error noted.
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

    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
