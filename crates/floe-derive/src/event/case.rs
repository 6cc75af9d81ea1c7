//! The case of field names in bodies.

use syn::{Error, LitStr, Result};

use crate::attributes::list;

/// A convention for names of several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Camel,
    Pascal,
    Snake,
    ScreamingSnake,
    Kebab,
}

const CASES: [(&str, Case); 5] = [
    ("camelCase", Case::Camel),
    ("PascalCase", Case::Pascal),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
];

impl Case {
    pub(super) fn parse(text: &LitStr) -> Result<Self> {
        let name = text.value();
        let found = CASES.iter().find(|(known, _)| *known == name);
        found.map(|(_, case)| *case).ok_or_else(|| {
            let known = list(CASES.map(|(known, _)| known));
            let message = format!("unknown case `{name}`\nhelp: the cases are {known}");
            Error::new_spanned(text, message)
        })
    }

    /// Converts the name of a field from snake case.
    pub(super) fn apply(self, field: &str) -> String {
        match self {
            Self::Camel => lower_first(&pascal(field)),
            Self::Pascal => pascal(field),
            Self::Snake => field.to_owned(),
            Self::ScreamingSnake => field.to_uppercase(),
            Self::Kebab => field.replace('_', "-"),
        }
    }
}

fn pascal(field: &str) -> String {
    field.split('_').map(upper_first).collect()
}

fn upper_first(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

fn lower_first(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_lowercase);
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_supports_several_words() {
        let forms = |field: &str| CASES.map(|(_, case)| case.apply(field));
        assert_eq!(
            forms("gift_wrapped_2"),
            [
                "giftWrapped2",
                "GiftWrapped2",
                "gift_wrapped_2",
                "GIFT_WRAPPED_2",
                "gift-wrapped-2"
            ]
        );
        assert_eq!(
            forms("größe_übrig"),
            [
                "größeÜbrig",
                "GrößeÜbrig",
                "größe_übrig",
                "GRÖSSE_ÜBRIG",
                "größe-übrig"
            ]
        );
    }
}
