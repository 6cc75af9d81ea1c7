//! Opens the engine on a directory with the settings of the checks.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use floe_local::{Durability, LocalEngine, Options};
use floe_store::{Engine, Result};

use super::audit_report::AuditReport;

/// How a directory is opened.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct Settings {
    /// Acknowledge writes before they are synced.
    #[arg(long = "relaxed")]
    pub(super) is_relaxed: bool,
    /// Use minimal buffers, so that files are constantly flushed and merged.
    #[arg(long = "small")]
    pub(super) is_small: bool,
    /// Do no background work, so that nothing expires during an audit.
    #[arg(long = "idle")]
    pub(super) is_idle: bool,
}

impl Settings {
    /// For audits: no background work.
    pub(super) const IDLE: Self = Self {
        is_relaxed: false,
        is_small: false,
        is_idle: true,
    };

    /// The flags with which a child process gets the same settings.
    pub(super) fn flags(self) -> impl Iterator<Item = &'static str> {
        let flags = [
            (self.is_relaxed, "--relaxed"),
            (self.is_small, "--small"),
            (self.is_idle, "--idle"),
        ];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, flag)| flag)
    }

    fn options(self) -> Options {
        let mut options = Options::new().background(!self.is_idle);
        if self.is_relaxed {
            options = options.durability(Durability::Relaxed);
        }
        if self.is_small {
            options = options.write_buffer_bytes(0).cache_bytes(1 << 20);
        }
        options
    }
}

/// An engine on a directory.
pub(super) struct Opened(Arc<LocalEngine>);

/// Opens a directory.
pub(super) fn open(folder: &Path, settings: Settings) -> Result<Opened> {
    let engine = LocalEngine::open_with(folder, settings.options())?;
    Ok(Opened(Arc::new(engine)))
}

impl Opened {
    /// Returns the engine.
    pub(super) fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.0) as Arc<dyn Engine>
    }

    /// Runs the engine's doctor on everything stored.
    pub(super) fn run_doctor(&self, findings: &mut AuditReport) -> Result<()> {
        let report = self.0.doctor(false)?;
        findings.doctor += report.findings_total;
        for finding in report.findings {
            findings.note(format!("doctor: {finding:?}"));
        }
        Ok(())
    }

    /// Closes the directory.
    pub(super) fn close(self) -> Result<()> {
        self.0.close()
    }
}
