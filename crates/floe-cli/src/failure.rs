//! Why a command did not do what it was asked to: the line that is printed, the hint behind it, and the exit code.

use std::fmt;
use std::process::ExitCode;

use floe::ErrorKind;
use floe_store::Error as StoreError;

use crate::joined;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was called wrongly: exit code 2.
    Usage(String),
    /// It could not be carried out: exit code 1.
    Broken(String),
    /// It was carried out, and what it asked for is not there or not so: exit code 3.
    Unmet(String),
}

impl Failure {
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    pub(super) fn broken(message: impl fmt::Display) -> Self {
        Self::Broken(message.to_string())
    }

    pub(super) fn unmet(message: impl fmt::Display) -> Self {
        Self::Unmet(message.to_string())
    }

    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Broken(_) => ExitCode::FAILURE,
            Self::Unmet(_) => ExitCode::from(3),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Broken(message) | Self::Unmet(message)) = self;
        // Whatever it quotes, it is one line.
        f.write_str(&joined(message))
    }
}

/// What the store says, and what to do about it.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if let Some(failure) = answered_by_another(&error) {
            return failure;
        }
        let reported = reported(&error.to_string(), Some(&error));
        match error {
            StoreError::Validation(_) | StoreError::Unsupported(_) => Self::Usage(reported),
            StoreError::ConditionalCheckFailed { .. } => {
                Self::Unmet("the condition does not hold, and nothing was written".to_owned())
            }
            _ => Self::Broken(reported),
        }
    }
}

impl From<floe::Error> for Failure {
    fn from(error: floe::Error) -> Self {
        if let Some(failure) = error.store_error().and_then(answered_by_another) {
            return failure;
        }
        let reported = reported(&error.to_string(), error.store_error());
        match error.kind() {
            ErrorKind::InvalidUse
            | ErrorKind::InvalidField
            | ErrorKind::InvalidCursor
            | ErrorKind::Unsupported
            | ErrorKind::TooLarge => Self::Usage(reported),
            ErrorKind::NotFound
            | ErrorKind::Restricted
            | ErrorKind::AlreadyExists
            | ErrorKind::VersionConflict
            | ErrorKind::Conflict => Self::Unmet(reported),
            _ => Self::Broken(reported),
        }
    }
}

/// DynamoDB reports a code with every error. What does not is something else: a web server, a proxy in between.
fn answered_by_another(error: &StoreError) -> Option<Failure> {
    let text = error.to_string();
    let (_, status) = text.split_once("no code and no message: ")?;
    Some(Failure::Broken(format!(
        "what answers there does not speak DynamoDB's protocol: {status}; see --endpoint"
    )))
}

/// The words for an error, and what to do about it.
fn reported(message: &str, error: Option<&StoreError>) -> String {
    let hint = error.map_or("", hint);
    match error {
        // The client says the same once more, in the words of its makers.
        Some(StoreError::Unreachable(why)) => {
            let (why, rest) = why.split_once(" (Dispatch").unwrap_or((why, ""));
            let why = why.rsplit_once("error: ").map_or(why, |(_, why)| why);
            let address = rest.split_once("connect error\", ").map(|(_, rest)| rest);
            let address = address.and_then(|rest| rest.split(',').next());
            let address = address.map(|address| format!(": address={address}"));
            let address = address.unwrap_or_default();
            format!("the store cannot be reached, {why}{address}{hint}")
        }
        _ => format!("{message}{hint}"),
    }
}

/// What to do about an error of the store.
fn hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unreachable(_) => "; see --endpoint and --region",
        StoreError::AccessDenied(_) => "; see --profile, or the keys in the environment",
        StoreError::OutcomeUnknown(_) => "; look whether it was done before you do it again",
        StoreError::ResourceNotFound(_) => "; `floe table list` tells which tables there are",
        _ => "",
    }
}
