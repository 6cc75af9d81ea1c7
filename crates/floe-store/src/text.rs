//! Text that is stored inline if it is short: attribute names and string values.
//!
//! Items consist mostly of short names and strings. Storing up to 23 bytes inline avoids most of the allocations when
//! an item is read. Longer text is reference-counted, so that cloning an item does not copy it.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use smol_str::SmolStr;

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(SmolStr);

        impl $name {
            /// Wraps a static text without allocating.
            pub const fn new_static(text: &'static str) -> Self {
                Self(SmolStr::new_static(text))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(SmolStr::new(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(SmolStr::from(text))
            }
        }

        impl From<&$name> for $name {
            fn from(text: &$name) -> Self {
                text.clone()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0.into()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

text_type! {
    /// The name of an attribute.
    Name
}

text_type! {
    /// The text of a string value, or of an element of a string set.
    ///
    /// ```
    /// use floe_store::Text;
    ///
    /// let text = Text::from("ice");
    /// assert_eq!(text, "ice");
    /// assert!(text.starts_with("i"));
    /// ```
    Text
}
