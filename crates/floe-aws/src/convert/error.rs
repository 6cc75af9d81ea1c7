//! What went wrong: said by the store, or seen on the way to it.
//!
//! The most important thing here is the difference between a request that was certainly not sent and one whose
//! answer was lost. Only an error of the connector that says that no connection was made, and one from before
//! there was anything to send, count as not sent.

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

/// An error that the store tells, of one of its services.
pub(super) trait Refusal: ProvideErrorMetadata + Sized {
    /// The parts of the error beyond code and message, if it has any.
    fn parts(self) -> Option<Result<Error>> {
        None
    }
}

impl Refusal for aws_sdk_dynamodb::Error {
    fn parts(self) -> Option<Result<Error>> {
        match self {
            Self::ConditionalCheckFailedException(error) => Some(condition_failed(error)),
            Self::TransactionCanceledException(error) => Some(canceled(error)),
            _ => None,
        }
    }
}

impl Refusal for aws_sdk_dynamodbstreams::Error {}

#[cfg(feature = "eventbridge")]
impl Refusal for aws_sdk_eventbridge::Error {}

/// What became of a request about these tables that was not answered with success.
pub(super) fn failure<S, E>(error: SdkError<E>, names: &Names, tables: &[&str]) -> Failure
where
    S: Refusal + From<E>,
    E: StdError + 'static,
{
    let context = match error {
        SdkError::ServiceError(context) => context,
        other => return on_the_way(&other),
    };
    let status = context.raw().status().as_u16();
    let error = S::from(context.into_err());
    let code = error.code().map(str::to_owned);
    let message = error.message().unwrap_or_default();
    let message = names.message(message, tables).into_owned();
    match error.parts() {
        Some(refusal) => Failure::Refused(refusal.unwrap_or_else(|unreadable| unreadable)),
        None => Failure::Refused(by_code(code.as_deref(), message, status)),
    }
}

/// What became of a request that the store did not refuse.
fn on_the_way<E: StdError + 'static>(error: &SdkError<E>) -> Failure {
    let message = format!("{}", DisplayErrorContext(error));
    if find::<CredentialsError>(error).is_some() {
        return Failure::Refused(Error::AccessDenied(format!("no credentials: {message}")));
    }
    if matches!(error, SdkError::ConstructionFailure(_)) {
        return Failure::Refused(Error::Validation(message));
    }
    match find::<hyper_util::client::legacy::Error>(error) {
        Some(error) if error.is_connect() => Failure::Unsent(message),
        _ => Failure::Lost(message),
    }
}

/// The first error of this type among the causes.
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

/// The error that a code of the service stands for. Codes that are not known are told with their message.
fn by_code(code: Option<&str>, message: String, status: u16) -> Error {
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
        code if is_denial(code) => Error::AccessDenied(format!("{code}: {message}")),
        code => by_status(code, message, status),
    }
}

/// Whether the store did not know who asks, or did not let them.
fn is_denial(code: &str) -> bool {
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

/// The error that a status of HTTP stands for, as what lies between here and the store may send it too.
fn by_status(code: &str, message: String, status: u16) -> Error {
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

/// A code that is not known is a fault all the same.
fn cancellation_code(name: &str) -> CancellationCode {
    CancellationCode::from_name(name).unwrap_or(CancellationCode::ValidationError)
}

#[cfg(test)]
mod tests;
