//! Epochs: their state, and which spans they accept.
//!
//! The feed of a partition is a chain of streams, `$AppendsEpoch-<partition>_<epoch>`. Each contains `Ingested`
//! events and ends with `Closed`; the next one is written only after that. An `Ingested` event lists spans of streams
//! that are new in this epoch under `add`, and spans of other streams under `app`.
//!
//! Spans may be offered repeatedly, in part or completely. The next index of each stream shows what is new, so the
//! chain contains every event once, in the order of its stream.
//!
//! This module does no I/O: see [`ingester`](super::ingester).

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

/// The category of epoch streams.
pub const EPOCH_CATEGORY: &str = "$AppendsEpoch";

const INGESTED: &str = "Ingested";
pub(crate) const CLOSED: &str = "Closed";

/// The name of an epoch's stream.
///
/// # Errors
///
/// Never for these ids; stream names are always validated.
pub fn epoch_stream(partition: Partition, epoch: u32) -> Result<StreamName> {
    StreamName::new(EPOCH_CATEGORY, &(partition.number(), epoch))
}

/// An event of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpochEvent {
    /// Spans were accepted.
    Ingested(Ingested),
    /// The epoch is closed, and the next one continues.
    Closed,
}

/// Spans accepted together, at most one per stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ingested {
    /// Spans of streams that are new in this epoch.
    pub add: Vec<Span>,
    /// Spans of streams with earlier events in this epoch.
    pub app: Vec<Span>,
}

impl Ingested {
    /// All spans.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        self.add.iter().chain(&self.app)
    }

    /// All spans, by value.
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
    /// Size of the event as uncompressed JSON.
    pub fn bytes(&self) -> usize {
        EVENT_BYTES
            + match self {
                Self::Ingested(ingested) => INGESTED.len() + ingested.bytes(),
                Self::Closed => CLOSED.len(),
            }
    }

    /// Encodes the event for an append.
    ///
    /// # Errors
    ///
    /// Never for these events; JSON encoding is fallible in general.
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

    /// Decodes an appended event.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if it is not an event of an epoch.
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
            other => Err(invalid(other, &"unknown event type")),
        }
    }
}

/// Parses a list of spans, which may be missing if it is empty.
fn spans_of_json(json: &Value, list: &str) -> Result<Vec<Span>> {
    match json.get(list) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(spans)) => spans.iter().map(Span::of_json).collect(),
        Some(_) => Err(invalid(INGESTED, &format!("{list} is not a list"))),
    }
}

fn invalid(event_type: &str, reason: &dyn fmt::Display) -> Error {
    let message = format!("cannot read an event of an epoch, {reason}: type={event_type}");
    Error::new(ErrorKind::InvalidEvent, message)
}

/// The state of an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EpochState {
    next_indexes: HashMap<StreamName, u64>,
    is_closed: bool,
    bytes: u64,
    version: u64,
    started: Option<Timestamp>,
}

impl EpochState {
    /// The index of the next event of a stream; `None` if the epoch has no events of it.
    pub fn next_index(&self, stream: &StreamName) -> Option<u64> {
        self.next_indexes.get(stream).copied()
    }

    /// Whether it is closed.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Size of its events.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of its events.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Number of its streams.
    pub fn streams(&self) -> usize {
        self.next_indexes.len()
    }

    /// The time of its first event.
    pub const fn started(&self) -> Option<Timestamp> {
        self.started
    }

    /// Applies an event with its time.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if the epoch is already closed.
    pub fn apply(&mut self, event: &EpochEvent, time: Timestamp) -> Result<()> {
        if self.is_closed {
            let message = format!(
                "an epoch has events after it was closed: version={}",
                self.version
            );
            return Err(Error::new(ErrorKind::InvalidEvent, message));
        }
        match event {
            EpochEvent::Ingested(ingested) => {
                for span in ingested.spans() {
                    let next_index = self.next_indexes.entry(span.stream.clone()).or_default();
                    *next_index = span.end().max(*next_index);
                }
            }
            EpochEvent::Closed => self.is_closed = true,
        }
        self.bytes += event.bytes() as u64;
        self.version += 1;
        self.started.get_or_insert(time);
        Ok(())
    }

    /// Whether the epoch reaches a limit with these spans.
    fn is_full_after(&self, ingested: &Ingested, limits: &EpochLimits) -> bool {
        let bytes = (EVENT_BYTES + INGESTED.len() + ingested.bytes()) as u64;
        self.bytes + bytes > limits.bytes_max
            || self.version + 1 >= limits.version_max
            || self.streams() + ingested.add.len() >= limits.streams_max.min(EPOCH_STREAMS_CAP)
    }
}

/// The decision of an epoch about offered spans.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EpochDecision {
    /// The accepted spans, if there are any.
    pub ingested: Option<Ingested>,
    /// Whether the epoch is closed afterwards.
    pub closes: bool,
    /// New spans that were not accepted. They are offered to the next epoch if this one is closed, otherwise again to
    /// this one.
    pub residual: Vec<Span>,
}

impl EpochDecision {
    /// The events to append.
    pub fn events(&self) -> Vec<EpochEvent> {
        let ingested = self.ingested.clone().map(EpochEvent::Ingested);
        let closed = self.closes.then_some(EpochEvent::Closed);
        ingested.into_iter().chain(closed).collect()
    }
}

/// Events of a stream are missing between the feed and an offered span.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first missing event.
    pub expected: u64,
    /// The index of the first offered event.
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

/// Decides which spans an epoch accepts. `earlier` returns the next index of a stream from earlier epochs.
///
/// # Errors
///
/// [`Gap`] if the epoch is open and events of a known stream would be skipped. Nothing must be written then.
pub fn ingest(
    state: &EpochState,
    earlier: impl Fn(&StreamName) -> Option<u64>,
    spans: Vec<Span>,
    limits: &EpochLimits,
) -> Result<EpochDecision, Gap> {
    let next_index = |stream: &StreamName| state.next_index(stream).or_else(|| earlier(stream));
    if state.is_closed {
        let new = spans.into_iter().filter_map(|span| {
            let known = next_index(&span.stream).unwrap_or_default();
            span.from_index(known)
        });
        return Ok(EpochDecision {
            residual: new.collect(),
            ..EpochDecision::default()
        });
    }
    let mut builder = IngestedBuilder::new(state, limits);
    for (stream, spans) in by_stream(spans) {
        if let Some(span) = join(spans, next_index(&stream))? {
            builder.add(span);
        }
    }
    Ok(builder.finish())
}

/// Groups spans by stream, in the order of first appearance.
fn by_stream(spans: Vec<Span>) -> Vec<(StreamName, Vec<Span>)> {
    let mut positions: HashMap<StreamName, usize> = HashMap::new();
    let mut streams: Vec<(StreamName, Vec<Span>)> = Vec::new();
    for span in spans {
        let next = streams.len();
        let position = *positions.entry(span.stream.clone()).or_insert(next);
        match streams.get_mut(position) {
            Some((_, of_stream)) => of_stream.push(span),
            None => streams.push((span.stream.clone(), vec![span])),
        }
    }
    streams
}

/// Joins the new events of a stream's spans into one span.
fn join(mut spans: Vec<Span>, next_index: Option<u64>) -> Result<Option<Span>, Gap> {
    spans.retain(|span| !span.types.is_empty());
    spans.sort_by_key(|span| span.start);
    let mut joined: Option<Span> = None;
    for span in spans {
        let known = joined.as_ref().map(Span::end).or(next_index);
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

/// Builds one `Ingested` event.
struct IngestedBuilder<'s> {
    state: &'s EpochState,
    limits: &'s EpochLimits,
    ingested: Ingested,
    bytes: usize,
    residual: Vec<Span>,
}

impl<'s> IngestedBuilder<'s> {
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

    /// Adds as much of a span as fits, but always at least one event to an empty list.
    fn add(&mut self, span: Span) {
        let is_known = self.state.next_index(&span.stream).is_some();
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

    fn finish(self) -> EpochDecision {
        let has_new = !self.ingested.is_empty() || !self.residual.is_empty();
        EpochDecision {
            closes: has_new && self.state.is_full_after(&self.ingested, self.limits),
            ingested: Some(self.ingested).filter(|ingested| !ingested.is_empty()),
            residual: self.residual,
        }
    }
}

#[cfg(test)]
mod tests;
