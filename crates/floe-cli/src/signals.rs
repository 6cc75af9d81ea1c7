//! Requests to stop: Ctrl-C, or the signal of a service manager.

use crate::{Failure, Result, note};

/// The two ways to stop the program: Ctrl-C, and what service managers send.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// From here on they no longer end the process.
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let failed = |error| Failure::broken(format!("signals cannot be received: {error}"));
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
        // Without a way to ask it, it is ended from outside.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the first; the second ends the process at once.
    pub(super) async fn stop(mut self) {
        self.next().await;
        note("finishing what is under way; Ctrl-C again ends at once");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(130);
        });
    }
}
