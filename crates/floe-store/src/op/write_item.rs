//! The writes of one item: [`PutItem`], [`UpdateItem`] or [`DeleteItem`], with one kind of answer.

use super::write::{Applied, from_variants, key_of, of_each};
use super::{DeleteItem, PutItem, UpdateItem};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::Result;
use crate::item::Item;
use crate::table::TableDef;

/// A write of one item.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteItem {
    /// Sets the whole item.
    Put(PutItem),
    /// Changes parts of an item, making it if it is not there.
    Update(UpdateItem),
    /// Removes an item.
    Delete(DeleteItem),
}

impl WriteItem {
    /// The table that it writes to.
    pub fn table_name(&self) -> &str {
        of_each!(self, [Put Update Delete], write => &write.table_name)
    }

    /// The token that makes it apply once, if there is one.
    pub fn token(&self) -> Option<&str> {
        of_each!(self, [Put Update Delete], write => write.token.as_deref())
    }

    /// How much it should tell about its cost.
    pub const fn return_capacity(&self) -> ReturnConsumedCapacity {
        of_each!(self, [Put Update Delete], write => write.return_capacity)
    }

    /// How its capacity is told, to change it.
    pub const fn return_capacity_mut(&mut self) -> &mut ReturnConsumedCapacity {
        of_each!(self, [Put Update Delete], write => &mut write.return_capacity)
    }

    /// The name that DynamoDB has for it.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Put(_) => "PutItem",
            Self::Update(_) => "UpdateItem",
            Self::Delete(_) => "DeleteItem",
        }
    }

    /// Whether it should tell the size of the item collection.
    pub const fn return_collection(&self) -> bool {
        of_each!(self, [Put Update Delete], write => write.return_collection)
    }

    /// The item that carries the key: the whole item of a put, the key of the others.
    pub const fn key_item(&self) -> &Item {
        match self {
            Self::Put(put) => &put.item,
            Self::Update(update) => &update.key,
            Self::Delete(delete) => &delete.key,
        }
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        of_each!(self, [Put Update Delete], write => write.validate())
    }

    /// Checks a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        of_each!(self, [Put Update Delete], write => write.check(table))
    }

    /// The key of the item that it writes.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation) when the request has no key for this table, which
    /// [`check`](WriteItem::check) tells too.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// What the write makes of the item as it stands; see the `apply` of each write. The request has
    /// passed [`check`](WriteItem::check). A put gives its item away, so that it can be applied once.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) when the condition does not hold,
    /// [`Validation`](crate::Error::Validation) when an update does not fit the item.
    pub fn apply(&mut self, table: &TableDef, old: Option<&Item>) -> Result<Applied> {
        of_each!(self, [Put Update Delete], write => write.apply(table, old))
    }
}

from_variants!(WriteItem: Put(PutItem), Update(UpdateItem), Delete(DeleteItem));

/// The answer to a write of one item.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteItemOutput {
    /// The attributes that [`ReturnValues`] asked for, if there are any.
    pub attributes: Option<Item>,
    /// What it cost, if asked.
    pub consumed: Option<ConsumedCapacity>,
    /// The size of the item collection, if asked and if the table has local indexes.
    pub collection: Option<ItemCollectionMetrics>,
}

/// The estimated size of all items and local index entries under one partition key.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemCollectionMetrics {
    /// The partition key.
    pub key: Item,
    /// The lower and upper bound of the estimate, in gigabytes.
    pub size_estimate_gb: (f64, f64),
}

impl ItemCollectionMetrics {
    /// The estimate for the collection of an item, whose items and local index entries weigh so many
    /// bytes: whole gigabytes around the size. `None` for a table without local indexes, which has no
    /// item collections to tell about.
    ///
    /// ```
    /// use floe_store::{Item, TableDef, op::ItemCollectionMetrics};
    /// use floe_store::table::{KeyKind, Projection};
    ///
    /// let table = TableDef::builder("Orders", "customer", KeyKind::S)
    ///     .sort_key("placed", KeyKind::N)
    ///     .local_index("by_state", "state", KeyKind::S, Projection::All)
    ///     .build()?;
    /// let item = Item::new().with("customer", "c-1").with("placed", 1);
    /// let metrics = ItemCollectionMetrics::estimate(&table, &item, 1000).unwrap();
    /// assert_eq!(metrics.key, Item::new().with("customer", "c-1"));
    /// assert_eq!(metrics.size_estimate_gb, (0.0, 1.0));
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn estimate(table: &TableDef, item: &Item, bytes: u64) -> Option<Self> {
        const GIGABYTE: u64 = 1024 * 1024 * 1024;
        table.local_indexes().next()?;
        let names = table.key.partition.iter().map(|attribute| &attribute.name);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a collection is limited to 10 gigabytes"
        )]
        let whole = (bytes / GIGABYTE) as f64;
        Some(Self {
            key: item.pick(names),
            size_estimate_gb: (whole, whole + 1.0),
        })
    }
}
