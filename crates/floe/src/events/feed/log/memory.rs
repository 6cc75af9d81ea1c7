//! Epochs and an index in memory, for tests: with others who come in between, failures, and a clock of its own.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use floe_store::env::{Clock, ManualClock, SeededRandom};

use super::*;
use crate::error::{Error, ErrorKind};

/// A log that all its clones share.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLog {
    kept: Arc<Mutex<Kept>>,
    pub(crate) clock: Arc<ManualClock>,
    /// What goes wrong, if anything does.
    trouble: Option<Arc<SeededRandom>>,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) epochs: BTreeMap<(Partition, u32), Vec<(EpochEvent, Timestamp)>>,
    pub(crate) index: Vec<IndexEvent>,
    pub(crate) snapshot: IndexState,
    /// The requests that were made, by name.
    pub(crate) requests: Vec<&'static str>,
}

impl Kept {
    pub(crate) fn epoch(&self, partition: Partition, epoch: u32) -> &[(EpochEvent, Timestamp)] {
        let events = self.epochs.get(&(partition, epoch));
        events.map_or(&[], Vec::as_slice)
    }
}

impl MemoryLog {
    pub(crate) fn new() -> Self {
        Self {
            kept: Arc::default(),
            clock: ManualClock::at(Timestamp::from_millis(1_000_000_000)),
            trouble: None,
        }
    }

    /// Requests fail now and then, before or after they have done what was asked, and others come in between.
    pub(crate) fn with_trouble(seed: u64) -> Self {
        Self {
            trouble: Some(Arc::new(SeededRandom::new(seed))),
            ..Self::new()
        }
    }

    pub(crate) fn without_trouble(&self) -> Self {
        Self {
            trouble: None,
            ..self.clone()
        }
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// The requests since this was asked last.
    pub(crate) fn take_requests(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.kept().requests)
    }

    fn is_in_trouble(&self, one_in: u64) -> bool {
        let random = self.trouble.as_ref();
        random.is_some_and(|random| random.below(one_in) == 0)
    }

    async fn on_the_way(&self) -> Result<()> {
        if self.trouble.is_some() {
            pause().await;
        }
        match self.is_in_trouble(60) {
            true => Err(Error::new(ErrorKind::Store, "lost on the way")),
            false => Ok(()),
        }
    }

    async fn request<T>(&self, name: &'static str, run: impl FnOnce(&mut Kept) -> T) -> Result<T> {
        self.on_the_way().await?;
        let answer = {
            let mut kept = self.kept();
            kept.requests.push(name);
            run(&mut kept)
        };
        self.on_the_way().await?;
        Ok(answer)
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
        self.request("load_epoch", |kept| {
            let mut state = EpochState::default();
            let events = kept.epoch(partition, epoch);
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
        self.request("append_epoch", |kept| {
            let stored = kept.epochs.entry((partition, epoch)).or_default();
            if stored.len() != *expected || self.is_in_trouble(30) {
                return Appended::Conflict;
            }
            let time = self.clock.now();
            stored.extend(events.iter().map(|event| (event.clone(), time)));
            self.written(stored.len())
        })
        .await
    }

    async fn load_index(&self) -> Result<Loaded<IndexState, usize>> {
        self.request("load_index", |kept| Loaded {
            state: kept.snapshot.clone(),
            position: kept.index.len(),
        })
        .await
    }

    async fn append_index(
        &self,
        event: &IndexEvent,
        after: &IndexState,
        expected: &usize,
    ) -> Result<Appended<usize>> {
        self.request("append_index", |kept| {
            if kept.index.len() != *expected || self.is_in_trouble(30) {
                return Appended::Conflict;
            }
            kept.index.push(event.clone());
            kept.snapshot = after.clone();
            self.written(kept.index.len())
        })
        .await
    }
}

/// How many events a page has.
const PAGE_EVENTS: usize = 3;

impl EpochSource for MemoryLog {
    async fn read_epoch(&self, partition: Partition, epoch: u32, offset: u64) -> Result<EpochPage> {
        self.request("read_epoch", |kept| {
            let events = kept.epoch(partition, epoch);
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
        self.request("read_index", |kept| kept.snapshot.clone())
            .await
    }

    async fn epoch_version(&self, partition: Partition, epoch: u32) -> Result<EpochVersion> {
        self.request("epoch_version", |kept| {
            let events = kept.epoch(partition, epoch);
            EpochVersion {
                version: events.len() as u64,
                is_closed: matches!(events.last(), Some((EpochEvent::Closed, _))),
            }
        })
        .await
    }
}

/// Lets others run once.
pub(crate) async fn pause() {
    let mut has_paused = false;
    poll_fn(|_| match std::mem::replace(&mut has_paused, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Something that runs beside others until it is done or dropped.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Runs a task up to its next pause; `true` once it is done.
pub(crate) fn run_on(task: &mut Task) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    task.as_mut().poll(&mut context).is_ready()
}
