//! Writes JSON into a buffer.

use std::fmt::Write as _;

use super::scan::plain_length;
use crate::number::Number;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A JSON text under construction. Commas are inserted automatically; the caller closes what it opens.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// A writer with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
        }
    }

    /// A writer that reuses a buffer [returned](Self::into_bytes) by another one. The buffer is cleared.
    pub fn reusing(mut out: Vec<u8>) -> Self {
        out.clear();
        Self { out }
    }

    /// Returns the text as bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        // Only UTF-8 is ever written.
        String::from_utf8(self.out).unwrap_or_default()
    }

    /// Writes an object whose members the function writes.
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.begin_object();
        members(self);
        self.end_object();
    }

    /// Writes an array whose elements the function writes.
    pub fn array(&mut self, elements: impl FnOnce(&mut Self)) {
        self.begin_array();
        elements(self);
        self.end_array();
    }

    /// Opens an object.
    #[inline]
    pub fn begin_object(&mut self) {
        self.comma();
        self.out.push(b'{');
    }

    /// Closes an object.
    #[inline]
    pub fn end_object(&mut self) {
        self.out.push(b'}');
    }

    /// Opens an array.
    #[inline]
    pub fn begin_array(&mut self) {
        self.comma();
        self.out.push(b'[');
    }

    /// Closes an array.
    #[inline]
    pub fn end_array(&mut self) {
        self.out.push(b']');
    }

    /// Writes the name of an object's first member, given with quotes and colon.
    #[inline]
    pub fn key(&mut self, written: &'static str) -> &mut Self {
        self.out.extend_from_slice(written.as_bytes());
        self
    }

    /// Writes the name of a member; its value must follow.
    #[inline]
    pub fn name(&mut self, name: &str) -> &mut Self {
        self.string(name);
        self.out.push(b':');
        self
    }

    /// Writes a string.
    #[inline]
    pub fn string(&mut self, text: &str) {
        self.comma();
        self.out.push(b'"');
        self.escape(text.as_bytes());
        self.out.push(b'"');
    }

    /// Writes a DynamoDB number as a string.
    #[inline]
    pub fn decimal(&mut self, number: Number) {
        self.comma();
        self.out.push(b'"');
        // Writing to a vector cannot fail.
        let written = number.write(&mut Utf8(&mut self.out));
        debug_assert!(written.is_ok());
        self.out.push(b'"');
    }

    /// Writes bytes as a base64 string.
    pub fn base64(&mut self, bytes: &[u8]) {
        self.comma();
        self.out.push(b'"');
        let start = self.out.len();
        // Groups of three bytes become four characters; encoding into a slice avoids a second buffer.
        self.out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        let room = self.out.get_mut(start..);
        let written = room.map(|room| STANDARD.encode_slice(bytes, room));
        debug_assert!(matches!(written, Some(Ok(_))));
        self.out.push(b'"');
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.comma();
        self.out.extend_from_slice(b"null");
    }

    /// Writes a number, or anything that prints as JSON.
    pub fn number(&mut self, number: impl std::fmt::Display) {
        self.comma();
        // Writing to a vector cannot fail, and only numbers and names are printed here.
        let printed = write!(Utf8(&mut self.out), "{number}");
        debug_assert!(printed.is_ok());
    }

    /// Writes `true` or `false`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.comma();
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes a comma unless this is the first entry of a container.
    #[inline]
    fn comma(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(b',');
        }
    }

    fn escape(&mut self, mut bytes: &[u8]) {
        loop {
            let (plain, rest) = bytes.split_at(plain_length(bytes));
            self.out.extend_from_slice(plain);
            let Some((special, rest)) = rest.split_first() else {
                return;
            };
            self.escape_byte(*special);
            bytes = rest;
        }
    }

    fn escape_byte(&mut self, byte: u8) {
        let letter = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            control => {
                const HEX: [u8; 16] = *b"0123456789ABCDEF";
                let digit = |n: u8| HEX.get(usize::from(n)).copied().unwrap_or(b'0');
                let digits = [digit(control >> 4), digit(control & 15)];
                self.out.extend_from_slice(b"\\u00");
                self.out.extend_from_slice(&digits);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', letter]);
    }
}

/// Adapts a byte buffer to `fmt::Write`.
struct Utf8<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Utf8<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer)) -> String {
        let mut writer = Writer::default();
        write(&mut writer);
        writer.into_text()
    }

    #[test]
    fn commas_separate_members_and_elements() {
        let text = written(|w| {
            w.object(|w| {
                w.name("a").number(1.5);
                w.name("b").array(|w| {
                    w.string("x");
                    w.bool(true);
                    w.object(|_| {});
                    w.array(|_| {});
                });
                w.name("c").object(|w| w.name("d").base64(&[0, 255, 1, 2]));
                w.name("e").string("");
                w.name("").string(":");
                w.name("f").decimal(Number::from(7));
            });
        });
        assert_eq!(
            text,
            r#"{"a":1.5,"b":["x",true,{},[]],"c":{"d":"AP8BAg=="},"e":"","":":","f":"7"}"#
        );
    }

    #[test]
    fn special_characters_are_escaped() {
        let text = written(|w| w.string("a\"b\\c/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀"));
        assert_eq!(
            text,
            "\"a\\\"b\\\\c/\\n\\r\\t\\b\\f\\u0001\\u001F\u{7f}é😀\""
        );
    }
}
