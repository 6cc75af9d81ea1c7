//! Reading the graph beyond a key: all of a type, by an index, with what is around it, what leads to it, and which scopes
//! there are.

mod all;
mod include;
mod lookup;
mod referrers;
mod scopes;

pub use all::All;
pub use include::{Include, Included, IncludedEdge};
pub use lookup::{IndexEntry, Lookup};
pub use referrers::{Referrer, Referrers};
