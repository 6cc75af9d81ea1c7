//! A full disk: a small tmpfs, or if none can be mounted, writes that fail with ENOSPC from some call on.

use std::path::Path;

use super::super::directory::{self, Opened, Settings};
use super::super::ledger::Ledger;
use super::super::tmpfs::Tmpfs;
use super::{Plan, point};
use crate::Failure;
use crate::shim::{Fault, FaultKind, Shim};

/// The size of the disk that becomes full.
const FULL_BYTES: u64 = 24 << 20;
/// The size after space was added.
const ROOMY_BYTES: u64 = 128 << 20;
/// More operations than fit on the disk.
const OPERATIONS: u64 = 200_000;
/// Without a tmpfs: the number of the first write that fails.
const FULL_AT_WRITE: u64 = 200;

/// The result on a full disk.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Whether a real disk was full.
    pub(super) is_tmpfs: bool,
    /// Number of acknowledged operations.
    pub(super) acked: u64,
    /// Whether the directory can be opened while the disk is full. Either is acceptable.
    pub(super) is_opened: bool,
    pub(super) point: point::Outcome,
}

pub(super) fn run(plan: Plan, shim: &Shim, folder: &Path) -> Result<Outcome, Failure> {
    let data = folder.join("full");
    std::fs::create_dir(&data)?;
    let plan = Plan {
        operations: OPERATIONS,
        ..plan
    };
    let mut command = point::process_command(plan, &data, 1)?;
    let tmpfs = Tmpfs::mount(&data, FULL_BYTES);
    if tmpfs.is_none() {
        let fault = Fault {
            kind: FaultKind::WriteEnospc,
            nth: FULL_AT_WRITE,
            sticky: true,
        };
        shim.watch(&data).fail(fault).apply(&mut command)?;
    }
    let mut point = point::Outcome::default();
    let mut ledger = Ledger::default();
    point.watch(command, &mut ledger)?;
    let opened = directory::open(&data, Settings::IDLE).and_then(Opened::close);
    if let Some(tmpfs) = &tmpfs {
        tmpfs.resize(ROOMY_BYTES)?;
    }
    point.audit(&data, &ledger);
    Ok(Outcome {
        is_tmpfs: tmpfs.is_some(),
        acked: ledger.tally.acked,
        is_opened: opened.is_ok(),
        point,
    })
}
