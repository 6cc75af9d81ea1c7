//! Packed bytes that have been checked, looked at in part.

use super::{
    BINARY, BINARY_SET, FALSE, Input, LIST, MAP, Make, NULL, NUMBER, NUMBER_SET, STRING,
    STRING_SET, TRUE, checked,
};
use crate::number::Number;
use crate::value::{Value, ValueType};

impl<'a> Input<'a> {
    /// The name of an attribute, whose value follows.
    #[inline]
    pub(in crate::value::item) fn take_name(&mut self) -> &'a str {
        checked(self.prefixed_text())
    }

    /// The bytes of the name of an attribute, whose value follows.
    #[inline]
    pub(in crate::value::item) fn take_name_bytes(&mut self) -> &'a [u8] {
        checked(self.prefixed())
    }

    /// Goes past a value without a look at what is in it.
    #[inline]
    pub(in crate::value::item) fn pass(&mut self) {
        checked(self.pass_value());
    }

    /// The value.
    pub(in crate::value::item) fn make(mut self) -> Value {
        checked(self.value::<Make>(0))
    }

    pub(in crate::value::item) fn value_type(mut self) -> ValueType {
        match checked(self.byte()) & 0x0f {
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
            _ => checked(None),
        }
    }

    #[inline]
    pub(in crate::value::item) fn peek_text(mut self) -> Option<&'a str> {
        let length = self.length_of(STRING)?;
        Some(checked(self.text(length)))
    }

    #[inline]
    pub(in crate::value::item) fn peek_number(mut self) -> Option<Number> {
        (self.byte()? == NUMBER).then(|| checked(self.number()))
    }

    #[inline]
    pub(in crate::value::item) fn peek_bytes(mut self) -> Option<&'a [u8]> {
        let length = self.length_of(BINARY)?;
        self.bytes(length)
    }

    /// The attributes of a map, and how many there are.
    #[inline]
    pub(in crate::value::item) fn peek_map(mut self) -> Option<(Self, usize)> {
        let count = self.length_of(MAP)?;
        Some((self, count))
    }

    /// The elements of a list, and how many there are.
    #[inline]
    pub(in crate::value::item) fn peek_list(mut self) -> Option<(Self, usize)> {
        let count = self.length_of(LIST)?;
        Some((self, count))
    }

    /// The length or count of a value of this type; `None` for one of another type.
    #[inline]
    fn length_of(&mut self, kind: u8) -> Option<usize> {
        let head = self.byte()?;
        if head & 0x0f != kind {
            return None;
        }
        self.length(head)
    }

    #[inline]
    fn pass_value(&mut self) -> Option<()> {
        let head = self.byte()?;
        match head & 0x0f {
            NULL | FALSE | TRUE => {}
            NUMBER => self.number().map(drop)?,
            STRING | BINARY => {
                let length = self.length(head)?;
                self.bytes(length)?;
            }
            kind => self.pass_container(kind, head)?,
        }
        Some(())
    }

    fn pass_container(&mut self, kind: u8, head: u8) -> Option<()> {
        for _ in 0..self.length(head)? {
            match kind {
                MAP => {
                    self.prefixed()?;
                    self.pass_value()?;
                }
                LIST => self.pass_value()?,
                NUMBER_SET => self.number().map(drop)?,
                _ => self.prefixed().map(drop)?,
            }
        }
        Some(())
    }
}
