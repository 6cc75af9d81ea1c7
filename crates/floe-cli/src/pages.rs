//! The shared part of `floe query` and `floe scan`: selects items, and prints them page by page.

mod cursor;

use floe_store::expr::{Parser, Paths};
use floe_store::op::{Page, Query, Scan, Select};
use floe_store::table::TableDef;
use floe_store::{Item, Result as StoreResult};

use crate::{
    AsArray, Failure, Input, OpenStore, Placeholders, ResolvedPlaceholders, Result, StoreArgs,
    grouped, note, object, print, print_items, print_json,
};

/// The selection of items and attributes.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Name of the table
    pub(super) table: String,

    /// Index to read
    #[arg(long, value_name = "NAME")]
    index: Option<String>,

    /// Filter expression: quantity > :q
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// Print only these attributes: product, address.city
    #[arg(long, value_name = "EXPRESSION")]
    projection: Option<String>,

    #[command(flatten)]
    placeholders: Placeholders,

    /// Maximum number of items
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Resume after an earlier page, at its cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    /// Print all items
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Print only the number of items
    #[arg(long, conflicts_with = "projection")]
    count: bool,

    /// Use strongly consistent reads
    #[arg(long)]
    consistent: bool,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    target: StoreArgs,
}

/// The request for a page.
#[derive(Clone, Debug)]
pub(super) enum PageRequest {
    Query(Query),
    Scan(Scan),
}

/// Runs an expression on the inner request, for the fields that queries and scans share.
macro_rules! with_request {
    ($request:expr, $inner:ident => $body:expr) => {
        match $request {
            PageRequest::Query($inner) => $body,
            PageRequest::Scan($inner) => $body,
        }
    };
}

impl PageRequest {
    async fn page(&self, opened: &OpenStore) -> StoreResult<Page> {
        match self {
            Self::Query(query) => opened.engine().query(query.clone()).await,
            Self::Scan(scan) => opened.engine().scan(scan.clone()).await,
        }
    }
}

/// The counts of all pages so far.
#[derive(Default)]
struct Totals {
    count: usize,
    scanned: usize,
}

impl Selection {
    pub(super) fn placeholders(&self) -> Result<ResolvedPlaceholders> {
        self.placeholders.resolve(self.input)
    }

    pub(super) fn run(&self, mut parser: Parser<'_>, mut request: PageRequest) -> Result {
        let filter = self.filter.as_deref();
        let filter = filter.map(|text| parser.filter(text)).transpose()?;
        let projection = self.projection.as_deref();
        let projection = projection.map(|text| parser.projection(text)).transpose()?;
        parser.finish()?;
        let start = self.cursor.as_deref().map(cursor::decode).transpose()?;
        with_request!(&mut request, inner => {
            inner.filter = filter;
            inner.start_key = start;
            inner.index_name.clone_from(&self.index);
            inner.consistent = self.consistent;
            if self.count {
                inner.select = Some(Select::Count);
            }
        });
        self.target
            .run(async |opened| self.read(opened, request, projection).await)
    }

    async fn read(
        &self,
        opened: &OpenStore,
        mut request: PageRequest,
        projection: Option<Paths>,
    ) -> Result {
        let table = opened.table(&self.table).await?.definition;
        self.check_index(&table)?;
        // A truncated page is resumed at the key of its last item, which a projection by the store might omit.
        let local_projection = if self.filter.is_some() && !self.all {
            projection.clone()
        } else {
            with_request!(&mut request, inner => inner.projection.clone_from(&projection));
            None
        };
        let mut totals = Totals::default();
        let mut gathered = Vec::new();
        loop {
            let remaining = self.remaining(&totals);
            // The store applies the limit before the filter, so with a filter pages would be almost empty.
            let limit = remaining.filter(|_| self.filter.is_none());
            with_request!(&mut request, inner => inner.limit = limit);
            let mut page = request.page(opened).await?;
            let truncated = remaining.filter(|remaining| *remaining < page.items.len());
            if let Some(count) = truncated {
                page.items.truncate(count);
                page.count = count;
                page.last_key = page.items.last().and_then(|item| self.key_of(&table, item));
            }
            if let Some(paths) = &local_projection {
                page.items = page.items.iter().map(|item| paths.project(item)).collect();
            }
            totals.count += page.count;
            totals.scanned += page.scanned_count;
            let next = page.last_key.clone();
            let is_end = next.is_none() || self.remaining(&totals) == Some(0);
            if self.target.output.is_json() {
                self.print_page(&page, is_end)?;
            } else {
                gathered.append(&mut page.items);
            }
            if is_end {
                return self.print_end(&table, &gathered, &totals, next.as_ref());
            }
            with_request!(&mut request, inner => inner.start_key = next);
        }
    }

    /// Fails if the table does not have the requested index.
    fn check_index(&self, table: &TableDef) -> Result {
        let Some(name) = &self.index else {
            return Ok(());
        };
        if table.index(name).is_some() {
            return Ok(());
        }
        let known: Vec<_> = table.indexes.iter().map(|index| &*index.name).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(",")
        };
        Err(Failure::unmet(format!(
            "there is no such index: table={} index={name} known={known}",
            table.name
        )))
    }

    /// The number of items that may still be printed. `None` if there is no limit.
    fn remaining(&self, totals: &Totals) -> Option<usize> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        (!self.all && !self.count).then(|| limit.saturating_sub(totals.count))
    }

    /// The key at which reading can be resumed after an item.
    fn key_of(&self, table: &TableDef, item: &Item) -> Option<Item> {
        let mut key = table.key.key_of(item)?;
        let index = self.index.as_deref().and_then(|name| table.index(name));
        if let Some(index) = index {
            key.extend(index.key.key_of(item)?);
        }
        Some(key)
    }

    fn print_page(&self, page: &Page, is_end: bool) -> Result {
        let cursor = page.last_key.as_ref().filter(|_| is_end);
        let write_item = self.target.output.item_writer();
        let items = (!self.count).then_some(AsArray(&page.items, write_item));
        print_json(&|w| {
            object!(w;
                "items": items, "count": page.count, "scanned": page.scanned_count,
                "cursor": cursor.map(cursor::encode)
            );
        })
    }

    fn print_end(
        &self,
        table: &TableDef,
        items: &[Item],
        totals: &Totals,
        next: Option<&Item>,
    ) -> Result {
        if self.target.output.is_json() {
            return Ok(());
        }
        if self.count {
            return print(grouped(u64::try_from(totals.count).unwrap_or(u64::MAX)));
        }
        print_items(items, &table.key)?;
        let mut summary = format!("items={} read={}", totals.count, totals.scanned);
        if let Some(key) = next {
            summary.push_str(&format!("; resume with --cursor {}", cursor::encode(key)));
        }
        note(&summary);
        Ok(())
    }
}
