//! The clients of the SDK: one for tables, one for streams, made of the settings.

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{Credentials, SharedHttpClient, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types;
use aws_smithy_http_client::tls;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::{ConsumedCapacity, Error, Result};

use super::capacity::{self, Kind};
use super::error;
use crate::names::Names;
use crate::options::ConnectOptions;
use crate::retry::Answer;

/// Speaks with the store: each call is one request and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(super) tables: aws_sdk_dynamodb::Client,
    pub(super) streams: aws_sdk_dynamodbstreams::Client,
    /// How tables are called in the store.
    pub(crate) names: Names,
}

impl Client {
    /// A client with these settings. No request is sent for it to the store itself.
    pub(crate) async fn new(options: &ConnectOptions) -> Result<Self> {
        let names = Names::new(&options.table_prefix)?;
        let config = load(options).await?;
        Ok(Self {
            tables: aws_sdk_dynamodb::Client::new(&config),
            streams: aws_sdk_dynamodbstreams::Client::new(&config),
            names,
        })
    }

    pub(super) fn outside(&self, table_name: &str) -> String {
        self.names.outside(table_name)
    }

    /// The answer of a service, whose errors are `S`, to a request about these tables.
    pub(super) fn answered<S, T, E>(
        &self,
        answer: Result<T, SdkError<E>>,
        tables: &[&str],
    ) -> Answer<T>
    where
        S: error::Refusal + From<E>,
        E: std::error::Error + 'static,
    {
        answer.map_err(|error| error::failure::<S, E>(error, &self.names, tables))
    }

    pub(super) fn consumed(
        &self,
        answer: Option<types::ConsumedCapacity>,
        kind: Kind,
        detail: ReturnConsumedCapacity,
    ) -> Option<ConsumedCapacity> {
        answer.map(|answer| capacity::consumed(answer, kind, detail, &self.names))
    }

    /// What a request cost, table by table.
    pub(super) fn costs(
        &self,
        answer: Option<Vec<types::ConsumedCapacity>>,
        kind: Kind,
        detail: ReturnConsumedCapacity,
    ) -> Vec<ConsumedCapacity> {
        let answer = answer.into_iter().flatten();
        answer
            .map(|one| capacity::consumed(one, kind, detail, &self.names))
            .collect()
    }
}

/// The configuration of all clients. Nothing is repeated by the SDK.
pub(super) async fn load(options: &ConnectOptions) -> Result<aws_config::SdkConfig> {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.connect_timeout)
        .operation_attempt_timeout(options.request_timeout)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http_client(options.endpoint.as_deref()))
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        // The deadline of the request ends what stalls.
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
            "no region is known: give one, or set AWS_REGION or the region of the profile",
        )),
    }
}

/// What carries requests: encrypted, unless the endpoint is one that is not.
fn http_client(endpoint: Option<&str>) -> SharedHttpClient {
    let builder = aws_smithy_http_client::Builder::new();
    if endpoint.is_some_and(|url| url.starts_with("http://")) {
        return builder.build_http();
    }
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    builder.tls_provider(ring).build_https()
}
