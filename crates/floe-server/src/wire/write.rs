//! Writes values, items and what answers have in common.

use std::collections::BTreeMap;

use floe_store::item::{Container, ItemVisitor, Scalar};
use floe_store::op::ItemCollectionMetrics;
use floe_store::{ConsumedCapacity, Item, Number, Timestamp, Units};

use super::java::sort_as_set;
use super::json::Writer;
use super::parameter::GivenNames;

/// An item, as an object of its attributes.
pub fn write_item(w: &mut Writer, item: &Item) {
    w.object(|w| item.visit(&mut Attributes(w)));
}

/// Items, as an array.
pub fn write_items(w: &mut Writer, items: &[Item]) {
    w.array(|w| items.iter().for_each(|item| write_item(w, item)));
}

/// About the bytes that items take, so that the buffer of an answer need not grow: what they take where they are
/// stored, and for each attribute the type, the brackets and the quotes.
pub(crate) fn room<'a>(items: impl IntoIterator<Item = &'a Item>) -> usize {
    let room = |item: &Item| match item.packed_bytes() {
        Some(bytes) => bytes + bytes / 8 + item.len() * 16,
        None => item.len() * 64,
    };
    items.into_iter().map(room).sum()
}

/// An item with its sets of numbers in the order of Java's hash sets, as Scan, TransactGetItems, the reasons of a
/// cancelled transaction and change records have them.
pub fn write_item_hashed(w: &mut Writer, item: &Item) {
    let mut visitor = Hashed {
        attributes: Attributes(w),
        numbers: Vec::new(),
    };
    visitor.attributes.0.begin_object();
    item.visit(&mut visitor);
    w.end_object();
}

/// Writes what it is told of an item: each value as an object of its type.
struct Attributes<'w>(&'w mut Writer);

impl ItemVisitor for Attributes<'_> {
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

/// As [`Attributes`], but keeps the elements of a set of numbers back until all are there.
struct Hashed<'w> {
    attributes: Attributes<'w>,
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

/// The member `ConsumedCapacity` of an answer about one table, if it was asked for.
pub(crate) fn write_consumed(w: &mut Writer, consumed: Option<&ConsumedCapacity>) {
    if let Some(consumed) = consumed {
        write_capacity(w.name("ConsumedCapacity"), consumed, Split::Total);
    }
}

/// The member `ConsumedCapacity` of an answer about several tables, if it was asked for.
pub(crate) fn write_consumed_list(w: &mut Writer, consumed: &[ConsumedCapacity], split: Split) {
    if !consumed.is_empty() {
        w.name("ConsumedCapacity").array(|w| {
            for table in consumed {
                write_capacity(w, table, split);
            }
        });
    }
}

/// How the units of an operation are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// All together.
    Total,
    /// And those of reading apart, as TransactGetItems does.
    Read,
    /// And those of writing apart, as TransactWriteItems does.
    Write,
}

fn write_capacity(w: &mut Writer, consumed: &ConsumedCapacity, split: Split) {
    w.object(|w| {
        w.name("TableName").string(&consumed.table_name);
        write_units(w, consumed.total(), split);
        if !consumed.by_index {
            return;
        }
        w.name("Table")
            .object(|w| write_units(w, consumed.table, split));
        for (name, shares) in [
            ("LocalSecondaryIndexes", &consumed.local_indexes),
            ("GlobalSecondaryIndexes", &consumed.global_indexes),
        ] {
            if !shares.is_empty() {
                w.name(name).object(|w| {
                    for (index, units) in shares {
                        w.name(index).object(|w| write_units(w, *units, split));
                    }
                });
            }
        }
    });
}

fn write_units(w: &mut Writer, units: Units, split: Split) {
    // DynamoDB writes units with a decimal, which the debug form of a float has.
    let number = format_args!("{:?}", units.as_f64());
    w.name("CapacityUnits").number(number);
    match split {
        Split::Total => {}
        Split::Read => w.name("ReadCapacityUnits").number(number),
        Split::Write => w.name("WriteCapacityUnits").number(number),
    }
}

/// The size of an item collection.
pub(crate) fn write_collection(w: &mut Writer, metrics: &ItemCollectionMetrics) {
    w.object(|w| {
        write_item(w.name("ItemCollectionKey"), &metrics.key);
        w.name("SizeEstimateRangeGB").array(|w| {
            w.number(format_args!("{:?}", metrics.size_estimate_gb.0));
            w.number(format_args!("{:?}", metrics.size_estimate_gb.1));
        });
    });
}

/// The member `ItemCollectionMetrics` of an answer about several tables, if there is something to tell.
pub(crate) fn write_collections(
    w: &mut Writer,
    collections: &BTreeMap<String, Vec<ItemCollectionMetrics>>,
    names: &GivenNames,
) {
    if collections.is_empty() {
        return;
    }
    w.name("ItemCollectionMetrics").object(|w| {
        for (table, metrics) in collections {
            w.name(names.given(table)).array(|w| {
                for metrics in metrics {
                    write_collection(w, metrics);
                }
            });
        }
    });
}

/// A moment, in seconds since 1970 with decimals if it has any.
pub(crate) fn write_moment(w: &mut Writer, moment: Timestamp) {
    let (secs, millis) = (moment.as_secs(), moment.as_millis() % 1000);
    match millis {
        0 => w.number(secs),
        _ => w.number(format_args!("{secs}.{millis:03}")),
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

    #[test]
    fn every_type_of_value_is_written_in_its_own_form() {
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
            assert_eq!(String::from_utf8(writer.into_bytes()).unwrap(), expected);
        }
    }
}
