//! Epochs and an index in memory, for tests: with concurrent writers, failures, and a manual clock.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use floe_store::env::{Clock, ManualClock, SeededRandom};

use super::*;
use crate::error::{Error, ErrorKind};

/// A log shared by its clones.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLog {
    state: Arc<Mutex<MemoryState>>,
    pub(crate) clock: Arc<ManualClock>,
    /// The random source of faults, if any.
    faults: Option<Arc<SeededRandom>>,
}

#[derive(Debug, Default)]
pub(crate) struct MemoryState {
    pub(crate) epochs: BTreeMap<(Partition, u32), Vec<(EpochEvent, Timestamp)>>,
    pub(crate) index: Vec<IndexEvent>,
    pub(crate) snapshot: IndexState,
    /// The names of the requests.
    pub(crate) requests: Vec<&'static str>,
}

impl MemoryState {
    pub(crate) fn epoch(&self, partition: Partition, epoch: u32) -> &[(EpochEvent, Timestamp)] {
        let events = self.epochs.get(&(partition, epoch));
        events.map_or(&[], Vec::as_slice)
    }
}

impl MemoryLog {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            clock: ManualClock::at(Timestamp::from_millis(1_000_000_000)),
            faults: None,
        }
    }

    /// Requests sometimes fail, before or after they are applied, and other tasks run in between.
    pub(crate) fn with_faults(seed: u64) -> Self {
        Self {
            faults: Some(Arc::new(SeededRandom::new(seed))),
            ..Self::new()
        }
    }

    pub(crate) fn without_faults(&self) -> Self {
        Self {
            faults: None,
            ..self.clone()
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap()
    }

    /// Returns the requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state().requests)
    }

    fn fails_once_in(&self, one_in: u64) -> bool {
        let random = self.faults.as_ref();
        random.is_some_and(|random| random.below(one_in) == 0)
    }

    async fn interfere(&self) -> Result<()> {
        if self.faults.is_some() {
            pause().await;
        }
        if self.fails_once_in(60) {
            Err(Error::new(
                ErrorKind::Store,
                "the request or the response was lost",
            ))
        } else {
            Ok(())
        }
    }

    async fn request<T>(
        &self,
        name: &'static str,
        run: impl FnOnce(&mut MemoryState) -> T,
    ) -> Result<T> {
        self.interfere().await?;
        let response = {
            let mut state = self.state();
            state.requests.push(name);
            run(&mut state)
        };
        self.interfere().await?;
        Ok(response)
    }

    fn written(&self, position: usize) -> Appended<usize> {
        let time = self.clock.now();
        Appended::Written { position, time }
    }
}

impl EpochLog for MemoryLog {
    type Position = usize;

    async fn load_epoch(
        &self,
        partition: Partition,
        epoch: u32,
    ) -> Result<Loaded<EpochState, usize>> {
        self.request("load_epoch", |log| {
            let mut state = EpochState::default();
            let events = log.epoch(partition, epoch);
            for (event, time) in events {
                state.apply(event, *time)?;
            }
            let position = events.len();
            Ok(Loaded { state, position })
        })
        .await?
    }

    async fn append_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        events: &[EpochEvent],
        expected: &usize,
    ) -> Result<Appended<usize>> {
        self.request("append_epoch", |state| {
            let stored = state.epochs.entry((partition, epoch)).or_default();
            if stored.len() != *expected || self.fails_once_in(30) {
                return Appended::Conflict;
            }
            let time = self.clock.now();
            stored.extend(events.iter().map(|event| (event.clone(), time)));
            self.written(stored.len())
        })
        .await
    }

    async fn load_index(&self) -> Result<Loaded<IndexState, usize>> {
        self.request("load_index", |state| Loaded {
            state: state.snapshot.clone(),
            position: state.index.len(),
        })
        .await
    }

    async fn append_index(
        &self,
        event: &IndexEvent,
        after: &IndexState,
        expected: &usize,
    ) -> Result<Appended<usize>> {
        self.request("append_index", |state| {
            if state.index.len() != *expected || self.fails_once_in(30) {
                return Appended::Conflict;
            }
            state.index.push(event.clone());
            state.snapshot = after.clone();
            self.written(state.index.len())
        })
        .await
    }
}

/// Number of events per page.
const PAGE_EVENTS: usize = 3;

impl EpochSource for MemoryLog {
    async fn read_epoch(&self, partition: Partition, epoch: u32, offset: u64) -> Result<EpochPage> {
        self.request("read_epoch", |state| {
            let events = state.epoch(partition, epoch);
            let offset = (offset as usize).min(events.len());
            let end = (offset + PAGE_EVENTS).min(events.len());
            let is_closed = matches!(events.last(), Some((EpochEvent::Closed, _)));
            let page = &events[offset..end];
            EpochPage {
                events: page.to_vec(),
                is_end: is_closed && end == events.len(),
            }
        })
        .await
    }

    async fn read_index(&self) -> Result<IndexState> {
        self.request("read_index", |state| state.snapshot.clone())
            .await
    }

    async fn epoch_version(&self, partition: Partition, epoch: u32) -> Result<EpochVersion> {
        self.request("epoch_version", |state| {
            let events = state.epoch(partition, epoch);
            EpochVersion {
                version: events.len() as u64,
                is_closed: matches!(events.last(), Some((EpochEvent::Closed, _))),
            }
        })
        .await
    }
}

/// Lets other tasks run once.
pub(crate) async fn pause() {
    let mut has_paused = false;
    poll_fn(|_| {
        if std::mem::replace(&mut has_paused, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// A task that runs interleaved with others.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Runs a task up to its next pause. Returns whether it has completed.
pub(crate) fn poll_once(task: &mut Task) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    task.as_mut().poll(&mut context).is_ready()
}
