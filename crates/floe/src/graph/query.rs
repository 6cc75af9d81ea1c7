//! Reads of the graph beyond single keys: by type, by index, with related entities, by referrer, and the list of
//! scopes.

mod all;
mod include;
mod lookup;
mod referrers;
mod scopes;

pub use all::All;
pub use include::{Include, Included, IncludedEdge};
pub use lookup::{IndexEntry, Lookup};
pub use referrers::{Referrer, Referrers};
