//! The words inside `#[model(..)]` and `#[event(..)]`: which there are, each at most once, each with the place of it.

use proc_macro2::Span;
use quote::ToTokens;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::Paren;
use syn::{Attribute, Error, Expr, Generics, LitStr, Path, Result, Token, parenthesized};

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
    place: &'static str,
    /// The words, with spaces between them.
    known: &'static str,
    repeated: &'static str,
}

impl Vocabulary {
    /// These words, each at most once. Errors name the place where they stand.
    pub(crate) const fn new(place: &'static str, known: &'static str) -> Self {
        Self::repeating("", place, known)
    }

    /// These words, of which one may be given more than once.
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

    /// The word at which the parser is, which is a known one and not there yet.
    pub(crate) fn word(&self, meta: &ParseNestedMeta<'_>, given: &mut Given) -> Result<String> {
        let word = meta.path.get_ident().map(ToString::to_string);
        let Some(word) = word.filter(|word| self.known.split(' ').any(|known| known == word))
        else {
            return Err(self.unknown(meta));
        };
        if word != self.repeated {
            given.note(&word, meta.path.span())?;
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
            format!("unknown attribute `{word}`: the attributes of {place} are {known}"),
        )
    }
}

/// An error at these tokens.
pub(crate) fn refused<T>(at: impl ToTokens, message: impl std::fmt::Display) -> Result<T> {
    Err(Error::new_spanned(at, message))
}

/// Refuses these tokens if the condition holds.
pub(crate) fn refuse_if(
    condition: bool,
    at: impl ToTokens,
    message: impl std::fmt::Display,
) -> Result<()> {
    if condition {
        refused(at, message)
    } else {
        Ok(())
    }
}

/// What is stored has one form: there is nothing that could vary.
pub(crate) fn no_generics(generics: &Generics, message: &str) -> Result<()> {
    refuse_if(!generics.params.is_empty(), generics, message)
}

/// The words in quotes, separated by commas.
pub(crate) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted = words.into_iter().map(|word| format!("`{word}`"));
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
        return refused(&meta.path, message);
    }
    meta.parse_nested_meta(each)
}

fn is_empty(parentheses: ParseStream<'_>) -> Result<bool> {
    let content;
    parenthesized!(content in parentheses);
    Ok(content.is_empty())
}

/// The path after `crate`.
pub(crate) fn crate_path(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    text(meta)?.parse_with(Path::parse_mod_style)
}

/// The list in the parentheses after a word. The message is told where it is empty.
pub(crate) fn list_of<T: Parse>(meta: &ParseNestedMeta<'_>, message: &str) -> Result<Vec<T>> {
    let content;
    parenthesized!(content in meta.input);
    let list = Punctuated::<T, Token![,]>::parse_terminated(&content)?;
    refuse_if(list.is_empty(), &meta.path, message)?;
    Ok(list.into_iter().collect())
}

/// What a field is without a value: the expression, or the default of its type.
pub(crate) type Default = Option<Expr>;

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

    /// Notes an error.
    pub(crate) fn add(&mut self, error: Error) {
        self.note::<()>(Err(error));
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
