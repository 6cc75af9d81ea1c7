//! Reading what the feed stores as JSON.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// Decodes stored JSON. `what` names it in the error.
///
/// # Errors
///
/// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is something else.
pub(super) fn read_json<T>(
    what: &str,
    data: &[u8],
    read: impl Fn(&Value) -> Option<T>,
) -> Result<T> {
    let json: Option<Value> = serde_json::from_slice(data).ok();
    json.as_ref().and_then(read).ok_or_else(|| {
        let data = String::from_utf8_lossy(data);
        let message = format!("{what} cannot be read: data={data}");
        Error::new(ErrorKind::InvalidEvent, message)
    })
}
