//! The content of the stores. Every item is a function of its table, number and version, so that a reader knows what
//! was written without having seen it.

use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Item, Result, TableDef, Value};

use super::super::test_table::splitmix64;

/// Number of tables: one with a global index and a stream, one with a local index, one plain.
pub(super) const TABLES: u64 = 3;
/// The table with a stream.
pub(super) const STREAM_TABLE: u64 = 0;
/// The name of the index.
pub(super) const INDEX: &str = "by_group";

/// Number of partitions in a table, and of groups in an index.
const PARTITIONS: u64 = 7;
const GROUPS: u64 = 5;
/// Maximum number of writes per item.
const VERSIONS: u64 = 3;
/// One in this many items is deleted at the end.
const DELETED_EVERY: u64 = 11;

/// The size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// Items written to each table, including deleted ones.
    pub(super) items: u64,
    /// Items written to the last table at the end, one by one.
    pub(super) tail: u64,
    pub(super) payload_bytes: usize,
}

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) table: u64,
    pub(super) number: u64,
    /// The version written; `None` for a delete.
    pub(super) version: Option<u64>,
}

pub(super) fn table_name(table: u64) -> String {
    format!("Table-{table}")
}

/// Whether a table has an index.
pub(super) const fn has_index(table: u64) -> bool {
    table < 2
}

pub(super) fn table(table: u64) -> Result<TableDef> {
    let builder = TableDef::builder(table_name(table), "p", KeyKind::S).sort_key("n", KeyKind::N);
    let builder = match table {
        0 => builder
            .global_index(
                INDEX,
                [("group", KeyKind::S)],
                [("n", KeyKind::N)],
                Projection::All,
            )
            .stream(StreamView::NewAndOldImages),
        1 => builder.local_index(INDEX, "group", KeyKind::S, Projection::All),
        _ => builder,
    };
    builder.build()
}

impl Content {
    /// The numbers of a table's items, including deleted ones.
    pub(super) const fn numbers(&self, table: u64) -> std::ops::Range<u64> {
        let tail = if table == TABLES - 1 { self.tail } else { 0 };
        0..self.items + tail
    }

    /// All writes before the tail, in order.
    pub(super) fn writes(&self) -> impl Iterator<Item = Write> + use<> {
        let items = self.items;
        let each = move |version: Option<u64>| {
            (0..items).flat_map(move |number| {
                (0..TABLES).map(move |table| Write {
                    table,
                    number,
                    version,
                })
            })
        };
        let puts = (1..=VERSIONS).flat_map(move |version| each(Some(version)));
        let puts = puts.filter(|write| write.version <= Some(versions(write.number)));
        puts.chain(each(None).filter(|write| is_deleted(write.number)))
    }

    /// The writes of the tail.
    pub(super) fn tail(&self) -> impl Iterator<Item = Write> + use<> {
        let (from, until) = (self.items, self.items + self.tail);
        (from..until).map(|number| Write {
            table: TABLES - 1,
            number,
            version: Some(1),
        })
    }

    /// The version that a reader must see; `None` if there must be no item.
    pub(super) fn last_version(&self, table: u64, number: u64) -> Option<u64> {
        if !self.numbers(table).contains(&number) {
            None
        } else if number >= self.items {
            Some(1)
        } else {
            (!is_deleted(number)).then(|| versions(number))
        }
    }

    /// The item of a version.
    pub(super) fn item(&self, table: u64, number: u64, version: u64) -> Item {
        let mut item = key(number).with("version", version).with(
            "payload",
            payload(table, number, version, self.payload_bytes),
        );
        if !number.is_multiple_of(4) {
            item.insert("group", format!("g{}", number % GROUPS));
        }
        item
    }

    /// Returns number and version of an item if it was written to this table at any time.
    pub(super) fn identify(&self, table: u64, item: &Item) -> Option<(u64, u64)> {
        let number = item.get("n")?.as_n()?.to_u64()?;
        let version = item.get("version")?.as_n()?.to_u64()?;
        let most = if number >= self.items {
            1
        } else {
            versions(number)
        };
        let is_written = self.numbers(table).contains(&number)
            && (1..=most).contains(&version)
            && *item == self.item(table, number, version);
        is_written.then_some((number, version))
    }
}

/// The key of an item.
pub(super) fn key(number: u64) -> Item {
    Item::new()
        .with("p", format!("p{}", number % PARTITIONS))
        .with("n", number)
}

/// Whether an item is in the index of its table.
pub(super) fn is_indexed(item: &Item) -> bool {
    item.get("group").and_then(Value::as_s).is_some()
}

const fn versions(number: u64) -> u64 {
    1 + number % VERSIONS
}

const fn is_deleted(number: u64) -> bool {
    number % DELETED_EVERY == DELETED_EVERY - 1
}

fn payload(table: u64, number: u64, version: u64, bytes: usize) -> String {
    let seed = splitmix64(table ^ splitmix64(number ^ splitmix64(version)));
    let words =
        (0..bytes.div_ceil(16) as u64).map(|word| format!("{:016x}", splitmix64(seed ^ word)));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_identified_by_their_content() {
        let content = Content {
            items: 40,
            tail: 5,
            payload_bytes: 64,
        };
        let item = content.item(1, 7, 2);
        assert_eq!(content.identify(1, &item), Some((7, 2)));
        assert_eq!(content.identify(2, &item), None, "written to another table");
        let forged = item.with("payload", "never written");
        assert_eq!(content.identify(1, &forged), None);
        assert_eq!(content.last_version(1, 7), Some(2));
        assert_eq!(content.last_version(1, 10), None, "deleted");
        assert_eq!(content.last_version(2, 44), Some(1));
        assert_eq!(content.last_version(1, 44), None);
        let deletes = content.writes().filter(|write| write.version.is_none());
        assert_eq!(deletes.count(), 9);
    }
}
