//! Export: spans and measurements are sent to a collector by OTLP, the protocol of OpenTelemetry, over HTTP.
//!
//! ```no_run
//! use floe::telemetry::otlp::{ExportError, Otlp};
//!
//! # fn main() -> Result<(), ExportError> {
//! let exporting = Otlp::new().service_name("shop").install()?;
//! // .. the program ..
//! exporting.shutdown()?;
//! # Ok(())
//! # }
//! ```
//!
//! What is not said is taken from where OpenTelemetry's tools take it: `OTEL_EXPORTER_OTLP_ENDPOINT` (by default
//! `http://localhost:4318`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_SERVICE_NAME`,
//! `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY` and `OTEL_METRIC_EXPORT_INTERVAL`.
//!
//! Spans of Floe are exported with all their fields; spans and events of others up to the level `INFO`, unless
//! [something else](Otlp::others) is said. Measurements are all events with a field that begins with `monotonic_counter.`,
//! `counter.`, `histogram.` or `gauge.`, whoever tells them.
//!
//! The work is done by two threads of its own. A collector that is down or slow costs the program nothing but what is not
//! exported: spans wait in a queue of bounded length, and what does not fit is dropped.

mod post;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{
    Aggregation, Instrument, PeriodicReader, SdkMeterProvider, Stream,
};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_opentelemetry::{MetricsLayer, OpenTelemetryLayer};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};

use self::post::Poster;

/// How long the collector may take to answer, unless something else is said.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the end of the program waits for spans that are not exported yet; the SDK waits as long for measurements.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// The ends of the buckets of durations, in seconds, as the conventions advise.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// The ends of the buckets of attempts.
const ATTEMPTS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 6.0, 10.0];

/// What is not heard: the export would tell of itself.
const OWN: [&str; 6] = [
    "floe::metrics",
    "h2",
    "hyper",
    "hyper_util",
    "opentelemetry",
    "rustls",
];

/// Layers that export.
pub type Layers<S> = Box<dyn Layer<S> + Send + Sync>;

/// How spans and measurements are exported.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct Otlp {
    endpoint: Option<String>,
    service_name: Option<String>,
    headers: HashMap<String, String>,
    attributes: Vec<KeyValue>,
    interval: Option<Duration>,
    timeout: Option<Duration>,
    others: Option<LevelFilter>,
}

impl Otlp {
    /// As the variables of the environment say.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends to this collector: `http://collector:4318`. The paths `/v1/traces` and `/v1/metrics` are added.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// The name of the program, as `service.name`.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = Some(name.into());
        self
    }

    /// Sends this header with each request: what a collector knows its clients by.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// One more attribute of the program: `deployment.environment.name`, `service.version`.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes
            .push(KeyValue::new(name.into(), value.into()));
        self
    }

    /// How often measurements are sent; once a minute if nothing is said.
    pub const fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// How long the collector may take to answer; 10 seconds if nothing is said.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Up to which level spans and events of others than Floe are exported; `INFO` if nothing is said.
    pub const fn others(mut self, level: LevelFilter) -> Self {
        self.others = Some(level);
        self
    }

    /// Exports everything that the program tells from now on, by the one subscriber of the process.
    ///
    /// # Errors
    ///
    /// When the endpoint is none, when a thread cannot be started, or when the process has a subscriber already: see
    /// [`layers`](Self::layers).
    pub fn install(self) -> Result<Exporting, ExportError> {
        let (layers, exporting) = self.layers()?;
        let subscriber = Registry::default().with(layers);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| {
            ExportError::new("the process has a subscriber already; add the layers to it instead")
        })?;
        Ok(exporting)
    }

    /// The layers for a subscriber of one's own, and what ends the export.
    ///
    /// # Errors
    ///
    /// When the endpoint is none, or when a thread cannot be started.
    pub fn layers<S>(self) -> Result<(Layers<S>, Exporting), ExportError>
    where
        S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        let exporting = Exporting {
            traces: self.traces()?,
            metrics: self.metrics()?,
        };
        let others = self.others.unwrap_or(LevelFilter::INFO);
        let traces = OpenTelemetryLayer::new(exporting.traces.tracer("floe"))
            .with_location(false)
            .with_threads(false)
            .with_filter(filter_fn(move |metadata| is_wanted(metadata, others)));
        let metrics = MetricsLayer::new(exporting.metrics.clone());
        Ok((Box::new(traces.and_then(metrics)), exporting))
    }

    fn traces(&self) -> Result<SdkTracerProvider, ExportError> {
        let exporter = self.posting(SpanExporter::builder().with_http(), "v1/traces")?;
        let exporter = exporter.build().map_err(ExportError::new)?;
        let provider = SdkTracerProvider::builder().with_resource(self.resource());
        Ok(provider.with_batch_exporter(exporter).build())
    }

    fn metrics(&self) -> Result<SdkMeterProvider, ExportError> {
        let exporter = self.posting(MetricExporter::builder().with_http(), "v1/metrics")?;
        let exporter = exporter.build().map_err(ExportError::new)?;
        let mut reader = PeriodicReader::builder(exporter);
        if let Some(interval) = self.interval {
            reader = reader.with_interval(interval);
        }
        let provider = SdkMeterProvider::builder().with_resource(self.resource());
        let provider = provider.with_reader(reader.build()).with_view(shown);
        Ok(provider.build())
    }

    /// An exporter that posts to this path of the collector.
    fn posting<B: WithHttpConfig + WithExportConfig>(
        &self,
        exporter: B,
        path: &str,
    ) -> Result<B, ExportError> {
        let poster = Poster::new(self.waits()).map_err(ExportError::new)?;
        let exporter = exporter
            .with_http_client(poster)
            .with_headers(self.headers.clone())
            .with_timeout(self.waits());
        Ok(match &self.endpoint {
            Some(url) => exporter.with_endpoint(format!("{}/{path}", url.trim_end_matches('/'))),
            None => exporter,
        })
    }

    /// How long the collector may take to answer.
    fn waits(&self) -> Duration {
        let variable = || {
            let millis = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok()?;
            Some(Duration::from_millis(millis.trim().parse().ok()?))
        };
        self.timeout.or_else(variable).unwrap_or(TIMEOUT)
    }

    fn resource(&self) -> Resource {
        let mut resource = Resource::builder().with_attributes(self.attributes.iter().cloned());
        if let Some(name) = &self.service_name {
            resource = resource.with_service_name(name.clone());
        }
        resource.build()
    }
}

/// Whether a span or an event belongs into traces.
fn is_wanted(metadata: &Metadata<'_>, others: LevelFilter) -> bool {
    let target = metadata.target();
    let is_in = |name: &str| {
        let rest = target.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || rest.starts_with('_'))
    };
    if OWN.iter().any(|own| is_in(own)) {
        return false;
    }
    let level_max = if is_in("floe") {
        LevelFilter::DEBUG
    } else {
        others
    };
    *metadata.level() <= level_max
}

/// How a measurement is shown: its unit, and the buckets of a histogram.
fn shown(instrument: &Instrument) -> Option<Stream> {
    let (unit, buckets): (_, &[f64]) = match instrument.name() {
        "db.client.operation.duration"
        | "floe.server.operation.duration"
        | "floe.transaction.duration" => ("s", &SECONDS),
        "floe.transaction.attempts" => ("{attempt}", &ATTEMPTS),
        "floe.changes.lag" | "floe.feed.lag" | "floe.indexer.lag" => ("s", &[]),
        "floe.conflicts" => ("{conflict}", &[]),
        "floe.consumed_read_units" | "floe.consumed_write_units" => ("{unit}", &[]),
        "floe.throttled_requests" => ("{request}", &[]),
        "floe.feed.lag_events" | "floe.feed.parked_events" => ("{event}", &[]),
        "floe.indexer.events" | "floe.stream.appended_events" => ("{event}", &[]),
        "floe.feed.parked_streams" => ("{stream}", &[]),
        "floe.changes.parked" | "floe.changes.waiting" => ("{change}", &[]),
        "floe.indexer.records" => ("{record}", &[]),
        _ => return None,
    };
    let mut stream = Stream::builder().with_unit(unit);
    if !buckets.is_empty() {
        stream = stream.with_aggregation(Aggregation::ExplicitBucketHistogram {
            boundaries: buckets.to_vec(),
            record_min_max: true,
        });
    }
    stream.build().ok()
}

/// What exports. When it is dropped, what is not exported yet is sent, and the export ends.
#[derive(Debug)]
#[must_use = "the export ends when this is dropped"]
pub struct Exporting {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Exporting {
    /// Sends everything now. Blocks the thread for as long as it takes.
    ///
    /// # Errors
    ///
    /// When the collector does not take it.
    pub fn flush(&self) -> Result<(), ExportError> {
        let traces = self.traces.force_flush();
        let metrics = self.metrics.force_flush();
        traces.and(metrics).map_err(ExportError::new)
    }

    /// Sends what is left, and ends the export. Blocks the thread, for some seconds at most.
    ///
    /// # Errors
    ///
    /// When the collector does not take it, or not in time.
    pub fn shutdown(self) -> Result<(), ExportError> {
        self.end()
    }

    fn end(&self) -> Result<(), ExportError> {
        let traces = self.traces.shutdown_with_timeout(SHUTDOWN);
        let metrics = self.metrics.shutdown();
        traces.and(metrics).map_err(ExportError::new)
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        // Nobody is left to be told. After `shutdown` there is nothing to do.
        drop(self.end());
    }
}

/// Why nothing is exported, or not everything was.
#[derive(Debug)]
pub struct ExportError(String);

impl ExportError {
    fn new(reason: impl fmt::Display) -> Self {
        Self(format!("telemetry cannot be exported: {reason}"))
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for ExportError {}
