//! Names of streams: a category, and an id of one or more parts.
//!
//! ```text
//! Cart-7f3a                 category Cart, id of one part
//! Seat-hall1_row7_3         category Seat, id of three parts
//! $AppendsEpoch-0_12        an internal stream
//! ```

use std::fmt;

use floe_store::Text;
use floe_store::limits::PARTITION_KEY_BYTES_MAX;
use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};

/// Separates the category and the id.
const CATEGORY_END: char = '-';
/// Separates the parts of an id.
const PART_END: char = '_';

/// The name of a stream: `Category-part1_part2`.
///
/// ```
/// use floe::events::StreamName;
///
/// # fn main() -> Result<(), floe::Error> {
/// let name = StreamName::new("Seat", &("hall1", 7))?;
/// assert_eq!(name.as_str(), "Seat-hall1_7");
/// assert_eq!(name.category(), "Seat");
/// assert_eq!(name.parts().collect::<Vec<_>>(), ["hall1", "7"]);
/// assert!(StreamName::parse("no category").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamName(Text);

impl StreamName {
    /// Creates a stream name from a category and an id.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the category is empty or contains `-`, if a part of the id is empty
    /// or contains `_`, or if the name is longer than a key can be.
    pub fn new<I: StreamId + ?Sized>(category: &str, id: &I) -> Result<Self> {
        if category.is_empty() || category.contains(CATEGORY_END) {
            return Err(invalid(
                "a category must not be empty or contain '-'",
                &format!("category={category:?}"),
            ));
        }
        let mut name = format!("{category}{CATEGORY_END}");
        id.write_parts(&mut IdWriter {
            name: &mut name,
            is_first: true,
        })?;
        Self::parse(&name)
    }

    /// Parses a stream name.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the text has no category or no id, or is longer than a key can be.
    pub fn parse(text: &str) -> Result<Self> {
        let fact = || format!("stream={text:?}");
        match text.split_once(CATEGORY_END) {
            Some((category, id)) if !category.is_empty() && !id.is_empty() => {}
            _ => return Err(invalid("a stream name must be Category-id", &fact())),
        }
        if text.len() > PARTITION_KEY_BYTES_MAX {
            let message =
                format!("a stream name must have at most {PARTITION_KEY_BYTES_MAX} bytes");
            return Err(invalid(&message, &format!("bytes={}", text.len())));
        }
        Ok(Self(Text::from(text)))
    }

    /// The stored name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The category: the text before the first dash.
    pub fn category(&self) -> &str {
        self.halves().0
    }

    /// The id: the text after the first dash.
    pub fn id(&self) -> &str {
        self.halves().1
    }

    /// The parts of the id.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.id().split(PART_END)
    }

    /// Whether it is an internal stream, which feeds exclude.
    pub fn is_system(&self) -> bool {
        self.0.starts_with('$')
    }

    fn halves(&self) -> (&str, &str) {
        self.0.split_once(CATEGORY_END).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> &Text {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn invalid(what: &str, fact: &str) -> Error {
    Error::new(ErrorKind::InvalidUse, format!("{what}: {fact}"))
}

/// A stream id within a category: text, a number, a UUID, or several of them.
pub trait StreamId {
    /// Writes the parts of the id.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if a part is empty or contains `_`.
    fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()>;
}

/// Collects the parts of an id.
#[derive(Debug)]
pub struct IdWriter<'n> {
    name: &'n mut String,
    is_first: bool,
}

impl IdWriter<'_> {
    /// Adds a part.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if it is empty or contains `_`.
    pub fn part(&mut self, part: &str) -> Result<()> {
        if part.is_empty() || part.contains(PART_END) {
            let fact = format!("part={part:?}");
            return Err(invalid(
                "a part of a stream id must not be empty or contain '_'",
                &fact,
            ));
        }
        if !std::mem::take(&mut self.is_first) {
            self.name.push(PART_END);
        }
        self.name.push_str(part);
        Ok(())
    }
}

impl StreamId for str {
    fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()> {
        parts.part(self)
    }
}

impl StreamId for String {
    fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()> {
        parts.part(self)
    }
}

impl StreamId for Uuid {
    fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()> {
        parts.part(&self.simple().to_string())
    }
}

impl<I: StreamId + ?Sized> StreamId for &I {
    fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()> {
        (**self).write_parts(parts)
    }
}

macro_rules! ids_of_numbers {
    ($($number:ty),*) => {
        $(impl StreamId for $number {
            fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()> {
                parts.part(&self.to_string())
            }
        })*
    };
}

ids_of_numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

macro_rules! ids_of_several {
    ($($name:ident)+) => {
        impl<$($name: StreamId),+> StreamId for ($($name,)+) {
            fn write_parts(&self, parts: &mut IdWriter<'_>) -> Result<()> {
                #[expect(non_snake_case, reason = "each part is named like its type")]
                let ($($name,)+) = self;
                $($name.write_parts(parts)?;)+
                Ok(())
            }
        }
    };
}

ids_of_several!(A);
ids_of_several!(A B);
ids_of_several!(A B C);
ids_of_several!(A B C D);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(category: &str, id: &impl StreamId) -> String {
        match StreamName::new(category, id) {
            Ok(name) => name.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn id_has_one_or_more_parts() {
        assert_eq!(name("Cart", &"a"), "Cart-a");
        assert_eq!(name("Cart", &"a-b"), "Cart-a-b");
        assert_eq!(
            name("Cart", &(1_u64, "x".to_owned(), -2_i32)),
            "Cart-1_x_-2"
        );
        assert_eq!(name("Cart", &((1_u8, 2_u8), 3_u8)), "Cart-1_2_3");
        let id = Uuid::from_u128(0xab);
        assert_eq!(name("$Cart", &id), "$Cart-000000000000000000000000000000ab");
    }

    #[test]
    fn ambiguous_names_are_rejected() {
        let part = "a part of a stream id must not be empty or contain '_'";
        assert_eq!(name("Cart", &"a_b"), format!("{part}: part=\"a_b\""));
        assert_eq!(name("Cart", &("a", "")), format!("{part}: part=\"\""));
        let category = "a category must not be empty or contain '-'";
        assert_eq!(name("", &"a"), format!("{category}: category=\"\""));
        assert_eq!(
            name("Ca-rt", &"a"),
            format!("{category}: category=\"Ca-rt\"")
        );
        assert_eq!(
            name("Cart", &"x".repeat(2044)),
            "a stream name must have at most 2048 bytes: bytes=2049"
        );
        for text in ["", "Cart", "-a", "Cart-"] {
            let error = StreamName::parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("a stream name must be Category-id: stream={text:?}")
            );
        }
    }

    #[test]
    fn name_is_split_at_the_first_dash() {
        let name = StreamName::parse("$Epoch-0_12-x").unwrap();
        assert_eq!((name.category(), name.id()), ("$Epoch", "0_12-x"));
        assert_eq!(name.parts().collect::<Vec<_>>(), ["0", "12-x"]);
        assert!(name.is_system() && !StreamName::parse("a-b").unwrap().is_system());
    }
}
