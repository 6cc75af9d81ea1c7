//! Answers reads from the past.
//!
//! A read is answered by the engine as things stand, and then those items are put back to what they were
//! that have changed too lately for this reader. For a page this means to read it without filter and
//! projection, put each old entry where it stood, and then do what the engine would have done.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::expr::{Condition, KeyOp, KeyRange, Path};
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, GetItem, GetItemOutput, Meter, Page, Query, ReadPlan, Scan,
    Select,
};
use floe_store::size::item_size;
use floe_store::table::{IndexKind, KeyAttribute};
use floe_store::{Item, Result, TableDef, Value};

use super::FaultEngine;
use super::control::Attempt;
use super::dice;
use super::kind::FaultKind;
use super::past::Old;

/// Items as a reader sees them that is behind, by key, and the fault that makes it so.
struct Behind {
    kind: FaultKind,
    olds: HashMap<Item, Old>,
}

impl FaultEngine {
    pub(super) async fn stale_get(
        &self,
        attempt: &Attempt<'_>,
        input: GetItem,
    ) -> Result<GetItemOutput> {
        let keys = [input.key.clone()];
        let olds = if input.consistent {
            Vec::new()
        } else {
            self.olds_of(attempt, &input.table_name, Some(&keys))
        };
        let Some(old) = olds.into_iter().next() else {
            return self.inner.get_item(input).await;
        };
        let mut output = self.inner.get_item(input.clone()).await?;
        attempt.struck(FaultKind::StaleRead, "items=1".to_owned());
        output.item = old.then.map(|item| input.response_item(item));
        Ok(output)
    }

    pub(super) async fn stale_batch_get(
        &self,
        attempt: &Attempt<'_>,
        mut input: BatchGetItem,
    ) -> Result<BatchGetItemOutput> {
        let original = input.requests.clone();
        let mut olds: BTreeMap<String, Vec<Old>> = BTreeMap::new();
        for (table, request) in input.requests.iter_mut().filter(|(_, r)| !r.consistent) {
            let found = self.olds_of(attempt, table, Some(&request.keys));
            if !found.is_empty() {
                // Whole items, so that their keys are there to find them by.
                request.projection = None;
                olds.insert(table.clone(), found);
            }
        }
        if olds.is_empty() {
            return self.inner.batch_get_item(input).await;
        }
        let definitions = self.definitions(&olds).await;
        let mut output = self.inner.batch_get_item(input).await?;
        let mut changed = 0;
        for (table, olds) in olds {
            let definition = definitions.as_ref().and_then(|known| known.get(&table));
            let (Some(definition), Some(request)) = (definition, original.get(&table)) else {
                continue;
            };
            let left = output.unprocessed.get_mut(&table);
            let left = left.map_or(&[][..], |rest| {
                rest.projection.clone_from(&request.projection);
                &rest.keys
            });
            let olds: Vec<Old> = olds
                .into_iter()
                .filter(|old| !left.contains(&old.key))
                .collect();
            changed += olds.len();
            let items = output.items.entry(table).or_default();
            let is_old = |item: &Item| {
                let key = definition.key.key_of(item);
                olds.iter().any(|old| Some(&old.key) == key.as_ref())
            };
            items.retain(|item| !is_old(item));
            items.extend(olds.iter().filter_map(|old| old.then.clone()));
            for item in items {
                *item = request.response_item(std::mem::take(item));
            }
        }
        if changed > 0 {
            attempt.struck(FaultKind::StaleRead, format!("items={changed}"));
        }
        Ok(output)
    }

    pub(super) async fn stale_query(&self, attempt: &Attempt<'_>, input: Query) -> Result<Page> {
        let index = input.index_name.as_deref();
        let behind = self
            .behind(attempt, &input.table_name, index, input.consistent)
            .await;
        let Some((definition, behind)) = behind else {
            return self.inner.query(input).await;
        };
        let Ok(plan) = input.plan(&definition) else {
            return self.inner.query(input).await;
        };
        let mut raw = input.clone();
        (raw.filter, raw.projection, raw.select) = (None, None, whole(&plan));
        let mut reply = Reply::new(&plan, &behind);
        let mut ghosts = reply.ghosts();
        'pages: loop {
            let page = self.inner.query(raw.clone()).await?;
            for entry in page.items {
                if let Some(old) = reply.old_of(&entry) {
                    reply.changed.insert(&old.key);
                    continue;
                }
                while ghosts
                    .front()
                    .is_some_and(|ghost| reply.order(ghost, &entry).is_lt())
                {
                    if ghosts.pop_front().is_some_and(|ghost| !reply.push(ghost)) {
                        break 'pages;
                    }
                }
                if !reply.push(entry) {
                    break 'pages;
                }
            }
            if page.last_key.is_none() {
                break;
            }
            raw.start_key = page.last_key;
        }
        if reply.page.last_key.is_none() {
            while let Some(ghost) = ghosts.pop_front() {
                if !reply.push(ghost) {
                    break;
                }
            }
        }
        Ok(reply.finish(attempt, input.return_capacity))
    }

    pub(super) async fn stale_scan(&self, attempt: &Attempt<'_>, input: Scan) -> Result<Page> {
        let index = input.index_name.as_deref();
        let behind = self
            .behind(attempt, &input.table_name, index, input.consistent)
            .await;
        let Some((definition, behind)) = behind else {
            return self.inner.scan(input).await;
        };
        let Ok(plan) = input.plan(&definition) else {
            return self.inner.scan(input).await;
        };
        let mut raw = input.clone();
        (raw.filter, raw.projection, raw.select) = (None, None, whole(&plan));
        let mut reply = Reply::new(&plan, &behind);
        let is_whole = input.start_key.is_none();
        'pages: loop {
            let page = self.inner.scan(raw.clone()).await?;
            for entry in page.items {
                let position = plan.last_key(&entry);
                let shown = match reply.old_of(&entry) {
                    None => Some(entry),
                    Some(old) => {
                        reply.changed.insert(&old.key);
                        reply.entry(old.then.as_ref())
                    }
                };
                if let Some(shown) = shown
                    && !reply.push_at(shown, position)
                {
                    break 'pages;
                }
            }
            if page.last_key.is_none() {
                if is_whole {
                    reply.push_absent();
                }
                break;
            }
            raw.start_key = page.last_key;
        }
        Ok(reply.finish(attempt, input.return_capacity))
    }

    /// The items of which a reader of a table or index sees an older version; `None` if there are none.
    async fn behind(
        &self,
        attempt: &Attempt<'_>,
        table: &str,
        index: Option<&str>,
        consistent: bool,
    ) -> Option<(Arc<TableDef>, Behind)> {
        if consistent || !attempt.faults().keeps_past() {
            return None;
        }
        let definition = self.definition(table).await?;
        let global = index.filter(|&name| {
            definition
                .index(name)
                .is_some_and(|index| index.kind == IndexKind::Global)
        });
        let (kind, olds) = match global {
            Some(index) => {
                let reader = self.moment(attempt.number());
                let past = self.watch.past();
                (
                    FaultKind::IndexLag,
                    past.lagging(attempt, table, index, reader),
                )
            }
            None => (FaultKind::StaleRead, self.olds_of(attempt, table, None)),
        };
        let olds: HashMap<_, _> = olds.into_iter().map(|old| (old.key.clone(), old)).collect();
        (!olds.is_empty()).then_some((definition, Behind { kind, olds }))
    }

    /// The items, of these or of all, that an eventual read of the table sees as they were.
    fn olds_of(&self, attempt: &Attempt<'_>, table: &str, keys: Option<&[Item]>) -> Vec<Old> {
        let is_behind = attempt.meets(FaultKind::StaleRead);
        let reader = self.moment(attempt.number());
        self.watch
            .past()
            .stale(attempt, table, keys, is_behind, reader)
    }
}

/// What to select so that entries come as the plan needs them before filter and projection.
fn whole(plan: &ReadPlan<'_>) -> Option<Select> {
    plan.fetches.then_some(Select::AllAttributes)
}

/// A page that is put together entry by entry.
struct Reply<'p> {
    plan: &'p ReadPlan<'p>,
    behind: &'p Behind,
    meter: Meter<'p>,
    page: Page,
    /// The items that the engine would have shown otherwise.
    changed: HashSet<&'p Item>,
}

impl<'p> Reply<'p> {
    fn new(plan: &'p ReadPlan<'p>, behind: &'p Behind) -> Self {
        Self {
            plan,
            behind,
            meter: Meter::new(plan),
            page: Page::default(),
            changed: HashSet::new(),
        }
    }

    fn old_of(&self, entry: &Item) -> Option<&'p Old> {
        let key = self.plan.table.key.key_of(entry)?;
        self.behind.olds.get(&key)
    }

    /// The entry of an item in the table or index that is read, if it has one there.
    fn entry(&self, item: Option<&Item>) -> Option<Item> {
        let item = item?;
        match self.plan.index {
            Some(index) if !index.holds(item) => None,
            Some(index) if !self.plan.fetches => Some(index.project(&self.plan.table.key, item)),
            _ => Some(item.clone()),
        }
    }

    /// The old entries that a query finds, in its order, from where it starts.
    fn ghosts(&self) -> VecDeque<Item> {
        let olds = self.behind.olds.values();
        let mut ghosts: Vec<Item> = olds
            .filter_map(|old| self.entry(old.then.as_ref()))
            .filter(|entry| (self.plan.range.as_ref()).is_none_or(|range| self.is_in(range, entry)))
            .filter(|entry| {
                let start = self.plan.start_key;
                start.is_none_or(|start| self.order(start, entry).is_lt())
            })
            .collect();
        ghosts.sort_by(|a, b| self.order(a, b));
        ghosts.into()
    }

    /// The order in which a query finds entries: by the key that is read, and among equals by the table's.
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

    fn is_in(&self, range: &KeyRange, entry: &Item) -> bool {
        let key = self.plan.key();
        let equal = |attributes: &[KeyAttribute], values: &[Value]| {
            let mut pairs = attributes.iter().zip(values);
            pairs.all(|(a, value)| entry.get(&a.name) == Some(value))
        };
        let next = key.sort.get(range.sort_prefix.len());
        let ranged = next.zip(range.range.as_ref());
        equal(&key.partition, &range.partition)
            && equal(&key.sort, &range.sort_prefix)
            && ranged.is_none_or(|(a, op)| condition(a, op).evaluate(entry))
    }

    /// Puts an entry on the page; `false` if the page is full, with or without it.
    fn push(&mut self, entry: Item) -> bool {
        let position = self.plan.last_key(&entry);
        self.push_at(entry, position)
    }

    /// The same for an entry that was found at another position than its own.
    fn push_at(&mut self, entry: Item, position: Item) -> bool {
        let table_key = &self.plan.table.key;
        let size = match self.plan.index {
            Some(index) if self.plan.fetches => index.entry_size(table_key, &entry),
            _ => item_size(&entry),
        };
        if let Some(old) = self.old_of(&entry) {
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

    /// Puts on the last page of a scan the entries of items that have none now. Those for which there is
    /// no room are shown as they are: not at all.
    fn push_absent(&mut self) {
        let mut absent: Vec<(&Item, Item)> = (self.behind.olds.values())
            .filter(|old| self.entry(old.now.as_ref()).is_none() && self.is_in_segment(&old.key))
            .filter_map(|old| Some((&old.key, self.entry(old.then.as_ref())?)))
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

    /// Whether an item that is not there belongs to the segment that is read: to exactly one of them.
    fn is_in_segment(&self, key: &Item) -> bool {
        self.plan.segment.is_none_or(|segment| {
            let hash = dice::of_text(&format!("{key:?}"));
            hash.checked_rem(segment.total as u64) == Some(segment.index as u64)
        })
    }

    fn finish(mut self, attempt: &Attempt<'_>, detail: ReturnConsumedCapacity) -> Page {
        if !self.changed.is_empty() {
            attempt.struck(self.behind.kind, format!("items={}", self.changed.len()));
        }
        self.page.scanned_count = self.meter.entries();
        self.page.consumed = detail.is_wanted().then(|| self.meter.cost(detail));
        self.page
    }
}

/// A condition on a key attribute as a condition on an item.
fn condition(attribute: &KeyAttribute, op: &KeyOp) -> Condition {
    let path = Path::attribute(attribute.name.clone());
    match op.clone() {
        KeyOp::Eq(value) => Condition::eq(path, value),
        KeyOp::Lt(value) => Condition::lt(path, value),
        KeyOp::Le(value) => Condition::le(path, value),
        KeyOp::Gt(value) => Condition::gt(path, value),
        KeyOp::Ge(value) => Condition::ge(path, value),
        KeyOp::Between(low, high) => Condition::between(path, low, high),
        KeyOp::BeginsWith(prefix) => Condition::begins_with(path, prefix),
    }
}
