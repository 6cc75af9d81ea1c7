//! Partitions: which chain of epochs a stream belongs to.
//!
//! All events of a stream go to one partition, by a hash of the stream's name, so that their order is kept. The hash
//! is FNV-1a of 64 bits. It never changes, nor does the number of partitions of a feed: the streams would move, and
//! events of one stream would stand in two chains without an order between them.

use std::fmt;
use std::num::NonZeroU32;

use floe_store::hash::fnv1a;

use crate::events::keys::StreamName;

/// One of the chains that a feed consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Partition(u32);

impl Partition {
    /// The only partition of a feed that has one.
    pub const FIRST: Self = Self(0);

    /// The partition of this number, from 0.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number, from 0.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many partitions a feed has.
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

    /// So many partitions.
    pub const fn new(count: NonZeroU32) -> Self {
        Self(count)
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.0.get()
    }

    /// All of them.
    pub fn all(self) -> impl Iterator<Item = Partition> {
        (0..self.count()).map(Partition)
    }

    /// The one that a stream belongs to.
    pub fn of(self, stream: &StreamName) -> Partition {
        let rest = fnv1a(stream.as_str().as_bytes()) % u64::from(self.count());
        // The rest is below the count, so this never falls back.
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

    /// The vectors of the function's authors.
    #[test]
    fn the_hash_is_fnv1a() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("b", 0xaf63_df4c_8601_f1a5),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }

    /// These stand in tables: a change that breaks this test breaks feeds.
    #[test]
    fn streams_stay_where_they_are() {
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
