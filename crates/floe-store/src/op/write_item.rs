//! The writes of one item: [`PutItem`], [`UpdateItem`] or [`DeleteItem`], with a common response.

use super::write::{AppliedWrite, from_variants, key_of, match_variants};
use super::{DeleteItem, PutItem, UpdateItem};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::Result;
use crate::item::Item;
use crate::table::TableDef;

/// A write of one item.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteItem {
    /// Puts the whole item.
    Put(PutItem),
    /// Changes parts of an item, creating it if it does not exist.
    Update(UpdateItem),
    /// Deletes an item.
    Delete(DeleteItem),
}

impl WriteItem {
    /// Returns the table.
    pub fn table_name(&self) -> &str {
        match_variants!(self, [Put Update Delete], write => &write.table_name)
    }

    /// Returns the idempotency token, if there is one.
    pub fn token(&self) -> Option<&str> {
        match_variants!(self, [Put Update Delete], write => write.token.as_deref())
    }

    /// Returns how much detail about the cost is requested.
    pub const fn return_capacity(&self) -> ReturnConsumedCapacity {
        match_variants!(self, [Put Update Delete], write => write.return_capacity)
    }

    /// Returns the requested detail about the cost, for changing it.
    pub const fn return_capacity_mut(&mut self) -> &mut ReturnConsumedCapacity {
        match_variants!(self, [Put Update Delete], write => &mut write.return_capacity)
    }

    /// Returns DynamoDB's name of the operation.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Put(_) => "PutItem",
            Self::Update(_) => "UpdateItem",
            Self::Delete(_) => "DeleteItem",
        }
    }

    /// Returns whether the size of the item collection is requested.
    pub const fn return_collection(&self) -> bool {
        match_variants!(self, [Put Update Delete], write => write.return_collection)
    }

    /// Returns the item that contains the key: the whole item of a put, the key of other writes.
    pub const fn key_item(&self) -> &Item {
        match self {
            Self::Put(put) => &put.item,
            Self::Update(update) => &update.key,
            Self::Delete(delete) => &delete.key,
        }
    }

    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        match_variants!(self, [Put Update Delete], write => write.validate())
    }

    /// Checks a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        match_variants!(self, [Put Update Delete], write => write.check(table))
    }

    /// Returns the key of the written item.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation) if the request has no key for this table, which
    /// [`check`](WriteItem::check) reports as well.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// Applies the write to the current item; see `apply` of each write. The request must have passed
    /// [`check`](WriteItem::check). A put moves its item out, so it can be applied only once.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) if the condition does not hold,
    /// [`Validation`](crate::Error::Validation) if an update does not match the item.
    pub fn apply(&mut self, table: &TableDef, old: Option<&Item>) -> Result<AppliedWrite> {
        match_variants!(self, [Put Update Delete], write => write.apply(table, old))
    }
}

from_variants!(WriteItem: Put(PutItem), Update(UpdateItem), Delete(DeleteItem));

/// The response to a write of one item.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteItemOutput {
    /// The attributes requested by [`ReturnValues`](crate::op::ReturnValues), if any.
    pub attributes: Option<Item>,
    /// The cost, if requested.
    pub consumed: Option<ConsumedCapacity>,
    /// The size of the item collection, if requested and if the table has local indexes.
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
    /// Returns the estimate for an item collection whose items and local index entries have this size: the surrounding
    /// whole gigabytes. `None` for a table without local indexes, which has no item collections.
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
