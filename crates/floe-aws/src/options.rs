//! The settings of a connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::Timer;
use floe_store::{BoxFuture, Capabilities, Env};

/// Where and as whom to connect. What is not said comes from where the AWS tools take it: environment, profile,
/// role of the container or of the machine.
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

/// Keys that were given, not found.
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

/// Setters that do nothing but set: the option, what they take, and what becomes of it.
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
    /// Amazon DynamoDB, as the environment says.
    pub fn new() -> Self {
        Self::default()
    }

    /// A server nearby that asks for no keys, as `floe serve` and DynamoDB Local do: the requests are signed with
    /// made-up ones.
    pub fn local(endpoint: impl Into<String>) -> Self {
        Self::new()
            .endpoint(endpoint)
            .region("us-east-1")
            .credentials("local", "local")
    }

    setters! {
        /// The region, instead of that of the environment or the profile.
        region: impl Into<String> = Some(region.into());

        /// The profile of `~/.aws/config`, instead of `AWS_PROFILE` or the default one.
        profile: impl Into<String> = Some(profile.into());

        /// The address of the service, as `http://127.0.0.1:8000`: a Floe server, DynamoDB Local, Alternator, or an
        /// endpoint of one's own network.
        endpoint: impl Into<String> = Some(endpoint.into());

        /// What the names of all tables begin with in the store. Nobody above sees it, and tables without it are not
        /// seen either: several applications or stages can share an account.
        table_prefix: impl Into<String> = table_prefix.into();

        /// How long to wait for a connection. By default 3 seconds.
        connect_timeout: Duration = connect_timeout;

        /// How long to wait for the answer to a request, each time it is sent. By default 10 seconds. A write that
        /// takes longer is [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown).
        request_timeout: Duration = request_timeout;

        /// How often a request is sent again, where that is safe and may help. By default 3 times.
        retries: u32 = retries;

        /// What the store can do, if it is not Amazon's. What it cannot is refused before anything is sent.
        capabilities: Capabilities = capabilities;

        /// Where the time and the length of pauses come from.
        env: Env = env;

        /// What lets the pauses before a repeated request pass.
        timer: Arc<dyn Timer> = timer;
    }

    /// These keys, instead of those of the environment.
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

    /// These keys for a time, as a role gives them out.
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

    /// ScyllaDB's Alternator: no transactions over several items, no change streams, one attribute per key of an
    /// index.
    #[must_use]
    pub fn alternator(mut self) -> Self {
        self.capabilities.transactions = false;
        self.capabilities.streams = false;
        self.capabilities.multi_attribute_keys = false;
        self
    }
}

/// Secrets stay out of logs.
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
