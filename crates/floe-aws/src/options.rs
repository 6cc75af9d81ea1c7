//! The options of a connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::Timer;
use floe_store::{BoxFuture, Capabilities, Env};

/// Endpoint, credentials and settings of a connection. Defaults come from where the AWS tools look: the environment,
/// the profile, the role of the container or machine.
///
/// ```
/// use floe_aws::ConnectOptions;
///
/// let production = ConnectOptions::new().region("eu-central-1").table_prefix("shop-prod-");
/// let laptop = ConnectOptions::local("http://127.0.0.1:8000");
/// ```
#[derive(Clone)]
pub struct ConnectOptions {
    pub(crate) region: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) table_prefix: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) capabilities: Capabilities,
    pub(crate) env: Env,
    pub(crate) timer: Arc<dyn Timer>,
}

/// The timer of the tokio runtime, which the SDK needs anyway.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokioTimer;

impl Timer for TokioTimer {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Credentials set explicitly.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) session_token: Option<String>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            region: None,
            profile: None,
            endpoint: None,
            credentials: None,
            table_prefix: String::new(),
            connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(10),
            retries: 3,
            capabilities: Capabilities::dynamodb(),
            env: Env::system(),
            timer: Arc::new(TokioTimer),
        }
    }
}

/// Declares plain setters: the option, its parameter type, and the stored value.
macro_rules! setters {
    ($( $(#[$doc:meta])* $option:ident: $taken:ty = $value:expr; )+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $option(mut self, $option: $taken) -> Self {
            self.$option = $value;
            self
        }
    )+};
}

impl ConnectOptions {
    /// Returns the options for Amazon DynamoDB, as configured by the environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the options for a local server without authentication, such as `floe serve` or DynamoDB Local. Requests
    /// are signed with dummy credentials.
    pub fn local(endpoint: impl Into<String>) -> Self {
        Self::new()
            .endpoint(endpoint)
            .region("us-east-1")
            .credentials("local", "local")
    }

    setters! {
        /// The region. Default: that of the environment or profile.
        region: impl Into<String> = Some(region.into());

        /// The profile in `~/.aws/config`. Default: `AWS_PROFILE`, or the default profile.
        profile: impl Into<String> = Some(profile.into());

        /// The URL of the service, for example `http://127.0.0.1:8000`: a Floe server, DynamoDB Local, Alternator, or a
        /// VPC endpoint.
        endpoint: impl Into<String> = Some(endpoint.into());

        /// The prefix of all table names in the store. It is invisible to callers, and so are tables without it:
        /// several applications or stages can share an account.
        table_prefix: impl Into<String> = table_prefix.into();

        /// Timeout for establishing a connection. Default: 3 seconds.
        connect_timeout: Duration = connect_timeout;

        /// Timeout for each attempt of a request. Default: 10 seconds. A write that takes longer fails with
        /// [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown).
        request_timeout: Duration = request_timeout;

        /// Maximum number of retries of a request, where a retry is safe and may help. Default: 3.
        retries: u32 = retries;

        /// The capabilities of a store other than Amazon DynamoDB. Operations that it does not support are rejected
        /// before anything is sent.
        capabilities: Capabilities = capabilities;

        /// The source of time and of the jitter of pauses.
        env: Env = env;

        /// The timer for pauses between retries.
        timer: Arc<dyn Timer> = timer;
    }

    /// Uses these credentials instead of those of the environment.
    #[must_use]
    pub fn credentials(
        mut self,
        access_key: impl Into<String>,
        secret_key: impl Into<String>,
    ) -> Self {
        self.credentials = Some(Credentials {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            session_token: None,
        });
        self
    }

    /// Uses these temporary credentials, for example of a role.
    #[must_use]
    pub fn temporary_credentials(
        self,
        access_key: impl Into<String>,
        secret_key: impl Into<String>,
        session_token: impl Into<String>,
    ) -> Self {
        let mut options = self.credentials(access_key, secret_key);
        if let Some(credentials) = &mut options.credentials {
            credentials.session_token = Some(session_token.into());
        }
        options
    }

    /// Sets the capabilities of ScyllaDB's Alternator: no transactions, no change streams, and single-attribute index
    /// keys.
    #[must_use]
    pub fn alternator(mut self) -> Self {
        self.capabilities.transactions = false;
        self.capabilities.streams = false;
        self.capabilities.multi_attribute_keys = false;
        self
    }
}

/// Omits secrets.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access_key = self.credentials.as_ref().map(|keys| &keys.access_key);
        f.debug_struct("ConnectOptions")
            .field("region", &self.region)
            .field("profile", &self.profile)
            .field("endpoint", &self.endpoint)
            .field("access_key", &access_key)
            .field("table_prefix", &self.table_prefix)
            .field("connect_timeout", &self.connect_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("retries", &self.retries)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let options = ConnectOptions::new().temporary_credentials("AKID", "s3cret", "t0ken");
        let text = format!("{options:?}");
        assert!(text.contains("AKID"), "{text}");
        assert!(
            !text.contains("s3cret") && !text.contains("t0ken"),
            "{text}"
        );
    }
}
