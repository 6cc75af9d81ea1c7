//! Positions in the feed of a partition: an epoch and an offset in it.

use std::fmt;
use std::str::FromStr;

use super::limits::EPOCH_OFFSETS;
use crate::error::{Error, Result};
use crate::events::keys::invalid;

/// Separates the epoch and the offset.
const EPOCH_END: char = '@';

/// A position in the feed of a partition: everything before it is processed.
///
/// Stored as one number, the epoch times 1,000,000 plus the offset, so that later positions are larger numbers.
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

    /// The position before the event at this offset of an epoch.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the offset is out of range.
    pub fn of(epoch: u32, offset: u64) -> Result<Self> {
        if offset >= u64::from(EPOCH_OFFSETS) {
            return Err(invalid(
                "the offset is out of range",
                &format!("epoch={epoch} offset={offset} max={}", EPOCH_OFFSETS - 1),
            ));
        }
        Ok(Self(Self::at_start_of(epoch).0 + offset))
    }

    /// The position before the first event of an epoch.
    pub const fn at_start_of(epoch: u32) -> Self {
        Self(epoch as u64 * EPOCH_OFFSETS as u64)
    }

    /// Decodes the stored number.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the epoch is out of range.
    pub fn from_u64(number: u64) -> Result<Self> {
        match u32::try_from(number / u64::from(EPOCH_OFFSETS)) {
            Ok(_) => Ok(Self(number)),
            Err(_) => Err(invalid(
                "the checkpoint is beyond the last epoch",
                &format!("checkpoint={number}"),
            )),
        }
    }

    /// The stored number. Fits into 63 bits.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The epoch.
    pub fn epoch(self) -> u32 {
        // The number was checked or computed from an epoch, so it fits.
        u32::try_from(self.0 / u64::from(EPOCH_OFFSETS)).unwrap_or(u32::MAX)
    }

    /// Number of events of the epoch before this position.
    pub const fn offset(self) -> u64 {
        self.0 % EPOCH_OFFSETS as u64
    }

    /// The start of the next epoch, which is the end of a closed one. Stays at the last possible epoch.
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

    /// Parses `1@57`, or the stored number.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = || {
            invalid(
                "a checkpoint must be epoch@offset or a number",
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

/// Parses a number without a sign.
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
    fn epoch_is_the_high_part_of_the_number() {
        check("0@0", 0);
        check("0@1", 1);
        check("1@1", 1_000_001);
        check("1@57", 1_000_057);
        check("1@999999", 1_999_999);
        check("4294967295@0", 4_294_967_295_000_000);
        assert_eq!(Checkpoint::START, Checkpoint::default());
    }

    #[test]
    fn closed_epoch_ends_where_the_next_starts() {
        let inside = Checkpoint::of(1, 57).unwrap();
        assert_eq!(inside.next_epoch().as_u64(), 2_000_000);
        assert_eq!(inside.next_epoch().next_epoch().to_string(), "3@0");
        let last = Checkpoint::at_start_of(u32::MAX);
        assert_eq!(last.next_epoch(), last);
    }

    #[test]
    fn invalid_checkpoints_are_rejected() {
        let written = "a checkpoint must be epoch@offset or a number";
        for text in ["", "@", "1@", "@1", "+1@2", "1@-2", "1@2@3", "one", "1.5"] {
            let error = text.parse::<Checkpoint>().unwrap_err();
            assert_eq!(error.to_string(), format!("{written}: checkpoint={text:?}"));
            assert_eq!(error.kind(), ErrorKind::InvalidUse);
        }
        assert_eq!(
            Checkpoint::of(3, 1_000_000).unwrap_err().to_string(),
            "the offset is out of range: epoch=3 offset=1000000 max=999999"
        );
        assert_eq!(
            Checkpoint::from_u64(4_294_967_296_000_000)
                .unwrap_err()
                .to_string(),
            "the checkpoint is beyond the last epoch: checkpoint=4294967296000000"
        );
    }

    #[test]
    fn numbers_sort_like_positions() {
        let random = SeededRandom::new(1);
        let random_position = || {
            let epoch = u32::try_from(random.next_u64() >> (32 + random.below(32))).unwrap();
            (epoch, random.below(u64::from(EPOCH_OFFSETS)))
        };
        for _ in 0..2_000 {
            let (one, other) = (random_position(), random_position());
            let of = |(epoch, offset)| Checkpoint::of(epoch, offset).unwrap();
            assert_eq!(one.cmp(&other), of(one).cmp(&of(other)));
            assert_eq!((of(one).epoch(), of(one).offset()), one);
            assert_eq!(of(one).to_string().parse::<Checkpoint>().unwrap(), of(one));
        }
    }
}
