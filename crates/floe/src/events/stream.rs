//! A stream of a decider: loads the state, decides, appends the events, and decides again after a conflict.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_store::Timestamp;
use tracing::{Instrument, Span};

use super::Access;
use super::cache::{Cached, Caching, StateCache};
use super::changes::{Change, Guard};
use super::compile::AppendOutcome;
use super::decider::{Decider, Decision};
use super::event::Recorded;
use super::keys::StreamName;
use super::position::StreamPosition;
use super::reads::{self, EventDecoder, Loaded};
use super::store::EventStore;
use super::stored::{Batch, StoredEvent, StoredUnfold};
use super::typed::{Metadata, Unknown, of_data, to_data};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::events::telemetry;

/// How fresh a state must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Load {
    /// Refreshes a cached state with an eventually consistent read. Recent events of other processes may be missing; an
    /// append detects that.
    #[default]
    Require,
    /// Like `Require`, with a strongly consistent read: includes every append that completed before.
    RequireLeader,
    /// Accepts a cached state of any age.
    AnyCached,
    /// Accepts a cached state that was current this long ago.
    AllowStale(Duration),
    /// Assumes an empty stream without reading; an append detects if it is not.
    AssumeEmpty,
}

impl Db {
    /// Returns a stream of this decider in the table `events`.
    pub fn stream<D: Decider>(&self, id: &D::Id) -> Stream<D> {
        self.events().stream(id)
    }
}

impl EventStore {
    /// Returns a stream of this decider.
    pub fn stream<D: Decider>(&self, id: &D::Id) -> Stream<D> {
        Stream {
            name: StreamName::new(D::CATEGORY, id),
            store: self.clone(),
            load: Load::default(),
            metadata: Metadata::default(),
            access: D::access(),
        }
    }

    /// Enables a cache of states, of at most this many bytes.
    ///
    /// Copies of the store share the cache, so keep the store: another call creates an empty cache.
    #[must_use]
    pub fn cached(mut self, caching: Caching, bytes_max: usize) -> Self {
        self.cache = Some(Arc::new(StateCache::new(caching, bytes_max)));
        self
    }
}

/// A stream of a decider.
pub struct Stream<D: Decider> {
    store: EventStore,
    name: Result<StreamName>,
    load: Load,
    metadata: Metadata,
    access: Access<D>,
}

impl<D: Decider> fmt::Debug for Stream<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A loaded state with the position of the stream. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LoadedState<S> {
    pub(crate) state: Arc<S>,
    pub(crate) position: Option<StreamPosition>,
}

impl<S> LoadedState<S> {
    fn new(state: S, position: Option<StreamPosition>) -> Self {
        Self {
            state: Arc::new(state),
            position,
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.position
            .as_ref()
            .map_or(0, |position| position.version)
    }
}

impl<D: Decider> Stream<D>
where
    D::Event: Clone,
{
    setters! {
        /// How fresh the state must be. Default: `Require`.
        pub const fn load(load: Load) => load = load;

        /// Metadata for all appended events. Default: none.
        pub fn metadata(metadata: Metadata) => metadata = metadata;

        /// The access strategy. Default: that of the decider.
        pub fn access(access: Access<D>) => access = access;
    }

    /// Loads the state and passes it to a function.
    ///
    /// # Errors
    ///
    /// As for [`transact`](Self::transact), except those of appending.
    pub async fn query<T>(&self, read: impl FnOnce(&D::State) -> T) -> Result<T> {
        self.query_versioned(|state, _| read(state)).await
    }

    /// Loads the state and passes it with its version to a function.
    ///
    /// # Errors
    ///
    /// As for [`query`](Self::query).
    pub async fn query_versioned<T>(&self, read: impl FnOnce(&D::State, u64) -> T) -> Result<T> {
        let loaded = self.load_state().await?;
        Ok(read(&loaded.state, loaded.version()))
    }

    /// Decides on the state and appends the decided events. Decides again on the new state after a conflict with another
    /// writer.
    ///
    /// # Errors
    ///
    /// The error of the decision; [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) after too many conflicts;
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) and [`MissingEvents`](ErrorKind::MissingEvents) if the stream cannot
    /// be read; [`TooLarge`](ErrorKind::TooLarge) if the events and the snapshot do not fit into an item;
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) if the store stays unavailable; [`Store`](ErrorKind::Store) if the
    /// store fails.
    pub async fn transact<X, E>(
        &self,
        decide: impl Fn(&D::State) -> Result<X, E>,
    ) -> Result<X::Output, E>
    where
        X: Decision<D::Event>,
        E: From<Error>,
    {
        let (output, _) = self.transact_versioned(decide).await?;
        Ok(output)
    }

    /// Like [`transact`](Self::transact). Also returns the version of the stream afterwards.
    ///
    /// # Errors
    ///
    /// As for [`transact`](Self::transact).
    pub async fn transact_versioned<X, E>(
        &self,
        decide: impl Fn(&D::State) -> Result<X, E>,
    ) -> Result<(X::Output, u64), E>
    where
        X: Decision<D::Event>,
        E: From<Error>,
    {
        let name = self.name()?;
        let span = telemetry::decide(&self.store.options().table, name);
        self.decide(name, &span, decide)
            .instrument(span.clone())
            .await
    }

    async fn decide<X, E>(
        &self,
        name: &StreamName,
        span: &Span,
        decide: impl Fn(&D::State) -> Result<X, E>,
    ) -> Result<(X::Output, u64), E>
    where
        X: Decision<D::Event>,
        E: From<Error>,
    {
        let mut loaded = self.load_state().await?;
        let mut attempts = 0;
        loop {
            let (output, events) = decide(&loaded.state)?.into_parts();
            if events.is_empty() {
                return Ok((output, loaded.version()));
            }
            let state = D::fold(D::State::clone(&loaded.state), &events);
            let change = self.change(events, &state, loaded.version())?;
            match self
                .store
                .send_append(name, loaded.position.as_ref(), &change)
                .await?
            {
                AppendOutcome::Written(position) => {
                    let version = position.version;
                    self.cache_state(name, LoadedState::new(state, Some(position)));
                    return Ok((output, version));
                }
                AppendOutcome::Conflict(tip) => {
                    let attempts_max = self.store.options().attempts_max;
                    let waited = self
                        .store
                        .wait_after_conflict(name, &mut attempts, attempts_max)
                        .await;
                    span.record("floe.stream.resyncs", attempts);
                    waited?;
                    let tip = tip.map(|tip| *tip);
                    loaded = Box::pin(self.refresh(name, loaded, tip)).await?;
                    self.cache_state(name, loaded.clone());
                }
            }
        }
    }

    pub(crate) const fn guard(&self) -> Guard {
        self.access.guard()
    }

    pub(crate) fn name(&self) -> Result<&StreamName> {
        self.name.as_ref().map_err(Clone::clone)
    }

    /// Compiles decided events into an append.
    pub(crate) fn change(
        &self,
        events: Vec<D::Event>,
        state: &D::State,
        version: u64,
    ) -> Result<Change> {
        let (events, unfolds) = self.access.parts(events, state);
        let (now, compression) = (self.store.now(), self.store.options().compression);
        let version = version + events.len() as u64;
        let events: Result<Vec<_>> = events
            .iter()
            .map(|event| {
                let data = to_data(event, &self.metadata)?;
                Ok(StoredEvent::new(data, now, compression))
            })
            .collect();
        let unfolds: Result<Vec<_>> = unfolds
            .iter()
            .map(|unfold| {
                let data = to_data(unfold, &Metadata::default())?;
                Ok(StoredUnfold::new(data, version, now, compression))
            })
            .collect();
        Ok(Change {
            events: events?,
            unfolds: unfolds?,
            guard: self.access.guard(),
        })
    }

    /// Loads the state, as fresh as requested.
    pub(crate) async fn load_state(&self) -> Result<LoadedState<D::State>> {
        let name = self.name()?;
        let span = telemetry::load(&self.store.options().table, name);
        let loaded = match span.in_scope(|| self.without_read(name)) {
            Some(loaded) => Ok(loaded),
            // The future of a read is large, so it is allocated only when it is needed.
            None => {
                Box::pin(self.load_or_refresh(name))
                    .instrument(span.clone())
                    .await
            }
        };
        telemetry::record_result(&span, loaded)
    }

    /// Returns the state, if that requires no read.
    fn without_read(&self, name: &StreamName) -> Option<LoadedState<D::State>> {
        match self.load {
            Load::AssumeEmpty => Some(empty::<D>()),
            Load::AnyCached | Load::AllowStale(_) => {
                let now = self.store.now();
                let cached = self.store.cache.as_ref()?;
                let cached = cached.get::<D, D::State>(name, now)?;
                self.is_fresh_enough(&cached, now).then(|| cached.into())
            }
            Load::Require | Load::RequireLeader => None,
        }
    }

    /// Whether a cached state can be used without a read.
    fn is_fresh_enough(&self, cached: &Cached<D::State>, now: Timestamp) -> bool {
        match self.load {
            Load::AnyCached => true,
            Load::AllowStale(age) => now.since(cached.refreshed) <= age,
            Load::Require | Load::RequireLeader | Load::AssumeEmpty => false,
        }
    }

    async fn load_or_refresh(&self, name: &StreamName) -> Result<LoadedState<D::State>> {
        let load_all = || self.load_all(name, None, self.load == Load::RequireLeader);
        let Some(cache) = &self.store.cache else {
            return load_all().await;
        };
        let now = self.store.now();
        // One caller loads at a time; the callers that waited use its result.
        let load_lock = cache.load_lock::<D>(name);
        let _guard = load_lock.lock.lock().await;
        let cached = cache.get::<D, D::State>(name, self.store.now());
        // That result may have been read before this call began, which `RequireLeader` does not accept.
        let is_fresh = |cached: &Cached<D::State>| {
            let was_loaded_meanwhile = cached.number > load_lock.number;
            self.is_fresh_enough(cached, now)
                || self.load != Load::RequireLeader && was_loaded_meanwhile
        };
        let loaded = match cached {
            Some(cached) if is_fresh(&cached) => return Ok(cached.into()),
            Some(cached) => self.refresh(name, cached.into(), None).await?,
            None => load_all().await?,
        };
        self.cache_state(name, loaded.clone());
        Ok(loaded)
    }

    /// Stores a loaded state in the cache, if there is one.
    fn cache_state(&self, name: &StreamName, loaded: LoadedState<D::State>) {
        let Some(cache) = &self.store.cache else {
            return;
        };
        match loaded.position {
            Some(position) => {
                cache.put::<D, D::State>(name, loaded.state, position, self.store.now());
            }
            None => cache.forget::<D>(name),
        }
    }

    /// Brings a known state up to date.
    async fn refresh(
        &self,
        name: &StreamName,
        known: LoadedState<D::State>,
        tip: Option<Batch>,
    ) -> Result<LoadedState<D::State>> {
        let tip = match tip {
            Some(tip) => tip,
            None => match self.tip_since(name, &known).await? {
                Some(tip) => tip,
                None => return Ok(empty::<D>()),
            },
        };
        let Some(position) = &known.position else {
            return self.load_all(name, Some(tip), true).await;
        };
        if tip.etag == position.etag && tip.next == position.version {
            return Ok(known);
        }
        let is_recreated = tip.next < position.version;
        if is_recreated && let Some(cache) = &self.store.cache {
            cache.forget::<D>(name);
        }
        // The known state is no prefix of a recreated stream, and unfolds may change without events.
        if self.access.guard() == Guard::Etag || is_recreated {
            return self.load_all(name, Some(tip), true).await;
        }
        let loaded = self.fetch(name, Some(tip), true, position.version).await?;
        let state = if loaded.from_origin {
            D::initial()
        } else {
            Arc::unwrap_or_clone(known.state)
        };
        let state = D::fold(state, &loaded.events);
        Ok(LoadedState::new(state, loaded.position))
    }

    /// Reads the Tip. If an eventually consistent read returns an older Tip than the known one, for example after an own
    /// append, reads again with strong consistency.
    async fn tip_since(
        &self,
        name: &StreamName,
        known: &LoadedState<D::State>,
    ) -> Result<Option<Batch>> {
        let consistent = self.load != Load::Require;
        let tip = self.store.tip(name, consistent).await?;
        let is_behind = match &tip {
            Some(tip) => tip.next < known.version(),
            None => known.position.is_some(),
        };
        if is_behind && !consistent {
            return self.store.tip(name, true).await;
        }
        Ok(tip)
    }

    async fn load_all(
        &self,
        name: &StreamName,
        tip: Option<Batch>,
        consistent: bool,
    ) -> Result<LoadedState<D::State>> {
        // An eventually consistent read cannot distinguish pruned events from events that are not visible yet.
        let consistent = consistent || self.store.options().ignore_missing;
        let loaded = match self.fetch_all(name, tip, consistent).await {
            // An eventually consistent read may return a Tip without the calf split off from it.
            Err(error) if !consistent && error.kind() == ErrorKind::MissingEvents => {
                self.fetch_all(name, None, true).await?
            }
            loaded => loaded?,
        };
        let state = D::fold(D::initial(), &loaded.events);
        Ok(LoadedState::new(state, loaded.position))
    }

    async fn fetch_all(
        &self,
        name: &StreamName,
        tip: Option<Batch>,
        consistent: bool,
    ) -> Result<Loaded<D::Event>> {
        match (&self.access, tip) {
            (Access::Unoptimized, None) => {
                let source = self.store.source(name, consistent);
                reads::load_by_query(source, self).await
            }
            (_, tip) => self.fetch(name, tip, consistent, 0).await,
        }
    }

    async fn fetch(
        &self,
        name: &StreamName,
        tip: Option<Batch>,
        consistent: bool,
        since: u64,
    ) -> Result<Loaded<D::Event>> {
        let source = self.store.source(name, consistent);
        let unfolds = self.access.reads_unfolds();
        reads::load(source, tip, since, unfolds, self).await
    }
}

impl<D: Decider> EventDecoder<D::Event> for Stream<D> {
    fn decode(&self, event: Recorded) -> Result<Option<D::Event>> {
        // Unfolds of unknown types belong to other program versions; the events contain the same information.
        let unknown = if event.is_unfold {
            Unknown::Skip
        } else {
            D::unknown()
        };
        of_data(&event.event, unknown).map_err(|error| {
            let stream = self.name.as_ref().map_or("", StreamName::as_str);
            let message = format!("{error} stream={stream} index={}", event.index);
            Error::new(ErrorKind::InvalidEvent, message)
        })
    }

    fn is_origin(&self, event: &D::Event) -> bool {
        self.access.is_origin(event)
    }
}

fn empty<D: Decider>() -> LoadedState<D::State> {
    LoadedState::new(D::initial(), None)
}

impl<S> From<Cached<S>> for LoadedState<S> {
    fn from(cached: Cached<S>) -> Self {
        Self {
            state: cached.state,
            position: Some(cached.position),
        }
    }
}
