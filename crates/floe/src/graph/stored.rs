//! The items of the three tables: the one place that knows the names of their attributes.
//!
//! | item | what it is |
//! |---|---|
//! | entity | `_id`, `_scope_type_key`, `_scope`, `_type`, `_created`, `_updated`, `_meta`, `_index_entries`, attributes |
//! | edge | `_subject_key`, `_predicate_key`, `_object_key`, `_index`, the parts of the keys, `_held`, attributes |
//! | entry of an index | `_subject_key`, `_unique_key`, `_scope_index_name`, `_index_key`, `_index_name`, the parts, attributes |
//! | claim of a unique key | `_subject_key` = `scope::index:key`, `_unique_key`, the parts of the holder's key |
//! | intent of a deletion | `_id` = `_leaving`, `_scope_type_key` = `scope::type:id`, the parts of the entity's key |
//! | intent to change a list | `_id` = `_lists`, `_scope_type_key` = `scope::type:id:predicate`, `_intent`, `_wanted` |
//! | intent to write entries | `_id` = `_behind`, `_scope_type_key` = `scope::type:id`, the parts of the entity's key |
//! | state of an index | `_id` = `_indexes`, `_scope_type_key` = `scope::index`, `_version`, `_is_ready`, `_cursor`, `_done` |
//!
//! `_index_entries` of an entity holds, by index, `v`, the version of the function; `k`, the keys; and `u` if the index is
//! unique, so that whoever deletes the entity knows which claims go with it.
//!
//! `_meta` of an entity holds `v`, which counts the changes of its attributes; `e`, which counts those of its outgoing
//! edges; `in`, the number of edges that lead to it; `held`, how many of these refuse its deletion; once its deletion has
//! begun, `leaving`; while a list of its edges is changed in steps, `busy`; and while its entries are, `behind`. `v` and `e`
//! begin at random, so that an entity that is created again is not taken for the one that was deleted.

mod edge;
mod entity;
mod entry;
mod intent;
mod names;

pub use edge::Edge;
pub(crate) use entity::*;
pub(crate) use entry::*;
pub(crate) use intent::*;
pub(crate) use names::*;
