//! All edges that lead to an entity, though the index of reversed edges is behind at times.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::keys::Place;
use crate::graph::reads::Reads;
use crate::graph::stored::Edge;

/// How often the index of reversed edges is asked until it has caught up.
pub(super) const LAG_TRIES: u32 = 20;

/// All edges that lead to an entity, which says that there are so many. They are asked for until there are.
///
/// # Errors
///
/// [`TransactionFailed`](ErrorKind::TransactionFailed) when the index does not show them.
pub(super) async fn incoming_of(
    reads: &Reads<'_>,
    place: &Place,
    expected: u64,
) -> Result<Vec<Edge>> {
    let mut tries = 0;
    loop {
        let mut found = match expected {
            0 => Vec::new(),
            _ => reads.incoming(place, None).await?,
        };
        // Some may have been removed since, and others not have come yet. The conditions of the commit notice both, but
        // a refusal has none.
        let is_holding = found.iter().any(|edge| edge.is_holding);
        if is_holding || found.len() as u64 != expected {
            found = reads.still_there(&place.scope, found).await?;
        }
        if found.len() as u64 >= expected {
            return Ok(found);
        }
        tries += 1;
        if tries > LAG_TRIES {
            return Err(reads.retry(lagging(place, expected, found.len())));
        }
        reads.pause(tries).await;
    }
}

pub(super) fn lagging(place: &Place, expected: u64, actual: usize) -> Error {
    let what = "the index of reversed edges is behind, or the number of edges is wrong, which Graph::check tells";
    let message = format!("{what}: entity={place} expected={expected} actual={actual}");
    Error::new(ErrorKind::TransactionFailed, message)
}
