//! Errors of calls, and their responses.
//!
//! Error types begin with the component of DynamoDB that reports them: the framework in front of the service
//! (`com.amazon.coral.service`), its validation (`com.amazon.coral.validate`), or the service itself.

use std::fmt::Display;

use floe_store::error::CancellationCode;
use floe_store::json::{Malformed, Writer, write_item};
use floe_store::{CancellationReason, Error};

use super::body::{object, write_item_hashed, write_list, write_text};

/// The namespace of the service itself.
const SERVICE: &str = "com.amazonaws.dynamodb.v20120810";

/// DynamoDB's message for internal failures.
const INTERNAL: &str = "Internal server error";

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RequestError {
    /// The operation does not exist.
    UnknownOperation,
    /// The body is not JSON, or a member has the wrong type. The message contains the type found.
    Serialization(Option<String>),
    /// The table does not exist, as reported by the backup operations.
    TableNotFound(String),
    /// The engine rejected the operation, or failed.
    Store(Error),
}

pub(crate) type Result<T> = std::result::Result<T, RequestError>;

impl RequestError {
    /// A member has the wrong type.
    pub(crate) fn wrong_type(message: impl Into<String>) -> Self {
        Self::Serialization(Some(message.into()))
    }

    /// A parameter is invalid.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::Store(Error::validation(message))
    }

    /// A parameter is invalid: `One or more parameter values were invalid: ` and the message.
    pub(crate) fn invalid(message: impl Display) -> Self {
        Self::Store(floe_store::op::invalid(message))
    }

    /// Returns the HTTP status.
    pub(crate) const fn status(&self) -> u16 {
        match self {
            Self::Store(Error::Unavailable(_)) => 503,
            Self::Store(error) if is_internal(error) => 500,
            _ => 400,
        }
    }

    /// Returns an error message that is for the operator and not for clients: it may contain file names and stored
    /// data.
    pub(crate) fn hidden_details(&self) -> Option<String> {
        match self {
            Self::Store(error) if is_internal(error) => Some(error.to_string()),
            _ => None,
        }
    }

    /// Returns the JSON of the response.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        object(256, |w| match self {
            Self::UnknownOperation => {
                write_type(w, "com.amazon.coral.service", "UnknownOperationException");
            }
            Self::Serialization(message) => {
                write_type(w, "com.amazon.coral.service", "SerializationException");
                write_text(w, "Message", message.as_deref());
            }
            Self::TableNotFound(name) => {
                write_type(w, SERVICE, "TableNotFoundException");
                w.name("message")
                    .string(&format!("Table not found: {name}"));
            }
            Self::Store(error) => write_error(w, error),
        })
    }
}

/// Whether the error is an internal failure, whose message describes internals.
const fn is_internal(error: &Error) -> bool {
    matches!(
        error,
        Error::Internal(_) | Error::OutcomeUnknown(_) | Error::Storage(_) | Error::Unreachable(_)
    )
}

fn write_type(w: &mut Writer, namespace: &str, code: &str) {
    w.name("__type").string(&format!("{namespace}#{code}"));
}

fn write_error(w: &mut Writer, error: &Error) {
    let namespace = match error {
        Error::Validation(_) | Error::Unsupported(_) | Error::Throttling(_) => {
            "com.amazon.coral.validate"
        }
        Error::AccessDenied(_) => "com.amazon.coral.service",
        _ => SERVICE,
    };
    write_type(w, namespace, error.code());
    // Errors of transactions are declared with a capital letter, like those of the framework.
    let name = match error {
        Error::TransactionCanceled { .. }
        | Error::TransactionInProgress
        | Error::IdempotentParameterMismatch
        | Error::AccessDenied(_) => "Message",
        _ => "message",
    };
    if is_internal(error) {
        w.name(name).string(INTERNAL);
        return;
    }
    w.name(name).string(&error.to_string());
    match error {
        Error::TransactionCanceled { reasons } => {
            write_list(w, "CancellationReasons", reasons, write_reason);
        }
        Error::ConditionalCheckFailed { item: Some(item) } => {
            write_item(w.name("Item"), item);
        }
        _ => {}
    }
}

fn write_reason(w: &mut Writer, reason: &CancellationReason) {
    w.object(|w| {
        if let Some(item) = &reason.item {
            write_item_hashed(w.name("Item"), item);
        }
        w.name("Code").string(reason.code.as_str());
        if reason.code != CancellationCode::None
            && let Some(message) = &reason.message
        {
            w.name("Message").string(message);
        }
    });
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Malformed> for RequestError {
    fn from(_: Malformed) -> Self {
        Self::Serialization(None)
    }
}
