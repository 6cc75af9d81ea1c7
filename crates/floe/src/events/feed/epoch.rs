//! Epochs: what one knows, and what it takes of the spans that are brought to it.
//!
//! The feed of a partition is a chain of streams, `$AppendsEpoch-<partition>_<epoch>`. Each has `Ingested` events, and
//! at its end `Closed`; only then is the next one written to. An `Ingested` event has the spans of streams that are
//! new in this epoch under `add`, and those of streams that it knows under `app`.
//!
//! What is brought may be known already, in part or as a whole. How far each stream is known says which, so what the
//! chain holds is every event once, in the order of its stream.
//!
//! Nothing here reads or writes: see [`ingester`](super::ingester) for that.

use std::collections::HashMap;
use std::fmt;

use floe_store::Timestamp;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Value;

use super::limits::{EPOCH_STREAMS_CAP, EVENT_BYTES, EpochLimits};
use super::partition::Partition;
use super::span::Span;
use crate::error::{Error, ErrorKind, Result};
use crate::events::event::EventData;
use crate::events::keys::StreamName;

/// The category of the streams that epochs are.
pub const EPOCH_CATEGORY: &str = "$AppendsEpoch";

const INGESTED: &str = "Ingested";
pub(crate) const CLOSED: &str = "Closed";

/// The stream of an epoch.
///
/// # Errors
///
/// Never for these ids; the name is checked as every name is.
pub fn epoch_stream(partition: Partition, epoch: u32) -> Result<StreamName> {
    StreamName::new(EPOCH_CATEGORY, &(partition.number(), epoch))
}

/// An event of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpochEvent {
    /// Spans were taken.
    Ingested(Ingested),
    /// Nothing more will be taken. The next epoch goes on.
    Closed,
}

/// Spans that an epoch has taken together, at most one for each stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ingested {
    /// Of streams that are new in this epoch.
    pub add: Vec<Span>,
    /// Of streams that this epoch knows.
    pub app: Vec<Span>,
}

impl Ingested {
    /// All of its spans.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        self.add.iter().chain(&self.app)
    }

    /// All of its spans, to keep.
    pub fn into_spans(self) -> impl Iterator<Item = Span> {
        self.add.into_iter().chain(self.app)
    }

    fn is_empty(&self) -> bool {
        self.add.is_empty() && self.app.is_empty()
    }

    fn bytes(&self) -> usize {
        let list = |spans: &[Span]| {
            let commas = spans.len().saturating_sub(1);
            spans.iter().map(Span::bytes).sum::<usize>() + commas
        };
        r#"{"add":[],"app":[]}"#.len() + list(&self.add) + list(&self.app)
    }
}

impl Serialize for Ingested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut ingested = serializer.serialize_struct(INGESTED, 2)?;
        ingested.serialize_field("add", &self.add)?;
        ingested.serialize_field("app", &self.app)?;
        ingested.end()
    }
}

impl EpochEvent {
    /// What it weighs, by its JSON as it is before anything is made smaller.
    pub fn bytes(&self) -> usize {
        EVENT_BYTES
            + match self {
                Self::Ingested(ingested) => INGESTED.len() + ingested.bytes(),
                Self::Closed => CLOSED.len(),
            }
    }

    /// The event to be appended.
    ///
    /// # Errors
    ///
    /// Never for what is in an event; JSON is written with errors for what it cannot hold.
    pub fn encode(&self) -> Result<EventData> {
        Ok(match self {
            Self::Ingested(ingested) => {
                let data =
                    serde_json::to_vec(ingested).map_err(|error| invalid(INGESTED, &error))?;
                EventData::new(INGESTED, data)
            }
            Self::Closed => EventData::new(CLOSED, []),
        })
    }

    /// The event that was appended.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is none of an epoch.
    pub fn decode(event: &EventData) -> Result<Self> {
        match event.event_type.as_str() {
            INGESTED => {
                let json: Value = serde_json::from_slice(&event.data)
                    .map_err(|error| invalid(INGESTED, &error))?;
                Ok(Self::Ingested(Ingested {
                    add: spans_of_json(&json, "add")?,
                    app: spans_of_json(&json, "app")?,
                }))
            }
            CLOSED => Ok(Self::Closed),
            other => Err(invalid(other, &"no event of an epoch")),
        }
    }
}

/// The spans of a list, which may be missing where it is empty.
fn spans_of_json(json: &Value, list: &str) -> Result<Vec<Span>> {
    match json.get(list) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(spans)) => spans.iter().map(Span::of_json).collect(),
        Some(_) => Err(invalid(INGESTED, &format!("{list} is no list"))),
    }
}

fn invalid(event_type: &str, reason: &dyn fmt::Display) -> Error {
    let message = format!("an event of an epoch cannot be read, {reason}: type={event_type}");
    Error::new(ErrorKind::InvalidEvent, message)
}

/// What an epoch knows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EpochState {
    marks: HashMap<StreamName, u64>,
    is_closed: bool,
    bytes: u64,
    version: u64,
    started: Option<Timestamp>,
}

impl EpochState {
    /// The index of the next event of a stream; `None` if the epoch has none of it.
    pub fn mark(&self, stream: &StreamName) -> Option<u64> {
        self.marks.get(stream).copied()
    }

    /// Whether it takes nothing more.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What its events weigh.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many events it has.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// How many streams it knows.
    pub fn streams(&self) -> usize {
        self.marks.len()
    }

    /// When its first event was written.
    pub const fn started(&self) -> Option<Timestamp> {
        self.started
    }

    /// Goes on with an event that was written then.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when the epoch was closed before.
    pub fn apply(&mut self, event: &EpochEvent, time: Timestamp) -> Result<()> {
        if self.is_closed {
            let message = format!(
                "an epoch has events after its end: version={}",
                self.version
            );
            return Err(Error::new(ErrorKind::InvalidEvent, message));
        }
        match event {
            EpochEvent::Ingested(ingested) => {
                for span in ingested.spans() {
                    let mark = self.marks.entry(span.stream.clone()).or_default();
                    *mark = span.end().max(*mark);
                }
            }
            EpochEvent::Closed => self.is_closed = true,
        }
        self.bytes += event.bytes() as u64;
        self.version += 1;
        self.started.get_or_insert(time);
        Ok(())
    }

    /// Whether it is to be closed, once it has taken so much more.
    fn is_full_after(&self, ingested: &Ingested, limits: &EpochLimits) -> bool {
        let bytes = (EVENT_BYTES + INGESTED.len() + ingested.bytes()) as u64;
        self.bytes + bytes > limits.bytes_max
            || self.version + 1 >= limits.version_max
            || self.streams() + ingested.add.len() >= limits.streams_max.min(EPOCH_STREAMS_CAP)
    }
}

/// What becomes of spans that are brought to an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Decided {
    /// What it takes, if anything is new and it takes anything.
    pub ingested: Option<Ingested>,
    /// Whether it is closed after that.
    pub closes: bool,
    /// What is new and was not taken. It goes to the next epoch if this one is closed, and is brought again if not.
    pub residual: Vec<Span>,
}

impl Decided {
    /// The events to be appended.
    pub fn events(&self) -> Vec<EpochEvent> {
        let ingested = self.ingested.clone().map(EpochEvent::Ingested);
        let closed = self.closes.then_some(EpochEvent::Closed);
        ingested.into_iter().chain(closed).collect()
    }
}

/// Events are missing between what the feed has of a stream and what was brought.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first event that is missing.
    pub expected: u64,
    /// The index of the first event that was brought.
    pub found: u64,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            stream,
            expected,
            found,
        } = self;
        write!(
            f,
            "the feed would skip events: stream={stream} expected={expected} found={found}"
        )
    }
}

impl std::error::Error for Gap {}

impl From<Gap> for Error {
    fn from(gap: Gap) -> Self {
        Self::new(ErrorKind::MissingEvents, gap.to_string())
    }
}

/// Decides what an epoch takes of these spans. `earlier` tells how far a stream is known from epochs before this one.
///
/// # Errors
///
/// [`Gap`] when it is open and events of a stream that is known would be skipped. Nothing is to be written then.
pub fn ingest(
    state: &EpochState,
    earlier: impl Fn(&StreamName) -> Option<u64>,
    spans: Vec<Span>,
    limits: &EpochLimits,
) -> Result<Decided, Gap> {
    let mark = |stream: &StreamName| state.mark(stream).or_else(|| earlier(stream));
    if state.is_closed {
        let new = spans.into_iter().filter_map(|span| {
            let known = mark(&span.stream).unwrap_or_default();
            span.from_index(known)
        });
        return Ok(Decided {
            residual: new.collect(),
            ..Decided::default()
        });
    }
    let mut taking = Taking::new(state, limits);
    for (stream, spans) in by_stream(spans) {
        if let Some(span) = join(spans, mark(&stream))? {
            taking.take(span);
        }
    }
    Ok(taking.decided())
}

/// The spans of each stream, in the order in which the streams come.
fn by_stream(spans: Vec<Span>) -> Vec<(StreamName, Vec<Span>)> {
    let mut places: HashMap<StreamName, usize> = HashMap::new();
    let mut streams: Vec<(StreamName, Vec<Span>)> = Vec::new();
    for span in spans {
        let next = streams.len();
        let place = *places.entry(span.stream.clone()).or_insert(next);
        match streams.get_mut(place) {
            Some((_, of_stream)) => of_stream.push(span),
            None => streams.push((span.stream.clone(), vec![span])),
        }
    }
    streams
}

/// All that is new in the spans of a stream, as one span.
fn join(mut spans: Vec<Span>, mark: Option<u64>) -> Result<Option<Span>, Gap> {
    spans.retain(|span| !span.types.is_empty());
    spans.sort_by_key(|span| span.start);
    let mut joined: Option<Span> = None;
    for span in spans {
        let known = joined.as_ref().map(Span::end).or(mark);
        if let Some(expected) = known.filter(|known| *known < span.start) {
            return Err(Gap {
                stream: span.stream,
                expected,
                found: span.start,
            });
        }
        let new = span.from_index(known.unwrap_or_default());
        joined = match (joined, new) {
            (Some(mut joined), Some(new)) => {
                joined.types.extend(new.types);
                Some(joined)
            }
            (joined, new) => joined.or(new),
        };
    }
    Ok(joined)
}

/// Fills one `Ingested` event.
struct Taking<'s> {
    state: &'s EpochState,
    limits: &'s EpochLimits,
    ingested: Ingested,
    bytes: usize,
    residual: Vec<Span>,
}

impl<'s> Taking<'s> {
    fn new(state: &'s EpochState, limits: &'s EpochLimits) -> Self {
        let ingested = Ingested::default();
        Self {
            state,
            limits,
            bytes: ingested.bytes(),
            ingested,
            residual: Vec::new(),
        }
    }

    /// Takes what there is room for, but never nothing at all.
    fn take(&mut self, span: Span) {
        let is_known = self.state.mark(&span.stream).is_some();
        let streams = self.state.streams() + self.ingested.add.len();
        if !self.residual.is_empty() || (!is_known && streams >= EPOCH_STREAMS_CAP) {
            self.residual.push(span);
            return;
        }
        let room = self.limits.event_bytes_max.saturating_sub(self.bytes);
        let (first, rest) = match span.split_by_bytes(room) {
            (None, Some(span)) if self.ingested.is_empty() => {
                let (first, rest) = span.split_first();
                (Some(first), rest)
            }
            split => split,
        };
        self.residual.extend(rest);
        if let Some(span) = first {
            self.bytes += span.bytes() + 1;
            if is_known {
                self.ingested.app.push(span);
            } else {
                self.ingested.add.push(span);
            }
        }
    }

    fn decided(self) -> Decided {
        let has_new = !self.ingested.is_empty() || !self.residual.is_empty();
        Decided {
            closes: has_new && self.state.is_full_after(&self.ingested, self.limits),
            ingested: Some(self.ingested).filter(|ingested| !ingested.is_empty()),
            residual: self.residual,
        }
    }
}

#[cfg(test)]
mod tests;
