//! Shard iterators: a place in a shard as a text that a client carries.
//!
//! The text is the stream's resource name, a version and 28 bytes of base64, with bars between them, as
//! DynamoDB writes it: the shard, the next sequence number, the moment at which the iterator was given
//! out, and a check of it all, so that a text that was cut or changed is refused instead of skipping
//! records.

use floe_store::limits::SHARD_ITERATOR_AGE_MAX;
use floe_store::{Error, Result, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::base64;
use crate::layout::Reader;
use crate::streams::stream_label;

const VERSION: &str = "1";

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
        let mut bytes = Vec::with_capacity(28);
        for number in [self.shard, self.next, self.issued.as_millis()] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        let check = check(&self.stream_arn, &bytes);
        bytes.extend_from_slice(&check);
        format!("{}|{VERSION}|{}", self.stream_arn, base64::encode(&bytes))
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
    let (head, body) = text.rsplit_once('|')?;
    let stream_arn = head.strip_suffix(VERSION)?.strip_suffix('|')?;
    let bytes = base64::decode(body)?;
    let (numbers, found) = bytes.split_last_chunk()?;
    if *found != check(stream_arn, numbers) {
        return None;
    }
    let mut reader = Reader::new(numbers, "shard iterator");
    let mut number = || reader.array().ok().map(u64::from_be_bytes);
    let position = Position {
        stream_arn: stream_arn.to_owned(),
        shard: number()?,
        next: number()?,
        issued: Timestamp::from_millis(number()?),
    };
    reader.finish().ok()?;
    Some(position)
}

fn check(stream_arn: &str, numbers: &[u8]) -> [u8; 4] {
    let hash = xxh3_64(&[stream_arn.as_bytes(), numbers].concat());
    (hash as u32).to_be_bytes()
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
        for garbage in ["", "|", "||", "|1|", "arn|2|AAAA", "arn|1|AAAAAAAA"] {
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
