//! The items of the three tables. Only this module knows the names of their attributes.
//!
//! | item | attributes |
//! |---|---|
//! | entity | `_id`, `_scope_type_key`, `_scope`, `_type`, `_created`, `_updated`, `_meta`, `_index_entries`, attributes |
//! | edge | `_subject_key`, `_predicate_key`, `_object_key`, `_index`, the parts of the keys, `_held`, attributes |
//! | entry of an index | `_subject_key`, `_unique_key`, `_scope_index_name`, `_index_key`, `_index_name`, the parts, attributes |
//! | claim of a unique key | `_subject_key` = `scope::index:key`, `_unique_key`, the parts of the owner's key |
//! | intent of a deletion | `_id` = `_leaving`, `_scope_type_key` = `scope::type:id`, the parts of the entity's key |
//! | completed deletion | the key of its intent, the parts of the entity's key, `_completed`; removed after ten minutes |
//! | intent to change a list | `_id` = `_lists`, `_scope_type_key` = `scope::type:id:predicate`, `_intent`, `_wanted` |
//! | intent to write entries | `_id` = `_behind`, `_scope_type_key` = `scope::type:id`, the parts of the entity's key |
//! | state of an index | `_id` = `_indexes`, `_scope_type_key` = `scope::index`, `_version`, `_is_ready`, `_cursor`, `_done` |
//!
//! `_index_entries` of an entity maps each index to `v`, the version of the function; `k`, the keys; and `u` if the
//! index is unique, so that a deletion of the entity knows the claims to delete.
//!
//! `_meta` of an entity holds `v`, a version raised by each change of its attributes; `e`, a version raised by each
//! change of its outgoing edges; `in`, the number of incoming edges; `held`, the number of those that prevent its
//! deletion; `leaving`, if its deletion has started; `busy`, while a list of its edges is changed in steps; and
//! `behind`, while it has pending index entries. `v` and `e` start at random values, so that an entity that is created
//! again is not mistaken for the deleted one.

mod edge;
mod entity;
mod entry;
mod intent;
mod names;

pub use edge::Edge;
pub(crate) use edge::EdgeName;
pub(crate) use entity::*;
pub(crate) use entry::*;
pub(crate) use intent::*;
pub(crate) use names::*;
