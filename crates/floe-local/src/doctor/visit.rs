//! Visits entries and skips unreadable ones.

use std::ops::Bound;

use floe_store::Result;

use super::{Examiner, Finding, FindingKind, hex};
use crate::kv::{Bytes, Gap, KeyBounds, Space};

/// The bounds of a whole space.
pub(super) const fn unbounded() -> KeyBounds {
    (Bound::Unbounded, Bound::Unbounded)
}

/// Describes a range of keys that could not be read.
pub(super) fn gap_text(gap: &Gap) -> String {
    let at = |key: &Option<Bytes>| key.as_ref().map_or("none".to_owned(), hex);
    let (after, before) = (at(&gap.after), at(&gap.before));
    format!("{} after={after} before={before}", gap.error)
}

impl Examiner<'_> {
    /// Visits all readable entries within bounds in ascending order. Returns `false` if there are unreadable ones,
    /// which become findings.
    pub(super) fn visit_entries(
        &mut self,
        space: Space,
        bounds: KeyBounds,
        mut visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<bool> {
        let mut complete = true;
        for entry in self.store.snapshot.salvage(space, bounds) {
            match entry {
                Ok((key, value)) => {
                    self.count_entry();
                    visit(self, key, value)?;
                }
                Err(gap) => {
                    complete = false;
                    let table = self.table.clone();
                    self.record(Finding {
                        table,
                        ..Finding::new(FindingKind::Unreadable, gap_text(&gap))
                    });
                }
            }
        }
        Ok(complete)
    }

    /// Visits all readable entries within bounds, if the unreadable ones were already reported.
    pub(super) fn visit_readable_entries(
        &mut self,
        space: Space,
        bounds: KeyBounds,
        mut visit: impl FnMut(&mut Self, Bytes, Bytes) -> Result<()>,
    ) -> Result<()> {
        let entries = self.store.snapshot.salvage(space, bounds);
        for (key, value) in entries.filter_map(Result::ok) {
            self.count_entry();
            visit(self, key, value)?;
        }
        Ok(())
    }
}
