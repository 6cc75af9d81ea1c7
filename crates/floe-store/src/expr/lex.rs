//! Text to tokens.
//!
//! Every character of the text ends up in a token or is white space between two: what cannot be read
//! becomes an [`Unreadable`](TokenKind::Unreadable) token, which no grammar accepts, so that the parser
//! reports it where it stands.

use super::condition::Comparator;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A letter and then letters, digits and underscores: an attribute, a function or a keyword.
    Word,
    /// `#name`
    Name,
    /// `:value`
    Value,
    /// `0`, or digits that do not begin with it.
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
    /// A character that begins nothing.
    Unreadable,
    /// The end of the text.
    End,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
    /// Where it begins, in bytes.
    pub(super) start: usize,
}

impl Token<'_> {
    /// Where it ends, in bytes.
    pub(super) const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this keyword, in whatever case.
    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// The tokens of a text. The last one is its [end](TokenKind::End), and there only.
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

/// The kind and the length of the token that a text begins with.
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
        _ => (Unreadable, text.chars().next().map_or(0, char::len_utf8)),
    }
}

/// How many bytes after the first are of a class.
fn run(text: &str, class: impl Fn(u8) -> bool) -> usize {
    text.bytes().skip(1).take_while(|&byte| class(byte)).count()
}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a key of the maps of placeholders is well formed: the sign, then letters, digits and
/// underscores.
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
    fn texts_fall_into_tokens() {
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
    fn digits_fall_into_integers_without_leading_zeros() {
        check("007", &["0", "0", "7"]);
        check("10", &["10"]);
        check("01", &["0", "1"]);
        check("12a", &["12", "a"]);
    }

    #[test]
    fn characters_that_begin_nothing_are_tokens_of_their_own() {
        check("_ab", &["_", "ab"]);
        check("# a", &["#", "a"]);
        check(":", &[":"]);
        check("a!=b", &["a", "!", "=", "b"]);
        check("\"ü\u{a0}", &["\"", "ü", "\u{a0}"]);
        check("😀", &["😀"]);
    }

    #[test]
    fn placeholders_are_a_sign_and_a_word() {
        for key in ["#a", "#1", "#_", "#A_9"] {
            assert!(is_placeholder(key, '#'), "key={key}");
        }
        for key in ["", "a", "#", ":a", "#a-b", "##a", "#ü", "# a"] {
            assert!(!is_placeholder(key, '#'), "key={key}");
        }
    }
}
