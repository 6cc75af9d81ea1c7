//! Walks that go on behind what cannot be read.

use std::ops::Bound;

use floe_store::{Error, Result};

use super::{Examiner, Finding, FindingKind, hex};
use crate::kv::{Bytes, Direction, KeyBounds, Space};

/// The bounds of everything in a space.
pub(super) const fn everything() -> KeyBounds {
    (Bound::Unbounded, Bound::Unbounded)
}

/// A range of keys that could not be read.
struct Gap {
    /// Why.
    error: Error,
    /// The last key before it.
    after: Option<Bytes>,
    /// The first key behind it.
    before: Option<Bytes>,
}

impl Examiner<'_> {
    /// Visits all entries within bounds. `false` if some could not be read, which is then a finding.
    /// Entries are visited in ascending order only if all could be read.
    pub(super) fn walk(
        &mut self,
        space: &Space,
        bounds: KeyBounds,
        visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<bool> {
        let Some(gap) = self.walk_around(space, bounds, visit)? else {
            return Ok(true);
        };
        let at = |key: Option<Bytes>| key.map_or("none".to_owned(), |key| hex(&key));
        let what = format!(
            "{} after={} before={}",
            gap.error,
            at(gap.after),
            at(gap.before)
        );
        let table = self.table.clone();
        self.find(Finding {
            table,
            ..Finding::new(FindingKind::Unreadable, what)
        });
        Ok(false)
    }

    /// Visits all entries within bounds that can be read, where the others have been told of before.
    pub(super) fn walk_quietly(
        &mut self,
        space: &Space,
        bounds: KeyBounds,
        visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<()> {
        self.walk_around(space, bounds, visit).map(drop)
    }

    /// The store below cannot go on behind a damaged block, so it is left there and entered again from
    /// the other side, backwards, up to the last damaged block.
    fn walk_around(
        &mut self,
        space: &Space,
        (start, end): KeyBounds,
        mut visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<Option<Gap>> {
        let forward = (start.clone(), end.clone());
        let stopped = self.walk_until(space, forward, Direction::Forward, &mut visit)?;
        let Some((error, after)) = stopped else {
            return Ok(None);
        };
        let from = after
            .as_ref()
            .map_or(start, |key| Bound::Excluded(key.to_vec()));
        let stopped = self.walk_until(space, (from, end), Direction::Backward, &mut visit)?;
        let before = stopped.and_then(|(_, before)| before);
        Ok(Some(Gap {
            error,
            after,
            before,
        }))
    }

    /// Visits entries in one direction. Answers with the error that stopped it, and the last key visited.
    fn walk_until(
        &mut self,
        space: &Space,
        bounds: KeyBounds,
        direction: Direction,
        visit: &mut impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<Option<(Error, Option<Bytes>)>> {
        let mut last = None;
        for entry in self.moment.snapshot.range(space, bounds, direction) {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Some((error, last))),
            };
            last = Some(key.clone());
            self.tell_now_and_then();
            visit(self, key, value)?;
        }
        Ok(None)
    }
}
