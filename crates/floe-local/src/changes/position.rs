//! Shard iterators: a place in a shard as a text that a client carries.
//!
//! The text is the stream's resource name, a version and 56 hexadecimal digits, with bars between them
//! as DynamoDB writes them: the shard, the next sequence number, the moment at which the iterator was
//! given out, and a check of it all, so that a text that was cut or changed is refused instead of
//! skipping records.

use floe_store::limits::SHARD_ITERATOR_AGE_MAX;
use floe_store::{Error, Result, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::streams::stream_label;

const VERSION: &str = "1";

/// Digits of the numbers before the check.
const NUMBERS_DIGITS: usize = 3 * 16;

/// A place in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The resource name of the stream.
    pub(super) stream_arn: String,
    /// The sequence number with which the shard begins.
    pub(super) shard: u64,
    /// The sequence number from which on to read.
    pub(super) next: u64,
    /// When the iterator was given out.
    pub(super) issued: Timestamp,
}

impl Position {
    /// The text that a client carries.
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

    /// The place of a text.
    ///
    /// # Errors
    ///
    /// [`Error::Validation`] if it is not a text that [`text`](Self::text) wrote.
    pub(super) fn parse(text: &str) -> Result<Self> {
        read(text).ok_or_else(|| Error::validation("Invalid ShardIterator"))
    }

    /// Checks that it is not too old to be used.
    ///
    /// # Errors
    ///
    /// [`Error::ExpiredIterator`] if it is.
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

fn read(text: &str) -> Option<Position> {
    let (head, digits) = text.rsplit_once('|')?;
    let stream_arn = head.strip_suffix(VERSION)?.strip_suffix('|')?;
    let (numbers, _) = digits.split_at_checked(NUMBERS_DIGITS)?;
    let number = |at: usize| u64::from_str_radix(numbers.get(16 * at..16 * (at + 1))?, 16).ok();
    let position = Position {
        stream_arn: stream_arn.to_owned(),
        shard: number(0)?,
        next: number(1)?,
        issued: Timestamp::from_millis(number(2)?),
    };
    // One position has one text, its check included.
    (position.text() == text).then_some(position)
}

fn check(text: &str) -> String {
    format!("{:08x}", xxh3_64(text.as_bytes()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn position() -> Position {
        Position {
            stream_arn: "arn:aws:dynamodb:local:000000000000:table/T|1|/stream/x".to_owned(),
            shard: 1,
            next: u64::MAX,
            issued: Timestamp::from_millis(1_432_155_070_252),
        }
    }

    #[test]
    fn an_iterator_comes_back() {
        assert_eq!(Position::parse(&position().text()), Ok(position()));
    }

    #[test]
    fn a_changed_text_is_refused() {
        let text = position().text();
        for at in 0..text.len() {
            for letter in ["", "A", "|", "=", "é"] {
                let changed = [&text[..at], letter, &text[at + 1..]].concat();
                if changed != text {
                    let error = Position::parse(&changed).unwrap_err();
                    assert_eq!(
                        error,
                        Error::validation("Invalid ShardIterator"),
                        "{changed}"
                    );
                }
            }
        }
        for garbage in ["", "|", "||", "|1|", "arn|2|00", "arn|1|00"] {
            assert!(Position::parse(garbage).is_err(), "{garbage}");
        }
    }

    #[test]
    fn an_iterator_is_good_for_fifteen_minutes() {
        let position = position();
        let at = |millis| position.issued.plus(Duration::from_millis(millis));
        assert_eq!(position.check_age(at(900_000)), Ok(()));
        assert_eq!(
            position.check_age(at(900_001)).unwrap_err().to_string(),
            "Iterator expired. The iterator was created at time 2015-05-20T20:51:10.252Z while right \
             now it is 2015-05-20T21:06:10.253Z which is further in the future than the tolerated \
             delay of 900000 milliseconds."
        );
    }
}
