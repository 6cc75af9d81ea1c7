//! Tables as requests define and answers describe them.
//!
//! | module | what it does |
//! |---|---|
//! | [`members`] | the structures of which requests define tables, made into what `floe-store` takes |
//! | [`settings`] | those by which DynamoDB charges, scales and encrypts |
//! | [`name`] | tables by their names and by their resource names |
//! | [`describe`] | the descriptions in answers |

pub(crate) mod describe;
pub(crate) mod members;
pub(crate) mod name;
pub(crate) mod settings;
