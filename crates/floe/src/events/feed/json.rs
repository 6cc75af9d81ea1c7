//! Decodes the JSON that the feed stores.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// Decodes stored JSON. `description` names it in the error.
///
/// # Errors
///
/// [`InvalidEvent`](ErrorKind::InvalidEvent) if it is not JSON, or `read` returns `None`.
pub(super) fn read_json<T>(
    description: &str,
    data: &[u8],
    read: impl Fn(&Value) -> Option<T>,
) -> Result<T> {
    let json: Option<Value> = serde_json::from_slice(data).ok();
    json.as_ref().and_then(read).ok_or_else(|| {
        let data = String::from_utf8_lossy(data);
        let message = format!("cannot read {description}: data={data}");
        Error::new(ErrorKind::InvalidEvent, message)
    })
}
