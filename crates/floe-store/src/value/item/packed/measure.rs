//! What a packed item weighs and how deep it is, found in one pass over its bytes.

use super::{
    BINARY, BINARY_SET, FALSE, Input, LIST, MAP, NULL, NUMBER, NUMBER_SET, Packed, STRING,
    STRING_SET, TRUE, checked,
};
use crate::value::size::{CONTAINER_BYTES, ENTRY_BYTES};

/// What is known of an item without looking at its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    /// Its size, as [`item_size`](crate::size::item_size) tells it.
    pub(crate) bytes: usize,
    /// The level of its deepest value; that of an attribute is 1.
    pub(crate) levels: usize,
    /// Whether a name in it is empty.
    pub(crate) has_empty_name: bool,
    /// The length of its longest name.
    pub(crate) name_bytes_max: usize,
}

impl Packed {
    /// Measures it, once.
    pub(in crate::value::item) fn measure(&self) -> &Measure {
        self.measure.get_or_init(|| {
            let (mut input, count) = self.attributes_input();
            let mut measure = Measure::default();
            checked(input.measure_attributes(count, 1, &mut measure));
            measure
        })
    }
}

impl Input<'_> {
    fn measure_attributes(
        &mut self,
        count: usize,
        level: usize,
        measure: &mut Measure,
    ) -> Option<()> {
        for _ in 0..count {
            let length = self.prefixed()?.len();
            measure.bytes += length;
            measure.has_empty_name |= length == 0;
            measure.name_bytes_max = measure.name_bytes_max.max(length);
            self.measure_value(level, measure)?;
        }
        Some(())
    }

    fn measure_value(&mut self, level: usize, measure: &mut Measure) -> Option<()> {
        measure.levels = measure.levels.max(level);
        let head = self.byte()?;
        match head & 0x0f {
            NULL | FALSE | TRUE => measure.bytes += 1,
            NUMBER => measure.bytes += self.number()?.size_bytes(),
            STRING | BINARY => {
                let length = self.length(head)?;
                measure.bytes += self.bytes(length)?.len();
            }
            kind @ (MAP | LIST) => {
                let count = self.length(head)?;
                measure.bytes += CONTAINER_BYTES + count * ENTRY_BYTES;
                if kind == MAP {
                    return self.measure_attributes(count, level + 1, measure);
                }
                for _ in 0..count {
                    self.measure_value(level + 1, measure)?;
                }
            }
            NUMBER_SET => {
                for _ in 0..self.length(head)? {
                    measure.bytes += self.number()?.size_bytes();
                }
            }
            STRING_SET | BINARY_SET => {
                for _ in 0..self.length(head)? {
                    measure.bytes += self.prefixed()?.len();
                }
            }
            _ => return None,
        }
        Some(())
    }
}
