//! Reads of items by key, and of pages of tables and indexes.

use std::collections::BTreeMap;

use floe_store::capacity::{ReturnConsumedCapacity, read_cost, read_units};
use floe_store::limits::{BATCH_GET_BYTES_MAX, PAGE_BYTES_MAX};
use floe_store::op::*;
use floe_store::size::item_size;
use floe_store::table::IndexKind;
use floe_store::{ConsumedCapacity, Item, Result, Units};

use super::key::Key;
use super::state::{State, Table};
use crate::key_range;

/// The costs of an operation, one entry for each table.
#[derive(Default)]
pub(super) struct Costs(BTreeMap<String, ConsumedCapacity>);

impl Costs {
    pub(super) fn add(&mut self, cost: ConsumedCapacity) {
        match self.0.get_mut(&cost.table_name) {
            Some(sum) => sum.merge(&cost),
            None => drop(self.0.insert(cost.table_name.clone(), cost)),
        }
    }

    /// The costs, if they were requested.
    pub(super) fn if_requested(self, detail: ReturnConsumedCapacity) -> Vec<ConsumedCapacity> {
        match detail {
            ReturnConsumedCapacity::None => Vec::new(),
            _ => self.0.into_values().collect(),
        }
    }
}

/// The cost, if it was requested.
pub(super) fn if_requested(
    cost: ConsumedCapacity,
    detail: ReturnConsumedCapacity,
) -> Option<ConsumedCapacity> {
    (detail != ReturnConsumedCapacity::None).then_some(cost)
}

impl State {
    pub(super) fn get_item(&mut self, input: &GetItem) -> Result<GetItemOutput> {
        input.validate()?;
        let table = self.table(&input.table_name)?;
        input.check(&table.definition)?;
        let item = table.get(&input.key).cloned();
        let bytes = item.as_ref().map_or(0, item_size);
        let detail = input.return_capacity;
        let cost = read_cost(&input.table_name, [bytes], input.consistency(), detail);
        Ok(GetItemOutput {
            item: item.map(|item| input.response_item(item)),
            consumed: if_requested(cost, detail),
        })
    }

    pub(super) fn batch_get_item(&mut self, input: &BatchGetItem) -> Result<BatchGetItemOutput> {
        input.validate()?;
        input.check(|name| self.definition(name))?;
        let detail = input.return_capacity;
        let mut output = BatchGetItemOutput::default();
        let mut costs = Costs::default();
        let mut room = BATCH_GET_BYTES_MAX;
        for (name, request) in &input.requests {
            let table = self.table(name)?;
            let mut found = Vec::new();
            let mut left = Vec::new();
            for key in &request.keys {
                let item = table.get(key).cloned();
                let bytes = item.as_ref().map_or(0, item_size);
                if bytes > room {
                    left.push(key.clone());
                    continue;
                }
                room -= bytes;
                costs.add(read_cost(name, [bytes], request.consistency(), detail));
                found.extend(item.map(|item| request.response_item(item)));
            }
            output.items.insert(name.clone(), found);
            if !left.is_empty() {
                let rest = KeysAndAttributes {
                    keys: left,
                    ..request.clone()
                };
                output.unprocessed.insert(name.clone(), rest);
            }
        }
        output.consumed = costs.if_requested(detail);
        Ok(output)
    }

    pub(super) fn transact_get_items(
        &mut self,
        input: &TransactGetItems,
    ) -> Result<TransactGetItemsOutput> {
        input.validate()?;
        input.check(|name| self.definition(name))?;
        let detail = input.return_capacity;
        let mut items = Vec::new();
        let mut costs = Costs::default();
        let mut total = 0;
        for get in &input.gets {
            let item = self.table(&get.table_name)?.get(&get.key).cloned();
            let bytes = item.as_ref().map_or(0, item_size);
            total += bytes;
            let consistency = floe_store::capacity::Consistency::Transactional;
            costs.add(read_cost(&get.table_name, [bytes], consistency, detail));
            items.push(item.and_then(|item| get.response_item(item)));
        }
        TransactGetItems::check_bytes(total)?;
        Ok(TransactGetItemsOutput {
            items,
            consumed: costs.if_requested(detail),
        })
    }

    pub(super) fn query(&mut self, input: &Query) -> Result<Page> {
        input.validate()?;
        let table = self.table(&input.table_name)?;
        let plan = input.plan(&table.definition)?;
        let entries = Entries::ordered(table, &plan);
        Ok(entries.page(&plan, input.return_capacity))
    }

    pub(super) fn scan(&mut self, input: &Scan) -> Result<Page> {
        input.validate()?;
        let table = self.table(&input.table_name)?;
        let plan = input.plan(&table.definition)?;
        let mut entries = Entries::ordered(table, &plan);
        if let Some(segment) = input.segment {
            let inside = |entry: &Item| segment_of(&plan, entry, segment.total) == segment.index;
            if plan.start_key.is_some_and(|key| !inside(key)) {
                return Err(segment.start_key_in_other_segment());
            }
            entries.0.retain(|(entry, _)| inside(entry));
        }
        Ok(entries.page(&plan, input.return_capacity))
    }

    /// A page of a scan in the given order. Entries that are not in the order belong to another segment.
    pub(super) fn scan_in_order(&self, input: &Scan, order: &[Item]) -> Result<Page> {
        input.validate()?;
        let table = self.table(&input.table_name)?;
        let mut plan = input.plan(&table.definition)?;
        let entries = Entries::all(table, &plan).0;
        let by_key: BTreeMap<String, (Item, &Item)> = entries
            .into_iter()
            .map(|(entry, item)| (format!("{:?}", plan.last_key(&entry)), (entry, item)))
            .collect();
        let start = plan.start_key.take();
        let after = start.and_then(|start| order.iter().position(|key| key == start));
        let ordered = order
            .iter()
            .skip(after.map_or(0, |at| at + 1))
            .filter_map(|key| by_key.get(&format!("{key:?}")).cloned());
        Ok(Entries(ordered.collect()).page(&plan, input.return_capacity))
    }
}

/// Entries of a table or index, each with its item.
struct Entries<'t>(Vec<(Item, &'t Item)>);

impl<'t> Entries<'t> {
    /// The entries of the table or index that match the key condition.
    fn all(table: &'t Table, plan: &ReadPlan<'_>) -> Self {
        let key = &table.definition.key;
        let items = table.items.values();
        let entries = items.filter_map(|item| match plan.index {
            None => Some((item.clone(), item)),
            Some(index) => index.holds(item).then(|| (index.project(key, item), item)),
        });
        let range = plan.range.as_ref();
        let wanted =
            |entry: &Item| range.is_none_or(|range| key_range::contains(plan, range, entry));
        Self(entries.filter(|(entry, _)| wanted(entry)).collect())
    }

    /// As [`all`](Self::all), in the order of the key, forward or backward, after the start key.
    fn ordered(table: &'t Table, plan: &ReadPlan<'_>) -> Self {
        let key = &table.definition.key;
        let position = |entry: &Item| match plan.index {
            None => Key::of(key, entry),
            Some(index) => Key::of_entry(&index.key, key, entry),
        };
        let mut entries = Self::all(table, plan).0;
        entries.sort_by_cached_key(|(entry, _)| position(entry));
        if !plan.forward {
            entries.reverse();
        }
        if let Some(start) = plan.start_key.map(position) {
            entries.retain(|(entry, _)| {
                if plan.forward {
                    position(entry) > start
                } else {
                    position(entry) < start
                }
            });
        }
        Self(entries)
    }

    /// The page that starts with the first entry.
    fn page(&self, plan: &ReadPlan<'_>, detail: ReturnConsumedCapacity) -> Page {
        let mut page = Page::default();
        let mut bytes = 0;
        let mut fetched = Units::ZERO;
        for (entry, item) in &self.0 {
            bytes += item_size(entry);
            page.scanned_count += 1;
            let seen = if plan.fetches {
                (*item).clone()
            } else {
                entry.clone()
            };
            if plan.fetches {
                fetched += read_units(item_size(item), plan.consistency);
            }
            if plan.filter.is_none_or(|filter| filter.evaluate(&seen)) {
                page.count += 1;
                page.items.extend(plan.response_item(seen));
            }
            if bytes >= PAGE_BYTES_MAX || plan.limit == Some(page.scanned_count) {
                page.last_key = Some(plan.last_key(entry));
                break;
            }
        }
        page.consumed = if_requested(cost(plan, bytes, fetched, detail), detail);
        page
    }
}

/// The cost of a page: the bytes of all entries together, and each fetched item separately.
fn cost(
    plan: &ReadPlan<'_>,
    bytes: usize,
    fetched: Units,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    let mut cost = ConsumedCapacity::new(&plan.table.name, detail);
    let units = read_units(bytes, plan.consistency);
    cost.read = units + fetched;
    cost.table = fetched;
    match plan.index {
        None => cost.table += units,
        Some(index) => {
            let shares = match index.kind {
                IndexKind::Global => &mut cost.global_indexes,
                IndexKind::Local => &mut cost.local_indexes,
            };
            shares.insert(index.name.clone(), units);
        }
    }
    cost
}

/// The segment of an entry: the sum of the bytes of its partition key, which is spread well enough.
fn segment_of(plan: &ReadPlan<'_>, entry: &Item, total: usize) -> usize {
    let partition = plan.key().partition.iter().map(|a| entry.get(&a.name));
    let text = format!("{:?}", partition.collect::<Vec<_>>());
    let sum: usize = text.bytes().map(usize::from).sum();
    sum.checked_rem(total).unwrap_or(0)
}
