//! The failure of a command: its one-line message, the hint after it, and the exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use floe::ErrorKind;
use floe_store::Error as StoreError;

use crate::single_line;

/// The failure of a command.
#[derive(Debug)]
pub(super) enum Failure {
    /// A usage error: exit code 2.
    Usage(String),
    /// The command could not be completed: exit code 1.
    Failed(String),
    /// The command was completed with a negative result: nothing found, or a condition is false. Exit code 3.
    Unmet(String),
    /// The store cannot be reached: exit code 1. The store adds a hint, because it knows how it was selected.
    Unreachable(String),
    /// Standard output cannot be written: exit code 1. A reader that closes a pipe has read enough: exit code 0, as of
    /// ripgrep, without a message.
    Output(io::Error),
}

impl Failure {
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    pub(super) fn failed(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }

    pub(super) fn unmet(message: impl fmt::Display) -> Self {
        Self::Unmet(message.to_string())
    }

    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Output(_) if self.is_closed_pipe() => ExitCode::SUCCESS,
            Self::Failed(_) | Self::Unreachable(_) | Self::Output(_) => ExitCode::FAILURE,
            Self::Unmet(_) => ExitCode::from(3),
        }
    }

    /// Whether the reader of standard output has closed it.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Quoted text may contain line breaks.
            Self::Usage(message)
            | Self::Failed(message)
            | Self::Unmet(message)
            | Self::Unreachable(message) => f.write_str(&single_line(message)),
            Self::Output(error) => write!(f, "standard output cannot be written: {error}"),
        }
    }
}

/// Adds a hint to the error of a store.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if let Some(failure) = not_dynamodb(&error) {
            return failure;
        }
        let message = message_with_hint(&error.to_string(), Some(&error));
        match error {
            StoreError::Validation(_) | StoreError::Unsupported(_) => Self::Usage(message),
            StoreError::ConditionalCheckFailed { .. } => {
                Self::Unmet("the condition is false: nothing was written".to_owned())
            }
            StoreError::Unreachable(_) => Self::Unreachable(message),
            _ => Self::Failed(message),
        }
    }
}

impl From<floe::Error> for Failure {
    fn from(error: floe::Error) -> Self {
        if let Some(failure) = error.store_error().and_then(not_dynamodb) {
            return failure;
        }
        let message = message_with_hint(&error.to_string(), error.store_error());
        if let Some(StoreError::Unreachable(_)) = error.store_error() {
            return Self::Unreachable(message);
        }
        match error.kind() {
            ErrorKind::InvalidUse
            | ErrorKind::InvalidField
            | ErrorKind::InvalidCursor
            | ErrorKind::Unsupported
            | ErrorKind::TooLarge => Self::Usage(message),
            ErrorKind::NotFound
            | ErrorKind::Restricted
            | ErrorKind::AlreadyExists
            | ErrorKind::VersionConflict
            | ErrorKind::Conflict => Self::Unmet(message),
            _ => Self::Failed(message),
        }
    }
}

/// DynamoDB sends a code with every error. A response without one comes from something else: a web server, a proxy.
fn not_dynamodb(error: &StoreError) -> Option<Failure> {
    let text = error.to_string();
    let (_, status) = text.split_once("no code and no message: ")?;
    Some(Failure::Failed(format!(
        "the server does not speak DynamoDB's protocol: {status}; check --endpoint"
    )))
}

/// The message of an error, with a hint.
fn message_with_hint(message: &str, error: Option<&StoreError>) -> String {
    let hint = error.map_or("", hint);
    match error {
        // The SDK's message repeats the cause in its own terms: keep the cause and the address.
        Some(StoreError::Unreachable(cause)) => {
            let (cause, rest) = cause.split_once(" (Dispatch").unwrap_or((cause, ""));
            let cause = cause
                .rsplit_once("error: ")
                .map_or(cause, |(_, cause)| cause);
            let address = rest.split_once("connect error\", ").map(|(_, rest)| rest);
            let address = address.and_then(|rest| rest.split(',').next());
            let address = address.map(|address| format!(": address={address}"));
            let address = address.unwrap_or_default();
            format!("the store cannot be reached, {cause}{address}")
        }
        _ => format!("{message}{hint}"),
    }
}

/// A hint for the user about an error of the store.
fn hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::AccessDenied(_) => "; check --profile, or the credentials in the environment",
        StoreError::OutcomeUnknown(_) => "; check whether it was applied before you repeat it",
        StoreError::ResourceNotFound(_) => "; `floe table list` lists the tables",
        _ => "",
    }
}
