//! A subscriber that collects spans with their parents, events, and measurements.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// Fields and their values, as text.
pub(crate) type Fields = BTreeMap<String, String>;

/// A span.
#[derive(Clone, Debug)]
pub(crate) struct CollectedSpan {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(crate) level: Level,
    pub(crate) fields: Fields,
    /// Index of the parent span.
    pub(crate) parent: Option<usize>,
    pub(crate) is_closed: bool,
}

/// An event, and the index of its span.
#[derive(Clone, Debug)]
pub(crate) struct CollectedEvent {
    pub(crate) target: &'static str,
    pub(crate) level: Level,
    pub(crate) fields: Fields,
    pub(crate) span: Option<usize>,
}

#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) spans: Vec<CollectedSpan>,
    pub(crate) events: Vec<CollectedEvent>,
    handles: Vec<usize>,
    entered: Vec<usize>,
}

/// Collects spans and events.
#[derive(Clone, Default)]
pub(crate) struct Collector {
    state: Arc<Mutex<Collected>>,
    most: Option<Level>,
    only: Option<&'static str>,
}

impl Collector {
    /// Returns a collector that is enabled up to this level.
    pub(crate) fn up_to(level: Level) -> Self {
        Self {
            most: Some(level),
            ..Self::default()
        }
    }

    /// Returns a handle to this collector that is enabled for one target only.
    pub(crate) fn only(&self, target: &'static str) -> Self {
        Self {
            only: Some(target),
            ..self.clone()
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, Collected> {
        self.state.lock().unwrap()
    }

    /// Returns all spans with this name.
    pub(crate) fn spans(&self, name: &str) -> Vec<CollectedSpan> {
        let state = self.state();
        let named = state.spans.iter().filter(|span| span.name == name);
        named.cloned().collect()
    }

    /// Returns the operations of all requests, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.spans("request").into_iter();
        requests
            .map(|span| span.fields["otel.name"].clone())
            .collect()
    }

    /// Returns all events with this message.
    pub(crate) fn events(&self, message: &str) -> Vec<CollectedEvent> {
        let state = self.state();
        let events = state.events.iter();
        let events =
            events.filter(|event| event.fields.get("message").is_some_and(|m| m == message));
        events.cloned().collect()
    }

    /// Returns all measurements with this name: values and attributes.
    pub(crate) fn measured(&self, name: &str) -> Vec<(f64, Fields)> {
        let state = self.state();
        let all = state.events.iter();
        let all = all.filter(|event| event.target == "floe::metrics");
        all.filter_map(|event| {
            let value = event.fields.get(name)?.parse().unwrap();
            let is_attribute = |name: &str| {
                let kinds = ["monotonic_counter.", "histogram.", "gauge."];
                !kinds.iter().any(|kind| name.starts_with(kind))
            };
            let attributes = event.fields.iter().filter(|(name, _)| is_attribute(name));
            let attributes = attributes.map(|(name, value)| (name.clone(), value.clone()));
            Some((value, attributes.collect()))
        })
        .collect()
    }

    /// Returns everything collected, as text.
    pub(crate) fn text(&self) -> String {
        let state = self.state();
        format!("{:?} {:?}", state.spans, state.events)
    }
}

struct Fill<'f>(&'f mut Fields);

impl Visit for Fill<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Collector {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.enabled(metadata) {
            // Other tests of the process may have subscribers with other levels.
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_wanted = self.most.is_none_or(|most| *metadata.level() <= most);
        is_wanted && metadata.target().starts_with(self.only.unwrap_or("floe"))
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        attributes.record(&mut Fill(&mut fields));
        let mut state = self.state();
        let index = state.spans.len();
        let parent = if attributes.is_contextual() {
            state.entered.last().copied()
        } else {
            None
        };
        let metadata = attributes.metadata();
        state.spans.push(CollectedSpan {
            name: metadata.name(),
            target: metadata.target(),
            level: *metadata.level(),
            fields,
            parent,
            is_closed: false,
        });
        state.handles.push(1);
        Id::from_u64(index as u64 + 1)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut state = self.state();
        values.record(&mut Fill(&mut state.spans[index(span)].fields));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Fill(&mut fields));
        let mut state = self.state();
        let span = state.entered.last().copied();
        state.events.push(CollectedEvent {
            target: event.metadata().target(),
            level: *event.metadata().level(),
            fields,
            span,
        });
    }

    fn enter(&self, span: &Id) {
        self.state().entered.push(index(span));
    }

    fn exit(&self, span: &Id) {
        let mut state = self.state();
        let at = state
            .entered
            .iter()
            .rposition(|entered| *entered == index(span));
        state.entered.remove(at.unwrap());
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.state().handles[index(span)] += 1;
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut state = self.state();
        let handles = &mut state.handles[index(&span)];
        *handles -= 1;
        let is_last = *handles == 0;
        state.spans[index(&span)].is_closed |= is_last;
        is_last
    }
}

fn index(span: &Id) -> usize {
    usize::try_from(span.into_u64()).unwrap() - 1
}

/// Runs a future on one thread with the collector as its subscriber.
pub(crate) fn listen<T>(collector: &Collector, future: impl Future<Output = T>) -> T {
    tracing::subscriber::with_default(collector.clone(), || block_on(future))
}

/// Runs a future on one thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(future)
}
