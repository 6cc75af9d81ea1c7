//! Splits text into tokens.
//!
//! Every character of the text is in a token, except white space. Unknown characters become
//! [`Unknown`](TokenKind::Unknown) tokens, which no grammar accepts, so the parser reports them with their position.

use super::condition::Comparator;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A letter followed by letters, digits and underscores: an attribute, a function or a keyword.
    Word,
    /// `#name`
    Name,
    /// `:value`
    Value,
    /// `0`, or digits without a leading zero.
    Integer,
    Comparator(Comparator),
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    Comma,
    Dot,
    Plus,
    Minus,
    /// A character that cannot start a token.
    Unknown,
    /// The end of the text.
    End,
}

/// A token of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
    /// The start offset in bytes.
    pub(super) start: usize,
}

impl Token<'_> {
    /// Returns the end offset in bytes.
    pub(super) const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether the token is this keyword, ignoring case.
    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// Returns the tokens of a text, followed by one [end](TokenKind::End) token.
pub(super) fn tokenize(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut start = 0;
    loop {
        let ahead = text.get(start..).unwrap_or_default();
        let rest = ahead.trim_start_matches([' ', '\t', '\r', '\n']);
        start += ahead.len() - rest.len();
        let (kind, length) = first_token(rest);
        let text = rest.get(..length).unwrap_or_default();
        tokens.push(Token { kind, text, start });
        if kind == TokenKind::End {
            return tokens;
        }
        start += length;
    }
}

/// Returns the kind and the length of the first token of a text.
fn first_token(text: &str) -> (TokenKind, usize) {
    use TokenKind::*;

    let mut bytes = text.bytes();
    let Some(first) = bytes.next() else {
        return (End, 0);
    };
    let second = bytes.next();
    match (first, second) {
        (b'a'..=b'z' | b'A'..=b'Z', _) => (Word, 1 + run(text, is_part)),
        (b'#', Some(next)) if is_part(next) => (Name, 1 + run(text, is_part)),
        (b':', Some(next)) if is_part(next) => (Value, 1 + run(text, is_part)),
        (b'0', _) => (Integer, 1),
        (b'1'..=b'9', _) => (Integer, 1 + run(text, |byte| byte.is_ascii_digit())),
        (b'<', Some(b'>')) => (Comparator(self::Comparator::Ne), 2),
        (b'<', Some(b'=')) => (Comparator(self::Comparator::Le), 2),
        (b'>', Some(b'=')) => (Comparator(self::Comparator::Ge), 2),
        (b'<', _) => (Comparator(self::Comparator::Lt), 1),
        (b'>', _) => (Comparator(self::Comparator::Gt), 1),
        (b'=', _) => (Comparator(self::Comparator::Eq), 1),
        (b'(', _) => (OpenParenthesis, 1),
        (b')', _) => (CloseParenthesis, 1),
        (b'[', _) => (OpenBracket, 1),
        (b']', _) => (CloseBracket, 1),
        (b',', _) => (Comma, 1),
        (b'.', _) => (Dot, 1),
        (b'+', _) => (Plus, 1),
        (b'-', _) => (Minus, 1),
        _ => (Unknown, text.chars().next().map_or(0, char::len_utf8)),
    }
}

/// Returns how many bytes after the first one satisfy the predicate.
fn run(text: &str, predicate: impl Fn(u8) -> bool) -> usize {
    text.bytes()
        .skip(1)
        .take_while(|&byte| predicate(byte))
        .count()
}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a key in a map of placeholders is well-formed: the sign, then letters, digits and underscores.
pub(super) fn is_placeholder(key: &str, sign: char) -> bool {
    key.strip_prefix(sign)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let tokens = tokenize(text);
        let (end, tokens) = tokens.split_last().unwrap();
        assert_eq!(end.kind, TokenKind::End, "text={text}");
        let texts: Vec<_> = tokens.iter().map(|token| token.text).collect();
        assert_eq!(texts, expected, "text={text}");
        for token in tokens {
            assert_eq!(&text[token.start..token.end()], token.text, "text={text}");
        }
    }

    #[test]
    fn text_is_split_into_tokens() {
        check("", &[]);
        check(" \t\r\n ", &[]);
        check("a=:v", &["a", "=", ":v"]);
        check(
            "a<>b<=c>=d<e>f",
            &["a", "<>", "b", "<=", "c", ">=", "d", "<", "e", ">", "f"],
        );
        check("a == b", &["a", "=", "=", "b"]);
        check("a.#b[10]", &["a", ".", "#b", "[", "10", "]"]);
        check("size(a),x", &["size", "(", "a", ")", ",", "x"]);
        check("a+b-c", &["a", "+", "b", "-", "c"]);
        check("A_1b #1_ :_", &["A_1b", "#1_", ":_"]);
        check("#a:b", &["#a", ":b"]);
    }

    #[test]
    fn integers_have_no_leading_zeros() {
        check("007", &["0", "0", "7"]);
        check("10", &["10"]);
        check("01", &["0", "1"]);
        check("12a", &["12", "a"]);
    }

    #[test]
    fn unknown_characters_are_separate_tokens() {
        check("_ab", &["_", "ab"]);
        check("# a", &["#", "a"]);
        check(":", &[":"]);
        check("a!=b", &["a", "!", "=", "b"]);
        check("\"ü\u{a0}", &["\"", "ü", "\u{a0}"]);
        check("😀", &["😀"]);
    }

    #[test]
    fn placeholder_is_a_sign_followed_by_a_word() {
        for key in ["#a", "#1", "#_", "#A_9"] {
            assert!(is_placeholder(key, '#'), "key={key}");
        }
        for key in ["", "a", "#", ":a", "#a-b", "##a", "#ü", "# a"] {
            assert!(!is_placeholder(key, '#'), "key={key}");
        }
    }
}
