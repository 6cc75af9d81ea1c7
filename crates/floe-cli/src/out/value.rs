//! Values as text: strings unchanged, everything else as plain JSON.

use floe_store::json::Writer;
use floe_store::{Item, Set, Value};

/// The cell of a value.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::S(text) => text.as_str().to_owned(),
        value => json(|w| write_plain(w, value)),
    }
}

/// An item as plain JSON.
pub(crate) fn item_cell(item: &Item) -> String {
    json(|w| write_plain_item(w, item))
}

fn json(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::with_capacity(64);
    write(&mut writer);
    String::from_utf8(writer.into_bytes()).unwrap_or_default()
}

fn write_plain_item(w: &mut Writer, item: &Item) {
    w.object(|w| {
        for (name, value) in item.iter() {
            write_plain(w.name(name), value);
        }
    });
}

/// Plain JSON has no sets and bytes: sets become arrays, bytes become base 64.
fn write_plain(w: &mut Writer, value: &Value) {
    match value {
        Value::S(text) => w.string(text),
        Value::N(number) => w.number(number),
        Value::B(bytes) => w.base64(bytes),
        Value::Bool(flag) => w.bool(*flag),
        Value::Null => w.number("null"),
        Value::M(item) => write_plain_item(w, item),
        Value::L(values) => w.array(|w| values.iter().for_each(|value| write_plain(w, value))),
        Value::Ss(set) => write_set(w, set, |w, text| w.string(text)),
        Value::Ns(set) => write_set(w, set, |w, number| w.number(number)),
        Value::Bs(set) => write_set(w, set, |w, bytes| w.base64(bytes)),
    }
}

fn write_set<T: Ord>(w: &mut Writer, set: &Set<T>, write: impl Fn(&mut Writer, &T)) {
    w.array(|w| set.iter().for_each(|element| write(w, element)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_plain_json() {
        let map = Item::new().with("b", vec![1_u8]).with("n", Value::Null);
        let set = Set::new(["x".to_owned(), "y".to_owned()]).unwrap();
        for (value, printed) in [
            (Value::from("a b"), "a b"),
            (Value::from(7), "7"),
            (Value::from(true), "true"),
            (Value::M(map), r#"{"b":"AQ==","n":null}"#),
            (Value::from(set), r#"["x","y"]"#),
            (
                Value::L(vec![Value::from("a"), Value::from(1)]),
                r#"["a",1]"#,
            ),
        ] {
            assert_eq!(cell(&value), printed);
        }
    }
}
