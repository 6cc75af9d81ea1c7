//! Tables in requests and responses.
//!
//! | module | purpose |
//! |---|---|
//! | [`members`] | the structures that define tables, and their conversion to `floe-store` |
//! | [`settings`] | billing, scaling and encryption |
//! | [`name`] | table names and ARNs |
//! | [`describe`] | table descriptions in responses |

pub(crate) mod describe;
pub(crate) mod members;
pub(crate) mod name;
pub(crate) mod settings;
