//! What `floe query` and `floe scan` have in common: what is printed of which items, page by page.

mod cursor;

use floe_store::expr::{Parser, Paths};
use floe_store::json::write_item;
use floe_store::op::{Page, Query, Scan, Select};
use floe_store::table::TableDef;
use floe_store::{Item, Result as StoreResult};

use crate::{
    Each, Input, Opened, Placeholders, Resolved, Result, StoreArgs, grouped, note, object, print,
    print_items, print_json,
};

/// Which items are printed, and what of them.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// The table
    pub(super) table: String,

    /// Of this index
    #[arg(long, value_name = "NAME")]
    index: Option<String>,

    /// Only items of which this holds: quantity > :q
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// Only these parts of them: product, address.city
    #[arg(long, value_name = "EXPRESSION")]
    projection: Option<String>,

    #[command(flatten)]
    placeholders: Placeholders,

    /// The most items
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Go on where an earlier call has ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    /// All items, however many
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Only how many they are
    #[arg(long, conflicts_with = "projection")]
    count: bool,

    /// See every write that was answered before
    #[arg(long)]
    consistent: bool,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    at: StoreArgs,
}

/// What is asked of the store.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    Query(Query),
    Scan(Scan),
}

/// Calls the same on a query and on a scan.
macro_rules! of_either {
    ($reading:expr, $one:ident => $call:expr) => {
        match $reading {
            Reading::Query($one) => $call,
            Reading::Scan($one) => $call,
        }
    };
}

impl Reading {
    async fn page(&self, opened: &Opened) -> StoreResult<Page> {
        match self {
            Self::Query(query) => opened.engine().query(query.clone()).await,
            Self::Scan(scan) => opened.engine().scan(scan.clone()).await,
        }
    }
}

/// How much was found so far.
#[derive(Default)]
struct Found {
    count: usize,
    scanned: usize,
}

impl Selection {
    pub(super) fn placeholders(&self) -> Result<Resolved> {
        self.placeholders.resolve(self.input)
    }

    pub(super) fn run(&self, mut parser: Parser<'_>, mut reading: Reading) -> Result {
        let filter = self.filter.as_deref();
        let filter = filter.map(|text| parser.filter(text)).transpose()?;
        let projection = self.projection.as_deref();
        let projection = projection.map(|text| parser.projection(text)).transpose()?;
        parser.finish()?;
        let start = self.cursor.as_deref().map(cursor::open).transpose()?;
        of_either!(&mut reading, one => {
            one.filter = filter;
            one.start_key = start;
            one.index_name.clone_from(&self.index);
            one.consistent = self.consistent;
            if self.count {
                one.select = Some(Select::Count);
            }
        });
        self.at
            .run(async |opened| self.read(opened, reading, projection).await)
    }

    async fn read(
        &self,
        opened: &Opened,
        mut reading: Reading,
        projection: Option<Paths>,
    ) -> Result {
        let table = opened.table(&self.table).await?.definition;
        // What is cut off is found again by its key, which a projection of the store might leave out.
        let projected_here = match self.filter.is_some() && !self.all {
            true => projection.clone(),
            false => {
                of_either!(&mut reading, one => one.projection.clone_from(&projection));
                None
            }
        };
        let mut found = Found::default();
        let mut gathered = Vec::new();
        loop {
            let left = self.left(&found);
            // With a filter the store must not know how many are wanted: it would read as few and find none.
            let limit = left.filter(|_| self.filter.is_none());
            of_either!(&mut reading, one => one.limit = limit);
            let mut page = reading.page(opened).await?;
            let cut = left.filter(|left| *left < page.items.len());
            if let Some(left) = cut {
                page.items.truncate(left);
                page.count = left;
                page.last_key = page.items.last().and_then(|item| self.key_of(&table, item));
            }
            if let Some(paths) = &projected_here {
                page.items = page.items.iter().map(|item| paths.project(item)).collect();
            }
            found.count += page.count;
            found.scanned += page.scanned_count;
            let next = page.last_key.clone();
            let is_end = next.is_none() || self.left(&found) == Some(0);
            match self.at.output.json {
                true => self.print_page(&page, is_end),
                false => gathered.append(&mut page.items),
            }
            if is_end {
                return self.print_end(&table, &gathered, &found, next.as_ref());
            }
            of_either!(&mut reading, one => one.start_key = next);
        }
    }

    /// How many items may still be printed; `None` if there is no end.
    fn left(&self, found: &Found) -> Option<usize> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        (!self.all && !self.count).then(|| limit.saturating_sub(found.count))
    }

    /// The key under which an item is found again.
    fn key_of(&self, table: &TableDef, item: &Item) -> Option<Item> {
        let mut key = table.key.key_of(item)?;
        let index = self.index.as_deref().and_then(|name| table.index(name));
        if let Some(index) = index {
            key.extend(index.key.key_of(item)?);
        }
        Some(key)
    }

    fn print_page(&self, page: &Page, is_end: bool) {
        let cursor = page.last_key.as_ref().filter(|_| is_end);
        let items = (!self.count).then_some(Each(&page.items, write_item));
        print_json(&|w| {
            object!(w;
                "items": items, "count": page.count, "scanned": page.scanned_count,
                "cursor": cursor.map(cursor::seal)
            );
        });
    }

    fn print_end(
        &self,
        table: &TableDef,
        items: &[Item],
        found: &Found,
        next: Option<&Item>,
    ) -> Result {
        if self.at.output.json {
            return Ok(());
        }
        if self.count {
            print(grouped(u64::try_from(found.count).unwrap_or(u64::MAX)));
            return Ok(());
        }
        print_items(items, &table.key);
        let mut facts = format!("items={} read={}", found.count, found.scanned);
        if let Some(key) = next {
            facts.push_str(&format!("; go on with --cursor {}", cursor::seal(key)));
        }
        note(&facts);
        Ok(())
    }
}
