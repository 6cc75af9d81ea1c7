//! Export of spans and metrics, configured by OpenTelemetry's environment variables.
//!
//! Requires the feature `otlp`, which is off by default. Without it, the program prints a note if an endpoint is set.

use std::sync::Arc;

use floe_store::Engine;

use crate::{Result, note};

/// The environment variable with the endpoint.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The endpoint to export to, if export is configured and enabled.
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
    use floe::telemetry::otlp::{Exporter, Otlp};

    use super::*;

    /// The running export, if export is configured.
    pub(crate) struct Export(Option<Exporter>);

    impl Export {
        /// Starts the export, if it is configured.
        pub(crate) fn begin(service: &str) -> Result<Self> {
            let Some(endpoint) = endpoint() else {
                return Ok(Self(None));
            };
            let otlp = if has_service_name() {
                Otlp::new()
            } else {
                Otlp::new().service_name(service)
            };
            let exporter = otlp.install().map_err(crate::Failure::usage)?;
            note(&format!("telemetry is exported: endpoint={endpoint}"));
            Ok(Self(Some(exporter)))
        }

        /// Wraps the engine of a server so that its requests are traced, if traces are exported.
        pub(crate) fn traced(&self, engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
            match self.0 {
                Some(_) => Arc::new(TracedEngine::server(engine)),
                None => engine,
            }
        }

        /// Exports what is buffered, and stops.
        pub(crate) fn end(self) {
            if let Some(Err(error)) = self.0.map(Exporter::shutdown) {
                note(&error.to_string());
            }
        }
    }

    /// Whether the environment sets the name of the service.
    fn has_service_name() -> bool {
        let attributes = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        std::env::var_os("OTEL_SERVICE_NAME").is_some() || attributes.contains("service.name=")
    }
}

/// No export.
#[cfg(not(feature = "otlp"))]
pub(super) struct Export;

#[cfg(not(feature = "otlp"))]
impl Export {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "fails only with the feature `otlp`"
    )]
    pub(super) fn begin(_service: &str) -> Result<Self> {
        if endpoint().is_some() {
            note(&format!(
                "{ENDPOINT} is set, but this program was built without the feature otlp and exports nothing"
            ));
        }
        Ok(Self)
    }

    pub(super) fn traced(&self, engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
        engine
    }

    pub(super) fn end(self) {}
}
