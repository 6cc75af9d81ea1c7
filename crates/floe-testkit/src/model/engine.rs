//! The model as an engine.

use std::sync::{Mutex, MutexGuard};

use floe_store::env::{Env, Timestamp};
use floe_store::op::{Page, Scan};
use floe_store::{BoxFuture, Capabilities, Engine, Item, Result, each_operation};

use super::state::State;
use crate::lock::lock;

/// An engine that is slow and obviously right. Keeps everything in memory, under one lock.
#[derive(Debug)]
pub struct ModelEngine {
    state: Mutex<State>,
}

impl ModelEngine {
    /// An empty model that takes time and ids from here.
    pub fn new(env: Env) -> Self {
        Self {
            state: Mutex::new(State::new(env)),
        }
    }

    /// Removes all items that have expired by now.
    pub fn sweep(&self) {
        self.state().sweep();
    }

    /// A page of a scan that finds the entries in this order, given by their keys. Scans go in the
    /// order of the engine, so another engine's order must be known to compare its pages.
    pub(super) fn scan_in_order(&self, scan: &Scan, order: &[Item]) -> Result<Page> {
        self.state().scan_in_order(scan, order)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is only ever changed after everything that could fail.
        lock(&self.state)
    }
}

/// Implements operations by the methods of [`State`] of the same name.
macro_rules! operations {
    ($($name:ident($type:ty) -> $output:ty, $known:literal;)*) => {$(
        fn $name(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move { self.state().$name(&input) })
        }
    )*};
}

impl Engine for ModelEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn now(&self) -> Timestamp {
        self.state().env.now()
    }

    each_operation!(operations; all);
}
