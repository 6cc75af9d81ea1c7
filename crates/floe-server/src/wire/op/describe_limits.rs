//! DescribeLimits.

use crate::wire::{Result, empty_request, object};

/// The quotas of a new account in most regions of AWS. Nothing is held to them here.
const QUOTAS: [(&str, u64); 4] = [
    ("AccountMaxReadCapacityUnits", 80_000),
    ("AccountMaxWriteCapacityUnits", 80_000),
    ("TableMaxReadCapacityUnits", 40_000),
    ("TableMaxWriteCapacityUnits", 40_000),
];

pub(crate) fn answer(body: &str) -> Result<Vec<u8>> {
    empty_request(body)?;
    Ok(object(160, |w| {
        for (name, units) in QUOTAS {
            w.name(name).number(units);
        }
    }))
}
