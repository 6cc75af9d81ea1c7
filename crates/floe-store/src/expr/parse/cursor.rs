//! A position in the tokens of a text, and what every grammar reads: paths.

use crate::error::ensure;
use crate::expr::fault::Fault;
use crate::expr::lex::{Token, TokenKind, tokenize};

/// A name as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenName<'t> {
    /// `name`
    Word(&'t str),
    /// `#name`
    Placeholder(&'t str),
}

/// A step of a path as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenStep<'t> {
    /// `.name`
    Name(WrittenName<'t>),
    /// `[0]`, the digits
    Index(&'t str),
}

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenPath<'t> {
    pub(super) root: WrittenName<'t>,
    pub(super) rest: Vec<WrittenStep<'t>>,
}

/// A position in the tokens of a text.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    /// The words of the grammar, which cannot be names.
    keywords: &'static [&'static str],
}

impl<'t> Cursor<'t> {
    /// Before the first token.
    pub(super) fn new(text: &'t str, keywords: &'static [&'static str]) -> Self {
        Self {
            text,
            tokens: tokenize(text),
            at: 0,
            keywords,
        }
    }

    /// The token at the position; at the end the end, however often one goes on.
    pub(super) fn peek(&self) -> Token<'t> {
        self.token(self.at)
    }

    /// The token after the one at the position.
    pub(super) fn peek_second(&self) -> Token<'t> {
        self.token(self.at + 1)
    }

    fn token(&self, at: usize) -> Token<'t> {
        let end = Token {
            kind: TokenKind::End,
            text: "",
            start: self.text.len(),
        };
        self.tokens.get(at).copied().unwrap_or(end)
    }

    /// Goes on by one token, and returns the one that it passes.
    pub(super) fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Passes a token of this kind if it is next.
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        self.take_if(|token| token.kind == kind)
    }

    fn take_if(&mut self, wanted: impl Fn(Token<'t>) -> bool) -> bool {
        let found = wanted(self.peek());
        self.at += usize::from(found);
        found
    }

    /// Passes a token of this kind, which must be next.
    pub(super) fn expect(&mut self, kind: TokenKind) -> Result<Token<'t>, Fault> {
        ensure(self.peek().kind == kind, || self.syntax_error())?;
        Ok(self.next())
    }

    /// The fault that the token at the position does not belong there. It quotes the text from the
    /// token before to the token after, and of a text that ends too early its last token.
    pub(super) fn syntax_error(&self) -> Fault {
        let token = self.peek();
        let before = self.at.checked_sub(1).map(|at| self.token(at));
        let (shown, near) = if token.kind == TokenKind::End {
            ("<EOF>", before.map_or(self.text, |last| last.text))
        } else {
            let start = before.map_or(token.start, |before| before.start);
            let after = self.peek_second();
            let end = match after.kind {
                TokenKind::End => token.end(),
                _ => after.end(),
            };
            (token.text, self.text.get(start..end).unwrap_or_default())
        };
        Fault::Syntax {
            token: shown.to_owned(),
            near: near.to_owned(),
        }
    }

    /// The keyword at the position, if there is one.
    pub(super) fn keyword(&self) -> Option<&'static str> {
        let token = self.peek();
        let mut keywords = self.keywords.iter().copied();
        keywords.find(|keyword| token.is_keyword(keyword))
    }

    /// Passes this keyword if it is next.
    pub(super) fn take_keyword(&mut self, keyword: &str) -> bool {
        self.take_if(|token| token.is_keyword(keyword))
    }

    /// Reads a path.
    pub(super) fn path(&mut self) -> Result<WrittenPath<'t>, Fault> {
        let (root, rest) = (self.name()?, Vec::new());
        let mut path = WrittenPath { root, rest };
        self.path_rest(&mut path)?;
        Ok(path)
    }

    /// Reads what a path goes on with.
    pub(super) fn path_rest(&mut self, path: &mut WrittenPath<'t>) -> Result<(), Fault> {
        loop {
            if self.take(TokenKind::Dot) {
                path.rest.push(WrittenStep::Name(self.name()?));
            } else if self.take(TokenKind::OpenBracket) {
                let digits = self.expect(TokenKind::Integer)?.text;
                path.rest.push(WrittenStep::Index(digits));
                self.expect(TokenKind::CloseBracket)?;
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<WrittenName<'t>, Fault> {
        let token = self.peek();
        let name = match token.kind {
            TokenKind::Word if self.keyword().is_none() => WrittenName::Word(token.text),
            TokenKind::Name => WrittenName::Placeholder(token.text),
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok(name)
    }
}
