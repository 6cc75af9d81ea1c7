//! The operations, as the engine does them: refuse what cannot work, send, send again, put answers together.
//!
//! Each operation first checks its request as every engine does (`validate` of `floe-store`), then asks whether
//! the store can do it at all, and only then sends something.

mod batch;
mod items;
mod query;
mod tables;
mod transact;

use floe_store::{Error, Result};

use crate::AwsEngine;

impl AwsEngine {
    /// Refuses what the store cannot do, before anything is sent.
    pub(crate) fn need(&self, has: bool, what: &str) -> Result<()> {
        if has {
            return Ok(());
        }
        Err(Error::Unsupported(format!("the store has no {what}")))
    }
}
