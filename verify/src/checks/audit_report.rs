//! What the audit of a directory found wrong.

use std::collections::BTreeMap;

use floe_store::Item;

use super::figures::Figures;
use super::test_table::Key;

/// Items by their keys.
pub(super) type Items = BTreeMap<Key, Item>;

/// Maximum number of notes kept; further findings are only counted.
const NOTES_MAX: usize = 10;

/// What an audit found wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditReport {
    /// Acknowledged writes that are missing.
    pub(super) lost: u64,
    /// Transactions that were partially applied.
    pub(super) torn: u64,
    /// Items that no client wrote, or whose write was rejected.
    pub(super) phantom: u64,
    /// Index entries that are missing, stale or different from their item.
    pub(super) index_mismatch: u64,
    /// Gaps in the change log, and differences between its replay and the items.
    pub(super) log_gaps: u64,
    /// Findings of the engine's doctor.
    pub(super) doctor: u64,
    /// Descriptions of the first findings.
    pub(super) notes: Vec<String>,
}

impl AuditReport {
    /// Whether nothing was found.
    pub(super) const fn is_clean(&self) -> bool {
        self.lost == 0
            && self.torn == 0
            && self.phantom == 0
            && self.index_mismatch == 0
            && self.log_gaps == 0
            && self.doctor == 0
    }

    /// Adds them to the figures of a check.
    pub(super) fn put(&self, figures: Figures, prefix: &str) -> Figures {
        let Self {
            lost,
            torn,
            phantom,
            index_mismatch,
            log_gaps,
            doctor,
            ..
        } = self;
        let key = |name: &str| format!("{prefix}{name}");
        figures
            .put(&key("lost"), lost)
            .put(&key("torn"), torn)
            .put(&key("phantom"), phantom)
            .put(&key("index_mismatch"), index_mismatch)
            .put(&key("log_gaps"), log_gaps)
            .put(&key("doctor"), doctor)
    }

    /// Adds the findings of another audit.
    pub(super) fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.torn += other.torn;
        self.phantom += other.phantom;
        self.index_mismatch += other.index_mismatch;
        self.log_gaps += other.log_gaps;
        self.doctor += other.doctor;
        other.notes.into_iter().for_each(|note| self.note(note));
    }

    /// Adds the description of a finding.
    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}
