//! The text of a key, with the names of fields in braces, as the derive reads it.

use super::words::fault;
use crate::error::Result;

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// What stands in braces.
    Name(String),
}

/// The parts of a key.
pub(super) fn parse(word: &str, text: &str) -> Result<Vec<Part>> {
    let wrong = || {
        fault(
            "a key is text with the names of fields in braces",
            &[(word, text)],
        )
    };
    let (mut parts, mut rest) = (Vec::new(), text);
    let push = |parts: &mut Vec<Part>, text: &str| match text {
        "" => Ok(()),
        text if text.contains('}') => Err(wrong()),
        text => {
            parts.push(Part::Text(text.to_owned()));
            Ok(())
        }
    };
    while let Some((before, after)) = rest.split_once('{') {
        push(&mut parts, before)?;
        let (name, after) = after.split_once('}').ok_or_else(wrong)?;
        if name.is_empty() || name.contains('{') {
            return Err(wrong());
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

/// The signs of the texts that cannot stand in a name as they are.
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

/// Whether it shows where each name ends.
pub(super) fn is_separated(parts: &[Part]) -> bool {
    let is_sign = |letter: char| letter.is_ascii_punctuation();
    let touch = |two: &[Part]| matches!(two, [Part::Name(_), Part::Name(_)]);
    let blend = |three: &[Part]| match three {
        [Part::Name(_), Part::Text(text), Part::Name(_)] => !text.contains(is_sign),
        _ => false,
    };
    !parts.windows(2).any(touch) && !parts.windows(3).any(blend)
}
