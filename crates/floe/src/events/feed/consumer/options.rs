//! Options of a consumer.

use super::WorkerNotice;
use crate::delivery::{self, Callback};
use crate::events::feed::limits::{ATTEMPTS_MAX, CALL_EVENTS_MAX, STREAMS_CONCURRENCY_MAX};
use crate::events::feed::reader::Filter;
use crate::request::Backoff;

/// Options of a consumer.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) delivery: delivery::Options,
    pub(super) filter: Filter,
    /// Maximum number of events per call of a handler.
    pub(super) events_max: usize,
    pub(super) on_notice: Callback<dyn Fn(&WorkerNotice) + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        let (concurrency_max, backoff) = (STREAMS_CONCURRENCY_MAX, Backoff::default());
        Self {
            delivery: delivery::Options::new(concurrency_max, ATTEMPTS_MAX, backoff),
            filter: Filter::default(),
            events_max: CALL_EVENTS_MAX,
            on_notice: Callback::default(),
        }
    }
}

impl Options {
    /// Emits a notice.
    pub(super) fn notify(&self, notice: &WorkerNotice) {
        if let Some(on_notice) = &self.on_notice.0 {
            on_notice(notice);
        }
    }
}
