//! DescribeEndpoints.

use crate::wire::{Result, empty_request, object};

/// Returns the address of the service, which clients may cache for a day.
pub(crate) fn handle(endpoint: &str, body: &str) -> Result<Vec<u8>> {
    empty_request(body)?;
    Ok(object(128, |w| {
        w.name("Endpoints").array(|w| {
            w.object(|w| {
                w.name("Address").string(endpoint);
                w.name("CachePeriodInMinutes").number(1440);
            });
        });
    }))
}
