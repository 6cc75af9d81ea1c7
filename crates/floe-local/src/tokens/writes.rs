//! Tokens of single writes, which the running engine remembers and the store does not.
//!
//! Only a caller that has the engine in its own process can send a single write again: the protocol of DynamoDB has
//! tokens for transactions alone. It does not outlive the engine, so what is remembered need not either, and costs no
//! write. The tokens of a commit that failed are forgotten: either nothing is written any more, or the store is opened
//! again without that commit.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use floe_store::engine::WRITE_TOKEN_RETENTION;
use floe_store::{Error, Item, Result, Timestamp};
use xxhash_rust::xxh3::xxh3_128;

/// How long one generation takes new tokens. They are forgotten together, some time after they may be.
const GENERATION: Duration = Duration::from_secs(15);

/// A single write with a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteToken {
    hash: u128,
    fingerprint: u128,
}

impl WriteToken {
    /// What tells a write from others with a token.
    pub(crate) fn new(text: &str, fingerprint: u128) -> Self {
        Self {
            hash: xxh3_128(text.as_bytes()),
            fingerprint,
        }
    }
}

/// What was answered to a write.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    fingerprint: u128,
    at: Timestamp,
    /// What it touched, in bytes, as the capacity of a repeated answer counts it.
    pub(crate) size: usize,
    /// The attributes that it returned.
    pub(crate) returned: Option<Box<Item>>,
}

/// The single writes with tokens that are still remembered.
#[derive(Debug, Default)]
pub(crate) struct WriteTokens {
    /// The newest last.
    generations: VecDeque<Generation>,
    /// Those of the group that is not committed yet.
    unsettled: Vec<u128>,
}

#[derive(Debug)]
struct Generation {
    since: Timestamp,
    written: HashMap<u128, Written>,
}

impl WriteTokens {
    /// What was answered to the write with this token, if it was applied before.
    ///
    /// # Errors
    ///
    /// [`Error::IdempotentParameterMismatch`] if the token was used for another write.
    pub(crate) fn recall(&self, token: WriteToken, now: Timestamp) -> Result<Option<&Written>> {
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

    /// Remembers that a write was applied.
    pub(crate) fn remember(
        &mut self,
        token: WriteToken,
        now: Timestamp,
        size: usize,
        returned: Option<Item>,
    ) {
        let written = Written {
            fingerprint: token.fingerprint,
            at: now,
            size,
            returned: returned.map(Box::new),
        };
        self.unsettled.push(token.hash);
        let generation = self.generation(now);
        generation.written.insert(token.hash, written);
    }

    /// The group that remembered tokens was committed, or it failed and its tokens are forgotten.
    pub(crate) fn settle(&mut self, committed: bool) {
        for hash in self.unsettled.drain(..) {
            if !committed {
                for generation in &mut self.generations {
                    generation.written.remove(&hash);
                }
            }
        }
    }

    /// The generation that takes new tokens. One that is too old makes room for another of its size.
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
        #[expect(clippy::indexing_slicing, reason = "there is one by now")]
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
    fn tokens_are_remembered_for_their_time_and_then_forgotten() {
        let mut tokens = WriteTokens::default();
        for n in 0..200 {
            tokens.remember(token(n), at(u64::from(n)), 1, None);
            for old in 0..200 {
                let is_known = tokens
                    .recall(token(old), at(u64::from(n)))
                    .unwrap()
                    .is_some();
                assert_eq!(is_known, old <= n && n - old < 30, "n={n} old={old}");
            }
        }
        assert!(tokens.generations.len() <= 4);
    }

    #[test]
    fn a_token_of_another_write_is_refused() {
        let mut tokens = WriteTokens::default();
        tokens.remember(token(1), at(1), 7, None);
        let other = WriteToken::new("token-1", 2);
        assert_eq!(
            tokens.recall(other, at(2)).map(drop),
            Err(Error::IdempotentParameterMismatch)
        );
        assert_eq!(tokens.recall(token(1), at(2)).unwrap().unwrap().size, 7);
    }
}
