//! The grammar of conditions: from text to postfix form.
//!
//! ```text
//! condition = condition OR condition | condition AND condition | NOT condition
//!           | ( condition )
//!           | operand comparator operand
//!           | operand BETWEEN operand AND operand
//!           | operand IN ( operand , … )
//!           | call
//! operand   = path | :value | call | ( operand )
//! path      = name | ( path ) | path . name | path [ digits ]
//! call      = name ( operand , … )
//! ```
//!
//! In postfix form an operator follows its operands: `a = :v AND b = :w` becomes `a :v = b :w = AND`. The form is flat
//! however deep the text nests. A parenthesis does not reveal whether it contains a condition or an operand, so one
//! reader handles both: it keeps a stack of [open](Open) constructs and reads one [term](Term) after another.

use std::ops::ControlFlow;

use super::cursor::{Cursor, UnresolvedPath};
use crate::error::ensure;
use crate::expr::condition::Comparator;
use crate::expr::fault::Fault;
use crate::expr::lex::TokenKind;

/// A node of the postfix form.
#[derive(Debug)]
pub(super) enum Node<'t> {
    Path(UnresolvedPath<'t>),
    Value(&'t str),
    Call { function: &'t str, count: usize },
    Compare(Comparator),
    Between,
    In { count: usize },
    Not,
    And,
    Or,
}

/// Reads a condition.
pub(super) fn read(text: &str) -> Result<Vec<Node<'_>>, Fault> {
    let mut reader = Reader {
        cursor: Cursor::new(text, &["AND", "OR", "NOT", "BETWEEN", "IN"]),
        nodes: Vec::new(),
        open: Vec::new(),
    };
    loop {
        let term = reader.term()?;
        if reader.reduce(term)? == Next::End {
            return Ok(reader.nodes);
        }
    }
}

/// A construct that has been started and needs another term.
#[derive(Debug)]
enum Open<'t> {
    /// `(`, and whether it may contain a condition.
    Group { allows_conditions: bool },
    /// `operand BETWEEN`
    BetweenLow,
    /// Any other construct: the node that it becomes, with the number of operands so far.
    Node(Node<'t>),
}

/// The term that was just read; its nodes are the last ones.
#[derive(Clone, Copy, Debug)]
struct Term {
    kind: TermKind,
    /// Whether the term is a group without anything around it yet.
    grouped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermKind {
    Path,
    Value,
    /// A call is a condition or an operand, depending on the function.
    Call,
    Condition,
}

impl Term {
    const fn new(kind: TermKind) -> Self {
        let grouped = false;
        Self { kind, grouped }
    }

    fn is_operand(self) -> bool {
        self.kind != TermKind::Condition
    }

    fn is_condition(self) -> bool {
        matches!(self.kind, TermKind::Condition | TermKind::Call)
    }
}

/// What to read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Term,
    End,
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    nodes: Vec<Node<'t>>,
    open: Vec<Open<'t>>,
}

impl<'t> Reader<'t> {
    /// Whether a condition is allowed at this position, not only an operand.
    fn allows_conditions(&self) -> bool {
        match self.open.last() {
            None | Some(Open::Node(Node::Not | Node::And | Node::Or)) => true,
            Some(Open::Group { allows_conditions }) => *allows_conditions,
            Some(_) => false,
        }
    }

    /// Reads up to the end of the next path or value, pushing the constructs that start before it.
    fn term(&mut self) -> Result<Term, Fault> {
        loop {
            let token = self.cursor.peek();
            let called = self.cursor.peek_second().kind == TokenKind::OpenParenthesis;
            match (token.kind, self.cursor.keyword()) {
                (TokenKind::OpenParenthesis, _) => {
                    let allows_conditions = self.allows_conditions();
                    self.open.push(Open::Group { allows_conditions });
                    self.cursor.next();
                }
                (_, Some("NOT")) if self.allows_conditions() => {
                    self.open.push(Open::Node(Node::Not));
                    self.cursor.next();
                }
                (TokenKind::Word, None) if called => {
                    let (function, count) = (token.text, 0);
                    self.open.push(Open::Node(Node::Call { function, count }));
                    self.cursor.next();
                    self.cursor.next();
                }
                (TokenKind::Value, _) => {
                    self.nodes.push(Node::Value(token.text));
                    self.cursor.next();
                    return Ok(Term::new(TermKind::Value));
                }
                _ => {
                    let path = self.cursor.path()?;
                    self.nodes.push(Node::Path(path));
                    return Ok(Term::new(TermKind::Path));
                }
            }
        }
    }

    /// Completes all constructs that the term completes, until another term is needed or the text ends.
    fn reduce(&mut self, mut term: Term) -> Result<Next, Fault> {
        loop {
            term = match self.open.last_mut() {
                Some(Open::Node(Node::Compare(_) | Node::Between)) => self.complete(),
                Some(low @ Open::BetweenLow) => {
                    let found = self.cursor.take_keyword("AND");
                    ensure(found, || self.cursor.syntax_error())?;
                    *low = Open::Node(Node::Between);
                    return Ok(Next::Term);
                }
                Some(Open::Node(Node::Call { count, .. } | Node::In { count })) => {
                    *count += 1;
                    if self.list_continues()? {
                        return Ok(Next::Term);
                    }
                    self.complete()
                }
                None | Some(Open::Group { .. } | Open::Node(_)) => match self.after(term)? {
                    ControlFlow::Continue(larger) => larger,
                    ControlFlow::Break(next) => return Ok(next),
                },
            };
        }
    }

    /// Completes the innermost construct, which becomes a call or a condition.
    fn complete(&mut self) -> Term {
        let mut kind = TermKind::Condition;
        if let Some(Open::Node(node)) = self.open.pop() {
            if let Node::Call { .. } = node {
                kind = TermKind::Call;
            }
            self.nodes.push(node);
        }
        Term::new(kind)
    }

    /// Consumes a comma, or the parenthesis that ends a list of operands.
    fn list_continues(&mut self) -> Result<bool, Fault> {
        if self.cursor.take(TokenKind::Comma) {
            return Ok(true);
        }
        self.cursor.expect(TokenKind::CloseParenthesis)?;
        Ok(false)
    }

    /// Continues after a term that is not an operand of an open construct: returns a larger term, or what to read next.
    fn after(&mut self, term: Term) -> Result<ControlFlow<Next, Term>, Fault> {
        let token = self.cursor.peek().kind;
        let conditions = self.allows_conditions();
        if term.is_operand()
            && conditions
            && let Some(open) = self.operator()?
        {
            self.open.push(open);
            return Ok(ControlFlow::Break(Next::Term));
        }
        match (token, self.cursor.keyword()) {
            (TokenKind::Dot | TokenKind::OpenBracket, _) => self.extend_path(term),
            (TokenKind::CloseParenthesis, _) => self.close_group(term),
            (_, Some("AND")) if term.is_condition() && conditions => Ok(self.join(Node::And)),
            (_, Some("OR")) if term.is_condition() && conditions => Ok(self.join(Node::Or)),
            (TokenKind::End, _) if term.is_condition() => {
                self.complete_joined(true);
                ensure(self.open.is_empty(), || self.cursor.syntax_error())?;
                Ok(ControlFlow::Break(Next::End))
            }
            _ => Err(self.cursor.syntax_error()),
        }
    }

    /// Consumes a binary operator on operands, if one is next.
    fn operator(&mut self) -> Result<Option<Open<'t>>, Fault> {
        let open = match (self.cursor.peek().kind, self.cursor.keyword()) {
            (TokenKind::Comparator(comparator), _) => Open::Node(Node::Compare(comparator)),
            (_, Some("BETWEEN")) => Open::BetweenLow,
            (_, Some("IN")) => Open::Node(Node::In { count: 0 }),
            _ => return Ok(None),
        };
        self.cursor.next();
        if let Open::Node(Node::In { .. }) = open {
            self.cursor.expect(TokenKind::OpenParenthesis)?;
        }
        Ok(Some(open))
    }

    /// Extends a path that was in parentheses: `(a.b)[0]`.
    fn extend_path(&mut self, term: Term) -> Result<ControlFlow<Next, Term>, Fault> {
        match self.nodes.last_mut() {
            Some(Node::Path(path)) if term.kind == TermKind::Path => {
                self.cursor.path_rest(path)?;
                Ok(ControlFlow::Continue(Term::new(TermKind::Path)))
            }
            _ => Err(self.cursor.syntax_error()),
        }
    }

    /// Closes a group. A group that contains only another group is rejected at its end, even if the text after it has
    /// faults as well.
    fn close_group(&mut self, mut term: Term) -> Result<ControlFlow<Next, Term>, Fault> {
        if let Some(Open::Node(Node::Not | Node::And | Node::Or)) = self.open.last() {
            ensure(term.is_condition(), || self.cursor.syntax_error())?;
            self.complete_joined(true);
            term = Term::new(TermKind::Condition);
        }
        let in_group = matches!(self.open.last(), Some(Open::Group { .. }));
        ensure(in_group, || self.cursor.syntax_error())?;
        ensure(!term.grouped, || Fault::RedundantParentheses)?;
        self.open.pop();
        self.cursor.next();
        term.grouped = true;
        Ok(ControlFlow::Continue(term))
    }

    /// Opens the right side of `AND` or `OR`, after completing operators that bind at least as tightly.
    fn join(&mut self, operator: Node<'t>) -> ControlFlow<Next, Term> {
        self.complete_joined(matches!(operator, Node::Or));
        self.open.push(Open::Node(operator));
        self.cursor.next();
        ControlFlow::Break(Next::Term)
    }

    /// Completes all `NOT` and `AND`, and if requested `OR`, up to the innermost group.
    fn complete_joined(&mut self, with_or: bool) {
        let ends = |open: &Open<'_>| match open {
            Open::Node(Node::Not | Node::And) => true,
            Open::Node(Node::Or) => with_or,
            _ => false,
        };
        while self.open.last().is_some_and(ends) {
            self.complete();
        }
    }
}
