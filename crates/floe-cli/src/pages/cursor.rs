//! The cursor of a page: the key of its last item as DynamoDB JSON, in base 64.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use floe_store::Item;
use floe_store::json::{Writer, write_item};

use crate::{Failure, Input, JsonFormat, Result};

/// Encodes a key as a cursor.
pub(super) fn encode(key: &Item) -> String {
    let mut writer = Writer::with_capacity(64);
    write_item(&mut writer, key);
    URL_SAFE_NO_PAD.encode(writer.into_bytes())
}

/// Decodes the key of a cursor.
pub(super) fn decode(cursor: &str) -> Result<Item> {
    let invalid = || Failure::usage("--cursor is not a cursor of an earlier page");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid())?;
    if !text.starts_with('{') {
        return Err(invalid());
    }
    let input = Input {
        form: JsonFormat::Dynamodb,
    };
    input.item("--cursor", &text).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_and_other_text_is_rejected() {
        let key = Item::new().with("id", "ä?").with("n", 7);
        assert_eq!(decode(&encode(&key)).unwrap(), key);
        for text in ["", "x", "e30x", "QGZpbGU", "e30"] {
            let decoded = decode(text);
            assert!(decoded.is_err() || decoded.unwrap().is_empty(), "{text}");
        }
    }
}
