//! Parses the text of a key, with field names in braces, like the derive.

use super::parse::invalid_description;
use crate::error::Result;

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// A name in braces.
    Name(String),
}

/// Splits a key into its parts.
pub(super) fn parse(property: &str, text: &str) -> Result<Vec<Part>> {
    let error = || {
        invalid_description(
            "a key must be text with field names in braces",
            &[(property, text)],
        )
    };
    let (mut parts, mut rest) = (Vec::new(), text);
    let push = |parts: &mut Vec<Part>, text: &str| match text {
        "" => Ok(()),
        text if text.contains('}') => Err(error()),
        text => {
            parts.push(Part::Text(text.to_owned()));
            Ok(())
        }
    };
    while let Some((before, after)) = rest.split_once('{') {
        push(&mut parts, before)?;
        let (name, after) = after.split_once('}').ok_or_else(error)?;
        if name.is_empty() || name.contains('{') {
            return Err(error());
        }
        parts.push(Part::Name(name.to_owned()));
        rest = after;
    }
    push(&mut parts, rest)?;
    Ok(parts)
}

pub(super) fn names(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        Part::Name(name) => Some(name.as_str()),
        Part::Text(_) => None,
    })
}

/// The characters of the texts that must be escaped in names.
pub(super) fn escaped(parts: &[Part]) -> String {
    let mut signs = vec!['#'];
    for part in parts {
        if let Part::Text(text) = part {
            signs.extend(text.chars().filter(char::is_ascii_punctuation));
        }
    }
    signs.sort_unstable();
    signs.dedup();
    signs.into_iter().collect()
}

/// Whether a separator follows each name, so that its end is unambiguous.
pub(super) fn is_separated(parts: &[Part]) -> bool {
    let is_sign = |letter: char| letter.is_ascii_punctuation();
    let touch = |two: &[Part]| matches!(two, [Part::Name(_), Part::Name(_)]);
    let blend = |three: &[Part]| match three {
        [Part::Name(_), Part::Text(text), Part::Name(_)] => !text.contains(is_sign),
        _ => false,
    };
    !parts.windows(2).any(touch) && !parts.windows(3).any(blend)
}
