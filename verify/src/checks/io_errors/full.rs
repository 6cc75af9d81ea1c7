//! A disk that is full: a small tmpfs, or where none can be mounted, writes that answer ENOSPC from
//! some call on.

use std::path::Path;

use super::super::directory::{self, Opened, Settings};
use super::super::ledger::Ledger;
use super::super::tmpfs::Tmpfs;
use super::{Plan, point};
use crate::Failure;
use crate::shim::{Fault, FaultKind, Shim};

/// The size of the disk that fills up.
const FULL_BYTES: u64 = 24 << 20;
/// Its size once room has been made.
const ROOMY_BYTES: u64 = 128 << 20;
/// More operations than fit.
const OPERATIONS: u64 = 200_000;
/// Without a tmpfs: the write from which on the disk is full.
const FULL_AT_WRITE: u64 = 200;

/// What the full disk has come to.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Whether a disk was really full.
    pub(super) is_tmpfs: bool,
    /// How many operations were acknowledged before.
    pub(super) acked: u64,
    /// Whether the directory can be opened while the disk is full. It need not be.
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
    let mut command = point::endure(plan, &data, 1)?;
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
    point.look_over(&data, &ledger);
    Ok(Outcome {
        is_tmpfs: tmpfs.is_some(),
        acked: ledger.tally.acked,
        is_opened: opened.is_ok(),
        point,
    })
}
