//! Stale results of reads.
//!
//! The engine answers a read with the current state; items whose last change is too recent for this reader are then
//! replaced by earlier versions. A page is read without filter and projection, the earlier entries are put at their
//! positions, and then filter, projection and limit are applied as the engine does.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, GetItem, GetItemOutput, Meter, Page, Query, ReadPlan, Scan,
    Select,
};
use floe_store::size::item_size;
use floe_store::table::{IndexKind, KeyAttribute};
use floe_store::{Item, Result, TableDef};

use super::FaultEngine;
use super::control::Attempt;
use super::kind::FaultKind;
use super::random;
use super::versions::OutdatedItem;
use crate::key_range;

/// The items of which a reader sees an earlier version, by key, and the fault that causes it.
struct OutdatedItems {
    kind: FaultKind,
    items: HashMap<Item, OutdatedItem>,
}

impl FaultEngine {
    pub(super) async fn stale_get(
        &self,
        attempt: &Attempt<'_>,
        input: GetItem,
    ) -> Result<GetItemOutput> {
        let keys = [input.key.clone()];
        let outdated = if input.consistent {
            Vec::new()
        } else {
            self.outdated_items(attempt, &input.table_name, Some(&keys))
        };
        let Some(old) = outdated.into_iter().next() else {
            return self.inner.get_item(input).await;
        };
        let mut output = self.inner.get_item(input.clone()).await?;
        attempt.record_fault(FaultKind::StaleRead, "items=1".to_owned());
        output.item = old.seen.map(|item| input.response_item(item));
        Ok(output)
    }

    pub(super) async fn stale_batch_get(
        &self,
        attempt: &Attempt<'_>,
        mut input: BatchGetItem,
    ) -> Result<BatchGetItemOutput> {
        let original = input.requests.clone();
        let mut outdated: BTreeMap<String, Vec<OutdatedItem>> = BTreeMap::new();
        for (table, request) in input.requests.iter_mut().filter(|(_, r)| !r.consistent) {
            let found = self.outdated_items(attempt, table, Some(&request.keys));
            if !found.is_empty() {
                // Read whole items, because their keys are needed to find them.
                request.projection = None;
                outdated.insert(table.clone(), found);
            }
        }
        if outdated.is_empty() {
            return self.inner.batch_get_item(input).await;
        }
        let definitions = self.definitions(&outdated).await;
        let mut output = self.inner.batch_get_item(input).await?;
        let mut changed = 0;
        for (table, outdated) in outdated {
            let definition = definitions.as_ref().and_then(|known| known.get(&table));
            let (Some(definition), Some(request)) = (definition, original.get(&table)) else {
                continue;
            };
            let left = output.unprocessed.get_mut(&table);
            let left = left.map_or(&[][..], |rest| {
                rest.projection.clone_from(&request.projection);
                &rest.keys
            });
            let outdated: Vec<OutdatedItem> = outdated
                .into_iter()
                .filter(|old| !left.contains(&old.key))
                .collect();
            changed += outdated.len();
            let items = output.items.entry(table).or_default();
            let is_old = |item: &Item| {
                let key = definition.key.key_of(item);
                outdated.iter().any(|old| Some(&old.key) == key.as_ref())
            };
            items.retain(|item| !is_old(item));
            items.extend(outdated.iter().filter_map(|old| old.seen.clone()));
            for item in items {
                *item = request.response_item(std::mem::take(item));
            }
        }
        if changed > 0 {
            attempt.record_fault(FaultKind::StaleRead, format!("items={changed}"));
        }
        Ok(output)
    }

    pub(super) async fn stale_query(&self, attempt: &Attempt<'_>, input: Query) -> Result<Page> {
        let index = input.index_name.as_deref();
        let outdated = self
            .outdated_for_read(attempt, &input.table_name, index, input.consistent)
            .await;
        let Some((definition, outdated)) = outdated else {
            return self.inner.query(input).await;
        };
        let Ok(plan) = input.plan(&definition) else {
            return self.inner.query(input).await;
        };
        let mut raw = input.clone();
        (raw.filter, raw.projection, raw.select) = (None, None, whole(&plan));
        let mut builder = PageBuilder::new(&plan, &outdated);
        let mut outdated_in_range = builder.outdated_in_range();
        'pages: loop {
            let page = self.inner.query(raw.clone()).await?;
            for entry in page.items {
                if let Some(old) = builder.outdated_item(&entry) {
                    builder.changed.insert(&old.key);
                    continue;
                }
                while outdated_in_range
                    .front()
                    .is_some_and(|outdated| builder.order(outdated, &entry).is_lt())
                {
                    if outdated_in_range
                        .pop_front()
                        .is_some_and(|entry| !builder.push(entry))
                    {
                        break 'pages;
                    }
                }
                if !builder.push(entry) {
                    break 'pages;
                }
            }
            if page.last_key.is_none() {
                break;
            }
            raw.start_key = page.last_key;
        }
        if builder.page.last_key.is_none() {
            while let Some(entry) = outdated_in_range.pop_front() {
                if !builder.push(entry) {
                    break;
                }
            }
        }
        Ok(builder.finish(attempt, input.return_capacity))
    }

    pub(super) async fn stale_scan(&self, attempt: &Attempt<'_>, input: Scan) -> Result<Page> {
        let index = input.index_name.as_deref();
        let outdated = self
            .outdated_for_read(attempt, &input.table_name, index, input.consistent)
            .await;
        let Some((definition, outdated)) = outdated else {
            return self.inner.scan(input).await;
        };
        let Ok(plan) = input.plan(&definition) else {
            return self.inner.scan(input).await;
        };
        let mut raw = input.clone();
        (raw.filter, raw.projection, raw.select) = (None, None, whole(&plan));
        let mut builder = PageBuilder::new(&plan, &outdated);
        let is_whole = input.start_key.is_none();
        'pages: loop {
            let page = self.inner.scan(raw.clone()).await?;
            for entry in page.items {
                let position = plan.last_key(&entry);
                let shown = match builder.outdated_item(&entry) {
                    None => Some(entry),
                    Some(old) => {
                        builder.changed.insert(&old.key);
                        builder.entry(old.seen.as_ref())
                    }
                };
                if let Some(shown) = shown
                    && !builder.push_at(shown, position)
                {
                    break 'pages;
                }
            }
            if page.last_key.is_none() {
                if is_whole {
                    builder.push_deleted();
                }
                break;
            }
            raw.start_key = page.last_key;
        }
        Ok(builder.finish(attempt, input.return_capacity))
    }

    /// The items of a table or index of which a reader sees an earlier version; `None` if there are none.
    async fn outdated_for_read(
        &self,
        attempt: &Attempt<'_>,
        table: &str,
        index: Option<&str>,
        consistent: bool,
    ) -> Option<(Arc<TableDef>, OutdatedItems)> {
        if consistent || !attempt.faults().keeps_versions() {
            return None;
        }
        let definition = self.definition(table).await?;
        let global = index.filter(|&name| {
            definition
                .index(name)
                .is_some_and(|index| index.kind == IndexKind::Global)
        });
        let (kind, outdated) = match global {
            Some(index) => {
                let reader = self.moment(attempt.number());
                let history = self.tracker.history();
                (
                    FaultKind::IndexLag,
                    history.lagging(attempt, table, index, reader),
                )
            }
            None => (
                FaultKind::StaleRead,
                self.outdated_items(attempt, table, None),
            ),
        };
        let items: HashMap<_, _> = outdated
            .into_iter()
            .map(|old| (old.key.clone(), old))
            .collect();
        (!items.is_empty()).then_some((definition, OutdatedItems { kind, items }))
    }

    /// The items, of `keys` or of the table, of which an eventually consistent read sees an earlier version.
    fn outdated_items(
        &self,
        attempt: &Attempt<'_>,
        table: &str,
        keys: Option<&[Item]>,
    ) -> Vec<OutdatedItem> {
        let is_behind = attempt.has_fault(FaultKind::StaleRead);
        let reader = self.moment(attempt.number());
        self.tracker
            .history()
            .stale(attempt, table, keys, is_behind, reader)
    }
}

/// The selection that returns entries as the plan needs them before filter and projection.
fn whole(plan: &ReadPlan<'_>) -> Option<Select> {
    plan.fetches.then_some(Select::AllAttributes)
}

/// Builds a page entry by entry.
struct PageBuilder<'p> {
    plan: &'p ReadPlan<'p>,
    outdated: &'p OutdatedItems,
    meter: Meter<'p>,
    page: Page,
    /// The items that the engine returned with another state.
    changed: HashSet<&'p Item>,
}

impl<'p> PageBuilder<'p> {
    fn new(plan: &'p ReadPlan<'p>, outdated: &'p OutdatedItems) -> Self {
        Self {
            plan,
            outdated,
            meter: Meter::new(plan),
            page: Page::default(),
            changed: HashSet::new(),
        }
    }

    fn outdated_item(&self, entry: &Item) -> Option<&'p OutdatedItem> {
        let key = self.plan.table.key.key_of(entry)?;
        self.outdated.items.get(&key)
    }

    /// The entry of an item in the table or index, if it has one.
    fn entry(&self, item: Option<&Item>) -> Option<Item> {
        let item = item?;
        match self.plan.index {
            Some(index) if !index.holds(item) => None,
            Some(index) if !self.plan.fetches => Some(index.project(&self.plan.table.key, item)),
            _ => Some(item.clone()),
        }
    }

    /// The earlier entries that match a query, in its order, after its start key.
    fn outdated_in_range(&self) -> VecDeque<Item> {
        let outdated = self.outdated.items.values();
        let mut outdated_in_range: Vec<Item> = outdated
            .filter_map(|old| self.entry(old.seen.as_ref()))
            .filter(|entry| {
                (self.plan.range.as_ref())
                    .is_none_or(|range| key_range::contains(self.plan, range, entry))
            })
            .filter(|entry| {
                let start = self.plan.start_key;
                start.is_none_or(|start| self.order(start, entry).is_lt())
            })
            .collect();
        outdated_in_range.sort_by(|a, b| self.order(a, b));
        outdated_in_range.into()
    }

    /// The order in which a query returns entries: by the key that is read, then by the table's key.
    fn order(&self, one: &Item, other: &Item) -> Ordering {
        let attributes = self.plan.key().attributes();
        let attributes = attributes.chain(self.plan.table.key.attributes());
        let compare = |a: &KeyAttribute| one.get(&a.name)?.compare(other.get(&a.name)?);
        let mut orders = attributes.filter_map(compare);
        let order = orders.find(|order| order.is_ne());
        let order = order.unwrap_or(Ordering::Equal);
        if self.plan.forward {
            order
        } else {
            order.reverse()
        }
    }

    /// Adds an entry to the page. Returns `false` once the page is full.
    fn push(&mut self, entry: Item) -> bool {
        let position = self.plan.last_key(&entry);
        self.push_at(entry, position)
    }

    /// As [`push`](Self::push), for an entry found at another position.
    fn push_at(&mut self, entry: Item, position: Item) -> bool {
        let table_key = &self.plan.table.key;
        let size = match self.plan.index {
            Some(index) if self.plan.fetches => index.entry_size(table_key, &entry),
            _ => item_size(&entry),
        };
        if let Some(old) = self.outdated_item(&entry) {
            self.changed.insert(&old.key);
        }
        self.meter.add(size);
        if self.plan.fetches {
            self.meter.add_fetched(item_size(&entry));
        }
        let filter = self.plan.filter;
        if filter.is_none_or(|filter| filter.evaluate(&entry)) {
            self.page.count += 1;
            self.page.items.extend(self.plan.response_item(entry));
        }
        if self.meter.is_full() {
            self.page.last_key = Some(position);
            return false;
        }
        true
    }

    /// Adds earlier entries of deleted items to the last page of a scan, as far as there is room.
    fn push_deleted(&mut self) {
        let mut absent: Vec<(&Item, Item)> = (self.outdated.items.values())
            .filter(|old| {
                self.entry(old.current.as_ref()).is_none() && self.is_in_segment(&old.key)
            })
            .filter_map(|old| Some((&old.key, self.entry(old.seen.as_ref())?)))
            .collect();
        absent.sort_by_key(|(key, _)| format!("{key:?}"));
        for (_, entry) in absent {
            let entries = self.meter.entries() + 1;
            let room = self.plan.limit.is_none_or(|limit| entries < limit);
            if room && !self.meter.is_full() {
                self.push(entry);
            }
        }
    }

    /// Whether a deleted item belongs to the scanned segment. Each belongs to exactly one segment.
    fn is_in_segment(&self, key: &Item) -> bool {
        self.plan.segment.is_none_or(|segment| {
            let hash = random::hash_text(&format!("{key:?}"));
            hash.checked_rem(segment.total as u64) == Some(segment.index as u64)
        })
    }

    fn finish(mut self, attempt: &Attempt<'_>, detail: ReturnConsumedCapacity) -> Page {
        if !self.changed.is_empty() {
            attempt.record_fault(self.outdated.kind, format!("items={}", self.changed.len()));
        }
        self.page.scanned_count = self.meter.entries();
        self.page.consumed = detail.is_wanted().then(|| self.meter.cost(detail));
        self.page
    }
}
