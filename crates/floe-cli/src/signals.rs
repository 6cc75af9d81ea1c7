//! Signals that stop the program: Ctrl-C, and SIGTERM from a service manager.

use crate::{Failure, Result, note};

/// The signals that stop the program.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Installs the handlers: from now on these signals no longer terminate the process.
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let failed = |error| Failure::failed(format!("signals cannot be received: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    #[cfg(not(unix))]
    pub(super) fn new() -> Result<Self> {
        Ok(Self {})
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        // If Ctrl-C cannot be received, the process runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the first signal, before there is any work in progress.
    pub(super) async fn first(mut self) {
        self.next().await;
    }

    /// Waits for the first signal; a second one terminates the process immediately.
    pub(super) async fn stop(mut self) {
        self.next().await;
        note("stopping after the work in progress; press Ctrl-C again to exit immediately");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(130);
        });
    }
}
