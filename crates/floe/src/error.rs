//! The error of the patterns: a kind that tells what to do, and what is known of the case.

use std::error::Error as StdError;
use std::fmt;

use crate::model::attribute::Invalid;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something did not work.
///
/// The [kind](Error::kind) tells what to do; the message all that is known: which model, which item,
/// which field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<floe_store::Error>>,
}

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An item that was to be created is there already. Choose another key, or get it instead.
    AlreadyExists,
    /// A value that the model does not allow, or a stored attribute that it cannot read. The message tells
    /// the field and the place inside it. Fix the value.
    InvalidField,
    /// The transaction has touched the same item before. Keep the row, or ask for `cache_rows`.
    FetchedTwice,
    /// Others changed what the transaction read, again and again, until its retries were used up. The
    /// message tells the items and fields. Try later, or make the transaction touch less.
    TransactionFailed,
    /// The answer to a write was lost and the store cannot tell whether it was applied. Read the item
    /// that the message names, and decide; nothing was tried again.
    OutcomeUnknown,
    /// A read-only transaction wrote something. Take one that may write.
    ReadOnly,
    /// More items or bytes than the store takes in one transaction, or one item too large. Nothing was
    /// sent. Do it in smaller steps.
    TooLarge,
    /// The call itself is wrong: a transaction inside a transaction, a cursor of another query. Fix the
    /// call.
    InvalidUse,
    /// The engine cannot do this, as its capabilities say.
    Unsupported,
    /// A table is missing or differs from the model. Call `ensure_tables`, or read what differs.
    Table,
    /// The body of the transaction returned an error of its own. Only hooks are told so; the caller gets that
    /// error.
    Aborted,
    /// The deadline passed before the transaction was done.
    Deadline,
    /// The store refused or failed for a reason of its own, which is the source of this error.
    Store,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn with_source(mut self, source: floe_store::Error) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// A value that a model does not allow. Called by derived code.
    #[doc(hidden)]
    #[must_use]
    pub fn invalid(model: &str, field: &str, invalid: &Invalid) -> Self {
        let (path, reason) = (invalid.path(), invalid.reason());
        // Facts stand behind one colon, however many there are.
        let joint = if reason.contains(": ") { " " } else { ": " };
        Self::new(
            ErrorKind::InvalidField,
            format!("{reason}{joint}model={model} field={field}{path}"),
        )
    }

    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The store's own error, where that is the cause.
    pub fn store_error(&self) -> Option<&floe_store::Error> {
        self.source.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<floe_store::Error> for Error {
    fn from(error: floe_store::Error) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}
