//! Consumed capacity, and sizes of item collections.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::ItemCollectionMetrics;
use floe_store::{ConsumedCapacity, Result, Units};

use super::by_table;
use super::value::item;
use crate::names::Names;

/// Whether a request reads or writes. The consumed capacity does not always distinguish them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    Read,
    Write,
}

/// Converts the requested detail; `None` if consumed capacity is not requested.
pub(super) fn requested(detail: ReturnConsumedCapacity) -> Option<types::ReturnConsumedCapacity> {
    detail.is_wanted().then(|| detail.as_str().into())
}

/// Converts the request for item collection sizes.
pub(super) fn requested_collections(wanted: bool) -> Option<types::ReturnItemCollectionMetrics> {
    wanted.then_some(types::ReturnItemCollectionMetrics::Size)
}

/// Converts the capacity consumed on one table.
pub(super) fn consumed(
    response: types::ConsumedCapacity,
    kind: AccessKind,
    detail: ReturnConsumedCapacity,
    names: &Names,
) -> ConsumedCapacity {
    let table_name = names.remove_prefix(response.table_name.unwrap_or_default());
    let mut consumed = ConsumedCapacity::new(table_name, detail);
    let total = units(response.capacity_units);
    consumed.read = units(response.read_capacity_units);
    consumed.write = units(response.write_capacity_units);
    // Only transactions distinguish reads and writes.
    if consumed.total() == Units::ZERO {
        match kind {
            AccessKind::Read => consumed.read = total,
            AccessKind::Write => consumed.write = total,
        }
    }
    consumed.table = response.table.as_ref().map(share).unwrap_or_default();
    consumed.local_indexes = shares(response.local_secondary_indexes);
    consumed.global_indexes = shares(response.global_secondary_indexes);
    consumed
}

fn shares(response: Option<HashMap<String, types::Capacity>>) -> BTreeMap<String, Units> {
    let shares = response.unwrap_or_default().into_iter();
    shares.map(|(index, one)| (index, share(&one))).collect()
}

fn share(capacity: &types::Capacity) -> Units {
    let apart = units(capacity.read_capacity_units) + units(capacity.write_capacity_units);
    match capacity.capacity_units {
        Some(both) => units(Some(both)),
        None => apart,
    }
}

/// Converts units, which are multiples of one half.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are small and not negative"
)]
fn units(number: Option<f64>) -> Units {
    Units::halves((number.unwrap_or_default() * 2.0).round() as u64)
}

/// Converts the size of an item collection.
pub(super) fn collection(response: types::ItemCollectionMetrics) -> Result<ItemCollectionMetrics> {
    let bounds = response.size_estimate_range_gb.unwrap_or_default();
    let bound = |at: usize| bounds.get(at).copied().unwrap_or_default();
    Ok(ItemCollectionMetrics {
        key: item(response.item_collection_key.unwrap_or_default())?,
        size_estimate_gb: (bound(0), bound(1)),
    })
}

/// Converts the sizes of item collections by table.
pub(super) fn collections(
    response: Option<HashMap<String, Vec<types::ItemCollectionMetrics>>>,
    names: &Names,
) -> Result<BTreeMap<String, Vec<ItemCollectionMetrics>>> {
    by_table(response, names, |sizes| {
        sizes.into_iter().map(collection).collect()
    })
}
