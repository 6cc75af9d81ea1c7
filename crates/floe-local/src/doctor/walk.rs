//! Walks that go on behind what cannot be read.

use std::ops::Bound;

use floe_store::Result;

use super::{Examiner, Finding, FindingKind, hex};
use crate::kv::{Bytes, Gap, KeyBounds, Space};

/// The bounds of everything in a space.
pub(super) const fn everything() -> KeyBounds {
    (Bound::Unbounded, Bound::Unbounded)
}

/// What to say of keys that could not be read.
pub(super) fn gap_text(gap: &Gap) -> String {
    let at = |key: &Option<Bytes>| key.as_ref().map_or("none".to_owned(), hex);
    let (after, before) = (at(&gap.after), at(&gap.before));
    format!("{} after={after} before={before}", gap.error)
}

impl Examiner<'_> {
    /// Visits all entries within bounds that can be read, in ascending order. `false` if there are
    /// others; each stretch of those is then a finding.
    pub(super) fn walk(
        &mut self,
        space: Space,
        bounds: KeyBounds,
        mut visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<bool> {
        let mut complete = true;
        for entry in self.moment.snapshot.salvage(space, bounds) {
            match entry {
                Ok((key, value)) => {
                    self.tell_now_and_then();
                    visit(self, key, value)?;
                }
                Err(gap) => {
                    complete = false;
                    let table = self.table.clone();
                    self.find(Finding {
                        table,
                        ..Finding::new(FindingKind::Unreadable, gap_text(&gap))
                    });
                }
            }
        }
        Ok(complete)
    }

    /// Visits all entries within bounds that can be read, where the others have been told of before.
    pub(super) fn walk_quietly(
        &mut self,
        space: Space,
        bounds: KeyBounds,
        mut visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<()> {
        let entries = self.moment.snapshot.salvage(space, bounds);
        for (key, value) in entries.filter_map(Result::ok) {
            self.tell_now_and_then();
            visit(self, key, value)?;
        }
        Ok(())
    }
}
