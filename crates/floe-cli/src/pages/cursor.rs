//! Where a page has ended, as text that can be given back: the key in DynamoDB's JSON, in base 64.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use floe_store::Item;
use floe_store::json::{Writer, write_item};

use crate::{Failure, Form, Input, Result};

/// The text of a key.
pub(super) fn seal(key: &Item) -> String {
    let mut writer = Writer::with_capacity(64);
    write_item(&mut writer, key);
    URL_SAFE_NO_PAD.encode(writer.into_bytes())
}

/// The key of a text.
pub(super) fn open(cursor: &str) -> Result<Item> {
    let refused = || Failure::usage("--cursor is none that a page has ended with");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
    let text = String::from_utf8(bytes).map_err(|_| refused())?;
    if !text.starts_with('{') {
        return Err(refused());
    }
    let input = Input {
        form: Form::Dynamodb,
    };
    input.item("--cursor", &text).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_gives_back_its_key_and_nothing_else_is_one() {
        let key = Item::new().with("id", "ä?").with("n", 7);
        assert_eq!(open(&seal(&key)).unwrap(), key);
        for text in ["", "x", "e30x", "QGZpbGU", "e30"] {
            let opened = open(text);
            assert!(opened.is_err() || opened.unwrap().is_empty(), "{text}");
        }
    }
}
