//! Numbers from text and from both encodings: never a panic, and every way back is the same.

#![no_main]

use floe_store::Number;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = std::str::from_utf8(data).ok();
    if let Some(number) = text.and_then(|text| text.parse::<Number>().ok()) {
        assert_eq!(number.to_string().parse(), Ok(number));
        let sum = number.checked_add(number);
        assert!(sum.is_err() || sum.and_then(|sum| sum.checked_sub(number)) == Ok(number));
    }
    if let Some((number, length)) = Number::decode_ordered(data) {
        let mut again = Vec::new();
        number.encode_ordered(&mut again);
        assert_eq!(again, data[..length]);
    }
    if let Some((number, length)) = Number::decode_compact(data) {
        let mut again = Vec::new();
        number.encode_compact(&mut again);
        assert_eq!(again, data[..length]);
    }
});
