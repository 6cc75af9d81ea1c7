//! Tokens of single writes, kept in memory but not in the store.
//!
//! Only a caller in the engine's own process can resend a single write, because DynamoDB's protocol has tokens only for
//! transactions. Such a caller does not outlive the engine, so its tokens need not either, and cost no write. The
//! tokens of a failed commit are dropped: either the engine accepts no more writes, or the store is reopened without
//! that commit.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use floe_store::engine::WRITE_TOKEN_RETENTION;
use floe_store::{Error, Item, Result, Timestamp};
use xxhash_rust::xxh3::xxh3_128;

/// How long a generation accepts new tokens. Its tokens are dropped together, somewhat later than they expire.
const GENERATION: Duration = Duration::from_secs(15);

/// A single write with a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteToken {
    hash: u128,
    fingerprint: u128,
}

impl WriteToken {
    /// Creates the identity of a write with a token.
    pub(crate) fn new(text: &str, fingerprint: u128) -> Self {
        Self {
            hash: xxh3_128(text.as_bytes()),
            fingerprint,
        }
    }
}

/// The recorded response to a write.
#[derive(Clone, Debug)]
pub(crate) struct RecordedWrite {
    fingerprint: u128,
    at: Timestamp,
    /// Size of the item in bytes, from which the capacity of a repeated request is computed.
    pub(crate) size: usize,
    /// The returned attributes.
    pub(crate) returned: Option<Box<Item>>,
}

/// The unexpired tokens of single writes.
#[derive(Debug, Default)]
pub(crate) struct WriteTokens {
    /// Oldest first.
    generations: VecDeque<Generation>,
    /// Tokens of the group that is not committed yet.
    uncommitted: Vec<u128>,
}

#[derive(Debug)]
struct Generation {
    since: Timestamp,
    written: HashMap<u128, RecordedWrite>,
}

impl WriteTokens {
    /// Returns the recorded response to the write with this token, if it was applied.
    ///
    /// # Errors
    ///
    /// [`Error::IdempotentParameterMismatch`] if the token was used for another write.
    pub(crate) fn find(&self, token: WriteToken, now: Timestamp) -> Result<Option<&RecordedWrite>> {
        let mut generations = self.generations.iter().rev();
        let written = generations.find_map(|generation| generation.written.get(&token.hash));
        let written = written.filter(|written| now.since(written.at) < WRITE_TOKEN_RETENTION);
        match written {
            Some(written) if written.fingerprint != token.fingerprint => {
                Err(Error::IdempotentParameterMismatch)
            }
            other => Ok(other),
        }
    }

    /// Records that a write was applied.
    pub(crate) fn record(
        &mut self,
        token: WriteToken,
        now: Timestamp,
        size: usize,
        returned: Option<Item>,
    ) {
        let written = RecordedWrite {
            fingerprint: token.fingerprint,
            at: now,
            size,
            returned: returned.map(Box::new),
        };
        self.uncommitted.push(token.hash);
        let generation = self.generation(now);
        generation.written.insert(token.hash, written);
    }

    /// Ends the group that recorded tokens. If its commit failed, they are dropped.
    pub(crate) fn end_group(&mut self, committed: bool) {
        for hash in self.uncommitted.drain(..) {
            if !committed {
                for generation in &mut self.generations {
                    generation.written.remove(&hash);
                }
            }
        }
    }

    /// The generation that accepts new tokens. Drops expired generations and starts a new one when due.
    fn generation(&mut self, now: Timestamp) -> &mut Generation {
        let oldest = WRITE_TOKEN_RETENTION + GENERATION;
        while self
            .generations
            .front()
            .is_some_and(|first| now.since(first.since) >= oldest)
        {
            self.generations.pop_front();
        }
        let newest = self.generations.back();
        if newest.is_none_or(|newest| now.since(newest.since) >= GENERATION) {
            let count = newest.map_or(0, |newest| newest.written.len());
            self.generations.push_back(Generation {
                since: now,
                written: HashMap::with_capacity(count),
            });
        }
        let last = self.generations.len().saturating_sub(1);
        #[expect(clippy::indexing_slicing, reason = "at least one generation exists")]
        &mut self.generations[last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(n: u32) -> WriteToken {
        WriteToken::new(&format!("token-{n}"), u128::from(n))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1000 * seconds)
    }

    #[test]
    fn tokens_are_valid_for_their_retention() {
        let mut tokens = WriteTokens::default();
        for n in 0..200 {
            tokens.record(token(n), at(u64::from(n)), 1, None);
            for old in 0..200 {
                let is_known = tokens.find(token(old), at(u64::from(n))).unwrap().is_some();
                assert_eq!(is_known, old <= n && n - old < 30, "n={n} old={old}");
            }
        }
        assert!(tokens.generations.len() <= 4);
    }

    #[test]
    fn token_of_another_write_is_rejected() {
        let mut tokens = WriteTokens::default();
        tokens.record(token(1), at(1), 7, None);
        let other = WriteToken::new("token-1", 2);
        assert_eq!(
            tokens.find(other, at(2)).map(drop),
            Err(Error::IdempotentParameterMismatch)
        );
        assert_eq!(tokens.find(token(1), at(2)).unwrap().unwrap().size, 7);
    }
}
