//! Builds response bodies: objects, and items with sets in DynamoDB's order.

use floe_store::item::{Container, ItemVisitor, Scalar};
use floe_store::json::{ItemWriter, Writer};
use floe_store::{Item, Number};

use super::java::sort_as_set;

/// Writes an object with these members, into a buffer with this initial capacity.
pub(crate) fn object(capacity: usize, members: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::with_capacity(capacity);
    writer.object(members);
    writer.into_bytes()
}

/// Writes a text member, if there is a value.
pub(crate) fn write_text(w: &mut Writer, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        w.name(name).string(text);
    }
}

/// Writes a list member, each element with the given function.
pub(crate) fn write_list<T>(
    w: &mut Writer,
    name: &str,
    elements: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Writer, T),
) {
    let elements = elements.into_iter();
    w.name(name)
        .array(|w| elements.for_each(|element| write(w, element)));
}

/// Writes an item with its number sets in the order of Java's hash sets, as in Scan, TransactGetItems, the reasons of a
/// canceled transaction, and change records.
pub fn write_item_hashed(w: &mut Writer, item: &Item) {
    let mut visitor = Hashed {
        attributes: ItemWriter(w),
        numbers: Vec::new(),
    };
    visitor.attributes.0.begin_object();
    item.visit(&mut visitor);
    w.end_object();
}

/// Like [`ItemWriter`], but holds back the elements of a number set until it is complete.
struct Hashed<'w> {
    attributes: ItemWriter<'w>,
    numbers: Vec<Number>,
}

impl ItemVisitor for Hashed<'_> {
    fn name(&mut self, name: &str) {
        self.attributes.name(name);
    }

    fn scalar(&mut self, scalar: Scalar<'_>) {
        self.attributes.scalar(scalar);
    }

    fn begin(&mut self, container: Container) {
        self.attributes.begin(container);
    }

    fn element(&mut self, element: Scalar<'_>) {
        match element {
            Scalar::N(number) => self.numbers.push(number),
            element => self.attributes.element(element),
        }
    }

    fn end(&mut self, container: Container) {
        sort_as_set(&mut self.numbers);
        for number in self.numbers.drain(..) {
            self.attributes.element(Scalar::N(number));
        }
        self.attributes.end(container);
    }
}

#[cfg(test)]
mod tests {
    use floe_store::{Set, Value};

    use super::*;

    #[test]
    fn number_sets_are_written_in_java_order() {
        let set = |numbers: [i64; 4]| Value::Ns(Set::new(numbers.map(Number::from)).unwrap());
        let item = Item::new()
            .with("a", set([100, -1, 9, 25]))
            .with("b", vec![set([1, 2, 3, 20])]);
        let mut writer = Writer::default();
        write_item_hashed(&mut writer, &item);
        assert_eq!(
            String::from_utf8(writer.into_bytes()).unwrap(),
            r#"{"a":{"NS":["9","25","100","-1"]},"b":{"L":[{"NS":["3","20","2","1"]}]}}"#
        );
    }
}
