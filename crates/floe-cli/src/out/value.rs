//! Values as plain JSON: as cells of tables, which people read, and as output, which programs read.

use floe_store::json::{self, Writer};
use floe_store::{Item, Number, Set, Value, ValueType};

/// How values are written that plain JSON cannot express: sets, bytes, numbers that a float does not hold exactly, and maps
/// that look like a value with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inexpressible {
    /// Sets as arrays, bytes as base 64 text, numbers with all digits.
    Readable,
    /// As in DynamoDB JSON, with the type: `{"SS":["a"]}`. Read back as plain JSON, they are rejected as ambiguous.
    Typed,
}

use Inexpressible::{Readable, Typed};

/// The cell of a value: strings unchanged, everything else as JSON.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::S(text) => text.as_str().to_owned(),
        value => text(|w| write_value(w, value, Readable)),
    }
}

/// The cell of an item.
pub(crate) fn item_cell(item: &Item) -> String {
    text(|w| write_item(w, item, Readable))
}

/// Writes an item as plain JSON.
pub(crate) fn write_plain_item(w: &mut Writer, item: &Item) {
    write_item(w, item, Typed);
}

fn text(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::with_capacity(64);
    write(&mut writer);
    writer.into_text()
}

fn write_item(w: &mut Writer, item: &Item, form: Inexpressible) {
    w.object(|w| {
        for (name, value) in item.iter() {
            write_value(w.name(name), value, form);
        }
    });
}

fn write_value(w: &mut Writer, value: &Value, form: Inexpressible) {
    match value {
        Value::S(text) => w.string(text),
        Value::N(number) if form == Readable || is_float(*number) => w.number(number),
        Value::N(number) => w.object(|w| w.name("N").decimal(*number)),
        Value::Bool(flag) => w.bool(*flag),
        Value::Null => w.null(),
        Value::M(item) if form == Typed && is_typed(item) => {
            write_typed(w, "M", form, |w| json::write_item(w, item));
        }
        Value::M(item) => write_item(w, item, form),
        Value::L(values) => w.array(|w| {
            values.iter().for_each(|value| write_value(w, value, form));
        }),
        Value::B(bytes) => write_typed(w, "B", form, |w| w.base64(bytes)),
        Value::Ss(set) => write_typed(w, "SS", form, |w| {
            write_set(w, set, |w, text| w.string(text));
        }),
        Value::Ns(set) => write_typed(w, "NS", form, |w| {
            write_set(w, set, |w, number| match form {
                Readable => w.number(number),
                Typed => w.decimal(*number),
            });
        }),
        Value::Bs(set) => write_typed(w, "BS", form, |w| {
            write_set(w, set, |w, bytes| w.base64(bytes));
        }),
    }
}

/// Writes a value with its type, unless it is only read by people.
fn write_typed(
    w: &mut Writer,
    type_name: &str,
    form: Inexpressible,
    write: impl FnOnce(&mut Writer),
) {
    match form {
        Readable => write(w),
        Typed => w.object(|w| write(w.name(type_name))),
    }
}

fn write_set<T: Ord>(w: &mut Writer, set: &Set<T>, write: impl Fn(&mut Writer, &T)) {
    w.array(|w| set.iter().for_each(|element| write(w, element)));
}

/// Whether a map has the form of a value in DynamoDB JSON: its only name is a type.
fn is_typed(item: &Item) -> bool {
    let mut names = item.iter().map(|(name, _)| name.as_str());
    let (first, second) = (names.next(), names.next());
    second.is_none() && first.is_some_and(|name| ValueType::from_name(name).is_some())
}

/// Whether a reader that keeps numbers as floats, as most JSON readers do, gets exactly this number.
fn is_float(number: Number) -> bool {
    Number::try_from(number.to_f64()) == Ok(number)
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

    #[test]
    fn plain_items_keep_values_that_json_cannot_express_typed() {
        let texts = Set::new(["x".to_owned(), "y".to_owned()]).unwrap();
        let numbers = Set::new([Number::from(2), Number::from(1)]).unwrap();
        for (value, printed) in [
            (Value::from("a"), r#""a""#),
            (Value::from(7), "7"),
            (Value::N("0.1".parse().unwrap()), "0.1"),
            (Value::N("-12.5".parse().unwrap()), "-12.5"),
            (Value::from(1_u64 << 53), "9007199254740992"),
            (
                Value::from((1_u64 << 53) + 1),
                r#"{"N":"9007199254740993"}"#,
            ),
            (
                Value::N("0.12345678901234567890".parse().unwrap()),
                r#"{"N":"0.1234567890123456789"}"#,
            ),
            (Value::Null, "null"),
            (Value::from(vec![1_u8]), r#"{"B":"AQ=="}"#),
            (Value::from(texts), r#"{"SS":["x","y"]}"#),
            (Value::from(numbers), r#"{"NS":["1","2"]}"#),
            (
                Value::L(vec![Value::from(vec![1_u8]), Value::from(1)]),
                r#"[{"B":"AQ=="},1]"#,
            ),
            (Value::M(Item::new().with("size", 1)), r#"{"size":1}"#),
            (
                Value::M(Item::new().with("M", 3)),
                r#"{"M":{"M":{"N":"3"}}}"#,
            ),
        ] {
            let item = Item::new().with("v", value);
            let mut writer = Writer::default();
            write_plain_item(&mut writer, &item);
            assert_eq!(writer.into_text(), format!("{{\"v\":{printed}}}"));
        }
    }
}
