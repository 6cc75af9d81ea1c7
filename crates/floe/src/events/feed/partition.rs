//! Partitions: the chain of epochs that a stream belongs to.
//!
//! All events of a stream are in one partition, chosen by a hash of the stream's name, so that their order is kept.
//! The hash is 64-bit FNV-1a. Neither the hash nor the number of partitions of a feed can change: streams would move,
//! and their events would be in two partitions without a common order.

use std::fmt;
use std::num::NonZeroU32;

use floe_store::hash::fnv1a;

use crate::events::keys::StreamName;

/// A partition of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Partition(u32);

impl Partition {
    /// The only partition of a feed with one partition.
    pub const FIRST: Self = Self(0);

    /// The partition with this number, starting at 0.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number, starting at 0.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of partitions of a feed.
///
/// ```
/// use std::num::NonZeroU32;
///
/// use floe::events::StreamName;
/// use floe::events::feed::{Partition, Partitions};
///
/// # fn main() -> Result<(), floe::Error> {
/// let cart = StreamName::parse("Cart-1")?;
/// assert_eq!(Partitions::ONE.of(&cart), Partition::FIRST);
/// let eight = Partitions::new(NonZeroU32::MIN.saturating_add(7));
/// assert_eq!(eight.of(&cart), eight.of(&cart));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partitions(NonZeroU32);

impl Partitions {
    /// A single partition.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// Creates a number of partitions.
    pub const fn new(count: NonZeroU32) -> Self {
        Self(count)
    }

    /// The number of partitions.
    pub const fn count(self) -> u32 {
        self.0.get()
    }

    /// All partitions.
    pub fn all(self) -> impl Iterator<Item = Partition> {
        (0..self.count()).map(Partition)
    }

    /// The partition of a stream.
    pub fn of(self, stream: &StreamName) -> Partition {
        let rest = fnv1a(stream.as_str().as_bytes()) % u64::from(self.count());
        // The remainder is below the count, so it fits.
        Partition(u32::try_from(rest).unwrap_or_default())
    }
}

impl Default for Partitions {
    fn default() -> Self {
        Self::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(count: u32) -> Partitions {
        Partitions::new(NonZeroU32::new(count).unwrap())
    }

    /// Test vectors of the function's authors.
    #[test]
    fn hash_is_fnv1a() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("b", 0xaf63_df4c_8601_f1a5),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }

    /// These assignments are stored in tables: a change that breaks this test breaks existing feeds.
    #[test]
    fn stream_partitions_never_change() {
        let eight = partitions(8);
        let of = |text| eight.of(&StreamName::parse(text).unwrap()).number();
        let found = ["Cart-1", "Cart-2", "Seat-hall1_7", "Größe-é"].map(of);
        assert_eq!(found, [5, 4, 5, 1]);
    }

    #[test]
    fn streams_are_spread_evenly() {
        let sixteen = partitions(16);
        let mut counts = [0; 16];
        for id in 0..16_000 {
            let stream = StreamName::new("Cart", &id).unwrap();
            counts[sixteen.of(&stream).number() as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
        assert_eq!(sixteen.all().count(), 16);
    }
}
