//! The export of spans and measurements, where the environment says so as OpenTelemetry's tools have it.
//!
//! It is a feature, `otlp`, which is off unless asked for. A program without it says so, if it is asked to export.

use std::sync::Arc;

use floe_store::Engine;

use crate::{Result, note};

/// Where to export to.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Where the environment says to export to, if it does.
fn endpoint() -> Option<String> {
    let is_off = std::env::var("OTEL_SDK_DISABLED").is_ok_and(|is_off| is_off == "true");
    let endpoint = std::env::var(ENDPOINT).ok()?;
    Some(endpoint).filter(|endpoint| !endpoint.is_empty() && !is_off)
}

#[cfg(feature = "otlp")]
pub(super) use exports::Export;

#[cfg(feature = "otlp")]
mod exports {
    use floe::telemetry::TracedEngine;
    use floe::telemetry::otlp::{Exporting, Otlp};

    use super::*;

    /// The export, if there is one.
    pub(crate) struct Export(Option<Exporting>);

    impl Export {
        /// Begins it, if the environment says so.
        pub(crate) fn begin(service: &str) -> Result<Self> {
            let Some(endpoint) = endpoint() else {
                return Ok(Self(None));
            };
            let otlp = match is_named() {
                true => Otlp::new(),
                false => Otlp::new().service_name(service),
            };
            let exporting = otlp.install().map_err(crate::Failure::usage)?;
            note(&format!("telemetry is exported: endpoint={endpoint}"));
            Ok(Self(Some(exporting)))
        }

        /// An engine that reports the requests which a server answers, if they are exported.
        pub(crate) fn serving(&self, engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
            match self.0 {
                Some(_) => Arc::new(TracedEngine::server(engine)),
                None => engine,
            }
        }

        /// Exports what is left.
        pub(crate) fn end(self) {
            if let Some(Err(error)) = self.0.map(Exporting::shutdown) {
                note(&error.to_string());
            }
        }
    }

    /// Whether the environment has a name for the program.
    fn is_named() -> bool {
        let attributes = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        std::env::var_os("OTEL_SERVICE_NAME").is_some() || attributes.contains("service.name=")
    }
}

/// No export.
#[cfg(not(feature = "otlp"))]
pub(super) struct Export;

#[cfg(not(feature = "otlp"))]
impl Export {
    #[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
    pub(super) fn begin(_service: &str) -> Result<Self> {
        if endpoint().is_some() {
            let built = "this program is built without the feature otlp, and exports nothing";
            note(&format!("{ENDPOINT} is set, but {built}"));
        }
        Ok(Self)
    }

    pub(super) fn serving(&self, engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
        engine
    }

    pub(super) fn end(self) {}
}
