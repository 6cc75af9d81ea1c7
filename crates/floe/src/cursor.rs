//! Pages of query results, and cursors: signed positions that a client may hold.
//!
//! A cursor is the last key of a page and a signature (HMAC-SHA256, truncated to 16 bytes) over that key and the
//! query. A cursor that was modified, that belongs to another query, or that another database issued is rejected,
//! and cannot be used to read other items. It is not secret: its holder can read the key in it.

use std::fmt;

use floe_store::{Item, hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, ErrorKind, Result};

/// Length of the truncated signature.
const SIGNATURE_BYTES: usize = 16;

/// A page of results.
#[derive(Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The results.
    pub rows: Vec<T>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A signed position in the results of a query: see [`Select::page`](crate::model::query::Select::page).
///
/// It is text that a client sends back with its next request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(String);

impl Cursor {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.0
    }
}

impl AsRef<str> for Cursor {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The key that signs the cursors of a database.
#[derive(Clone)]
pub(crate) struct CursorKey(Vec<u8>);

impl CursorKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(key.to_vec())
    }

    /// Signs a cursor for the results of this query after this key.
    pub(crate) fn sign(&self, query: &Item, key: &Item) -> Result<Cursor> {
        let mut bytes = Vec::new();
        key.pack_into(&mut bytes);
        let signature = self.signature(query, &bytes)?.finalize().into_bytes();
        bytes.extend(signature.iter().take(SIGNATURE_BYTES));
        Ok(Cursor(hex::encode(&bytes)))
    }

    /// Verifies a cursor, and returns the key in it.
    ///
    /// # Errors
    ///
    /// [`InvalidCursor`](ErrorKind::InvalidCursor) unless this database issued it for this query.
    pub(crate) fn verify(&self, query: &Item, cursor: &str) -> Result<Item> {
        let bytes = hex::decode(cursor).ok_or_else(invalid_cursor)?;
        let (key, signature) = bytes
            .split_last_chunk::<SIGNATURE_BYTES>()
            .ok_or_else(invalid_cursor)?;
        let expected = self.signature(query, key)?;
        expected
            .verify_truncated_left(signature)
            .map_err(|_| invalid_cursor())?;
        Item::from_packed(key).ok_or_else(invalid_cursor)
    }

    fn signature(&self, query: &Item, key: &[u8]) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(|_| invalid_cursor())?;
        let mut packed = Vec::new();
        query.pack_into(&mut packed);
        mac.update(b"floe cursor 1");
        // The length separates the query from the key.
        mac.update(&packed.len().to_string().into_bytes());
        mac.update(&packed);
        mac.update(key);
        Ok(mac)
    }
}

fn invalid_cursor() -> Error {
    Error::new(
        ErrorKind::InvalidCursor,
        "the cursor was not issued by this database for this query; start again without a cursor",
    )
}
