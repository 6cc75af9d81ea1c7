//! Writes values, items and what answers have in common.

use std::collections::BTreeMap;

use floe_store::json::{Writer, write_item};
use floe_store::op::ItemCollectionMetrics;
use floe_store::{ConsumedCapacity, Item, Units};

use super::body::write_list;
use super::parameter::GivenNames;

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

/// The member `ConsumedCapacity` of an answer about one table, if it was asked for.
pub(crate) fn write_consumed(w: &mut Writer, consumed: Option<&ConsumedCapacity>) {
    if let Some(consumed) = consumed {
        write_capacity(w.name("ConsumedCapacity"), consumed, Split::Total);
    }
}

/// The member `ConsumedCapacity` of an answer about several tables, if it was asked for.
pub(crate) fn write_consumed_list(w: &mut Writer, consumed: &[ConsumedCapacity], split: Split) {
    if !consumed.is_empty() {
        let write = |w: &mut Writer, table: &_| write_capacity(w, table, split);
        write_list(w, "ConsumedCapacity", consumed, write);
    }
}

/// How the units of an operation are listed.
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

/// The member `ItemCollectionMetrics` of an answer about several tables, if there is any.
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
            write_list(w, names.given(table), metrics, write_collection);
        }
    });
}
