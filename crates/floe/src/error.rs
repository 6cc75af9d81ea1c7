//! The error of the patterns: a kind that tells what to do, and what is known of the case.

use std::error::Error as StdError;
use std::fmt;

use crate::key::EncodedKey;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something did not work.
///
/// The [kind](Error::kind) tells what to do; the message all that is known: which model, which item,
/// which field. What a program may want to act on is there in parts as well: the [field](Error::field) that
/// was refused, the [items](Error::items) of a commit that was not made, the [attempts](Error::attempts).
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

/// An item that stood in the way of a commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorItem {
    /// The name of its model.
    pub model: &'static str,
    /// Its key, as it is stored.
    pub key: EncodedKey,
    /// The fields that others have changed; none if the item itself came or went.
    pub fields: Vec<String>,
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
    /// The call itself is wrong: a transaction inside a transaction, a condition that no key can answer. Fix
    /// the call.
    InvalidUse,
    /// The cursor is not one that this database has made for this query. Begin again without one; if it came
    /// from a client, tell the client so.
    InvalidCursor,
    /// The engine cannot do this, as its capabilities say.
    Unsupported,
    /// A table is missing or differs from the model. Call `ensure_tables`, or read what differs.
    Table,
    /// The body of the transaction returned an error of its own. Only hooks are told so; the caller gets that
    /// error.
    Aborted,
    /// An event, or what is stored of a stream, cannot be read: damaged, or of a type that the program does not know.
    /// Look at the stream that the message names, or teach the program the type.
    InvalidEvent,
    /// Events are needed that are not in the stream any more. Bring them back, or give the store its archive.
    MissingEvents,
    /// The stream is not at the version that was expected. Read it, and decide again.
    VersionConflict,
    /// Others appended to the stream again and again, until there were no resyncs left. Try later.
    MaxResyncsExhausted,
    /// An entity that was to be changed or linked is not there. Create it, or leave it.
    NotFound,
    /// Another entity has the key of a unique index; the message names it. Choose another key.
    Conflict,
    /// The entity cannot be deleted while others refer to it; the message names one. Delete or unlink them first.
    Restricted,
    /// The index is not complete: it is new, or its function has changed. Rebuild it, or ask for a scan instead.
    IndexNotReady,
    /// The deadline passed before the transaction was done.
    Deadline,
    /// The store refused or failed for a reason of its own, which is the source of this error.
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

    /// Several errors of one kind as one, with the messages and items of all; `None` if there are none.
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

    /// The last cause of a transaction that was tried so often, as another kind.
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
        // Facts stand behind one colon, however many there are.
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

    /// The field that was refused, with the place inside it: `address.lines[2]`.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The items because of which a commit was not made, or of which nobody knows whether it was.
    pub fn items(&self) -> &[ErrorItem] {
        &self.0.items
    }

    /// How often the body of the transaction ran, where it ran out of retries or of time.
    pub const fn attempts(&self) -> Option<u32> {
        self.0.attempts
    }

    /// The store's own error, where that is the cause.
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
    /// A value that is wrong as a whole.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            reason: reason.into(),
        }
    }

    /// The same, seen from the container under this step: `.name` or `[3]`.
    #[must_use]
    pub fn within(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }

    /// Where inside the field: empty for the field itself.
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
