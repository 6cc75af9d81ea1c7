//! The error type of the patterns: a kind that says what to do, a message, and the facts.

use std::error::Error as StdError;
use std::fmt;

use crate::key::EncodedKey;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate.
///
/// The [kind](Error::kind) says what to do. The message names the model, the item and the field. Facts that a program
/// may act on are also available as values: the invalid [field](Error::field), the [items](Error::items) of a failed
/// commit, the number of [attempts](Error::attempts).
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    field: Option<String>,
    items: Vec<ErrorItem>,
    attempts: Option<u32>,
    source: Option<floe_store::Error>,
}

/// An item because of which a commit failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorItem {
    /// The name of its model.
    pub model: &'static str,
    /// Its stored key.
    pub key: EncodedKey,
    /// The fields that another writer changed. Empty if the item was created or deleted.
    pub fields: Vec<String>,
}

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The item to create already exists. Choose another key, or get the item instead.
    AlreadyExists,
    /// The model does not allow a value, or cannot read a stored attribute. The message names the field and the
    /// location inside it. Fix the value.
    InvalidField,
    /// The transaction fetched the same item before. Keep the row, or set `cache_rows`.
    FetchedTwice,
    /// Other writers kept changing what the transaction read until the retries were used up. The message names the
    /// items and fields. Retry later, or let the transaction read less.
    TransactionFailed,
    /// The response to a write was lost, and whether it was applied cannot be determined. Read the item that the
    /// message names, and decide; the write was not retried.
    OutcomeUnknown,
    /// A read-only transaction wrote something. Use a transaction that may write.
    ReadOnly,
    /// The transaction has more items or bytes than the store allows, an item is too large, or the commit reads or changes
    /// too many fields of one item. Nothing was sent. Write in smaller steps, or as the message says.
    TooLarge,
    /// The call itself is wrong: a transaction inside a transaction, a condition that no key can satisfy. Fix the
    /// call.
    InvalidUse,
    /// The cursor was not issued by this database for this query. Start without one; if a client sent it, reject the
    /// client's request.
    InvalidCursor,
    /// The engine does not have the capability.
    Unsupported,
    /// A table is missing or differs from the model. Call `ensure_tables`, or see the message for the differences.
    Table,
    /// The body of the transaction returned its own error. Only hooks see this kind; the caller gets the body's
    /// error.
    Aborted,
    /// An event or other stored data of a stream cannot be read: it is damaged, or of a type that the program does
    /// not declare. Inspect the stream that the message names, or declare the type.
    InvalidEvent,
    /// Required events are no longer in the stream. Restore them, or configure the archive of the store.
    MissingEvents,
    /// The stream is not at the expected version. Read it, and decide again.
    VersionConflict,
    /// Other writers kept appending to the stream until no resyncs were left. Retry later.
    MaxResyncsExhausted,
    /// The entity to change or link does not exist. Create it first.
    NotFound,
    /// Another entity has the key of a unique index; the message names it. Choose another key.
    Conflict,
    /// The entity cannot be deleted while other entities refer to it; the message names one. Delete or unlink them
    /// first.
    Restricted,
    /// The index is incomplete: it is new, or its function has changed. Rebuild it, or request a scan instead.
    IndexNotReady,
    /// The deadline passed before the transaction finished.
    Deadline,
    /// The store rejected the request or failed. The store's error is the source of this error.
    Store,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            field: None,
            items: Vec::new(),
            attempts: None,
            source: None,
        }))
    }

    /// The call itself is wrong.
    pub(crate) fn invalid_use(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidUse, message)
    }

    pub(crate) fn with_source(mut self, source: floe_store::Error) -> Self {
        self.0.source = Some(source);
        self
    }

    pub(crate) fn with_items(mut self, items: Vec<ErrorItem>) -> Self {
        self.0.items = items;
        self
    }

    /// Joins errors of one kind into one with all messages and items. Returns `None` if there are none.
    pub(crate) fn join(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut joined = errors.next()?;
        for error in errors {
            joined.0.message.push_str("; ");
            joined.0.message.push_str(&error.0.message);
            joined.0.items.extend(error.0.items);
        }
        Some(joined)
    }

    /// The error of a transaction that gave up after this many attempts, made from its last cause.
    pub(crate) fn after_attempts(self, kind: ErrorKind, message: String, attempts: u32) -> Self {
        Self(Box::new(Inner {
            kind,
            message,
            attempts: Some(attempts),
            ..*self.0
        }))
    }

    /// A value that a model does not allow. Called by derived code.
    #[doc(hidden)]
    #[must_use]
    pub fn invalid(model: &str, field: &str, invalid: &Invalid) -> Self {
        let (path, reason) = (invalid.path(), invalid.reason());
        // A message has one colon, before its facts.
        let joint = if reason.contains(": ") { " " } else { ": " };
        let message = format!("{reason}{joint}model={model} field={field}{path}");
        let mut error = Self::new(ErrorKind::InvalidField, message);
        error.0.field = Some(format!("{field}{path}"));
        error
    }

    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The invalid field, with the location inside it: `address.lines[2]`.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The items because of which a commit failed, or those of a commit whose outcome is unknown.
    pub fn items(&self) -> &[ErrorItem] {
        &self.0.items
    }

    /// How often the body ran, if the transaction ran out of retries or time.
    pub const fn attempts(&self) -> Option<u32> {
        self.0.attempts
    }

    /// The store's error, if that is the cause.
    pub const fn store_error(&self) -> Option<&floe_store::Error> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

impl From<floe_store::Error> for Error {
    fn from(error: floe_store::Error) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}

/// Why a value cannot be stored or read, and where inside the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    path: String,
    reason: String,
}

impl Invalid {
    /// An error about the value as a whole.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            reason: reason.into(),
        }
    }

    /// Prepends a step to the path, as seen from the enclosing container: `.name` or `[3]`.
    #[must_use]
    pub fn within(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }

    /// The location inside the field. Empty for the field itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        match self.path() {
            "" => f.write_str(reason),
            path => write!(f, "{reason}: at={path}"),
        }
    }
}

impl StdError for Invalid {}
