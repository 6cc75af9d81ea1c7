//! The right-hand side of a `SET`: from text to postfix form.
//!
//! As in conditions, operators follow their operands, and open constructs are kept on a stack, so the form is flat
//! however deep the text nests.

use crate::error::ensure;
use crate::expr::fault::Fault;
use crate::expr::lex::TokenKind;
use crate::expr::parse::cursor::{Cursor, UnresolvedPath};
use crate::expr::parse::placeholders::check_words;
use crate::expr::update::{SetOperand, SetValue};

/// A node of the postfix form of an operand.
#[derive(Debug)]
pub(super) enum Node<'t> {
    Path(UnresolvedPath<'t>),
    Value(&'t str),
    Call { function: &'t str, count: usize },
}

/// Combines the two operands of an operator into a value.
type Operator = fn(SetOperand, SetOperand) -> SetValue;

/// The right-hand side of a `SET` in the text: two operands if there is an operator.
#[derive(Debug, Default)]
pub(super) struct UnresolvedValue<'t> {
    pub(super) left: Vec<Node<'t>>,
    pub(super) operation: Option<(Operator, Vec<Node<'t>>)>,
}

impl<'t> UnresolvedValue<'t> {
    /// Iterates over all nodes, left operand first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node<'t>> {
        self.operands().flatten()
    }

    pub(super) const fn is_operation(&self) -> bool {
        self.operation.is_some()
    }

    fn operands(&self) -> impl Iterator<Item = &Vec<Node<'t>>> {
        let right = self.operation.as_ref().map(|(_, right)| right);
        std::iter::once(&self.left).chain(right)
    }

    pub(super) fn check_words(&self) -> Result<(), Fault> {
        self.nodes().try_for_each(|node| match node {
            Node::Path(path) => check_words(path),
            Node::Value(_) | Node::Call { .. } => Ok(()),
        })
    }

    /// Rejects a `list_append` inside another.
    pub(super) fn check_placement(&self) -> Result<(), Fault> {
        for operand in self.operands() {
            // For each operand on the stack: the function, if it is a call.
            let mut stack: Vec<Option<&str>> = Vec::new();
            for node in operand {
                let Node::Call { function, count } = node else {
                    stack.push(None);
                    continue;
                };
                let first = stack.len().saturating_sub(*count);
                let nested = stack
                    .drain(first..)
                    .any(|inner| inner == Some("list_append"));
                ensure(!nested || *function != "list_append", || {
                    Fault::MisplacedFunction("list_append".to_owned())
                })?;
                stack.push(Some(function));
            }
        }
        Ok(())
    }
}

/// Reads a value, up to a token that cannot continue it.
pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Result<UnresolvedValue<'t>, Fault> {
    let mut reader = Reader {
        cursor,
        value: UnresolvedValue::default(),
        open: Vec::new(),
        grouped: false,
        operator_level: None,
    };
    loop {
        reader.term()?;
        if !reader.reduce()? {
            return Ok(reader.value);
        }
    }
}

/// A construct that has been started and needs another term.
#[derive(Clone, Copy, Debug)]
enum Open<'t> {
    /// `(`
    Group,
    /// `function(`, and the number of operands so far.
    Call { function: &'t str, count: usize },
}

struct Reader<'c, 't> {
    cursor: &'c mut Cursor<'t>,
    value: UnresolvedValue<'t>,
    open: Vec<Open<'t>>,
    /// Whether the last term is a group without anything around it yet.
    grouped: bool,
    /// The number of groups around the operator, from the operator to the end of its right operand.
    operator_level: Option<usize>,
}

impl<'t> Reader<'_, 't> {
    fn push(&mut self, node: Node<'t>) {
        let nodes = match &mut self.value.operation {
            None => &mut self.value.left,
            Some((_, right)) => right,
        };
        nodes.push(node);
        self.grouped = false;
    }

    /// Reads up to the end of the next path or value, pushing the constructs that start before it.
    fn term(&mut self) -> Result<(), Fault> {
        loop {
            let token = self.cursor.peek();
            let called = self.cursor.peek_second().kind == TokenKind::OpenParenthesis;
            match (token.kind, self.cursor.keyword()) {
                (TokenKind::OpenParenthesis, _) => {
                    self.open.push(Open::Group);
                    self.cursor.next();
                }
                (TokenKind::Word, None) if called => {
                    let function = token.text;
                    self.open.push(Open::Call { function, count: 0 });
                    self.cursor.next();
                    self.cursor.next();
                }
                (TokenKind::Value, _) => {
                    self.cursor.next();
                    self.push(Node::Value(token.text));
                    return Ok(());
                }
                _ => {
                    let path = self.cursor.path()?;
                    self.push(Node::Path(path));
                    return Ok(());
                }
            }
        }
    }

    /// Completes all constructs that the last term completes. Returns whether another term is needed.
    fn reduce(&mut self) -> Result<bool, Fault> {
        loop {
            match self.open.last_mut() {
                Some(Open::Call { function, count }) => {
                    *count += 1;
                    let (function, count) = (*function, *count);
                    if self.cursor.take(TokenKind::Comma) {
                        return Ok(true);
                    }
                    self.cursor.expect(TokenKind::CloseParenthesis)?;
                    self.open.pop();
                    self.push(Node::Call { function, count });
                }
                Some(Open::Group) if self.cursor.peek().kind == TokenKind::CloseParenthesis => {
                    self.close_group()?;
                }
                open => {
                    let groups_open = open.is_some();
                    let more = self.operator();
                    ensure(more || !groups_open, || self.cursor.syntax_error())?;
                    return Ok(more);
                }
            }
        }
    }

    fn close_group(&mut self) -> Result<(), Fault> {
        // This group surrounds the whole operation, so a group as its right operand is not redundant.
        if self.operator_level == Some(self.open.len()) {
            self.operator_level = None;
            self.grouped = false;
        }
        ensure(!self.grouped, || Fault::RedundantParentheses)?;
        self.cursor.next();
        self.open.pop();
        self.grouped = true;
        Ok(())
    }

    /// Consumes the operator, if it is next and allowed: there is at most one, and not inside a function.
    fn operator(&mut self) -> bool {
        let operator = match self.cursor.peek().kind {
            TokenKind::Plus => SetValue::Sum,
            TokenKind::Minus => SetValue::Difference,
            _ => return false,
        };
        let mut open = self.open.iter();
        let in_function = open.any(|open| matches!(open, Open::Call { .. }));
        if in_function || self.value.is_operation() {
            return false;
        }
        self.value.operation = Some((operator, Vec::new()));
        self.operator_level = Some(self.open.len());
        self.cursor.next();
        true
    }
}
