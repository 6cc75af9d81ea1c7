//! Reads the results of a query or scan, request by request.

use std::collections::VecDeque;

use floe_store::expr::{Condition, Path};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{Page, Query, Scan, Segment};
use floe_store::{BoxFuture, Item, Timestamp, Value};

use super::range::Range;
use crate::db::Db;
use crate::error::Result;
use crate::model::keys::EncodedKey;
use crate::model::schema::{
    IndexProjection, IndexSchema, PARTITION_ATTRIBUTE, SORT_ATTRIBUTE, Schema,
};
use crate::request::{Budget, ItemRequest, batch_get, repeat};

/// With a filter, a request reads this multiple of the wanted items, because an unknown part of them matches.
const FILTERED_FACTOR: usize = 10;
/// With a filter, minimum items per request.
const FILTERED_ITEMS_MIN: usize = 100;

/// What to read, fixed before the first request.
#[derive(Clone, Debug)]
pub(super) struct ReadPlan {
    pub(super) schema: &'static Schema,
    pub(super) index: Option<&'static IndexSchema>,
    /// The keys to read; all, in a scan.
    pub(super) range: Option<Range>,
    /// The caller's filter.
    pub(super) filter: Option<Condition>,
    pub(super) forward: bool,
    pub(super) consistent: bool,
    pub(super) segment: Option<Segment>,
}

/// Reads page by page.
pub(super) struct Reader {
    pub(super) db: Db,
    pub(super) plan: ReadPlan,
    /// The key after which the next request starts.
    pub(super) start: Option<Item>,
    /// Whether there are no more pages.
    pub(super) is_done: bool,
    /// Items that were read and not yet returned.
    pub(super) found: VecDeque<Item>,
    /// The retry budget of a page.
    pub(super) budget: Budget,
}

impl Reader {
    /// Reads the next page. At most `wanted` items are needed.
    pub(super) async fn fetch(&mut self, wanted: Option<usize>) -> Result<()> {
        let now = self.db.engine().now();
        let page = self.page(now, wanted).await?;
        self.is_done = page.last_key.is_none();
        self.start = page.last_key;
        let mut items = page.items;
        items.retain(|item| self.plan.matches(item, now));
        if !self.plan.has_whole_items() {
            items = self.complete(items, now).await?;
        }
        self.found.extend(items);
        Ok(())
    }

    async fn page(&self, now: Timestamp, wanted: Option<usize>) -> Result<Page> {
        let (db, start) = (&self.db, &self.start);
        let request = || self.plan.request(db, now, start, wanted);
        Ok(repeat(db, self.budget, request).await?)
    }

    /// Reads the whole items of partial index entries. Items that changed since the index entry was written are skipped,
    /// unless they still belong to it.
    async fn complete(&self, entries: Vec<Item>, now: Timestamp) -> Result<Vec<Item>> {
        let plan = &self.plan;
        let mut whole = Vec::with_capacity(entries.len());
        for some in entries.chunks(BATCH_GET_ITEMS_MAX) {
            let requests = some.iter().map(|entry| {
                Ok(ItemRequest {
                    table: plan.schema.table,
                    key: EncodedKey::of_item(plan.schema, entry)?.to_item(),
                    consistent: plan.consistent,
                })
            });
            let requests: Vec<ItemRequest<'_>> = requests.collect::<Result<_>>()?;
            let items = batch_get(&self.db, &requests).await?;
            for (entry, item) in some.iter().zip(items) {
                let same = item.filter(|item| plan.has_same_index_key(entry, item));
                let same = same.filter(|item| plan.matches(item, now));
                let filter = plan.filter.as_ref();
                whole.extend(same.filter(|item| filter.is_none_or(|f| f.evaluate(item))));
            }
        }
        Ok(whole)
    }
}

impl ReadPlan {
    fn request<'d>(
        &self,
        db: &'d Db,
        now: Timestamp,
        start: &Option<Item>,
        wanted: Option<usize>,
    ) -> BoxFuture<'d, floe_store::Result<Page>> {
        let limit = wanted.map(|wanted| match self.filter {
            Some(_) => FILTERED_ITEMS_MIN.max(wanted.saturating_mul(FILTERED_FACTOR)),
            None => wanted.max(1),
        });
        let index_name = self.index.map(|index| index.name.to_owned());
        let filter = self.sent_filter(now);
        // Global indexes do not support consistent reads.
        let consistent = self.consistent && self.index.is_none();
        if let Some(range) = &self.range {
            let mut query = Query::new(self.schema.table, range.condition.clone());
            (query.index_name, query.filter, query.limit) = (index_name, filter, limit);
            (query.forward, query.consistent) = (self.forward, consistent);
            query.start_key.clone_from(start);
            return db.engine().query(query);
        }
        let mut scan = Scan::new(self.schema.table);
        (scan.index_name, scan.filter, scan.limit) = (index_name, filter, limit);
        (scan.segment, scan.consistent) = (self.segment, consistent);
        scan.start_key.clone_from(start);
        db.engine().scan(scan)
    }

    /// Whether the query reads whole items.
    fn has_whole_items(&self) -> bool {
        self.index
            .is_none_or(|index| index.projection == IndexProjection::All)
    }

    /// The filter that the store applies: it excludes items of other models, expired ones, and those that the caller's
    /// filter excludes. The caller's filter needs whole items; for partial items it is evaluated later.
    fn sent_filter(&self, now: Timestamp) -> Option<Condition> {
        let own = self.is_own_model();
        let expires = self.schema.expires.filter(|name| !self.is_key(name));
        let alive = expires.map(|expires| {
            Condition::le(Path::attribute(expires), Value::from(now.as_secs())).not()
        });
        let filter = self.filter.clone().filter(|_| self.has_whole_items());
        let all = own.into_iter().chain(alive).chain(filter);
        all.reduce(Condition::and)
    }

    /// The condition that distinguishes models of one table: the constant in the sort key. A query of the table already
    /// has it in the key condition.
    pub(super) fn is_own_model(&self) -> Option<Condition> {
        let constant = self.schema.sort_constant?;
        if self.range.is_some() && self.index.is_none() {
            return None;
        }
        let sort = Path::attribute(SORT_ATTRIBUTE);
        Some(match self.schema.sort().next() {
            None => Condition::eq(sort, Value::from(constant)),
            Some(_) => Condition::begins_with(sort, Value::from(format!("{constant}\0"))),
        })
    }

    /// Whether the attribute is in the queried key, which a filter must not name.
    pub(super) fn is_key(&self, attribute: &str) -> bool {
        self.range.is_some() && self.index_attributes().any(|name| name == attribute)
    }

    pub(super) fn index_attributes(&self) -> impl Iterator<Item = &'static str> {
        let schema = self.schema;
        let attributes = self.index.map(|index| schema.index_attributes(index));
        attributes.into_iter().flatten()
    }

    /// Whether an item is in the range and not expired.
    pub(super) fn matches(&self, item: &Item, now: Timestamp) -> bool {
        let bounds = self.range.as_ref().and_then(|range| range.bounds.as_ref());
        bounds.is_none_or(|bounds| bounds.contains(item)) && !self.schema.is_expired(item, now)
    }

    fn has_same_index_key(&self, entry: &Item, item: &Item) -> bool {
        let mut attributes = self.index_attributes();
        attributes.all(|name| entry.get(name) == item.get(name))
    }

    /// The start key with which a request continues after this item.
    pub(super) fn start_after(&self, item: &Item) -> Item {
        let keys = [PARTITION_ATTRIBUTE, SORT_ATTRIBUTE].into_iter();
        let mut start = Item::new();
        for name in keys.chain(self.index_attributes()) {
            if let Some(value) = item.get(name) {
                start.insert(name, value.clone());
            }
        }
        start
    }
}
