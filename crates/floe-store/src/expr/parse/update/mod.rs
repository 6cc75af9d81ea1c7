//! Updates: from text to tree.
//!
//! ```text
//! update  = section …
//! section = SET set , … | REMOVE path , … | ADD path :value , … | DELETE path :value , …
//! set     = path = value
//! value   = operand | operand + operand | operand - operand | ( value )
//! operand = path | :value | call | ( operand )
//! call    = name ( operand , … )
//! ```

mod build;
mod value;

use super::cursor::{Cursor, UnresolvedPath};
use super::placeholders::{Placeholders, check_words};
use crate::error::ensure_none;
use crate::expr::check::check_operators;
use crate::expr::condition::Comparator;
use crate::expr::fault::Fault;
use crate::expr::lex::TokenKind;
use crate::expr::update::Update;
use value::{Node, UnresolvedValue};

/// The change of a path.
#[derive(Debug)]
enum Action<'t> {
    Set(UnresolvedValue<'t>),
    Remove,
    Add(&'t str),
    Delete(&'t str),
}

/// An update in the text, with unresolved placeholders.
#[derive(Debug, Default)]
struct UnresolvedUpdate<'t> {
    sections: Vec<&'static str>,
    actions: Vec<(UnresolvedPath<'t>, Action<'t>)>,
}

/// Parses an update.
pub(super) fn parse(text: &str, placeholders: &mut Placeholders<'_>) -> Result<Update, Fault> {
    let written = read(text)?;
    written.check_text()?;
    written.build(placeholders)
}

fn read(text: &str) -> Result<UnresolvedUpdate<'_>, Fault> {
    let mut cursor = Cursor::new(text, &["SET", "REMOVE", "ADD", "DELETE"]);
    let mut written = UnresolvedUpdate::default();
    loop {
        let Some(section) = cursor.keyword() else {
            return Err(cursor.syntax_error());
        };
        cursor.next();
        written.sections.push(section);
        loop {
            let target = cursor.path()?;
            let action = read_action(section, &mut cursor)?;
            written.actions.push((target, action));
            if !cursor.take(TokenKind::Comma) {
                break;
            }
        }
        if cursor.take(TokenKind::End) {
            return Ok(written);
        }
    }
}

fn read_action<'t>(section: &str, cursor: &mut Cursor<'t>) -> Result<Action<'t>, Fault> {
    Ok(match section {
        "SET" => {
            cursor.expect(TokenKind::Comparator(Comparator::Eq))?;
            Action::Set(value::read(cursor)?)
        }
        "ADD" => Action::Add(cursor.expect(TokenKind::Value)?.text),
        "DELETE" => Action::Delete(cursor.expect(TokenKind::Value)?.text),
        _ => Action::Remove,
    })
}

impl<'t> UnresolvedUpdate<'t> {
    /// Iterates over the right-hand sides of `SET`.
    fn values(&self) -> impl Iterator<Item = &UnresolvedValue<'t>> {
        self.actions.iter().filter_map(|(_, action)| action.value())
    }

    fn functions(&self) -> impl Iterator<Item = &'t str> {
        let nodes = self.values().flat_map(UnresolvedValue::nodes);
        nodes.filter_map(|node| match node {
            Node::Call { function, .. } => Some(*function),
            Node::Path(_) | Node::Value(_) => None,
        })
    }

    /// Reports faults that depend neither on placeholders nor on types: each kind in the whole expression before the
    /// next kind.
    fn check_text(&self) -> Result<(), Fault> {
        let sums = self.values().filter(|value| value.is_operation());
        check_operators(self.functions().count() + sums.count())?;
        for (target, action) in &self.actions {
            check_words(target)?;
            action
                .value()
                .map_or(Ok(()), UnresolvedValue::check_words)?;
        }
        self.functions().try_for_each(check_function)?;
        self.values()
            .try_for_each(UnresolvedValue::check_placement)?;
        let mut sections = self.sections.iter().enumerate();
        let repeated =
            sections.find(|(n, section)| self.sections.iter().take(*n).any(|s| s == *section));
        ensure_none(repeated, |(_, section)| Fault::SectionTwice(section))
    }
}

impl<'t> Action<'t> {
    /// Returns the value of a `SET`.
    const fn value(&self) -> Option<&UnresolvedValue<'t>> {
        match self {
            Self::Set(value) => Some(value),
            Self::Remove | Self::Add(_) | Self::Delete(_) => None,
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node<'t>> {
        self.value().into_iter().flat_map(UnresolvedValue::nodes)
    }
}

fn check_function(function: &str) -> Result<(), Fault> {
    match function {
        "if_not_exists" | "list_append" => Ok(()),
        "attribute_exists"
        | "attribute_not_exists"
        | "attribute_type"
        | "begins_with"
        | "contains"
        | "size" => Err(Fault::FunctionOutsideCondition(function.to_owned())),
        _ => Err(Fault::UnknownFunction(function.to_owned())),
    }
}
