//! Size and depth of a packed item, computed in one pass over its bytes.

use super::{
    BINARY, BINARY_SET, FALSE, LIST, MAP, NULL, NUMBER, NUMBER_SET, Packed, PackedReader, STRING,
    STRING_SET, TRUE, expect_valid,
};
use crate::value::size::{CONTAINER_BYTES, ENTRY_BYTES};

/// Facts about an item that validation needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItemStats {
    /// The size, as by [`item_size`](crate::size::item_size).
    pub(crate) bytes: usize,
    /// The level of the deepest value; attributes are on level 1.
    pub(crate) levels: usize,
    /// Whether any name is empty.
    pub(crate) has_empty_name: bool,
    /// The length of the longest name.
    pub(crate) name_bytes_max: usize,
}

impl Packed {
    /// Computes the statistics once.
    pub(in crate::value::item) fn stats(&self) -> &ItemStats {
        self.stats.get_or_init(|| {
            let (mut reader, count) = self.attributes_reader();
            let mut stats = ItemStats::default();
            expect_valid(reader.measure_attributes(count, 1, &mut stats));
            stats
        })
    }
}

impl PackedReader<'_> {
    fn measure_attributes(
        &mut self,
        count: usize,
        level: usize,
        stats: &mut ItemStats,
    ) -> Option<()> {
        for _ in 0..count {
            let length = self.prefixed()?.len();
            stats.bytes += length;
            stats.has_empty_name |= length == 0;
            stats.name_bytes_max = stats.name_bytes_max.max(length);
            self.measure_value(level, stats)?;
        }
        Some(())
    }

    fn measure_value(&mut self, level: usize, stats: &mut ItemStats) -> Option<()> {
        stats.levels = stats.levels.max(level);
        let head = self.byte()?;
        match head & 0x0f {
            NULL | FALSE | TRUE => stats.bytes += 1,
            NUMBER => stats.bytes += self.number()?.size_bytes(),
            STRING | BINARY => {
                let length = self.length(head)?;
                stats.bytes += self.bytes(length)?.len();
            }
            kind @ (MAP | LIST) => {
                let count = self.length(head)?;
                stats.bytes += CONTAINER_BYTES + count * ENTRY_BYTES;
                if kind == MAP {
                    return self.measure_attributes(count, level + 1, stats);
                }
                for _ in 0..count {
                    self.measure_value(level + 1, stats)?;
                }
            }
            NUMBER_SET => {
                for _ in 0..self.length(head)? {
                    stats.bytes += self.number()?.size_bytes();
                }
            }
            STRING_SET | BINARY_SET => {
                for _ in 0..self.length(head)? {
                    stats.bytes += self.prefixed()?.len();
                }
            }
            _ => return None,
        }
        Some(())
    }
}
