//! Export of spans and metrics to a collector by OTLP, the protocol of OpenTelemetry, over HTTP.
//!
//! ```no_run
//! use floe::telemetry::otlp::{ExportError, Otlp};
//!
//! # fn main() -> Result<(), ExportError> {
//! let exporter = Otlp::new().service_name("shop").install()?;
//! // .. the program ..
//! exporter.shutdown()?;
//! # Ok(())
//! # }
//! ```
//!
//! Options that are not set come from OpenTelemetry's environment variables: `OTEL_EXPORTER_OTLP_ENDPOINT` (default:
//! `http://localhost:4318`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_SERVICE_NAME`,
//! `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY` and `OTEL_METRIC_EXPORT_INTERVAL`.
//!
//! Floe's spans are exported with all their fields; spans and events of other crates up to a
//! [level](Otlp::other_crates), by default `INFO`. All events with a field that begins with `monotonic_counter.`,
//! `counter.`, `histogram.` or `gauge.` are exported as metrics, from any crate.
//!
//! The export uses two threads. A slow or unavailable collector never blocks the program: spans wait in a bounded queue,
//! and spans that do not fit are dropped.

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

/// Default timeout of a request to the collector.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// How long a shutdown waits until all spans are exported; the SDK waits equally long for metrics.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Bucket boundaries of durations, in seconds, as the semantic conventions recommend.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// Bucket boundaries of attempts.
const ATTEMPTS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 6.0, 10.0];

/// Targets that are not exported, because the export itself emits them.
const EXPORT_TARGETS: [&str; 6] = [
    "floe::metrics",
    "h2",
    "hyper",
    "hyper_util",
    "opentelemetry",
    "rustls",
];

/// `tracing` layers that export.
pub type Layers<S> = Box<dyn Layer<S> + Send + Sync>;

/// Options of the export of spans and metrics.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct Otlp {
    endpoint: Option<String>,
    service_name: Option<String>,
    headers: HashMap<String, String>,
    attributes: Vec<KeyValue>,
    interval: Option<Duration>,
    timeout: Option<Duration>,
    other_crates: Option<LevelFilter>,
}

impl Otlp {
    /// Options from the environment variables.
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

    /// Adds a header to each request, for example for authentication.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Adds a resource attribute: `deployment.environment.name`, `service.version`.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes
            .push(KeyValue::new(name.into(), value.into()));
        self
    }

    /// The interval between exports of metrics. Default: 1 minute.
    pub const fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// The timeout of a request to the collector. Default: 10 seconds.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Maximum level of exported spans and events of crates other than Floe. Default: `INFO`.
    pub const fn other_crates(mut self, level: LevelFilter) -> Self {
        self.other_crates = Some(level);
        self
    }

    /// Installs a global subscriber that exports everything that the program emits from now on.
    ///
    /// # Errors
    ///
    /// If the endpoint is invalid, if a thread cannot be started, or if the process already has a subscriber: see
    /// [`layers`](Self::layers).
    pub fn install(self) -> Result<Exporter, ExportError> {
        let (layers, exporter) = self.layers()?;
        let subscriber = Registry::default().with(layers);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| {
            ExportError::new("the process already has a subscriber; add the layers to it instead")
        })?;
        Ok(exporter)
    }

    /// Returns layers for your own subscriber, and the handle that ends the export.
    ///
    /// # Errors
    ///
    /// If the endpoint is invalid, or if a thread cannot be started.
    pub fn layers<S>(self) -> Result<(Layers<S>, Exporter), ExportError>
    where
        S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        let exporter = Exporter {
            traces: self.traces()?,
            metrics: self.metrics()?,
        };
        let other_crates = self.other_crates.unwrap_or(LevelFilter::INFO);
        let traces = OpenTelemetryLayer::new(exporter.traces.tracer("floe"))
            .with_location(false)
            .with_threads(false)
            .with_filter(filter_fn(move |metadata| {
                is_exported(metadata, other_crates)
            }));
        let metrics = MetricsLayer::new(exporter.metrics.clone());
        Ok((Box::new(traces.and_then(metrics)), exporter))
    }

    fn traces(&self) -> Result<SdkTracerProvider, ExportError> {
        let exporter = self.configure(SpanExporter::builder().with_http(), "v1/traces")?;
        let exporter = exporter.build().map_err(ExportError::new)?;
        let provider = SdkTracerProvider::builder().with_resource(self.resource());
        Ok(provider.with_batch_exporter(exporter).build())
    }

    fn metrics(&self) -> Result<SdkMeterProvider, ExportError> {
        let exporter = self.configure(MetricExporter::builder().with_http(), "v1/metrics")?;
        let exporter = exporter.build().map_err(ExportError::new)?;
        let mut reader = PeriodicReader::builder(exporter);
        if let Some(interval) = self.interval {
            reader = reader.with_interval(interval);
        }
        let provider = SdkMeterProvider::builder().with_resource(self.resource());
        let provider = provider.with_reader(reader.build()).with_view(view);
        Ok(provider.build())
    }

    /// Configures an exporter that posts to this path of the collector.
    fn configure<B: WithHttpConfig + WithExportConfig>(
        &self,
        exporter: B,
        path: &str,
    ) -> Result<B, ExportError> {
        let poster = Poster::new(self.request_timeout()).map_err(ExportError::new)?;
        let exporter = exporter
            .with_http_client(poster)
            .with_headers(self.headers.clone())
            .with_timeout(self.request_timeout());
        Ok(match &self.endpoint {
            Some(url) => exporter.with_endpoint(format!("{}/{path}", url.trim_end_matches('/'))),
            None => exporter,
        })
    }

    /// How long the collector may take to answer.
    fn request_timeout(&self) -> Duration {
        let variable = || {
            let millis = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok()?;
            Some(Duration::from_millis(millis.trim().parse().ok()?))
        };
        self.timeout.or_else(variable).unwrap_or(TIMEOUT_DEFAULT)
    }

    fn resource(&self) -> Resource {
        let mut resource = Resource::builder().with_attributes(self.attributes.iter().cloned());
        if let Some(name) = &self.service_name {
            resource = resource.with_service_name(name.clone());
        }
        resource.build()
    }
}

/// Whether to export a span or event as a trace.
fn is_exported(metadata: &Metadata<'_>, other_crates: LevelFilter) -> bool {
    let target = metadata.target();
    let is_in = |name: &str| {
        let rest = target.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || rest.starts_with('_'))
    };
    if EXPORT_TARGETS.iter().any(|target| is_in(target)) {
        return false;
    }
    let level_max = if is_in("floe") {
        LevelFilter::DEBUG
    } else {
        other_crates
    };
    *metadata.level() <= level_max
}

/// The unit of a metric, and the buckets of a histogram.
fn view(instrument: &Instrument) -> Option<Stream> {
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

/// A running export. Dropping it sends everything that is not exported yet, and ends the export.
#[derive(Debug)]
#[must_use = "the export ends when this is dropped"]
pub struct Exporter {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Exporter {
    /// Exports everything now. Blocks the thread until it is done.
    ///
    /// # Errors
    ///
    /// If the collector does not accept it.
    pub fn flush(&self) -> Result<(), ExportError> {
        let traces = self.traces.force_flush();
        let metrics = self.metrics.force_flush();
        traces.and(metrics).map_err(ExportError::new)
    }

    /// Exports the rest, and ends the export. Blocks the thread, for a few seconds at most.
    ///
    /// # Errors
    ///
    /// If the collector does not accept it, or not in time.
    pub fn shutdown(self) -> Result<(), ExportError> {
        self.end()
    }

    fn end(&self) -> Result<(), ExportError> {
        let traces = self.traces.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        let metrics = self.metrics.shutdown();
        traces.and(metrics).map_err(ExportError::new)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // No caller can handle the error. After `shutdown` there is nothing to do.
        drop(self.end());
    }
}

/// The error of an export that failed or is incomplete.
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
