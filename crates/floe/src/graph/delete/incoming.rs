//! Reads all incoming edges of an entity, although the index of reversed edges lags at times.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::keys::ScopedKey;
use crate::graph::reads::Reads;
use crate::graph::stored::Edge;

/// Maximum number of reads of the index of reversed edges, until it has caught up.
pub(super) const LAG_TRIES: u32 = 20;

/// Returns all incoming edges of an entity, reading until the expected number is found.
///
/// # Errors
///
/// [`TransactionFailed`](ErrorKind::TransactionFailed) if the index does not return all of them.
pub(super) async fn incoming_of(
    reads: &Reads<'_>,
    scoped_key: &ScopedKey,
    expected: u64,
) -> Result<Vec<Edge>> {
    let mut tries = 0;
    loop {
        let mut found = match expected {
            0 => Vec::new(),
            _ => reads.incoming(scoped_key, None).await?,
        };
        // Some edges may have been removed since, and others may not be indexed yet. The conditions of the commit
        // notice both, but a deletion that is refused has no commit.
        let is_holding = found.iter().any(|edge| edge.is_holding);
        if is_holding || found.len() as u64 != expected {
            found = reads.still_stored(&scoped_key.scope, found).await?;
        }
        if found.len() as u64 >= expected {
            return Ok(found);
        }
        tries += 1;
        if tries > LAG_TRIES {
            return Err(reads.retry(lagging(scoped_key, expected, found.len())));
        }
        reads.pause(tries).await;
    }
}

pub(super) fn lagging(scoped_key: &ScopedKey, expected: u64, actual: usize) -> Error {
    let what = "the index of reversed edges lags, or the stored number of edges is wrong: retry, or run Graph::check";
    let message = format!("{what}: entity={scoped_key} expected={expected} actual={actual}");
    Error::new(ErrorKind::TransactionFailed, message)
}
