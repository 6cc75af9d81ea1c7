//! Writes items and other common parts of responses.

use std::collections::BTreeMap;

use floe_store::json::{Writer, write_item};
use floe_store::op::ItemCollectionMetrics;
use floe_store::{ConsumedCapacity, Item, Units};

use super::body::write_list;
use super::parameter::RequestTableNames;

/// Writes items as an array.
pub fn write_items(w: &mut Writer, items: &[Item]) {
    w.array(|w| items.iter().for_each(|item| write_item(w, item)));
}

/// Estimates the response size of items, so that the buffer need not grow: their stored size plus type, brackets and
/// quotes of each attribute.
pub(crate) fn estimated_bytes<'a>(items: impl IntoIterator<Item = &'a Item>) -> usize {
    let estimate = |item: &Item| match item.packed_bytes() {
        Some(bytes) => bytes + bytes / 8 + item.len() * 16,
        None => item.len() * 64,
    };
    items.into_iter().map(estimate).sum()
}

/// Writes `ConsumedCapacity` of a response about one table, if requested.
pub(crate) fn write_consumed(w: &mut Writer, consumed: Option<&ConsumedCapacity>) {
    if let Some(consumed) = consumed {
        write_capacity(w.name("ConsumedCapacity"), consumed, ListedUnits::Total);
    }
}

/// Writes `ConsumedCapacity` of a response about several tables, if requested.
pub(crate) fn write_consumed_list(
    w: &mut Writer,
    consumed: &[ConsumedCapacity],
    listed: ListedUnits,
) {
    if !consumed.is_empty() {
        let write = |w: &mut Writer, table: &_| write_capacity(w, table, listed);
        write_list(w, "ConsumedCapacity", consumed, write);
    }
}

/// Which capacity units are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedUnits {
    /// The total only.
    Total,
    /// The total and the read units, as in TransactGetItems.
    Read,
    /// The total and the write units, as in TransactWriteItems.
    Write,
}

fn write_capacity(w: &mut Writer, consumed: &ConsumedCapacity, listed: ListedUnits) {
    w.object(|w| {
        w.name("TableName").string(&consumed.table_name);
        write_units(w, consumed.total(), listed);
        if !consumed.by_index {
            return;
        }
        w.name("Table")
            .object(|w| write_units(w, consumed.table, listed));
        for (name, shares) in [
            ("LocalSecondaryIndexes", &consumed.local_indexes),
            ("GlobalSecondaryIndexes", &consumed.global_indexes),
        ] {
            if !shares.is_empty() {
                w.name(name).object(|w| {
                    for (index, units) in shares {
                        w.name(index).object(|w| write_units(w, *units, listed));
                    }
                });
            }
        }
    });
}

fn write_units(w: &mut Writer, units: Units, listed: ListedUnits) {
    // DynamoDB always writes a decimal place, as the debug format of a float does.
    let number = format_args!("{:?}", units.as_f64());
    w.name("CapacityUnits").number(number);
    match listed {
        ListedUnits::Total => {}
        ListedUnits::Read => w.name("ReadCapacityUnits").number(number),
        ListedUnits::Write => w.name("WriteCapacityUnits").number(number),
    }
}

/// Writes the size of an item collection.
pub(crate) fn write_collection(w: &mut Writer, metrics: &ItemCollectionMetrics) {
    w.object(|w| {
        write_item(w.name("ItemCollectionKey"), &metrics.key);
        w.name("SizeEstimateRangeGB").array(|w| {
            w.number(format_args!("{:?}", metrics.size_estimate_gb.0));
            w.number(format_args!("{:?}", metrics.size_estimate_gb.1));
        });
    });
}

/// Writes `ItemCollectionMetrics` of a response about several tables, if there are any.
pub(crate) fn write_collections(
    w: &mut Writer,
    collections: &BTreeMap<String, Vec<ItemCollectionMetrics>>,
    names: &RequestTableNames,
) {
    if collections.is_empty() {
        return;
    }
    w.name("ItemCollectionMetrics").object(|w| {
        for (table, metrics) in collections {
            write_list(w, names.name_in_request(table), metrics, write_collection);
        }
    });
}
