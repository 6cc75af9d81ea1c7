//! Errors, shaped as DynamoDB's.
//!
//! Every variant that DynamoDB knows carries its code and its message; the few that it does not know
//! ([`OutcomeUnknown`](Error::OutcomeUnknown), [`Unreachable`](Error::Unreachable),
//! [`Unavailable`](Error::Unavailable), [`Unsupported`](Error::Unsupported), [`Storage`](Error::Storage)) say what an engine of ours can say more exactly.

use std::fmt;

use crate::declare::named;
use crate::item::Item;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error that `refusal` makes unless `holds`.
#[inline]
pub(crate) fn ensure<E>(holds: bool, refusal: impl FnOnce() -> E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(refusal()) }
}

/// Returns the error that `refusal` makes of what was found.
#[inline]
pub(crate) fn ensure_none<T, E>(found: Option<T>, refusal: impl FnOnce(T) -> E) -> Result<(), E> {
    found.map_or(Ok(()), |found| Err(refusal(found)))
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The request is wrong in itself or for this table. Fix the call; sending it again cannot help.
    Validation(String),
    /// The condition of a write did not hold. Nothing was written. The item as it stands is there if
    /// the request asked for it.
    ConditionalCheckFailed {
        /// The item that failed the condition, when asked for and when there is one.
        item: Option<Box<Item>>,
    },
    /// A transaction was refused as a whole, with one reason per action in their order.
    TransactionCanceled {
        /// One entry per action of the transaction; [`CancellationCode::None`] for those not at fault.
        reasons: Vec<CancellationReason>,
    },
    /// Another transaction held the item. Send the request again.
    TransactionConflict,
    /// The transaction with this token is still running. Send the request again, a little later.
    TransactionInProgress,
    /// The token was used before with another request. Use a new token.
    IdempotentParameterMismatch,
    /// A table, index or stream is not there.
    ResourceNotFound(String),
    /// A table is there already, or is being changed.
    ResourceInUse(String),
    /// Too many tables or administrative operations at once.
    LimitExceeded(String),
    /// The items under one partition key grew beyond what local indexes allow.
    ItemCollectionSizeLimitExceeded,
    /// The request rate is too high for the table. Send it again after a pause.
    ProvisionedThroughputExceeded(String),
    /// The request rate is too high for the account. Send it again after a pause.
    Throttling(String),
    /// The store does not know who asks, or does not let them do this. Fix the credentials or the
    /// permissions; nothing was done.
    AccessDenied(String),
    /// The wanted change records are no longer kept.
    TrimmedDataAccess(String),
    /// The shard iterator is too old. Get a new one.
    ExpiredIterator(String),
    /// The service failed in itself. Sending the request again may help.
    Internal(String),
    /// The store could not be reached, or did not answer a read: nothing was written. Send the request
    /// again when the network is back.
    Unreachable(String),
    /// The request was sent and its answer lost: it may or may not have been applied. Sending a write
    /// again is safe only with a token or a condition that settles it.
    OutcomeUnknown(String),
    /// The store refuses writes for a cause that may pass, such as a full disk. Nothing was written. Send the
    /// request again later; [`Engine::health`](crate::Engine::health) reports when writes are accepted again.
    Unavailable(String),
    /// The engine has no such ability; see [`Capabilities`](crate::Capabilities). Nothing was sent.
    Unsupported(String),
    /// The storage below the engine failed, or has failed before and the engine refuses to write until
    /// it is opened again. What was acknowledged is kept.
    Storage(String),
}

impl Error {
    /// A [`Validation`](Error::Validation) error with this message.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::Validation(message.into())
    }

    /// The name of the error as DynamoDB puts it on the wire.
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

    /// Whether the same request may succeed when sent again.
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

    /// Whether the request may have been applied although it failed.
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

/// Why one action of a transaction stood in the way of all, or that it did not.
#[derive(Clone, Debug, PartialEq)]
pub struct CancellationReason {
    /// What was wrong.
    pub code: CancellationCode,
    /// The words for it, absent for [`CancellationCode::None`].
    pub message: Option<String>,
    /// The item as it stands, when the action asked for it and its condition failed.
    pub item: Option<Item>,
}

impl CancellationReason {
    /// The reason of an action that was not at fault.
    pub const fn none() -> Self {
        Self {
            code: CancellationCode::None,
            message: None,
            item: None,
        }
    }

    /// A fault of this code and message.
    pub fn new(code: CancellationCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
            item: None,
        }
    }
}

named! {
    /// What was wrong with one action of a transaction.
    #[non_exhaustive]
    pub enum CancellationCode {
        /// Nothing.
        None = "None",
        /// Its condition did not hold.
        ConditionalCheckFailed = "ConditionalCheckFailed",
        /// The partition's items grew beyond what local indexes allow.
        ItemCollectionSizeLimitExceeded = "ItemCollectionSizeLimitExceeded",
        /// Another transaction held the item.
        TransactionConflict = "TransactionConflict",
        /// The request rate is too high for the table.
        ProvisionedThroughputExceeded = "ProvisionedThroughputExceeded",
        /// The request rate is too high for the account.
        ThrottlingError = "ThrottlingError",
        /// It could not be applied to the item as it stands.
        ValidationError = "ValidationError",
    }
}

impl CancellationCode {
    /// Whether the transaction may succeed when sent again.
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
    fn a_canceled_transaction_names_its_reasons_in_order() {
        use CancellationCode::*;
        assert_eq!(
            canceled(&[None, ConditionalCheckFailed]).to_string(),
            "Transaction cancelled, please refer cancellation reasons for specific reasons \
             [None, ConditionalCheckFailed]"
        );
    }

    #[test]
    fn a_transaction_in_progress_speaks_dynamodbs_words() {
        assert_eq!(
            Error::TransactionInProgress.to_string(),
            "Transaction from previous request is still in progress"
        );
    }

    #[test]
    fn a_transaction_is_retryable_only_if_all_its_faults_are() {
        use CancellationCode::*;
        assert!(canceled(&[None, TransactionConflict]).is_retryable());
        assert!(!canceled(&[ConditionalCheckFailed, TransactionConflict]).is_retryable());
        assert!(!canceled(&[None]).is_retryable());
    }
}
