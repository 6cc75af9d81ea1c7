//! A stream of a decider: loaded, decided upon, appended to, and decided again if somebody else was faster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_store::Timestamp;
use tracing::{Instrument, Span};

use super::Access;
use super::cache::{Cached, Caching, StateCache};
use super::changes::{Change, Guard};
use super::compile::Synced;
use super::decider::{Decider, Decision};
use super::event::Recorded;
use super::keys::StreamName;
use super::position::Position;
use super::reads::{self, Loaded, Sift};
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
    /// What is kept is brought up to date; what another process has just appended may be missing, which an append
    /// notices.
    #[default]
    Require,
    /// As `Require`, and every append that was answered before is seen.
    RequireLeader,
    /// What is kept will do, however old.
    AnyCached,
    /// What is kept will do, if it was up to date so long ago.
    AllowStale(Duration),
    /// The stream is taken for empty, without a look: an append notices if it is not.
    AssumeEmpty,
}

impl Db {
    /// A stream of this decider in the table `events`.
    pub fn stream<D: Decider>(&self, id: &D::Id) -> Stream<D> {
        self.events().stream(id)
    }
}

impl EventStore {
    /// A stream of this decider.
    pub fn stream<D: Decider>(&self, id: &D::Id) -> Stream<D> {
        Stream {
            name: StreamName::new(D::CATEGORY, id),
            store: self.clone(),
            load: Load::default(),
            metadata: Metadata::default(),
            access: D::access(),
        }
    }

    /// The same store, which keeps states in memory: as long as told, and of so many bytes at most.
    ///
    /// Keep it and its copies: another one begins with nothing.
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

/// A state, and where the stream stood. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Loading<S> {
    pub(crate) state: Arc<S>,
    pub(crate) position: Option<Position>,
}

impl<S> Loading<S> {
    fn new(state: S, position: Option<Position>) -> Self {
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
        /// Asks for a state as fresh as this.
        pub const fn load(load: Load) => load = load;

        /// Tells this with all events that are appended.
        pub fn metadata(metadata: Metadata) => metadata = metadata;

        /// Finds the state in another way than the decider says.
        pub fn access(access: Access<D>) => access = access;
    }

    /// Looks at the state.
    ///
    /// # Errors
    ///
    /// As for [`transact`](Self::transact), without those of appending.
    pub async fn query<T>(&self, look: impl FnOnce(&D::State) -> T) -> Result<T> {
        self.query_versioned(|state, _| look(state)).await
    }

    /// Looks at the state and the version that it is of.
    ///
    /// # Errors
    ///
    /// As for [`query`](Self::query).
    pub async fn query_versioned<T>(&self, look: impl FnOnce(&D::State, u64) -> T) -> Result<T> {
        let loaded = self.load_state().await?;
        Ok(look(&loaded.state, loaded.version()))
    }

    /// Decides upon the state, and appends what was decided. If somebody else has appended meanwhile, it is decided again
    /// upon the new state.
    ///
    /// # Errors
    ///
    /// What the decision returns; [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) when others were always faster;
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) and [`MissingEvents`](ErrorKind::MissingEvents) when the stream cannot
    /// be read; [`TooLarge`](ErrorKind::TooLarge) when the events and the snapshot do not fit into an item;
    /// [`Store`](ErrorKind::Store) when the store cannot answer.
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

    /// As [`transact`](Self::transact), and tells the version that the stream has then.
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
                .sync(name, loaded.position.as_ref(), &change)
                .await?
            {
                Synced::Written(position) => {
                    let version = position.version;
                    self.keep(name, Loading::new(state, Some(position)));
                    return Ok((output, version));
                }
                Synced::Conflict(tip) => {
                    let attempts_max = self.store.options().attempts_max;
                    let lost = self.store.lost_race(name, &mut attempts, attempts_max);
                    let lost = lost.await;
                    span.record("floe.stream.resyncs", attempts);
                    lost?;
                    let tip = tip.map(|tip| *tip);
                    loaded = Box::pin(self.refresh(name, loaded, tip)).await?;
                    self.keep(name, loaded.clone());
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

    /// What is written for a decision.
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

    /// The state, as fresh as it was asked for.
    pub(crate) async fn load_state(&self) -> Result<Loading<D::State>> {
        let name = self.name()?;
        let span = telemetry::load(&self.store.options().table, name);
        let loaded = match span.in_scope(|| self.at_hand(name)) {
            Some(loaded) => Ok(loaded),
            // All ways to the store make a large future, which is not carried along where it is not needed.
            None => {
                Box::pin(self.load_named(name))
                    .instrument(span.clone())
                    .await
            }
        };
        telemetry::noted(&span, loaded)
    }

    /// The state, if nothing need be read for it.
    fn at_hand(&self, name: &StreamName) -> Option<Loading<D::State>> {
        match self.load {
            Load::AssumeEmpty => Some(empty::<D>()),
            Load::AnyCached | Load::AllowStale(_) => {
                let now = self.store.now();
                let kept = self.store.cache.as_ref()?.get::<D, D::State>(name, now)?;
                self.will_do(&kept, now).then(|| kept.into())
            }
            Load::Require | Load::RequireLeader => None,
        }
    }

    /// Whether a state that is kept is as fresh as it was asked for.
    fn will_do(&self, kept: &Cached<D::State>, now: Timestamp) -> bool {
        match self.load {
            Load::AnyCached => true,
            Load::AllowStale(age) => now.since(kept.refreshed) <= age,
            Load::Require | Load::RequireLeader | Load::AssumeEmpty => false,
        }
    }

    async fn load_named(&self, name: &StreamName) -> Result<Loading<D::State>> {
        let load_all = || self.load_all(name, None, self.load == Load::RequireLeader);
        let Some(cache) = &self.store.cache else {
            return load_all().await;
        };
        let now = self.store.now();
        // One at a time: who waited finds what the other has loaded.
        let turn = cache.turn::<D>(name);
        let _turn = turn.lock.lock().await;
        let kept = cache.get::<D, D::State>(name, self.store.now());
        // What the other has loaded may have been read before this was asked for, which the leader's word may not.
        let is_fresh = |kept: &Cached<D::State>| {
            self.will_do(kept, now) || self.load != Load::RequireLeader && kept.number > turn.number
        };
        let loaded = match kept {
            Some(kept) if is_fresh(&kept) => return Ok(kept.into()),
            Some(kept) => self.refresh(name, kept.into(), None).await?,
            None => load_all().await?,
        };
        self.keep(name, loaded.clone());
        Ok(loaded)
    }

    fn keep(&self, name: &StreamName, loaded: Loading<D::State>) {
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

    /// Brings a state up to date.
    async fn refresh(
        &self,
        name: &StreamName,
        known: Loading<D::State>,
        tip: Option<Batch>,
    ) -> Result<Loading<D::State>> {
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
        let is_another = tip.next < position.version;
        if is_another && let Some(cache) = &self.store.cache {
            cache.forget::<D>(name);
        }
        // Where the state is in the unfolds, or what is known is not a part of what is there, nothing known counts.
        if self.access.guard() == Guard::Etag || is_another {
            return self.load_all(name, Some(tip), true).await;
        }
        let loaded = self.fetch(name, Some(tip), true, position.version).await?;
        let state = if loaded.from_origin {
            D::initial()
        } else {
            Arc::unwrap_or_clone(known.state)
        };
        let state = D::fold(state, &loaded.events);
        Ok(Loading::new(state, loaded.position))
    }

    /// The Tip. Where a read that may be behind shows less than is known, as after an append of one's own, the leader is
    /// asked.
    async fn tip_since(
        &self,
        name: &StreamName,
        known: &Loading<D::State>,
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
    ) -> Result<Loading<D::State>> {
        // Nobody can tell what was never there from what has not come yet.
        let consistent = consistent || self.store.options().ignore_missing;
        let loaded = match self.fetch_all(name, tip, consistent).await {
            // A read that may be behind can show a Tip without the batch that was calved from it.
            Err(error) if !consistent && error.kind() == ErrorKind::MissingEvents => {
                self.fetch_all(name, None, true).await?
            }
            loaded => loaded?,
        };
        let state = D::fold(D::initial(), &loaded.events);
        Ok(Loading::new(state, loaded.position))
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
        let unfolds = self.access.looks_at_unfolds();
        reads::load(source, tip, since, unfolds, self).await
    }
}

impl<D: Decider> Sift<D::Event> for Stream<D> {
    fn decode(&self, event: Recorded) -> Result<Option<D::Event>> {
        // An unfold of a type that is not known is one of another version of the program: the events are there.
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

fn empty<D: Decider>() -> Loading<D::State> {
    Loading::new(D::initial(), None)
}

impl<S> From<Cached<S>> for Loading<S> {
    fn from(cached: Cached<S>) -> Self {
        Self {
            state: cached.state,
            position: Some(cached.position),
        }
    }
}
