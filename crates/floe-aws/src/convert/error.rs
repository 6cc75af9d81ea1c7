//! Errors reported by the store, and errors of transport.
//!
//! The most important distinction is between a request that was certainly not sent and one whose response was lost.
//! Only errors of establishing the connection, and errors before the request was built, count as not sent.

use std::error::Error as StdError;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::error::{
    ConditionalCheckFailedException, TransactionCanceledException,
};
use aws_sdk_dynamodb::types::{self};
use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::{Error, Result};

use super::value::item;
use crate::names::Names;
use crate::retry::Failure;

/// An error reported by one of the store's services.
pub(super) trait ServiceErrorDetails: ProvideErrorMetadata + Sized {
    /// Returns the error with its details beyond code and message, if it has any.
    fn details(self) -> Option<Result<Error>> {
        None
    }
}

impl ServiceErrorDetails for aws_sdk_dynamodb::Error {
    fn details(self) -> Option<Result<Error>> {
        match self {
            Self::ConditionalCheckFailedException(error) => Some(condition_failed(error)),
            Self::TransactionCanceledException(error) => Some(canceled(error)),
            _ => None,
        }
    }
}

impl ServiceErrorDetails for aws_sdk_dynamodbstreams::Error {}

#[cfg(feature = "eventbridge")]
impl ServiceErrorDetails for aws_sdk_eventbridge::Error {}

/// Converts the failure of a request about these tables.
pub(super) fn failure<S, E>(error: SdkError<E>, names: &Names, tables: &[&str]) -> Failure
where
    S: ServiceErrorDetails + From<E>,
    E: StdError + 'static,
{
    let context = match error {
        SdkError::ServiceError(context) => context,
        other => return transport_failure(&other),
    };
    let status = context.raw().status().as_u16();
    let error = S::from(context.into_err());
    let code = error.code().map(str::to_owned);
    let message = error.message().unwrap_or_default();
    let message = names.message(message, tables).into_owned();
    match error.details() {
        Some(details) => Failure::Rejected(details.unwrap_or_else(|invalid| invalid)),
        None => Failure::Rejected(from_code(code.as_deref(), message, status)),
    }
}

/// Converts a failure that was not reported by the store.
fn transport_failure<E: StdError + 'static>(error: &SdkError<E>) -> Failure {
    let message = format!("{}", DisplayErrorContext(error));
    if find::<CredentialsError>(error).is_some() {
        return Failure::Rejected(Error::AccessDenied(format!("no credentials: {message}")));
    }
    if matches!(error, SdkError::ConstructionFailure(_)) {
        return Failure::Rejected(Error::Validation(message));
    }
    match find::<hyper_util::client::legacy::Error>(error) {
        Some(error) if error.is_connect() => Failure::NotSent(message),
        _ => Failure::ResponseLost(message),
    }
}

/// Returns the first error of this type in the chain of sources.
fn find<'e, T: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Converts an error code of the service. For unknown codes, the message contains the code.
fn from_code(code: Option<&str>, message: String, status: u16) -> Error {
    match code.unwrap_or_default() {
        "ValidationException" | "SerializationException" => Error::Validation(message),
        "TransactionConflictException" | "ReplicatedWriteConflictException" => {
            Error::TransactionConflict
        }
        "TransactionInProgressException" => Error::TransactionInProgress,
        "IdempotentParameterMismatchException" => Error::IdempotentParameterMismatch,
        "ResourceNotFoundException" | "TableNotFoundException" => Error::ResourceNotFound(message),
        "ResourceInUseException" | "TableAlreadyExistsException" | "TableInUseException" => {
            Error::ResourceInUse(message)
        }
        "LimitExceededException" => Error::LimitExceeded(message),
        "ItemCollectionSizeLimitExceededException" => Error::ItemCollectionSizeLimitExceeded,
        "ProvisionedThroughputExceededException" => Error::ProvisionedThroughputExceeded(message),
        "ThrottlingException" | "Throttling" | "RequestLimitExceeded" => Error::Throttling(message),
        "TrimmedDataAccessException" => Error::TrimmedDataAccess(message),
        "ExpiredIteratorException" => Error::ExpiredIterator(message),
        "UnknownOperationException" => Error::Unsupported(message),
        code if is_access_denied(code) => Error::AccessDenied(format!("{code}: {message}")),
        code => from_status(code, message, status),
    }
}

/// Whether the code means that the caller is unknown or not authorized.
fn is_access_denied(code: &str) -> bool {
    matches!(
        code.trim_end_matches("Exception"),
        "AccessDenied"
            | "ExpiredToken"
            | "IncompleteSignature"
            | "InvalidClientTokenId"
            | "InvalidSignature"
            | "MissingAuthenticationToken"
            | "NotAuthorized"
            | "OptInRequired"
            | "RequestExpired"
            | "SignatureDoesNotMatch"
            | "UnrecognizedClient"
    )
}

/// Converts an HTTP status, which may also come from a proxy in front of the store.
fn from_status(code: &str, message: String, status: u16) -> Error {
    let text = match (code, message.as_str()) {
        ("", "") => format!("no code and no message: status={status}"),
        ("InternalServerError", _) | ("", _) => message,
        _ => format!("{code}: {message}"),
    };
    match status {
        401 | 403 => Error::AccessDenied(text),
        429 => Error::Throttling(text),
        400..=499 if status != 408 => Error::Validation(text),
        _ => Error::Internal(text),
    }
}

fn condition_failed(error: ConditionalCheckFailedException) -> Result<Error> {
    let item = error.item.map(item).transpose()?;
    Ok(Error::ConditionalCheckFailed {
        item: item.map(Box::new),
    })
}

fn canceled(error: TransactionCanceledException) -> Result<Error> {
    let reasons = error.cancellation_reasons.unwrap_or_default().into_iter();
    let reasons: Result<_> = reasons.map(reason).collect();
    Ok(Error::TransactionCanceled { reasons: reasons? })
}

fn reason(reason: types::CancellationReason) -> Result<CancellationReason> {
    Ok(CancellationReason {
        code: cancellation_code(reason.code.as_deref().unwrap_or_default()),
        message: reason.message,
        item: reason.item.map(item).transpose()?,
    })
}

/// Converts the code of a cancellation reason. Unknown codes count as validation errors.
fn cancellation_code(name: &str) -> CancellationCode {
    CancellationCode::from_name(name).unwrap_or(CancellationCode::ValidationError)
}

#[cfg(test)]
mod tests;
