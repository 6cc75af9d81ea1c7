//! Entry points for the fuzz targets into the codecs of this crate. Only compiled for fuzzing.

use std::cmp::Ordering;
use std::fmt::Debug;

use floe_store::table::{KeyAttribute, KeyKind, KeySchema};
use floe_store::{Item, Number, Result, Value};

use crate::layout::key::{decode_expiry_key, expiry_key, item_key};
use crate::layout::record::{
    Counts, Instance, JobRecord, ShardRecord, StreamRecord, TableRecord, TokenRecord,
    decode_meta_key, decode_token_expiry,
};
use crate::layout::{change, item};

/// Any bytes either decode to an item or are rejected, and an item encodes to the bytes that it was decoded from. The
/// same holds for the records of the catalog.
pub fn item(bytes: &[u8]) {
    if let Ok((size, decoded)) = item::decode_sized(bytes) {
        assert_eq!(item::encode_sized(&decoded, size), bytes);
        // Again from the values instead of the packed bytes.
        let decoded: Item = decoded.into_iter().collect();
        assert_eq!(item::encode_sized(&decoded, size), bytes);
        assert_eq!(item::decode(&item::encode(&decoded)), Ok(decoded));
    }
    let _change = change::decode(bytes, 1, 1);
    round_trip(bytes, Instance::decode, Instance::encode);
    round_trip(bytes, TableRecord::decode, TableRecord::encode);
    round_trip(bytes, Counts::decode, Counts::encode);
    round_trip(bytes, JobRecord::decode, JobRecord::encode);
    round_trip(bytes, StreamRecord::decode, StreamRecord::encode);
    round_trip(bytes, ShardRecord::decode, ShardRecord::encode);
    round_trip(bytes, TokenRecord::decode, TokenRecord::encode);
    let _expiry = decode_token_expiry(bytes);
}

/// Bytes that decode must encode to something that decodes to the same value.
fn round_trip<T: PartialEq + Debug>(
    bytes: &[u8],
    decode: fn(&[u8]) -> Result<T>,
    encode: fn(&T) -> Vec<u8>,
) {
    if let Ok(record) = decode(bytes) {
        assert_eq!(decode(&encode(&record)), Ok(record));
    }
}

/// Any bytes either decode to a key or are rejected, and encoded keys sort like their values.
pub fn key(bytes: &[u8]) {
    let _meta = decode_meta_key(bytes);
    let _change = change::decode_key(bytes);
    if let Ok((secs, item_key)) = decode_expiry_key(bytes) {
        let generation = bytes.get(1..5).and_then(|b| b.try_into().ok());
        let generation = u32::from_be_bytes(generation.unwrap_or_default());
        assert_eq!(expiry_key(generation, secs, &item_key), bytes);
    }
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let kind = match kind % 3 {
        0 => KeyKind::S,
        1 => KeyKind::N,
        _ => KeyKind::B,
    };
    let (a, b) = rest.split_at(rest.len() / 2);
    if let (Some(a), Some(b)) = (value(kind, a), value(kind, b)) {
        check_sort_order(kind, a, b);
    }
}

fn value(kind: KeyKind, bytes: &[u8]) -> Option<Value> {
    Some(match kind {
        KeyKind::S => Value::from(std::str::from_utf8(bytes).ok()?),
        KeyKind::N => Value::N(Number::decode_compact(bytes)?.0),
        KeyKind::B => Value::from(bytes),
    })
}

fn check_sort_order(kind: KeyKind, a: Value, b: Value) {
    let schema = KeySchema {
        partition: vec![KeyAttribute::new("p", KeyKind::S)],
        sort: vec![KeyAttribute::new("s", kind)],
    };
    let encode = |value: &Value| {
        let item = Item::new().with("p", "x").with("s", value.clone());
        item_key(&schema, &item)
    };
    let order: Option<Ordering> = a.compare(&b);
    assert_eq!(Some(encode(&a).cmp(&encode(&b))), order);
}
