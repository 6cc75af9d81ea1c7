//! The bodies of answers: objects, and items whose sets are listed as DynamoDB does.

use floe_store::item::{Container, ItemVisitor, Scalar};
use floe_store::json::{ItemWriter, Writer};
use floe_store::{Item, Number};

use super::java::sort_as_set;

/// An object of these members, in a buffer that begins with room for so many bytes.
pub(crate) fn object(capacity: usize, members: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::with_capacity(capacity);
    writer.object(members);
    writer.into_bytes()
}

/// A member that is text, if there is one.
pub(crate) fn write_text(w: &mut Writer, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        w.name(name).string(text);
    }
}

/// A member that is a list, of elements that are each written so.
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

/// An item with its sets of numbers in the order of Java's hash sets, as Scan, TransactGetItems, the reasons of a
/// cancelled transaction and change records have them.
pub fn write_item_hashed(w: &mut Writer, item: &Item) {
    let mut visitor = Hashed {
        attributes: ItemWriter(w),
        numbers: Vec::new(),
    };
    visitor.attributes.0.begin_object();
    item.visit(&mut visitor);
    w.end_object();
}

/// As [`ItemWriter`], but keeps the elements of a set of numbers back until all are there.
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
    fn sets_of_numbers_can_come_in_the_order_of_java() {
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
