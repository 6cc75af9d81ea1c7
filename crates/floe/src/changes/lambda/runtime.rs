//! The runtime of a function of AWS Lambda: asks for events, has them handled, and answers.
//!
//! A program that runs it is a function of the kind `provided.al2023`: deploy it as `bootstrap`. Lambda and the program speak
//! HTTP on the loopback, version 2018-06-01 of the runtime API; `api.rs` speaks it.

mod api;

use std::io::Write;

use self::api::{Api, Invocation};
use super::Receiver;
use crate::changes::deliver::Delivery;
use crate::changes::router::Router;
use crate::error::{Error, ErrorKind, Result};

/// Where Lambda tells a runtime to ask for events.
const ADDRESS: &str = "AWS_LAMBDA_RUNTIME_API";

/// What errors are called, unless something else is said.
const ERROR_NAME: &str = "Floe.EventFailed";

/// How many changes that failed are told one by one in the log; of the others, how many there are.
const TOLD_MAX: usize = 10;

/// Runs a router as a function of AWS Lambda, until Lambda ends the process. Changes that a handler has failed are reported
/// as such, and Lambda sends them again; why is told on the standard error, which is the log of the function.
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
/// A router that needs more, such as a database for its outbox, is given to a [`Receiver`], which has a
/// [`run`](Receiver::run) too. The mapping of the function must have `ReportBatchItemFailures`.
///
/// # Errors
///
/// [`InvalidUse`](ErrorKind::InvalidUse) when Lambda has not started this process, and [`Store`](ErrorKind::Store) when it
/// cannot be asked for events any more.
pub async fn run(router: Router) -> Result<()> {
    Receiver::new(router).run().await
}

impl Receiver {
    /// Answers the events of AWS Lambda until it ends the process; see [`run`].
    ///
    /// # Errors
    ///
    /// As for [`run`].
    pub async fn run(&self) -> Result<()> {
        self.run_in(&Runtime::here()?).await
    }

    /// Answers the events of this runtime until it cannot be asked any more.
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
                Ok(delivery.answer())
            })
            .await
    }
}

/// Where the events of a function come from.
///
/// [`run`] and [`Receiver::run`] are made of it. By itself it is for functions that make something else of an event.
#[derive(Clone, Debug)]
pub struct Runtime(Api);

impl Runtime {
    /// The runtime of this process.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when Lambda has not started this process.
    pub fn here() -> Result<Self> {
        let address = std::env::var(ADDRESS).map_err(|_| {
            let message = format!("AWS Lambda has not started this process: {ADDRESS} is not set");
            Error::new(ErrorKind::InvalidUse, message)
        })?;
        Ok(Self::at(address))
    }

    /// Whether this process was started by Lambda.
    #[must_use]
    pub fn is_here() -> bool {
        std::env::var_os(ADDRESS).is_some()
    }

    /// The runtime that is asked at this address: a host and a port.
    pub fn at(address: impl Into<String>) -> Self {
        Self(Api::new(address.into(), ERROR_NAME))
    }

    setters! {
        /// What errors are called in Lambda's own log: a name of one word.
        pub fn error_name(name: &'static str) => 0.error_name = name;
    }

    /// Has events handled one after the other, until the runtime cannot be asked any more. What the function gives is the
    /// answer to the event; the error it gives is why Lambda is to send the event again.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) when Lambda does not answer, or answers nothing that is an event.
    pub async fn serve(
        &self,
        mut handle: impl AsyncFnMut(Vec<u8>) -> Result<String, String>,
    ) -> Result<()> {
        loop {
            let Invocation { id, event } = self.0.next().await?;
            match handle(event).await {
                Ok(answer) => self.0.respond(&id, answer).await?,
                Err(message) => self.0.fail(&id, &message).await?,
            }
        }
    }

    /// Tells Lambda that this process can handle no event. It is to end after that.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) when Lambda does not answer.
    pub async fn fail_init(&self, message: &str) -> Result<()> {
        self.0.fail_init(message).await
    }
}

/// What is told of the changes that are not done: one line each, up to a limit.
fn failures(delivery: &Delivery) -> Vec<String> {
    let failed = delivery.failures.iter();
    // Those behind another of their item were not tried.
    let tried: Vec<_> = failed.filter(|one| !one.handlers.is_empty()).collect();
    let mut lines: Vec<String> = tried
        .iter()
        .take(TOLD_MAX)
        .map(|one| one.to_string())
        .collect();
    let untold = delivery.failures.len() - lines.len();
    if untold > 0 {
        lines.push(format!(
            "more changes are to be sent again: changes={untold}"
        ));
    }
    lines
}

/// Writes a line into the log of the function, which is what it writes on its standard error.
fn log(line: &str) {
    // Nobody could be told that the log is gone.
    drop(writeln!(std::io::stderr().lock(), "floe: {line}"));
}
