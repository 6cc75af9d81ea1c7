//! Shard iterators: a position in a shard as text that a client sends back.
//!
//! The text consists of the stream's ARN, a version and 56 hexadecimal digits, separated by bars as in DynamoDB: the
//! shard, the next sequence number, the time at which the iterator was issued, and a checksum over all of it, so that a
//! truncated or modified text is rejected instead of skipping records.

use floe_store::limits::SHARD_ITERATOR_AGE_MAX;
use floe_store::{Error, Result, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::streams::stream_label;

const VERSION: &str = "1";

/// Number of digits before the checksum.
const NUMBERS_DIGITS: usize = 3 * 16;

/// A position in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardIterator {
    /// ARN of the stream.
    pub(super) stream_arn: String,
    /// Sequence number at which the shard starts.
    pub(super) shard: u64,
    /// Next sequence number to read.
    pub(super) next: u64,
    /// When the iterator was issued.
    pub(super) issued: Timestamp,
}

impl ShardIterator {
    /// Encodes the iterator as text for the client.
    pub(super) fn text(&self) -> String {
        let Self { shard, next, .. } = self;
        let issued = self.issued.as_millis();
        let text = format!(
            "{}|{VERSION}|{shard:016x}{next:016x}{issued:016x}",
            self.stream_arn
        );
        let check = check(&text);
        text + &check
    }

    /// Decodes the text of an iterator.
    ///
    /// # Errors
    ///
    /// [`Error::Validation`] if [`text`](Self::text) cannot have produced it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        read(text).ok_or_else(|| Error::validation("Invalid ShardIterator"))
    }

    /// Checks that the iterator has not expired.
    ///
    /// # Errors
    ///
    /// [`Error::ExpiredIterator`] if it has.
    pub(super) fn check_age(&self, now: Timestamp) -> Result<()> {
        if now.since(self.issued) <= SHARD_ITERATOR_AGE_MAX {
            return Ok(());
        }
        Err(Error::ExpiredIterator(format!(
            "Iterator expired. The iterator was created at time {}Z while right now it is {}Z which is \
             further in the future than the tolerated delay of {} milliseconds.",
            stream_label(self.issued),
            stream_label(now),
            SHARD_ITERATOR_AGE_MAX.as_millis(),
        )))
    }
}

fn read(text: &str) -> Option<ShardIterator> {
    let (head, digits) = text.rsplit_once('|')?;
    let stream_arn = head.strip_suffix(VERSION)?.strip_suffix('|')?;
    let (numbers, _) = digits.split_at_checked(NUMBERS_DIGITS)?;
    let number = |at: usize| u64::from_str_radix(numbers.get(16 * at..16 * (at + 1))?, 16).ok();
    let iterator = ShardIterator {
        stream_arn: stream_arn.to_owned(),
        shard: number(0)?,
        next: number(1)?,
        issued: Timestamp::from_millis(number(2)?),
    };
    // Each position has exactly one text, including its checksum.
    (iterator.text() == text).then_some(iterator)
}

fn check(text: &str) -> String {
    format!("{:08x}", xxh3_64(text.as_bytes()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn iterator() -> ShardIterator {
        ShardIterator {
            stream_arn: "arn:aws:dynamodb:local:000000000000:table/T|1|/stream/x".to_owned(),
            shard: 1,
            next: u64::MAX,
            issued: Timestamp::from_millis(1_432_155_070_252),
        }
    }

    #[test]
    fn iterator_round_trips() {
        assert_eq!(ShardIterator::parse(&iterator().text()), Ok(iterator()));
    }

    #[test]
    fn modified_text_is_rejected() {
        let text = iterator().text();
        for at in 0..text.len() {
            for letter in ["", "A", "|", "=", "é"] {
                let changed = [&text[..at], letter, &text[at + 1..]].concat();
                if changed != text {
                    let error = ShardIterator::parse(&changed).unwrap_err();
                    assert_eq!(
                        error,
                        Error::validation("Invalid ShardIterator"),
                        "{changed}"
                    );
                }
            }
        }
        for garbage in ["", "|", "||", "|1|", "arn|2|00", "arn|1|00"] {
            assert!(ShardIterator::parse(garbage).is_err(), "{garbage}");
        }
    }

    #[test]
    fn iterator_expires_after_fifteen_minutes() {
        let iterator = iterator();
        let at = |millis| iterator.issued.plus(Duration::from_millis(millis));
        assert_eq!(iterator.check_age(at(900_000)), Ok(()));
        assert_eq!(
            iterator.check_age(at(900_001)).unwrap_err().to_string(),
            "Iterator expired. The iterator was created at time 2015-05-20T20:51:10.252Z while right \
             now it is 2015-05-20T21:06:10.253Z which is further in the future than the tolerated \
             delay of 900000 milliseconds."
        );
    }
}
