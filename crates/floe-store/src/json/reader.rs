//! Reads JSON front to back, token by token, without building a tree or copying strings without escapes.
//!
//! The reader knows the grammar of JSON only. The caller peeks at the next [token](Token) and then reads or skips the
//! value. Nothing here recurses.

use std::borrow::Cow;

use super::scan::plain_length;
use crate::error::{ensure, ensure_none};

/// Maximum nesting of containers; deeper texts are rejected immediately. Values may nest 32 levels deep, each of which
/// is two containers. DynamoDB still reports deeper nesting, up to about 2,000 levels, with a message.
const DEPTH_MAX: usize = 4_004;

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

type Result<T> = std::result::Result<T, Malformed>;

/// The next token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `{`
    Object,
    /// `[`
    Array,
    /// A string.
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// A JSON text and a position in it.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(super) text: &'a str,
    at: usize,
    depth: usize,
    /// Whether a container has just been opened, so that no comma precedes its first member.
    begun: bool,
    /// Whether the text has content that only the older of DynamoDB's two [validation layers](super::ValidationLayer)
    /// reads.
    pub needs_older_layer: bool,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a text.
    #[inline]
    pub const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            begun: false,
            needs_older_layer: false,
        }
    }

    /// Returns the next token without consuming it.
    #[inline]
    pub fn peek(&mut self) -> Result<Token> {
        match self.next_byte() {
            Some(b'{') => Ok(Token::Object),
            Some(b'[') => Ok(Token::Array),
            Some(b'"') => Ok(Token::String),
            Some(b'-' | b'0'..=b'9') => Ok(Token::Number),
            Some(b't' | b'f') => Ok(Token::Bool),
            Some(b'n') => Ok(Token::Null),
            _ => Err(Malformed),
        }
    }

    /// Enters an object.
    #[inline]
    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(b'{')
    }

    /// Enters an array.
    #[inline]
    pub fn begin_array(&mut self) -> Result<()> {
        self.begin(b'[')
    }

    /// Returns the name of the next member of the object. At the end, leaves the object and returns `None`.
    #[inline]
    pub fn next_name(&mut self) -> Result<Option<Cow<'a, str>>> {
        if !self.next_in(b'}')? {
            return Ok(None);
        }
        let name = self.string()?;
        self.expect(b':')?;
        Ok(Some(name))
    }

    /// Returns whether the array has another element. At the end, leaves the array.
    #[inline]
    pub fn next_element(&mut self) -> Result<bool> {
        self.next_in(b']')
    }

    /// Reads a string.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        self.expect(b'"')?;
        let start = self.at;
        self.at += plain_length(self.rest());
        let plain = self.text.get(start..self.at).ok_or(Malformed)?;
        match self.take_byte() {
            Some(b'"') => Ok(Cow::Borrowed(plain)),
            Some(b'\\') => self.escaped(plain.to_owned()).map(Cow::Owned),
            _ => Err(Malformed),
        }
    }

    /// Returns the text of a number.
    pub fn number(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.at;
        self.take_if(|byte| byte == b'-');
        match self.take_byte() {
            Some(b'0') => {}
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(Malformed),
        }
        if self.take_if(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.take_if(|byte| matches!(byte, b'e' | b'E')) {
            self.take_if(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        self.text.get(start..self.at).ok_or(Malformed)
    }

    /// Reads `true` or `false`.
    #[inline]
    pub fn bool(&mut self) -> Result<bool> {
        match self.next_byte() {
            Some(b't') => self.word("true").map(|()| true),
            _ => self.word("false").map(|()| false),
        }
    }

    /// Reads `null`.
    #[inline]
    pub fn null(&mut self) -> Result<()> {
        self.skip_space();
        self.word("null")
    }

    /// Skips any value.
    pub fn skip(&mut self) -> Result<()> {
        self.skip_depth().map(drop)
    }

    /// Returns the text of any value.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at).ok_or(Malformed)
    }

    /// Skips any value and returns how deep its containers are nested.
    pub fn skip_depth(&mut self) -> Result<usize> {
        let mut inside: Vec<u8> = Vec::new();
        let mut deepest = 0;
        loop {
            match self.peek()? {
                Token::Object => {
                    self.begin_object()?;
                    inside.push(b'}');
                }
                Token::Array => {
                    self.begin_array()?;
                    inside.push(b']');
                }
                Token::String => drop(self.string()?),
                Token::Number => drop(self.number()?),
                Token::Bool => drop(self.bool()?),
                Token::Null => self.null()?,
            }
            deepest = deepest.max(inside.len());
            if !self.skip_ends(&mut inside)? {
                return Ok(deepest);
            }
        }
    }

    /// Moves to the next value in the open containers. Returns false if none is left.
    fn skip_ends(&mut self, inside: &mut Vec<u8>) -> Result<bool> {
        while let Some(end) = inside.last() {
            let more = match end {
                b'}' => self.next_name()?.is_some(),
                _ => self.next_element()?,
            };
            if more {
                return Ok(true);
            }
            inside.pop();
        }
        Ok(false)
    }

    /// The current position, for [`revisit`](Reader::revisit).
    #[inline]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// A reader at an earlier position, before a value.
    #[inline]
    pub const fn revisit(&self, position: usize) -> Self {
        Self {
            at: position,
            begun: false,
            ..*self
        }
    }

    /// Returns an error if anything follows the value.
    pub fn finish(mut self) -> Result<()> {
        ensure_none(self.next_byte(), |_| Malformed)
    }

    #[inline]
    fn begin(&mut self, bracket: u8) -> Result<()> {
        self.expect(bracket)?;
        self.depth += 1;
        self.begun = true;
        ensure(self.depth <= DEPTH_MAX, || Malformed)
    }

    #[inline]
    fn next_in(&mut self, end: u8) -> Result<bool> {
        let first = std::mem::take(&mut self.begun);
        match self.next_byte() {
            Some(byte) if byte == end => {
                self.at += 1;
                self.depth = self.depth.saturating_sub(1);
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Reads the rest of a string from its first escape on; the backslash has been consumed.
    #[cold]
    fn escaped(&mut self, mut text: String) -> Result<String> {
        loop {
            text.push(self.escape()?);
            let start = self.at;
            self.at += plain_length(self.rest());
            text.push_str(self.text.get(start..self.at).ok_or(Malformed)?);
            match self.take_byte() {
                Some(b'"') => return Ok(text),
                Some(b'\\') => {}
                _ => return Err(Malformed),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        Ok(match self.take_byte() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(Malformed),
        })
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let unit = self.hex4()?;
        let code = match unit {
            0xD800..0xDC00 => {
                self.word("\\u")?;
                let low = self.hex4()?;
                ensure((0xDC00..0xE000).contains(&low), || Malformed)?;
                0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
            }
            unit => unit,
        };
        char::from_u32(code).ok_or(Malformed)
    }

    fn hex4(&mut self) -> Result<u32> {
        (0..4).try_fold(0, |code, _| {
            let digit = self.take_byte().map(char::from);
            let digit = digit.and_then(|digit| digit.to_digit(16));
            Ok(code * 16 + digit.ok_or(Malformed)?)
        })
    }

    fn digits(&mut self) -> Result<()> {
        let first = self.take_if(|byte| byte.is_ascii_digit());
        self.skip_digits();
        ensure(first, || Malformed)
    }

    fn skip_digits(&mut self) {
        while self.take_if(|byte| byte.is_ascii_digit()) {}
    }

    #[inline]
    fn word(&mut self, word: &str) -> Result<()> {
        ensure(self.rest().starts_with(word.as_bytes()), || Malformed)?;
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<()> {
        ensure(self.next_byte() == Some(byte), || Malformed)?;
        self.at += 1;
        Ok(())
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn take_byte(&mut self) -> Option<u8> {
        let byte = self.text.as_bytes().get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    #[inline]
    fn take_if(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let next = self.text.as_bytes().get(self.at);
        let taken = next.is_some_and(|byte| wanted(*byte));
        self.at += usize::from(taken);
        taken
    }

    #[inline]
    fn skip_space(&mut self) {
        while self.take_if(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {}
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(text: &str) -> bool {
        let mut reader = Reader::new(text);
        reader.skip().and_then(|()| reader.finish()).is_ok()
    }

    #[test]
    fn accepts_json_and_rejects_everything_else() {
        for text in [
            "{}",
            " [ ] ",
            r#"{"a":1,"b":[true,false,null,"x",-0.5e+10,{"c":{}}]}"#,
            "\t\r\n0",
            r#""\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t""#,
            "-1.25E-7",
        ] {
            assert!(skips(text), "text={text}");
        }
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "]",
            "[1,]",
            "[,1]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{a:1}"#,
            "[1 2]",
            r#"{"a":1 "b":2}"#,
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "1e+",
            "tru",
            "nul",
            "falsey",
            "NaN",
            "'a'",
            r#""a"#,
            "\"\n\"",
            r#""\x""#,
            r#""\u12""#,
            r#""\ud83d""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            "{} {}",
            "[1]]",
            "[}",
            "{]",
            r#"["a":1]"#,
            "1 1",
        ] {
            assert!(!skips(text), "text={text}");
        }
    }

    #[test]
    fn string_without_escapes_is_borrowed() {
        let mut reader = Reader::new(r#"["größer", "a\"b", "\u0041\ud83d\ude00z"]"#);
        reader.begin_array().unwrap();
        let mut strings = Vec::new();
        while reader.next_element().unwrap() {
            strings.push(reader.string().unwrap());
        }
        assert_eq!(strings, ["größer", "a\"b", "A😀z"]);
        assert!(matches!(strings[0], Cow::Borrowed(_)));
        assert!(matches!(strings[1], Cow::Owned(_)));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn members_are_read_in_order() {
        let mut reader = Reader::new(r#" {"a" : 1.5 , "b" : {"c" : [ ]} , "d" : true } "#);
        reader.begin_object().unwrap();
        assert_eq!(reader.next_name().unwrap().as_deref(), Some("a"));
        assert_eq!(reader.peek(), Ok(Token::Number));
        assert_eq!(reader.number(), Ok("1.5"));
        assert_eq!(reader.next_name().unwrap().as_deref(), Some("b"));
        reader.skip().unwrap();
        assert_eq!(reader.next_name().unwrap().as_deref(), Some("d"));
        assert_eq!(reader.bool(), Ok(true));
        assert_eq!(reader.next_name(), Ok(None));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn nesting_depth_is_limited() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(skips(&nested(DEPTH_MAX)));
        assert!(!skips(&nested(DEPTH_MAX + 1)));
        assert!(!skips(&"[".repeat(1_000_000)));
        assert!(!skips(&r#"{"a":"#.repeat(1_000_000)));
    }
}
