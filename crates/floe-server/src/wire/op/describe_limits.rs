//! DescribeLimits.

use floe_store::Engine;
use floe_store::json::Writer;

use crate::wire::read::empty_request;
use crate::wire::refusal::Result;

/// The quotas of a new account in most regions of AWS. Nothing is held to them here.
const QUOTAS: [(&str, u64); 4] = [
    ("AccountMaxReadCapacityUnits", 80_000),
    ("AccountMaxWriteCapacityUnits", 80_000),
    ("TableMaxReadCapacityUnits", 40_000),
    ("TableMaxWriteCapacityUnits", 40_000),
];

pub(crate) async fn answer(_engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    empty_request(body)?;
    let mut writer = Writer::with_capacity(160);
    writer.object(|w| {
        for (name, units) in QUOTAS {
            w.name(name).number(units);
        }
    });
    Ok(writer.into_bytes())
}
