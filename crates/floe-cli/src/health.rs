//! Watches the health of a served engine, and logs changes.

use std::time::Duration;

use floe_store::{Engine, Health};
use tokio::time::MissedTickBehavior;

use crate::single_line;

/// How often the health is checked.
const INTERVAL: Duration = Duration::from_millis(100);

/// Logs every change of the engine's health. Never returns.
pub(super) async fn watch(engine: &dyn Engine, mut log: impl FnMut(&str)) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut logged = Health::Ready;
    loop {
        ticks.tick().await;
        let health = engine.health();
        if let Some(line) = line(&logged, &health) {
            log(&line);
        }
        logged = health;
    }
}

/// The log line for a change. `None` if only the key=value facts of a reason changed.
fn line(before: &Health, now: &Health) -> Option<String> {
    if logged_part(before) == logged_part(now) {
        return None;
    }
    match now {
        Health::Ready => Some("writes are accepted again".to_owned()),
        Health::ReadOnly => Some("the file system is read-only: only reads are served".to_owned()),
        Health::WritesRefused { reason } => {
            Some(format!("writes are refused: {}", single_line(reason)))
        }
        _ => None,
    }
}

/// The part of a health whose changes are logged: the state, and the reason without its key=value facts.
fn logged_part(health: &Health) -> (std::mem::Discriminant<Health>, Vec<&str>) {
    let words = match health {
        Health::WritesRefused { reason } => reason
            .split_whitespace()
            .filter(|word| !word.contains('='))
            .collect(),
        _ => Vec::new(),
    };
    (std::mem::discriminant(health), words)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use floe_local::LocalEngine;
    use floe_store::forward_to;

    use super::*;

    /// An engine that returns the given healths one after the other, then keeps returning the last.
    struct ScriptedHealth {
        inner: LocalEngine,
        healths: Mutex<Vec<Health>>,
    }

    impl Engine for ScriptedHealth {
        fn health(&self) -> Health {
            let mut healths = self.healths.lock().unwrap();
            if healths.len() > 1 {
                healths.remove(0)
            } else {
                healths[0].clone()
            }
        }

        forward_to!(self.inner; capabilities, now, table_arn, items, tables, streams);
    }

    fn refused(reason: &str) -> Health {
        Health::WritesRefused {
            reason: reason.to_owned(),
        }
    }

    async fn check(healths: &[Health], expected: &[&str]) {
        let engine = ScriptedHealth {
            inner: LocalEngine::memory().unwrap(),
            healths: Mutex::new(healths.to_vec()),
        };
        let mut lines = Vec::new();
        let watching = watch(&engine, |line| lines.push(line.to_owned()));
        let result = tokio::time::timeout(INTERVAL * 20, watching).await;
        assert!(result.is_err(), "watch returned");
        assert_eq!(lines, expected, "{healths:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn every_change_is_logged_once() {
        use Health::{ReadOnly, Ready};
        check(&[Ready], &[]).await;
        check(
            &[ReadOnly],
            &["the file system is read-only: only reads are served"],
        )
        .await;
        check(&[refused("disk\nfull")], &["writes are refused: disk full"]).await;
        check(
            &[
                Ready,
                Ready,
                refused("low: free=1"),
                refused("low: free=2"),
                refused("full: free=0"),
                refused("low: free=3"),
                Ready,
                Ready,
                refused("again"),
            ],
            &[
                "writes are refused: low: free=1",
                "writes are refused: full: free=0",
                "writes are refused: low: free=3",
                "writes are accepted again",
                "writes are refused: again",
            ],
        )
        .await;
    }
}
