//! Connections to servers over HTTP, or over TLS by rustls: for webhooks and for the export of telemetry.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};

/// Builds a connector. An encrypted one trusts the root certificates of this machine.
pub(crate) fn connector(is_encrypted: bool) -> std::io::Result<HttpsConnector<HttpConnector>> {
    let ring = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = if is_encrypted {
        builder.with_provider_and_native_roots(ring)?
    } else {
        let config = ClientConfig::builder_with_provider(Arc::new(ring))
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?
            .with_root_certificates(RootCertStore::empty());
        builder.with_tls_config(config.with_no_client_auth())
    };
    Ok(builder.https_or_http().enable_http1().build())
}
