//! Resolves `#name` and `:value`, and records which of them are used.

use std::collections::{BTreeMap, BTreeSet};

use super::cursor::{NameToken, StepToken, UnresolvedPath};
use crate::error::{Error, Result, ensure, ensure_none};
use crate::expr::check::{NESTING, check_names, check_path, is_too_deep};
use crate::expr::fault::Fault;
use crate::expr::lex::is_placeholder;
use crate::expr::path::Path;
use crate::expr::reserved::is_reserved;
use crate::limits;
use crate::size::value_size;
use crate::text::Name;
use crate::value::Value;

/// The placeholders of a request.
#[derive(Debug)]
pub(super) struct Placeholders<'a> {
    pub(super) names: Substitutes<'a, Name>,
    pub(super) values: Substitutes<'a, Value>,
}

/// One map of placeholders, and the keys that were used.
#[derive(Debug)]
pub(super) struct Substitutes<'a, T> {
    given: Option<&'a BTreeMap<String, T>>,
    used: BTreeSet<&'a str>,
}

impl<'a> Placeholders<'a> {
    pub(super) const fn new(
        names: Option<&'a BTreeMap<String, Name>>,
        values: Option<&'a BTreeMap<String, Value>>,
    ) -> Self {
        Self {
            names: Substitutes::new(names),
            values: Substitutes::new(values),
        }
    }

    /// Checks the maps.
    pub(super) fn check(&self) -> Result<()> {
        self.names.check("ExpressionAttributeNames", '#')?;
        self.check_name_lengths(|bytes| bytes == 0, "Empty attribute name")?;
        self.values.check("ExpressionAttributeValues", ':')?;
        check_names(self.values.iter().map(|(_, value)| value))?;
        let too_deep = self.values.iter().find(|(_, value)| is_too_deep(value));
        ensure_none(too_deep, |(key, _)| {
            Error::validation(format!(
                "ExpressionAttributeValues contains invalid value: {NESTING} for key {key}"
            ))
        })?;
        self.check_size()?;
        self.check_name_lengths(
            |bytes| bytes > limits::ATTRIBUTE_NAME_BYTES_MAX,
            "Attribute name is too large, must be less than 65536 bytes",
        )
    }

    /// Rejects names of invalid length.
    fn check_name_lengths(&self, is_invalid: impl Fn(usize) -> bool, fault: &str) -> Result<()> {
        let invalid = self.names.iter().find(|(_, name)| is_invalid(name.len()));
        ensure_none(invalid, |(key, _)| {
            Error::validation(format!(
                "ExpressionAttributeNames contains invalid value: {fault} for key {key}"
            ))
        })
    }

    /// Checks the size of the maps: each map first, then both together.
    fn check_size(&self) -> Result<()> {
        let names = self.names.bytes(|name| name.len());
        let values = self.values.bytes(value_size);
        let too_large = if names > limits::SUBSTITUTIONS_BYTES_MAX {
            "ExpressionAttributeNames exceeds max size"
        } else if values > limits::SUBSTITUTIONS_BYTES_MAX {
            "ExpressionAttributeValues exceeds max size"
        } else if names + values > limits::SUBSTITUTIONS_BYTES_MAX {
            "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size"
        } else {
            return Ok(());
        };
        Err(Error::validation(too_large))
    }

    /// Rejects placeholders that no expression used.
    pub(super) fn check_used(&self) -> Result<()> {
        self.names.check_used("ExpressionAttributeNames")?;
        self.values.check_used("ExpressionAttributeValues")
    }

    /// Resolves a path.
    pub(super) fn path(&mut self, written: &UnresolvedPath<'_>) -> Result<Path, Fault> {
        let root = Path::attribute(self.name(written.root)?);
        let path = written.rest.iter().try_fold(root, |path, step| {
            Ok(match step {
                StepToken::Name(name) => path.field(self.name(*name)?),
                StepToken::Index(digits) => path.index(index(digits)?),
            })
        })?;
        check_path(&path)?;
        Ok(path)
    }

    fn name(&mut self, written: NameToken<'_>) -> Result<Name, Fault> {
        match written {
            NameToken::Word(word) => Ok(Name::from(word)),
            NameToken::Placeholder(placeholder) => {
                let name = self.names.get(placeholder).cloned();
                name.ok_or_else(|| Fault::UndefinedName(placeholder.to_owned()))
            }
        }
    }

    /// Resolves a value.
    pub(super) fn value(&mut self, placeholder: &str) -> Result<&'a Value, Fault> {
        let value = self.values.get(placeholder);
        value.ok_or_else(|| Fault::UndefinedValue(placeholder.to_owned()))
    }
}

impl<'a, T> Substitutes<'a, T> {
    const fn new(given: Option<&'a BTreeMap<String, T>>) -> Self {
        let used = BTreeSet::new();
        Self { given, used }
    }

    /// Whether the request has the map, even if it is empty.
    pub(super) const fn is_given(&self) -> bool {
        self.given.is_some()
    }

    fn iter(&self) -> impl Iterator<Item = (&'a String, &'a T)> {
        self.given.into_iter().flatten()
    }

    /// Returns the size of the keys and of their substitutes.
    fn bytes(&self, size: impl Fn(&T) -> usize) -> usize {
        let bytes = |(key, substitute): (&String, _)| key.len() + size(substitute);
        self.iter().map(bytes).sum()
    }

    fn get(&mut self, placeholder: &str) -> Option<&'a T> {
        let (key, substitute) = self.given?.get_key_value(placeholder)?;
        self.used.insert(key);
        Some(substitute)
    }

    fn check(&self, parameter: &str, sign: char) -> Result<()> {
        ensure(!self.given.is_some_and(BTreeMap::is_empty), || {
            Error::validation(format!("{parameter} must not be empty"))
        })?;
        for (key, _) in self.iter() {
            let fault = if key.len() > limits::PLACEHOLDER_BYTES_MAX {
                too_long(key, sign)
            } else if !is_placeholder(key, sign) {
                format!("Syntax error; key: \"{key}\"")
            } else {
                continue;
            };
            return Err(Error::validation(format!(
                "{parameter} contains invalid key: {fault}"
            )));
        }
        Ok(())
    }

    fn check_used(&self, parameter: &str) -> Result<()> {
        let keys = self.iter().map(|(key, _)| key.as_str());
        let unused: Vec<&str> = keys.filter(|key| !self.used.contains(key)).collect();
        ensure(unused.is_empty(), || {
            Error::validation(format!(
                "Value provided in {parameter} unused in expressions: keys: {{{}}}",
                unused.join(", ")
            ))
        })
    }
}

/// The message for an overlong key. DynamoDB includes the length only for names.
fn too_long(key: &str, sign: char) -> String {
    const TOO_LONG: &str = "The expression attribute map contains a key that is too long;";
    match sign {
        '#' => format!("{TOO_LONG} size of key: {}", key.len()),
        _ => TOO_LONG.to_owned(),
    }
}

/// Rejects reserved words and list indexes out of range in a path.
pub(super) fn check_words(path: &UnresolvedPath<'_>) -> Result<(), Fault> {
    check_word(path.root)?;
    path.rest.iter().try_for_each(|step| match step {
        StepToken::Name(name) => check_word(*name),
        StepToken::Index(digits) => index(digits).map(drop),
    })
}

fn check_word(name: NameToken<'_>) -> Result<(), Fault> {
    match name {
        NameToken::Word(word) if is_reserved(word) => Err(Fault::ReservedWord(word.to_owned())),
        NameToken::Word(_) | NameToken::Placeholder(_) => Ok(()),
    }
}

/// Parses a list index.
fn index(digits: &str) -> Result<usize, Fault> {
    match digits.parse() {
        Ok(at) if at <= limits::LIST_INDEX_MAX => Ok(at),
        _ => Err(Fault::IndexOutOfRange(digits.to_owned())),
    }
}
