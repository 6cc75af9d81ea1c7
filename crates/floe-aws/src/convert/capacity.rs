//! What requests cost, and how large item collections are.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::ItemCollectionMetrics;
use floe_store::{ConsumedCapacity, Result, Units};

use super::by_table;
use super::value::item;
use crate::names::Names;

/// Whether a request reads or writes, which the store does not always tell with the cost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// How a request asks for its cost: not at all, if it need not be told.
pub(super) fn wanted(detail: ReturnConsumedCapacity) -> Option<types::ReturnConsumedCapacity> {
    detail.is_wanted().then(|| detail.as_str().into())
}

/// How a request asks for the sizes of item collections.
pub(super) fn wanted_collections(wanted: bool) -> Option<types::ReturnItemCollectionMetrics> {
    wanted.then_some(types::ReturnItemCollectionMetrics::Size)
}

/// What a request cost on one table.
pub(super) fn consumed(
    answer: types::ConsumedCapacity,
    kind: Kind,
    detail: ReturnConsumedCapacity,
    names: &Names,
) -> ConsumedCapacity {
    let table_name = names.own(answer.table_name.unwrap_or_default());
    let mut consumed = ConsumedCapacity::new(table_name, detail);
    let total = units(answer.capacity_units);
    consumed.read = units(answer.read_capacity_units);
    consumed.write = units(answer.write_capacity_units);
    // Only transactions tell reads and writes apart.
    if consumed.total() == Units::ZERO {
        match kind {
            Kind::Read => consumed.read = total,
            Kind::Write => consumed.write = total,
        }
    }
    consumed.table = answer.table.as_ref().map(share).unwrap_or_default();
    consumed.local_indexes = shares(answer.local_secondary_indexes);
    consumed.global_indexes = shares(answer.global_secondary_indexes);
    consumed
}

fn shares(answer: Option<HashMap<String, types::Capacity>>) -> BTreeMap<String, Units> {
    let shares = answer.unwrap_or_default().into_iter();
    shares.map(|(index, one)| (index, share(&one))).collect()
}

fn share(capacity: &types::Capacity) -> Units {
    let apart = units(capacity.read_capacity_units) + units(capacity.write_capacity_units);
    match capacity.capacity_units {
        Some(both) => units(Some(both)),
        None => apart,
    }
}

/// Units come in halves.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are small and not negative"
)]
fn units(number: Option<f64>) -> Units {
    Units::halves((number.unwrap_or_default() * 2.0).round() as u64)
}

/// The size of an item collection.
pub(super) fn collection(answer: types::ItemCollectionMetrics) -> Result<ItemCollectionMetrics> {
    let bounds = answer.size_estimate_range_gb.unwrap_or_default();
    let bound = |at: usize| bounds.get(at).copied().unwrap_or_default();
    Ok(ItemCollectionMetrics {
        key: item(answer.item_collection_key.unwrap_or_default())?,
        size_estimate_gb: (bound(0), bound(1)),
    })
}

/// The sizes of item collections, table by table.
pub(super) fn collections(
    answer: Option<HashMap<String, Vec<types::ItemCollectionMetrics>>>,
    names: &Names,
) -> Result<BTreeMap<String, Vec<ItemCollectionMetrics>>> {
    by_table(answer, names, |sizes| {
        sizes.into_iter().map(collection).collect()
    })
}
