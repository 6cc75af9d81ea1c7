//! DescribeEndpoints.

use floe_store::json::Writer;

use crate::wire::read::empty_request;
use crate::wire::refusal::Result;

/// Where the service can be called, which clients may remember for a day.
pub(crate) fn answer(endpoint: &str, body: &str) -> Result<Vec<u8>> {
    empty_request(body)?;
    let mut writer = Writer::with_capacity(128);
    writer.object(|w| {
        w.name("Endpoints").array(|w| {
            w.object(|w| {
                w.name("Address").string(endpoint);
                w.name("CachePeriodInMinutes").number(1440);
            });
        });
    });
    Ok(writer.into_bytes())
}
