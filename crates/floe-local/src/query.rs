//! Queries and scans: iterate over the items of a table or the entries of an index, page by page.
//!
//! A page is read on the caller's thread from one snapshot. The [`ReadPlan`] and its [`Meter`] determine what the page
//! contains, where it ends and what it costs; this module only iterates.

use std::ops::Bound;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::{Meter, Page, Query, ReadPlan, ReturnedAttributes, Scan, Segment};
use floe_store::{Error, Item, Result};

use crate::catalog::Table;
use crate::items::{key_of, read};
use crate::kv::{Bytes, Direction, KeyBounds, Snapshot};
use crate::layout::damaged;
use crate::layout::item::{decode, decode_size};
use crate::layout::key::{Entries, in_segment, index_key, item_key};
use crate::shared::Shared;

/// Reads a page of the items under one partition key.
pub(crate) fn query(shared: &Shared, query: &Query) -> Result<Page> {
    query.validate()?;
    let table = shared.table(&query.table_name)?;
    let plan = query.plan(table.definition())?;
    let entries = entries_of(&table, &plan)?;
    let range = plan
        .range
        .as_ref()
        .ok_or_else(|| damaged("plan of a query"))?;
    let mut bounds = entries.query_bounds(plan.key(), range)?;
    if let Some(start) = start_key(entries, &plan)? {
        if plan.forward {
            bounds.0 = Bound::Excluded(start);
        } else {
            bounds.1 = Bound::Excluded(start);
        }
    }
    read_page(shared, &table, &plan, bounds, query.return_capacity)
}

/// Reads a page of a whole table or index, or of a segment of it.
pub(crate) fn scan(shared: &Shared, scan: &Scan) -> Result<Page> {
    scan.validate()?;
    let table = shared.table(&scan.table_name)?;
    let plan = scan.plan(table.definition())?;
    let entries = entries_of(&table, &plan)?;
    let mut bounds = match scan.segment {
        Some(segment) => entries.segment_bounds(segment),
        None => entries.bounds(),
    };
    if let Some(start) = start_key(entries, &plan)? {
        check_segment(&start, scan.segment)?;
        bounds.0 = Bound::Excluded(start);
    }
    read_page(shared, &table, &plan, bounds, scan.return_capacity)
}

fn check_segment(start: &[u8], segment: Option<Segment>) -> Result<()> {
    match segment {
        Some(segment) if !in_segment(start, segment) => Err(segment.start_key_in_other_segment()),
        _ => Ok(()),
    }
}

/// The entries that a plan reads: the items, or a completely filled index.
fn entries_of(table: &Table, plan: &ReadPlan<'_>) -> Result<Entries> {
    let Some(index) = plan.index else {
        return Ok(Entries::Items);
    };
    match table.index_record(&index.name) {
        Some(record) if !record.filling => Ok(Entries::Index(record.id)),
        _ => Err(Error::Validation(format!(
            "Cannot read from backfilling global secondary index: {}",
            index.name
        ))),
    }
}

/// The key of the entry after which the page starts. The plan has validated its attributes.
fn start_key(entries: Entries, plan: &ReadPlan<'_>) -> Result<Option<Vec<u8>>> {
    let Some(start) = plan.start_key else {
        return Ok(None);
    };
    let invalid = || Error::validation("The provided starting key is invalid");
    let item_key = item_key(&plan.table.key, start).ok_or_else(invalid)?;
    Ok(Some(match (entries, plan.index) {
        (Entries::Index(id), Some(index)) => {
            index_key(id, &index.key, start, &item_key).ok_or_else(invalid)?
        }
        _ => item_key,
    }))
}

/// Initial capacity of a page, in items.
const ITEMS_EXPECTED: usize = 64;

fn read_page(
    shared: &Shared,
    table: &Table,
    plan: &ReadPlan<'_>,
    bounds: KeyBounds,
    detail: ReturnConsumedCapacity,
) -> Result<Page> {
    let snapshot = shared.kv.snapshot();
    let direction = if plan.forward {
        Direction::Forward
    } else {
        Direction::Backward
    };
    let mut reader = PageReader {
        snapshot: &snapshot,
        table,
        plan,
        meter: Meter::new(plan),
        page: Page {
            items: Vec::with_capacity(plan.limit.unwrap_or(ITEMS_EXPECTED).min(ITEMS_EXPECTED)),
            ..Page::default()
        },
    };
    for entry in snapshot.range(table.space(), bounds, direction) {
        reader.read(&entry?.1)?;
        if reader.page.last_key.is_some() {
            break;
        }
    }
    let mut page = reader.page;
    page.scanned_count = reader.meter.entries();
    page.consumed = detail.is_wanted().then(|| reader.meter.cost(detail));
    Ok(page)
}

struct PageReader<'a> {
    snapshot: &'a Snapshot,
    table: &'a Table,
    plan: &'a ReadPlan<'a>,
    meter: Meter<'a>,
    page: Page,
}

impl PageReader<'_> {
    /// Adds an entry to the page. The last entry that fits ends the page, whether or not there are more.
    fn read(&mut self, value: &Bytes) -> Result<()> {
        self.meter.add(decode_size(value)?);
        let full = self.meter.is_full();
        let counts_only =
            self.plan.filter.is_none() && self.plan.returned == ReturnedAttributes::Count;
        if counts_only && !full && !self.plan.fetches {
            self.page.count += 1;
            return Ok(());
        }
        let entry = decode(value)?;
        if full {
            self.page.last_key = Some(self.plan.last_key(&entry));
        }
        let item = if self.plan.fetches {
            self.fetch(&entry)?
        } else {
            entry
        };
        if self.plan.filter.is_none_or(|filter| filter.evaluate(&item)) {
            self.page.count += 1;
            self.page.items.extend(self.plan.response_item(item));
        }
        Ok(())
    }

    /// Reads the full item of a local index entry from the same snapshot.
    fn fetch(&mut self, entry: &Item) -> Result<Item> {
        let key = key_of(self.table, entry)?;
        let found = read(self.snapshot, self.table, &key)?;
        let (size, item) = found.ok_or_else(|| damaged("index entry without item"))?;
        self.meter.add_fetched(size);
        Ok(item)
    }
}
