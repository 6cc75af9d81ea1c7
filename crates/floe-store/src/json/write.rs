//! Writes items as JSON.

use super::writer::Writer;
use crate::item::{Container, Item, ItemVisitor, Scalar};

/// Writes an item as an object of its attributes.
pub fn write_item(w: &mut Writer, item: &Item) {
    w.begin_object();
    item.visit(&mut ItemWriter(w));
    w.end_object();
}

/// Writes the visited parts of an item: each value as an object with its type.
#[derive(Debug)]
pub struct ItemWriter<'w>(pub &'w mut Writer);

impl ItemVisitor for ItemWriter<'_> {
    fn name(&mut self, name: &str) {
        self.0.name(name);
    }

    fn scalar(&mut self, scalar: Scalar<'_>) {
        let Self(w) = self;
        w.begin_object();
        match scalar {
            Scalar::S(text) => w.key("\"S\":").string(text),
            Scalar::N(number) => w.key("\"N\":").decimal(number),
            Scalar::B(bytes) => w.key("\"B\":").base64(bytes),
            Scalar::Bool(flag) => w.key("\"BOOL\":").bool(flag),
            Scalar::Null => w.key("\"NULL\":").bool(true),
        }
        w.end_object();
    }

    fn begin(&mut self, container: Container) {
        let Self(w) = self;
        w.begin_object();
        match container {
            Container::M => w.key("\"M\":").begin_object(),
            Container::L => w.key("\"L\":").begin_array(),
            Container::Ss => w.key("\"SS\":").begin_array(),
            Container::Ns => w.key("\"NS\":").begin_array(),
            Container::Bs => w.key("\"BS\":").begin_array(),
        }
    }

    fn element(&mut self, element: Scalar<'_>) {
        match element {
            Scalar::S(text) => self.0.string(text),
            Scalar::N(number) => self.0.decimal(number),
            Scalar::B(bytes) => self.0.base64(bytes),
            Scalar::Bool(_) | Scalar::Null => {}
        }
    }

    fn end(&mut self, container: Container) {
        match container {
            Container::M => self.0.end_object(),
            _ => self.0.end_array(),
        }
        self.0.end_object();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Number, Set, Value};

    #[test]
    fn every_type_of_value_is_written() {
        let item = Item::new()
            .with("a", "x\"y")
            .with("b", "1.50".parse::<Number>().unwrap())
            .with("c", vec![1_u8, 2, 3])
            .with("d", vec![Value::from(true), Value::Null, Value::L(vec![])])
            .with("e", Item::new().with("f", Item::new()).with("g", -1))
            .with("h", Set::new(["p".to_owned(), "q".to_owned()]).unwrap())
            .with("i", Set::new([Number::from(1), Number::from(-2)]).unwrap())
            .with("j", Set::new([vec![255_u8], vec![]]).unwrap());
        let expected = concat!(
            r#"{"a":{"S":"x\"y"},"b":{"N":"1.5"},"c":{"B":"AQID"},"d":{"L":[{"BOOL":true},{"NULL":true},{"L":[]}]},"#,
            r#""e":{"M":{"f":{"M":{}},"g":{"N":"-1"}}},"h":{"SS":["p","q"]},"i":{"NS":["-2","1"]},"j":{"BS":["","/w=="]}}"#
        );
        let mut packed = Vec::new();
        item.pack_into(&mut packed);
        for item in [Item::from_packed(&packed).unwrap(), item] {
            let mut writer = Writer::default();
            write_item(&mut writer, &item);
            assert_eq!(writer.into_text(), expected);
        }
    }
}
