//! One round: the disk fills up and is freed, and the server's behavior is observed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::super::program::{Process, Program};
use super::super::tmpfs::Tmpfs;
use super::client::Caller;
use super::ledger::{Ledger, WriteOutcome};
use crate::Failure;

/// Space above the reserve that the clients fill themselves.
const LEFT_BYTES: u64 = 16 << 20;
/// The size of an item whose write is rejected.
const REFUSED_BYTES: usize = 64 << 10;
/// The reserve is this fraction of a disk of this size.
const RESERVE_PART: u64 = 8;

/// Time limit until writes are rejected.
const FILL_MAX: Duration = Duration::from_secs(60);
/// Time limit until the server reports that it rejects writes.
const HEALTH_MAX: Duration = Duration::from_secs(5);
/// Time limit until writes are accepted again after space was freed.
const RECOVER_MAX: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);
/// Maximum number of lines per round on standard error that name the cause.
const CAUSE_LINES_MAX: usize = 4;

/// How the disk fills up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// The clients write until the reserve is reached.
    Clients,
    /// Another program takes all space but half of the reserve.
    Reserve,
    /// Another program takes all space.
    Everything,
}

impl Fill {
    /// Returns how the disk fills up in a round.
    pub(super) const fn of_round(number: u64) -> Self {
        match number % 3 {
            0 => Self::Clients,
            1 => Self::Reserve,
            _ => Self::Everything,
        }
    }
}

/// A server process on the disk. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct ServerProcess {
    floe: Program,
    store: PathBuf,
    process: Process,
    address: String,
}

impl ServerProcess {
    pub(super) fn start(floe: Program, store: &Path) -> Result<Self, Failure> {
        let (process, address) = serve(&floe, store)?;
        Ok(Self {
            floe,
            store: store.to_owned(),
            process,
            address,
        })
    }

    /// Kills the process and starts a new one.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        self.process.kill();
        let (process, address) = serve(&self.floe, &self.store)?;
        self.process = process;
        self.address = address;
        Ok(())
    }

    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Counts the lines on standard error that name the cause.
    fn cause_lines(&self) -> usize {
        let stderr = self.process.stderr();
        let lines = stderr.lines();
        lines.filter(|line| line.contains("space")).count()
    }
}

fn serve(floe: &Program, store: &Path) -> Result<(Process, String), Failure> {
    let mut process = Process::start(floe.serve(store))?;
    let address = process.address()?;
    Ok((process, address))
}

/// The faults, counted in rounds.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The server died or had to be restarted.
    pub(super) restarts: u64,
    /// Writes were not rejected.
    pub(super) unfilled: u64,
    /// `/healthz` returned the wrong status.
    pub(super) health: u64,
    /// A read failed while the disk was full.
    pub(super) reads: u64,
    /// A delete was rejected while only the reserve was reached.
    pub(super) deletes: u64,
    /// Standard error did not name the cause, or named it too often.
    pub(super) unnamed: u64,
    pub(super) recover_ms_max: u64,
    /// The server rejects writes although there is room.
    pub(super) needs_restart: bool,
    pub(super) notes: Vec<String>,
}

impl Faults {
    pub(super) const fn is_clean(&self) -> bool {
        self.restarts == 0
            && self.unfilled == 0
            && self.health == 0
            && self.reads == 0
            && self.deletes == 0
            && self.unnamed == 0
    }

    /// Runs a round.
    pub(super) async fn run(
        &mut self,
        number: u64,
        fill: Fill,
        disk: &Tmpfs,
        server: &mut ServerProcess,
        ledger: &Ledger,
    ) -> Result<(), Failure> {
        let round = Round {
            number,
            fill,
            disk,
            ledger,
            filler: disk.path().join("filler"),
        };
        let mut caller = Caller::new(&server.address())?;
        let (read, removed) = (format!("read-{number}"), format!("removed-{number}"));
        for key in [&read, &removed] {
            if caller.put(key, 100, ledger).await != WriteOutcome::Acked {
                self.note(&round, "a write is rejected before the disk is full");
            }
        }
        let causes = server.cause_lines();
        if round.fill_up().await? {
            self.observe(&round, &mut caller, &read, &removed).await;
            self.look_for_cause(&round, server, causes).await;
        } else {
            self.unfilled += 1;
            self.note(&round, "writes are accepted although the disk is full");
        }
        round.free_a_part()?;
        self.delete_below_reserve(&round, &mut caller, &removed)
            .await;
        round.free()?;
        self.recover(&round, server, &mut caller).await;
        Ok(())
    }

    /// Checks the server while it rejects writes.
    async fn observe(&mut self, round: &Round<'_>, caller: &mut Caller, read: &str, removed: &str) {
        // The key is never written again, so that its outcome stays visible.
        let key = format!("full-{}", round.number);
        caller.put(&key, REFUSED_BYTES, round.ledger).await;
        if !caller.get(read).await {
            self.reads += 1;
            self.note(round, "a read fails while the disk is full");
        }
        if round.fill == Fill::Clients
            && caller.delete(removed, round.ledger).await != WriteOutcome::Acked
        {
            self.deletes += 1;
            self.note(round, "a delete is rejected although the reserve is free");
        }
        // Take space that the server frees in the meantime.
        let keep_full = || round.take_space();
        if let Err(status) = wait_for_page(caller, 503, HEALTH_MAX, keep_full).await {
            self.health += 1;
            let what = format!("/healthz does not return 503: status={status:?}");
            self.note(round, &what);
        }
    }

    /// Waits until deletes are accepted while free space is still below the reserve.
    async fn delete_below_reserve(
        &mut self,
        round: &Round<'_>,
        caller: &mut Caller,
        removed: &str,
    ) {
        let deadline = Instant::now() + RECOVER_MAX;
        while caller.delete(removed, round.ledger).await != WriteOutcome::Acked {
            if Instant::now() > deadline || round.free_a_part().is_err() {
                self.deletes += 1;
                self.note(
                    round,
                    "a delete is rejected although a part of the reserve is free",
                );
                return;
            }
            sleep(STEP).await;
        }
    }

    async fn look_for_cause(&mut self, round: &Round<'_>, server: &ServerProcess, before: usize) {
        let deadline = Instant::now() + HEALTH_MAX;
        while server.cause_lines() == before && Instant::now() < deadline {
            if round.take_space().is_err() {
                break;
            }
            sleep(STEP).await;
        }
        let lines = server.cause_lines() - before;
        if lines == 0 || lines > CAUSE_LINES_MAX {
            self.unnamed += 1;
            let what =
                format!("wrong number of lines on standard error name the cause: lines={lines}");
            self.note(round, &what);
        }
    }

    /// Waits until the same process accepts writes again.
    async fn recover(
        &mut self,
        round: &Round<'_>,
        server: &mut ServerProcess,
        caller: &mut Caller,
    ) {
        let freed = Instant::now();
        let key = format!("recovered-{}", round.number);
        while caller.put(&key, 100, round.ledger).await != WriteOutcome::Acked {
            if freed.elapsed() > RECOVER_MAX || !server.is_alive() {
                self.needs_restart = true;
                self.note(round, "writes are rejected although there is room");
                return;
            }
            sleep(STEP).await;
        }
        let millis = u64::try_from(freed.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.recover_ms_max = self.recover_ms_max.max(millis);
        if let Err(status) = wait_for_page(caller, 200, HEALTH_MAX, || Ok(())).await {
            self.health += 1;
            let what = format!("/healthz does not return 200: status={status:?}");
            self.note(round, &what);
        }
    }

    fn note(&mut self, round: &Round<'_>, what: &str) {
        self.notes.push(format!(
            "round={} fill={:?} {what}",
            round.number, round.fill
        ));
    }
}

/// Waits until `/healthz` has this status. Returns the last status if it never does.
async fn wait_for_page(
    caller: &mut Caller,
    wanted: u16,
    most: Duration,
    meanwhile: impl Fn() -> io::Result<()>,
) -> Result<(), Option<u16>> {
    let deadline = Instant::now() + most;
    loop {
        let status = caller.page("/healthz").await;
        if status == Some(wanted) {
            return Ok(());
        }
        // A missing page will not appear later.
        if Instant::now() > deadline || status == Some(404) {
            return Err(status);
        }
        if meanwhile().is_err() {
            return Err(status);
        }
        sleep(STEP).await;
    }
}

struct Round<'a> {
    number: u64,
    fill: Fill,
    disk: &'a Tmpfs,
    ledger: &'a Ledger,
    /// The file of the other program.
    filler: PathBuf,
}

impl Round<'_> {
    /// Fills the disk until writes are rejected. Returns whether they were.
    async fn fill_up(&self) -> Result<bool, Failure> {
        let failed = |tally: super::ledger::Tally| tally.refused + tally.unknown;
        let before = failed(self.ledger.tally());
        let deadline = Instant::now() + FILL_MAX;
        self.take_space()?;
        while failed(self.ledger.tally()) == before {
            if Instant::now() > deadline {
                return Ok(false);
            }
            sleep(STEP).await;
            // Take space that the server has freed.
            self.take_space()?;
        }
        Ok(true)
    }

    fn take_space(&self) -> io::Result<()> {
        let space = self.disk.space()?;
        let reserve = space.total / RESERVE_PART;
        let left = match self.fill {
            Fill::Clients => reserve + LEFT_BYTES,
            Fill::Reserve => reserve / 2,
            Fill::Everything => 0,
        };
        grow(&self.filler, space.free.saturating_sub(left))
    }

    /// Shrinks the other program's file until deletes fit into the free space.
    fn free_a_part(&self) -> io::Result<()> {
        let space = self.disk.space()?;
        let missing = (space.total / RESERVE_PART / 2).saturating_sub(space.free);
        match File::options().write(true).open(&self.filler) {
            Ok(filler) => filler.set_len(filler.metadata()?.len().saturating_sub(missing)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn free(&self) -> io::Result<()> {
        match fs::remove_file(&self.filler) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Appends this many bytes to a file, or as many as fit.
fn grow(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    let block = vec![1; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(block.len() as u64);
        let part = block.get(..usize::try_from(part).unwrap_or(0));
        match file.write(part.unwrap_or_default()) {
            Ok(0) => break,
            Ok(written) => left -= written as u64,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
