//! The runtime of an AWS Lambda function: polls for events, handles them and responds.
//!
//! A program with this runtime is a function of the runtime `provided.al2023`: deploy it as `bootstrap`. Lambda and
//! the program use HTTP on the loopback interface, version 2018-06-01 of the runtime API (`api.rs`).

mod api;

use std::io::Write;

use self::api::{Api, Invocation};
use super::Receiver;
use crate::changes::deliver::BatchDelivery;
use crate::changes::router::Router;
use crate::error::{Error, ErrorKind, Result};

/// The environment variable with the address of the runtime API.
const ADDRESS: &str = "AWS_LAMBDA_RUNTIME_API";

/// Default error type.
const ERROR_NAME: &str = "Floe.EventFailed";

/// Maximum number of failed changes logged individually. Only the number of further ones is logged.
const LOGGED_FAILURES_MAX: usize = 10;

/// Runs a router as an AWS Lambda function, until Lambda ends the process. Failed changes are reported to Lambda,
/// which resends them; the reasons are logged to standard error, which is the log of the function.
///
/// ```no_run
/// use floe::changes::{Pattern, Router, lambda};
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), floe::Error> {
///     let router = Router::new().matching(Pattern::any().pk_type("lyr"), async |change| {
///         println!("{:?}", change.keys());
///         Ok(())
///     });
///     lambda::run(router).await
/// }
/// ```
///
/// For a router with further settings, such as a database for its outbox, create a [`Receiver`], which also has a
/// [`run`](Receiver::run) method. The event source mapping must have `ReportBatchItemFailures`.
///
/// # Errors
///
/// [`InvalidUse`](ErrorKind::InvalidUse) if this process was not started by Lambda, and [`Store`](ErrorKind::Store)
/// if the runtime API fails.
pub async fn run(router: Router) -> Result<()> {
    Receiver::new(router).run().await
}

impl Receiver {
    /// Handles AWS Lambda events until Lambda ends the process; see [`run`].
    ///
    /// # Errors
    ///
    /// As for [`run`].
    pub async fn run(&self) -> Result<()> {
        self.run_in(&Runtime::from_env()?).await
    }

    /// Handles the events of this runtime until the runtime API fails.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) then.
    pub async fn run_in(&self, runtime: &Runtime) -> Result<()> {
        runtime
            .serve(async |event| {
                let delivery = self.receive(&event).await;
                let delivery = delivery.map_err(|error| {
                    let message = error.to_string();
                    log(&message);
                    message
                })?;
                failures(&delivery).iter().for_each(|line| log(line));
                Ok(delivery.response())
            })
            .await
    }
}

/// The source of a function's events.
///
/// Used by [`run`] and [`Receiver::run`]. Use it directly for functions that handle other events.
#[derive(Clone, Debug)]
pub struct Runtime(Api);

impl Runtime {
    /// The runtime of this process, from the environment.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if this process was not started by Lambda.
    pub fn from_env() -> Result<Self> {
        let address = std::env::var(ADDRESS).map_err(|_| {
            let message =
                format!("this process was not started by AWS Lambda: {ADDRESS} is not set");
            Error::new(ErrorKind::InvalidUse, message)
        })?;
        Ok(Self::at(address))
    }

    /// Whether this process was started by Lambda.
    #[must_use]
    pub fn is_lambda() -> bool {
        std::env::var_os(ADDRESS).is_some()
    }

    /// A runtime API at this address: host and port.
    pub fn at(address: impl Into<String>) -> Self {
        Self(Api::new(address.into(), ERROR_NAME))
    }

    setters! {
        /// The error type in Lambda's log: one word.
        pub fn error_name(name: &'static str) => 0.error_name = name;
    }

    /// Handles events one at a time, until the runtime API fails. The function's result is the response to the event;
    /// its error makes Lambda resend the event.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if Lambda does not respond, or the response is not an event.
    pub async fn serve(
        &self,
        mut handle: impl AsyncFnMut(Vec<u8>) -> Result<String, String>,
    ) -> Result<()> {
        loop {
            let Invocation { id, event } = self.0.next().await?;
            match handle(event).await {
                Ok(response) => self.0.respond(&id, response).await?,
                Err(message) => self.0.fail(&id, &message).await?,
            }
        }
    }

    /// Reports to Lambda that this process cannot handle events. It should exit afterwards.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if Lambda does not respond.
    pub async fn fail_init(&self, message: &str) -> Result<()> {
        self.0.fail_init(message).await
    }
}

/// Log lines about failed changes: one per change, up to a limit.
fn failures(delivery: &BatchDelivery) -> Vec<String> {
    let failed = delivery.failures.iter();
    // Changes behind a failed one of their item were not attempted.
    let attempted: Vec<_> = failed.filter(|one| !one.handlers.is_empty()).collect();
    let mut lines: Vec<String> = attempted
        .iter()
        .take(LOGGED_FAILURES_MAX)
        .map(|one| one.to_string())
        .collect();
    let remaining = delivery.failures.len() - lines.len();
    if remaining > 0 {
        lines.push(format!(
            "further changes must be resent: changes={remaining}"
        ));
    }
    lines
}

/// Writes a line to standard error, which is the log of the function.
fn log(line: &str) {
    // A failure to log cannot be reported anywhere.
    drop(writeln!(std::io::stderr().lock(), "floe: {line}"));
}
