//! Macros for repeated declarations: enums with DynamoDB's names, operations, setters.

/// Declares an enum whose variants have names, with `as_str` and `from_name`.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $enum:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $name:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $enum {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $enum {
            /// DynamoDB's name for the variant.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }

            /// Returns the variant with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $( $name => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl ::std::fmt::Display for $enum {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use named;

/// Declares an operation on a table. `new` takes the members without a default; the others start with their default.
macro_rules! operation {
    (
        $(#[$doc:meta])*
        pub struct $operation:ident {
            $( $(#[$given_doc:meta])* pub $given:ident: $given_type:ty, )*
            ;
            $( $(#[$own_doc:meta])* pub $own:ident: $own_type:ty = $value:expr, )+
        }
        $(#[$new_doc:meta])*
        pub fn new;
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $operation {
            /// The table.
            pub table_name: String,
            $( $(#[$given_doc])* pub $given: $given_type, )*
            $( $(#[$own_doc])* pub $own: $own_type, )+
        }

        impl $operation {
            $(#[$new_doc])*
            pub fn new(table_name: impl Into<String> $(, $given: $given_type)*) -> Self {
                Self {
                    table_name: table_name.into(),
                    $( $given, )*
                    $( $own: $value, )+
                }
            }
        }
    };
}
pub(crate) use operation;

/// Declares builder methods that each set one member: arguments, member, value.
macro_rules! setters {
    ($(
        $(#[$doc:meta])*
        $name:ident($($taken:ident: $type:ty),*) => $($member:ident).+ = $value:expr;
    )+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self $(, $taken: $type)*) -> Self {
            self.$($member).+ = $value;
            self
        }
    )+};
}
pub(crate) use setters;
