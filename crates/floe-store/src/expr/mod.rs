//! Expressions: conditions, updates, key conditions and projections.
//!
//! An expression is a tree of attribute paths and literal values. It is built in code with the functions here, or
//! parsed from text ([`parse`]), and rendered as text ([`render`]) for the SDK engine. Placeholders exist only in text:
//! parsing resolves them, rendering generates them.
//!
//! A tree is checked once ([`check`]). Conditions are then evaluated on items ([`eval`]) and cannot fail; updates are
//! applied to items ([`apply`]).

/// Converts every type that converts into a [`Value`](crate::Value) into a literal operand.
///
/// One implementation per type, because a blanket one would overlap with `From<T> for T`.
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
