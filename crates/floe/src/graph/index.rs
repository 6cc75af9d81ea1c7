//! Index states, rebuilds, and index entries that follow their entity in steps.

mod pending;
mod rebuild;
mod state;

pub(super) use pending::{resume_entries, write_pending};
pub use rebuild::IndexRebuild;
pub(super) use state::{ScopedIndex, begin};
