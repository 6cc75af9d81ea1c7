//! The implementation of `Engine`.

use std::sync::{Mutex, MutexGuard};

use floe_store::env::{Env, Timestamp};
use floe_store::op::{Page, Scan};
use floe_store::{BoxFuture, Capabilities, Engine, Item, Result, each_operation};

use super::state::State;
use crate::lock::lock;

/// A reference engine: simple rather than fast. It keeps everything in memory under one lock.
#[derive(Debug)]
pub struct ModelEngine {
    state: Mutex<State>,
}

impl ModelEngine {
    /// Creates an empty model that takes time and ids from `env`.
    pub fn new(env: Env) -> Self {
        Self {
            state: Mutex::new(State::new(env)),
        }
    }

    /// Removes all expired items.
    pub fn sweep(&self) {
        self.state().sweep();
    }

    /// A page of a scan that finds entries in this order of keys. An engine chooses its scan order, so that order
    /// must be known to compare its pages.
    pub(super) fn scan_in_order(&self, scan: &Scan, order: &[Item]) -> Result<Page> {
        self.state().scan_in_order(scan, order)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is changed only after everything that can fail, so it is consistent after a panic.
        lock(&self.state)
    }
}

/// Implements operations by the methods of [`State`] with the same names.
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
