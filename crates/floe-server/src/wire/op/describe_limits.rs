//! DescribeLimits.

use crate::wire::{Result, empty_request, object};

/// The quotas of a new AWS account in most regions. They are not enforced here.
const QUOTAS: [(&str, u64); 4] = [
    ("AccountMaxReadCapacityUnits", 80_000),
    ("AccountMaxWriteCapacityUnits", 80_000),
    ("TableMaxReadCapacityUnits", 40_000),
    ("TableMaxWriteCapacityUnits", 40_000),
];

pub(crate) fn handle(body: &str) -> Result<Vec<u8>> {
    empty_request(body)?;
    Ok(object(160, |w| {
        for (name, units) in QUOTAS {
            w.name(name).number(units);
        }
    }))
}
