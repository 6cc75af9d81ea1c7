//! A cursor over the tokens of a text, and the path syntax that all grammars share.

use crate::error::ensure;
use crate::expr::fault::Fault;
use crate::expr::lex::{Token, TokenKind, tokenize};

/// A name in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameToken<'t> {
    /// `name`
    Word(&'t str),
    /// `#name`
    Placeholder(&'t str),
}

/// A step of a path in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepToken<'t> {
    /// `.name`
    Name(NameToken<'t>),
    /// The digits in `[0]`.
    Index(&'t str),
}

/// A path in the text, with unresolved placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnresolvedPath<'t> {
    pub(super) root: NameToken<'t>,
    pub(super) rest: Vec<StepToken<'t>>,
}

/// A cursor over the tokens of a text.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    /// The keywords of the grammar, which cannot be names.
    keywords: &'static [&'static str],
}

impl<'t> Cursor<'t> {
    /// Creates a cursor at the first token.
    pub(super) fn new(text: &'t str, keywords: &'static [&'static str]) -> Self {
        Self {
            text,
            tokens: tokenize(text),
            at: 0,
            keywords,
        }
    }

    /// Returns the current token; at the end, always the end token.
    pub(super) fn peek(&self) -> Token<'t> {
        self.token(self.at)
    }

    /// Returns the token after the current one.
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

    /// Consumes and returns the current token.
    pub(super) fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Consumes the current token if it has this kind.
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        self.take_if(|token| token.kind == kind)
    }

    fn take_if(&mut self, wanted: impl Fn(Token<'t>) -> bool) -> bool {
        let found = wanted(self.peek());
        self.at += usize::from(found);
        found
    }

    /// Consumes the current token, which must have this kind.
    pub(super) fn expect(&mut self, kind: TokenKind) -> Result<Token<'t>, Fault> {
        ensure(self.peek().kind == kind, || self.syntax_error())?;
        Ok(self.next())
    }

    /// The fault for an unexpected token. Quotes the text from the previous to the next token, or the last token if the
    /// text ends too early.
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

    /// Returns the keyword at the cursor, if there is one.
    pub(super) fn keyword(&self) -> Option<&'static str> {
        let token = self.peek();
        let mut keywords = self.keywords.iter().copied();
        keywords.find(|keyword| token.is_keyword(keyword))
    }

    /// Consumes this keyword if it is next.
    pub(super) fn take_keyword(&mut self, keyword: &str) -> bool {
        self.take_if(|token| token.is_keyword(keyword))
    }

    /// Parses a path.
    pub(super) fn path(&mut self) -> Result<UnresolvedPath<'t>, Fault> {
        let (root, rest) = (self.name()?, Vec::new());
        let mut path = UnresolvedPath { root, rest };
        self.path_rest(&mut path)?;
        Ok(path)
    }

    /// Parses the continuation of a path.
    pub(super) fn path_rest(&mut self, path: &mut UnresolvedPath<'t>) -> Result<(), Fault> {
        loop {
            if self.take(TokenKind::Dot) {
                path.rest.push(StepToken::Name(self.name()?));
            } else if self.take(TokenKind::OpenBracket) {
                let digits = self.expect(TokenKind::Integer)?.text;
                path.rest.push(StepToken::Index(digits));
                self.expect(TokenKind::CloseBracket)?;
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<NameToken<'t>, Fault> {
        let token = self.peek();
        let name = match token.kind {
            TokenKind::Word if self.keyword().is_none() => NameToken::Word(token.text),
            TokenKind::Name => NameToken::Placeholder(token.text),
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok(name)
    }
}
