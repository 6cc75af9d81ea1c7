//! The grammar of conditions: text to postfix form.
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
//! In postfix form what is applied stands behind what it is applied to: `a = :v AND b = :w` becomes
//! `a :v = b :w = AND`. It is flat however deep the text nests. A parenthesis says nothing about
//! whether a condition or an operand is inside, so one reader takes both: it keeps a stack of what is
//! still [open](Open) and goes from one [term](Term) to the next.

use std::ops::ControlFlow;

use super::cursor::{Cursor, WrittenPath};
use crate::error::ensure;
use crate::expr::condition::Comparator;
use crate::expr::fault::Fault;
use crate::expr::lex::TokenKind;

/// A node of the postfix form.
#[derive(Debug)]
pub(super) enum Node<'t> {
    Path(WrittenPath<'t>),
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

/// What has been begun and waits for a term.
#[derive(Debug)]
enum Open<'t> {
    /// `(`, and whether a condition may be inside.
    Group { of_conditions: bool },
    /// `operand BETWEEN`
    BetweenLow,
    /// Anything else, with the number of operands so far: the node that it becomes.
    Node(Node<'t>),
}

/// What has just been read; its nodes are the last ones.
#[derive(Clone, Copy, Debug)]
struct Term {
    kind: TermKind,
    /// Whether it is a group, with nothing around it yet.
    grouped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermKind {
    Path,
    Value,
    /// A call is a condition or an operand: which is right depends on the function.
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

/// How reading goes on.
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
    /// Whether a condition may stand here, not only an operand.
    fn takes_conditions(&self) -> bool {
        match self.open.last() {
            None | Some(Open::Node(Node::Not | Node::And | Node::Or)) => true,
            Some(Open::Group { of_conditions }) => *of_conditions,
            Some(_) => false,
        }
    }

    /// Reads up to the end of the next path or value, opening what comes before it.
    fn term(&mut self) -> Result<Term, Fault> {
        loop {
            let token = self.cursor.peek();
            let called = self.cursor.peek_second().kind == TokenKind::OpenParenthesis;
            match (token.kind, self.cursor.keyword()) {
                (TokenKind::OpenParenthesis, _) => {
                    let of_conditions = self.takes_conditions();
                    self.open.push(Open::Group { of_conditions });
                    self.cursor.next();
                }
                (_, Some("NOT")) if self.takes_conditions() => {
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

    /// Completes what the term completes, until another term is needed or the text ends.
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
                    if self.list_goes_on()? {
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

    /// Closes the innermost construct, which makes a call or a condition.
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

    /// Passes a comma, or the parenthesis that ends a list of operands.
    fn list_goes_on(&mut self) -> Result<bool, Fault> {
        if self.cursor.take(TokenKind::Comma) {
            return Ok(true);
        }
        self.cursor.expect(TokenKind::CloseParenthesis)?;
        Ok(false)
    }

    /// Goes on after a term that is not an operand of something open: to a larger term, or else to
    /// what comes next.
    fn after(&mut self, term: Term) -> Result<ControlFlow<Next, Term>, Fault> {
        let token = self.cursor.peek().kind;
        let conditions = self.takes_conditions();
        if term.is_operand()
            && conditions
            && let Some(open) = self.operator()?
        {
            self.open.push(open);
            return Ok(ControlFlow::Break(Next::Term));
        }
        match (token, self.cursor.keyword()) {
            (TokenKind::Dot | TokenKind::OpenBracket, _) => self.lengthen(term),
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

    /// Passes an operator that comes between operands, if one is next.
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

    /// Goes on with a path that was in parentheses: `(a.b)[0]`.
    fn lengthen(&mut self, term: Term) -> Result<ControlFlow<Next, Term>, Fault> {
        match self.nodes.last_mut() {
            Some(Node::Path(path)) if term.kind == TermKind::Path => {
                self.cursor.path_rest(path)?;
                Ok(ControlFlow::Continue(Term::new(TermKind::Path)))
            }
            _ => Err(self.cursor.syntax_error()),
        }
    }

    /// Closes a group. One that holds nothing but another group is refused where it ends, even if
    /// the text behind it is wrong as well.
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

    /// Opens the right side of `AND` or `OR`, after completing what binds at least as tightly.
    fn join(&mut self, operator: Node<'t>) -> ControlFlow<Next, Term> {
        self.complete_joined(matches!(operator, Node::Or));
        self.open.push(Open::Node(operator));
        self.cursor.next();
        ControlFlow::Break(Next::Term)
    }

    /// Completes every `NOT` and `AND` up to the innermost group, and if asked every `OR`.
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
