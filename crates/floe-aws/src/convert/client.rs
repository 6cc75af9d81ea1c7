//! The SDK clients for tables and streams, created from the options.

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{Credentials, SharedHttpClient, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types;
use aws_smithy_http_client::tls;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::{ConsumedCapacity, Error, Result};

use super::capacity::{self, AccessKind};
use super::error;
use crate::names::Names;
use crate::options::ConnectOptions;
use crate::retry::AttemptResult;

/// A client of the store. Each call sends one request.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(super) tables: aws_sdk_dynamodb::Client,
    pub(super) streams: aws_sdk_dynamodbstreams::Client,
    /// The names of tables in the store.
    pub(crate) names: Names,
}

impl Client {
    /// Returns a client with these options. Sends no request to the store.
    pub(crate) async fn new(options: &ConnectOptions) -> Result<Self> {
        let names = Names::new(&options.table_prefix)?;
        let config = load(options).await?;
        Ok(Self {
            tables: aws_sdk_dynamodb::Client::new(&config),
            streams: aws_sdk_dynamodbstreams::Client::new(&config),
            names,
        })
    }

    pub(super) fn with_prefix(&self, table_name: &str) -> String {
        self.names.with_prefix(table_name)
    }

    /// Converts the response of a service with errors `S` to a request about these tables.
    pub(super) fn convert_response<S, T, E>(
        &self,
        response: Result<T, SdkError<E>>,
        tables: &[&str],
    ) -> AttemptResult<T>
    where
        S: error::ServiceErrorDetails + From<E>,
        E: std::error::Error + 'static,
    {
        response.map_err(|error| error::failure::<S, E>(error, &self.names, tables))
    }

    pub(super) fn consumed(
        &self,
        response: Option<types::ConsumedCapacity>,
        kind: AccessKind,
        detail: ReturnConsumedCapacity,
    ) -> Option<ConsumedCapacity> {
        response.map(|response| capacity::consumed(response, kind, detail, &self.names))
    }

    /// Converts the consumed capacity of several tables.
    pub(super) fn consumed_list(
        &self,
        response: Option<Vec<types::ConsumedCapacity>>,
        kind: AccessKind,
        detail: ReturnConsumedCapacity,
    ) -> Vec<ConsumedCapacity> {
        let response = response.into_iter().flatten();
        response
            .map(|one| capacity::consumed(one, kind, detail, &self.names))
            .collect()
    }
}

/// Loads the configuration of all clients. Retries of the SDK are disabled.
pub(super) async fn load(options: &ConnectOptions) -> Result<aws_config::SdkConfig> {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.connect_timeout)
        .operation_attempt_timeout(options.request_timeout)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http_client(options.endpoint.as_deref()))
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        // The request timeout covers stalled streams.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    if let Some(region) = &options.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(url) = &options.endpoint {
        loader = loader.endpoint_url(url);
    }
    if let Some(keys) = &options.credentials {
        let token = keys.session_token.clone();
        let keys = Credentials::new(&keys.access_key, &keys.secret_key, token, None, "floe");
        loader = loader.credentials_provider(keys);
    }
    let config = loader.load().await;
    match config.region() {
        Some(_) => Ok(config),
        None => Err(Error::validation(
            "no region is configured: pass one, or set AWS_REGION or the region of the profile",
        )),
    }
}

/// Returns an HTTP client with TLS, unless the endpoint is plain HTTP.
fn http_client(endpoint: Option<&str>) -> SharedHttpClient {
    let builder = aws_smithy_http_client::Builder::new();
    if endpoint.is_some_and(|url| url.starts_with("http://")) {
        return builder.build_http();
    }
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    builder.tls_provider(ring).build_https()
}
