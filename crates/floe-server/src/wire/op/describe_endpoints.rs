//! DescribeEndpoints.

use crate::wire::{Result, empty_request, object};

/// Where the service can be called, which clients may remember for a day.
pub(crate) fn answer(endpoint: &str, body: &str) -> Result<Vec<u8>> {
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
