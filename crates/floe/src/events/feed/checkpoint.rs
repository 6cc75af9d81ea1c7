//! Places in the feed of a partition: which epoch, and how far into it.

use std::fmt;
use std::str::FromStr;

use super::limits::EPOCH_OFFSETS;
use crate::error::{Error, Result};
use crate::events::keys::invalid;

/// What stands between the epoch and the offset.
const EPOCH_END: char = '@';

/// A place in the feed of a partition: everything before it is done with.
///
/// It is stored as one number, the epoch times 1,000,000 plus the offset, so that later places are larger numbers.
///
/// ```
/// use floe::events::feed::Checkpoint;
///
/// # fn main() -> Result<(), floe::Error> {
/// let checkpoint = Checkpoint::of(1, 57)?;
/// assert_eq!(checkpoint.as_u64(), 1_000_057);
/// assert_eq!(checkpoint.to_string(), "1@57");
/// assert_eq!("1@57".parse::<Checkpoint>()?, checkpoint);
/// assert!(checkpoint < checkpoint.next_epoch());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Checkpoint(u64);

impl Checkpoint {
    /// The beginning of the feed.
    pub const START: Self = Self(0);

    /// The place before the event at this offset of an epoch.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when an epoch has no such offset.
    pub fn of(epoch: u32, offset: u64) -> Result<Self> {
        if offset >= u64::from(EPOCH_OFFSETS) {
            return Err(invalid(
                "an epoch has no such offset",
                &format!("epoch={epoch} offset={offset} max={}", EPOCH_OFFSETS - 1),
            ));
        }
        Ok(Self(Self::at_start_of(epoch).0 + offset))
    }

    /// The place before the first event of an epoch.
    pub const fn at_start_of(epoch: u32) -> Self {
        Self(epoch as u64 * EPOCH_OFFSETS as u64)
    }

    /// The place that this number stands for.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when there is no such epoch.
    pub fn from_u64(number: u64) -> Result<Self> {
        match u32::try_from(number / u64::from(EPOCH_OFFSETS)) {
            Ok(_) => Ok(Self(number)),
            Err(_) => Err(invalid(
                "a checkpoint is beyond the last epoch",
                &format!("checkpoint={number}"),
            )),
        }
    }

    /// The number that is stored. It fits into 63 bits.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The epoch.
    pub fn epoch(self) -> u32 {
        // The number was checked or made from an epoch, so this never falls back.
        u32::try_from(self.0 / u64::from(EPOCH_OFFSETS)).unwrap_or(u32::MAX)
    }

    /// How many events of the epoch lie before it.
    pub const fn offset(self) -> u64 {
        self.0 % EPOCH_OFFSETS as u64
    }

    /// Where a closed epoch ends: the beginning of the one after it. The last epoch there can be has none after it.
    #[must_use]
    pub fn next_epoch(self) -> Self {
        Self::at_start_of(self.epoch().saturating_add(1))
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{EPOCH_END}{}", self.epoch(), self.offset())
    }
}

impl FromStr for Checkpoint {
    type Err = Error;

    /// Reads `1@57`, or the number that is stored.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = || {
            invalid(
                "a checkpoint is written as epoch@offset or as a number",
                &format!("checkpoint={text:?}"),
            )
        };
        match text.split_once(EPOCH_END) {
            Some((epoch, offset)) => Self::of(
                digits(epoch).ok_or_else(invalid)?,
                digits(offset).ok_or_else(invalid)?,
            ),
            None => Self::from_u64(digits(text).ok_or_else(invalid)?),
        }
    }
}

/// A number without a sign.
fn digits<N: FromStr>(text: &str) -> Option<N> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use floe_store::env::{Random, SeededRandom};

    use super::*;
    use crate::error::ErrorKind;

    fn check(text: &str, number: u64) {
        let checkpoint: Checkpoint = text.parse().unwrap();
        assert_eq!(checkpoint.as_u64(), number);
        assert_eq!(checkpoint.to_string(), text);
        assert_eq!(
            number.to_string().parse::<Checkpoint>().unwrap(),
            checkpoint
        );
    }

    #[test]
    fn the_epoch_is_the_high_part() {
        check("0@0", 0);
        check("0@1", 1);
        check("1@1", 1_000_001);
        check("1@57", 1_000_057);
        check("1@999999", 1_999_999);
        check("4294967295@0", 4_294_967_295_000_000);
        assert_eq!(Checkpoint::START, Checkpoint::default());
    }

    #[test]
    fn a_closed_epoch_ends_where_the_next_begins() {
        let inside = Checkpoint::of(1, 57).unwrap();
        assert_eq!(inside.next_epoch().as_u64(), 2_000_000);
        assert_eq!(inside.next_epoch().next_epoch().to_string(), "3@0");
        let last = Checkpoint::at_start_of(u32::MAX);
        assert_eq!(last.next_epoch(), last);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        let written = "a checkpoint is written as epoch@offset or as a number";
        for text in ["", "@", "1@", "@1", "+1@2", "1@-2", "1@2@3", "one", "1.5"] {
            let error = text.parse::<Checkpoint>().unwrap_err();
            assert_eq!(error.to_string(), format!("{written}: checkpoint={text:?}"));
            assert_eq!(error.kind(), ErrorKind::InvalidUse);
        }
        assert_eq!(
            Checkpoint::of(3, 1_000_000).unwrap_err().to_string(),
            "an epoch has no such offset: epoch=3 offset=1000000 max=999999"
        );
        assert_eq!(
            Checkpoint::from_u64(4_294_967_296_000_000)
                .unwrap_err()
                .to_string(),
            "a checkpoint is beyond the last epoch: checkpoint=4294967296000000"
        );
    }

    #[test]
    fn numbers_sort_as_places_do() {
        let random = SeededRandom::new(1);
        let place = || {
            let epoch = u32::try_from(random.next_u64() >> (32 + random.below(32))).unwrap();
            (epoch, random.below(u64::from(EPOCH_OFFSETS)))
        };
        for _ in 0..2_000 {
            let (one, other) = (place(), place());
            let of = |(epoch, offset)| Checkpoint::of(epoch, offset).unwrap();
            assert_eq!(one.cmp(&other), of(one).cmp(&of(other)));
            assert_eq!((of(one).epoch(), of(one).offset()), one);
            assert_eq!(of(one).to_string().parse::<Checkpoint>().unwrap(), of(one));
        }
    }
}
