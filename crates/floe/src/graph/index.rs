//! Keeping indexes complete: whether one is, how it is made so, and entries that follow their entity in steps.

mod behind;
mod rebuild;
mod state;

pub(super) use behind::{resume_entries, write_behind};
pub use rebuild::Rebuilding;
pub(super) use state::{ScopedIndex, begin};
