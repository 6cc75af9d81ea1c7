//! Reads parts of packed bytes that have been validated.

use super::{
    BINARY, BINARY_SET, FALSE, LIST, MAP, NULL, NUMBER, NUMBER_SET, PackedReader, STRING,
    STRING_SET, TRUE, Unpack, expect_valid,
};
use crate::number::Number;
use crate::value::{Value, ValueType};

impl<'a> PackedReader<'a> {
    /// Reads the name of an attribute, whose value follows.
    #[inline]
    pub(in crate::value::item) fn take_name(&mut self) -> &'a str {
        expect_valid(self.prefixed_text())
    }

    /// Reads the bytes of the name of an attribute, whose value follows.
    #[inline]
    pub(in crate::value::item) fn take_name_bytes(&mut self) -> &'a [u8] {
        expect_valid(self.prefixed())
    }

    /// Skips a value without decoding it.
    #[inline]
    pub(in crate::value::item) fn skip(&mut self) {
        expect_valid(self.skip_value());
    }

    /// Decodes the value.
    pub(in crate::value::item) fn unpack(mut self) -> Value {
        expect_valid(self.value::<Unpack>(0))
    }

    pub(in crate::value::item) fn value_type(mut self) -> ValueType {
        match expect_valid(self.byte()) & 0x0f {
            NULL => ValueType::Null,
            FALSE | TRUE => ValueType::Bool,
            NUMBER => ValueType::N,
            STRING => ValueType::S,
            BINARY => ValueType::B,
            MAP => ValueType::M,
            LIST => ValueType::L,
            STRING_SET => ValueType::Ss,
            NUMBER_SET => ValueType::Ns,
            BINARY_SET => ValueType::Bs,
            _ => expect_valid(None),
        }
    }

    #[inline]
    pub(in crate::value::item) fn peek_text(mut self) -> Option<&'a str> {
        let length = self.length_of(STRING)?;
        Some(expect_valid(self.text(length)))
    }

    #[inline]
    pub(in crate::value::item) fn peek_number(mut self) -> Option<Number> {
        (self.byte()? == NUMBER).then(|| expect_valid(self.number()))
    }

    #[inline]
    pub(in crate::value::item) fn peek_bytes(mut self) -> Option<&'a [u8]> {
        let length = self.length_of(BINARY)?;
        self.bytes(length)
    }

    /// Returns a reader at the attributes of a map, and their number.
    #[inline]
    pub(in crate::value::item) fn peek_map(mut self) -> Option<(Self, usize)> {
        let count = self.length_of(MAP)?;
        Some((self, count))
    }

    /// Returns a reader at the elements of a list, and their number.
    #[inline]
    pub(in crate::value::item) fn peek_list(mut self) -> Option<(Self, usize)> {
        let count = self.length_of(LIST)?;
        Some((self, count))
    }

    /// The length or count of a value of this type; `None` for other types.
    #[inline]
    fn length_of(&mut self, kind: u8) -> Option<usize> {
        let head = self.byte()?;
        if head & 0x0f != kind {
            return None;
        }
        self.length(head)
    }

    #[inline]
    fn skip_value(&mut self) -> Option<()> {
        let head = self.byte()?;
        match head & 0x0f {
            NULL | FALSE | TRUE => {}
            NUMBER => self.number().map(drop)?,
            STRING | BINARY => {
                let length = self.length(head)?;
                self.bytes(length)?;
            }
            kind => self.skip_container(kind, head)?,
        }
        Some(())
    }

    fn skip_container(&mut self, kind: u8, head: u8) -> Option<()> {
        for _ in 0..self.length(head)? {
            match kind {
                MAP => {
                    self.prefixed()?;
                    self.skip_value()?;
                }
                LIST => self.skip_value()?,
                NUMBER_SET => self.number().map(drop)?,
                _ => self.prefixed().map(drop)?,
            }
        }
        Some(())
    }
}
