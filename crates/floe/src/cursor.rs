//! Pages of what a query finds, and cursors: where a page ended, in a form that can be handed to strangers.
//!
//! A cursor is the key behind which the next page begins and a signature (HMAC-SHA256, cut to 16 bytes) over
//! that key and what was asked. So a cursor that was changed, that belongs to another query, or that another
//! database has made is refused, instead of showing items that were not asked for. It is not secret: who has
//! it can read the key in it.

use std::fmt;

use floe_store::{Item, hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, ErrorKind, Result};

/// How much of the signature is kept.
const SIGNATURE_BYTES: usize = 16;

/// A page of what was found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// What was found.
    pub rows: Vec<T>,
    /// Where the next page begins; `None` if there is none.
    pub next: Option<Cursor>,
}

/// Where a page ended: see [`Select::page`](crate::model::query::Select::page).
///
/// It is text, made to be handed to a client and to come back with its next request.
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

/// What signs the cursors of a database.
#[derive(Clone)]
pub(crate) struct CursorKey(Vec<u8>);

impl CursorKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(key.to_vec())
    }

    /// The cursor of what is asked, which stopped behind this key.
    pub(crate) fn seal(&self, asked: &Item, key: &Item) -> Result<Cursor> {
        let mut bytes = Vec::new();
        key.pack_into(&mut bytes);
        let signature = self.signature(asked, &bytes)?.finalize().into_bytes();
        bytes.extend(signature.iter().take(SIGNATURE_BYTES));
        Ok(Cursor(hex::encode(&bytes)))
    }

    /// The key in a cursor that this database has made for what is asked.
    ///
    /// # Errors
    ///
    /// [`InvalidCursor`](ErrorKind::InvalidCursor) for every other text.
    pub(crate) fn open(&self, asked: &Item, cursor: &str) -> Result<Item> {
        let bytes = hex::decode(cursor).ok_or_else(foreign)?;
        let (key, signature) = bytes
            .split_last_chunk::<SIGNATURE_BYTES>()
            .ok_or_else(foreign)?;
        let own = self.signature(asked, key)?;
        own.verify_truncated_left(signature)
            .map_err(|_| foreign())?;
        Item::from_packed(key).ok_or_else(foreign)
    }

    fn signature(&self, asked_for: &Item, key: &[u8]) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(|_| foreign())?;
        let mut asked = Vec::new();
        asked_for.pack_into(&mut asked);
        mac.update(b"floe cursor 1");
        // The length keeps what was asked apart from the key.
        mac.update(&asked.len().to_string().into_bytes());
        mac.update(&asked);
        mac.update(key);
        Ok(mac)
    }
}

fn foreign() -> Error {
    Error::new(
        ErrorKind::InvalidCursor,
        "the cursor is not one that this database has made for this query; begin again without one",
    )
}
