//! Errors, modelled on DynamoDB's.
//!
//! Variants that DynamoDB has carry its code and its message. [`OutcomeUnknown`](Error::OutcomeUnknown),
//! [`Unreachable`](Error::Unreachable), [`Unavailable`](Error::Unavailable), [`Unsupported`](Error::Unsupported) and
//! [`Storage`](Error::Storage) are Floe's own and more precise than DynamoDB's codes.

use std::fmt;

use crate::declare::named;
use crate::item::Item;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error built by `error` unless `holds`.
#[inline]
pub(crate) fn ensure<E>(holds: bool, error: impl FnOnce() -> E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(error()) }
}

/// Returns the error that `error` builds from the value, if there is one.
#[inline]
pub(crate) fn ensure_none<T, E>(found: Option<T>, error: impl FnOnce(T) -> E) -> Result<(), E> {
    found.map_or(Ok(()), |found| Err(error(found)))
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid, by itself or for this table. Fix the call; a retry cannot succeed.
    Validation(String),
    /// The condition of a write did not hold, and nothing was written. Contains the current item if the request asked
    /// for it.
    ConditionalCheckFailed {
        /// The item that failed the condition, if requested and if it exists.
        item: Option<Box<Item>>,
    },
    /// The transaction was cancelled as a whole, with one reason per action, in order.
    TransactionCanceled {
        /// One entry per action. Actions without a fault have [`CancellationCode::None`].
        reasons: Vec<CancellationReason>,
    },
    /// Another transaction is changing the item. Retry.
    TransactionConflict,
    /// The transaction with this token is still running. Retry after a pause.
    TransactionInProgress,
    /// The token was already used with a different request. Use a new token.
    IdempotentParameterMismatch,
    /// The table, index or stream does not exist.
    ResourceNotFound(String),
    /// The table already exists or is being changed.
    ResourceInUse(String),
    /// Too many tables, or too many administrative operations at once.
    LimitExceeded(String),
    /// The items under one partition key exceed the limit for tables with local indexes.
    ItemCollectionSizeLimitExceeded,
    /// The request rate exceeds the limit of the table. Retry after a pause.
    ProvisionedThroughputExceeded(String),
    /// The request rate exceeds the limit of the account. Retry after a pause.
    Throttling(String),
    /// The caller is not authenticated or lacks permission, and nothing was done. Fix the credentials or the
    /// permissions.
    AccessDenied(String),
    /// The requested change records have been trimmed.
    TrimmedDataAccess(String),
    /// The shard iterator has expired. Get a new one.
    ExpiredIterator(String),
    /// The service failed. A retry may succeed.
    Internal(String),
    /// The store could not be reached, or did not respond to a read. Nothing was written. Retry when the network is
    /// back.
    Unreachable(String),
    /// The request was sent, but its response was lost: it may or may not have been applied. Retrying a write is safe
    /// only with a token, or with a condition that rejects a second application.
    OutcomeUnknown(String),
    /// The store rejects writes for a possibly temporary reason, such as a full disk. Nothing was written. Retry later;
    /// [`Engine::health`](crate::Engine::health) reports when writes are accepted again.
    Unavailable(String),
    /// The engine does not support this; see [`Capabilities`](crate::Capabilities). Nothing was sent.
    Unsupported(String),
    /// The underlying storage failed, now or earlier, and the engine rejects writes until it is reopened. Acknowledged
    /// writes are kept.
    Storage(String),
}

impl Error {
    /// Returns a [`Validation`](Error::Validation) error with this message.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::Validation(message.into())
    }

    /// The error code that DynamoDB sends on the wire.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Validation(_) | Self::Unsupported(_) => "ValidationException",
            Self::ConditionalCheckFailed { .. } => "ConditionalCheckFailedException",
            Self::TransactionCanceled { .. } => "TransactionCanceledException",
            Self::TransactionConflict => "TransactionConflictException",
            Self::TransactionInProgress => "TransactionInProgressException",
            Self::IdempotentParameterMismatch => "IdempotentParameterMismatchException",
            Self::ResourceNotFound(_) => "ResourceNotFoundException",
            Self::ResourceInUse(_) => "ResourceInUseException",
            Self::LimitExceeded(_) => "LimitExceededException",
            Self::ItemCollectionSizeLimitExceeded => "ItemCollectionSizeLimitExceededException",
            Self::ProvisionedThroughputExceeded(_) => "ProvisionedThroughputExceededException",
            Self::Throttling(_) => "ThrottlingException",
            Self::AccessDenied(_) => "AccessDeniedException",
            Self::TrimmedDataAccess(_) => "TrimmedDataAccessException",
            Self::ExpiredIterator(_) => "ExpiredIteratorException",
            Self::Internal(_)
            | Self::Unreachable(_)
            | Self::OutcomeUnknown(_)
            | Self::Storage(_) => "InternalServerError",
            Self::Unavailable(_) => "ServiceUnavailable",
        }
    }

    /// Whether the same request may succeed if it is retried.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TransactionConflict
            | Self::TransactionInProgress
            | Self::ProvisionedThroughputExceeded(_)
            | Self::Throttling(_)
            | Self::Internal(_)
            | Self::Unreachable(_)
            | Self::Unavailable(_)
            | Self::OutcomeUnknown(_) => true,
            Self::TransactionCanceled { reasons } => {
                let codes = reasons.iter().map(|reason| reason.code);
                let mut faults = codes
                    .filter(|code| *code != CancellationCode::None)
                    .peekable();
                faults.peek().is_some() && faults.all(CancellationCode::is_retryable)
            }
            _ => false,
        }
    }

    /// Whether the request may have been applied despite the error.
    pub const fn may_have_applied(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_) | Self::Internal(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Validation(message)
            | Self::ResourceNotFound(message)
            | Self::ResourceInUse(message)
            | Self::LimitExceeded(message)
            | Self::ProvisionedThroughputExceeded(message)
            | Self::Throttling(message)
            | Self::AccessDenied(message)
            | Self::TrimmedDataAccess(message)
            | Self::ExpiredIterator(message)
            | Self::Internal(message)
            | Self::Unreachable(message)
            | Self::OutcomeUnknown(message)
            | Self::Unavailable(message)
            | Self::Unsupported(message)
            | Self::Storage(message) => f.write_str(message),
            Self::ConditionalCheckFailed { .. } => f.write_str("The conditional request failed"),
            Self::TransactionCanceled { reasons } => {
                let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
                write!(
                    f,
                    "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
                    codes.join(", ")
                )
            }
            Self::TransactionConflict => f.write_str("Transaction is ongoing for the item"),
            Self::TransactionInProgress => {
                f.write_str("Transaction from previous request is still in progress")
            }
            Self::IdempotentParameterMismatch => f.write_str(
                "The request uses the same client token as a previous, but non-identical request. \
                 Do not reuse a client token with different requests, unless the requests are identical",
            ),
            Self::ItemCollectionSizeLimitExceeded => f.write_str("Collection size exceeded."),
        }
    }
}

impl std::error::Error for Error {}

/// Why one action of a transaction caused the cancellation, or that it did not.
#[derive(Clone, Debug, PartialEq)]
pub struct CancellationReason {
    /// The kind of fault.
    pub code: CancellationCode,
    /// DynamoDB's message; absent for [`CancellationCode::None`].
    pub message: Option<String>,
    /// The current item, if the action asked for it and its condition failed.
    pub item: Option<Item>,
}

impl CancellationReason {
    /// The reason of an action without a fault.
    pub const fn none() -> Self {
        Self {
            code: CancellationCode::None,
            message: None,
            item: None,
        }
    }

    /// A reason with this code and message.
    pub fn new(code: CancellationCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
            item: None,
        }
    }
}

named! {
    /// The fault of one action of a transaction.
    #[non_exhaustive]
    pub enum CancellationCode {
        /// No fault.
        None = "None",
        /// Its condition did not hold.
        ConditionalCheckFailed = "ConditionalCheckFailed",
        /// The items under the partition key exceed the limit for tables with local indexes.
        ItemCollectionSizeLimitExceeded = "ItemCollectionSizeLimitExceeded",
        /// Another transaction is changing the item.
        TransactionConflict = "TransactionConflict",
        /// The request rate exceeds the limit of the table.
        ProvisionedThroughputExceeded = "ProvisionedThroughputExceeded",
        /// The request rate exceeds the limit of the account.
        ThrottlingError = "ThrottlingError",
        /// The action could not be applied to the current item.
        ValidationError = "ValidationError",
    }
}

impl CancellationCode {
    /// Whether the transaction may succeed if it is retried.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::TransactionConflict | Self::ProvisionedThroughputExceeded | Self::ThrottlingError
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canceled(codes: &[CancellationCode]) -> Error {
        let reasons = codes.iter().map(|&code| CancellationReason {
            code,
            ..CancellationReason::none()
        });
        Error::TransactionCanceled {
            reasons: reasons.collect(),
        }
    }

    #[test]
    fn canceled_transaction_lists_reasons_in_order() {
        use CancellationCode::*;
        assert_eq!(
            canceled(&[None, ConditionalCheckFailed]).to_string(),
            "Transaction cancelled, please refer cancellation reasons for specific reasons \
             [None, ConditionalCheckFailed]"
        );
    }

    #[test]
    fn transaction_in_progress_message_matches_dynamodb() {
        assert_eq!(
            Error::TransactionInProgress.to_string(),
            "Transaction from previous request is still in progress"
        );
    }

    #[test]
    fn canceled_transaction_is_retryable_only_if_all_faults_are() {
        use CancellationCode::*;
        assert!(canceled(&[None, TransactionConflict]).is_retryable());
        assert!(!canceled(&[ConditionalCheckFailed, TransactionConflict]).is_retryable());
        assert!(!canceled(&[None]).is_retryable());
    }
}
