//! What is found wrong with a directory.

use std::collections::BTreeMap;

use floe_store::Item;

use super::figures::Figures;
use super::stage::Key;

/// Items by their keys.
pub(super) type Items = BTreeMap<Key, Item>;

/// How many findings are told in words; the rest is only counted.
const NOTES_MAX: usize = 10;

/// What was found wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// Acknowledged writes that are not there.
    pub(super) lost: u64,
    /// Transactions that are there in part.
    pub(super) torn: u64,
    /// Items that nobody wrote, or whose write was refused.
    pub(super) phantom: u64,
    /// Entries of indexes that are missing, left over or different from their item.
    pub(super) index_mismatch: u64,
    /// Places where the change log leaves something out or does not lead to the items.
    pub(super) log_gaps: u64,
    /// What the engine's own doctor found.
    pub(super) doctor: u64,
    /// The first findings in words.
    pub(super) notes: Vec<String>,
}

impl Findings {
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

    /// Adds what another look has found.
    pub(super) fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.torn += other.torn;
        self.phantom += other.phantom;
        self.index_mismatch += other.index_mismatch;
        self.log_gaps += other.log_gaps;
        self.doctor += other.doctor;
        other.notes.into_iter().for_each(|note| self.note(note));
    }

    /// Tells a finding in words.
    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}
