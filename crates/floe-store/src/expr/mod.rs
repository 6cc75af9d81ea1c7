//! Expressions: conditions, updates, key conditions and projections.
//!
//! An expression is a tree of attribute paths and literal values. Code builds it with the functions
//! here; the wire parses it from text ([`parse`]); the SDK engine writes it back as text ([`render`]).
//! Placeholders exist only in text: parsing resolves them, rendering makes them up.
//!
//! A tree is checked once ([`check`]) and then evaluated on items without being able to fail
//! ([`eval`]) or applied to them ([`apply`]).

/// Lets everything that a [`Value`](crate::Value) is made from stand for itself in an operand.
///
/// One implementation per type: a blanket one would overlap with `From<T> for T`.
macro_rules! literal_operands {
($operand:ident) => {
impl From<Path> for $operand {
    fn from(path: Path) -> Self {
        Self::Path(path)
    }
}
literal_operands! { $operand:
            crate::value::Value, crate::number::Number, crate::item::Item,
            &str, String, bool, i32, u32, i64, u64, Vec<u8>, &[u8], Vec<crate::value::Value>,
            crate::text::Text, crate::value::Set<crate::text::Text>, crate::value::Set<String>,
            crate::value::Set<crate::number::Number>,
            crate::value::Set<Vec<u8>>,
        }
    };
    ($operand:ident: $($literal:ty,)*) => {$(
        impl From<$literal> for $operand {
            fn from(literal: $literal) -> Self {
                Self::Value(literal.into())
            }
        }
    )*};
}

pub mod apply;
pub mod check;
pub mod condition;
pub mod eval;
mod fault;
pub mod key;
mod lex;
pub mod parse;
pub mod path;
mod pending;
pub mod projection;
pub mod render;
pub mod reserved;
#[cfg(test)]
mod tests;
pub mod update;

pub use condition::{Comparator, Condition, Operand};
pub use fault::ExpressionKind;
pub use key::{KeyCondition, KeyOp, KeyRange};
pub use parse::Parser;
pub use path::{Path, Segment};
pub use projection::Paths;
pub use render::Renderer;
pub use update::{SetOperand, SetValue, Update};
