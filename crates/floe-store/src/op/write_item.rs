//! The writes of one item: [`PutItem`], [`UpdateItem`] or [`DeleteItem`], with one kind of answer.

use super::constraint::{Faults, enveloped};
use super::fingerprint::Fingerprint;
use super::{DeleteItem, PutItem, UpdateItem};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::{Error, Result};
use crate::expr::Condition;
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
        match self {
            Self::Put(put) => &put.table_name,
            Self::Update(update) => &update.table_name,
            Self::Delete(delete) => &delete.table_name,
        }
    }

    /// The token that makes it apply once, if there is one.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::Put(put) => put.token.as_deref(),
            Self::Update(update) => update.token.as_deref(),
            Self::Delete(delete) => delete.token.as_deref(),
        }
    }

    /// How much it should tell about its cost.
    pub const fn return_capacity(&self) -> ReturnConsumedCapacity {
        match self {
            Self::Put(put) => put.return_capacity,
            Self::Update(update) => update.return_capacity,
            Self::Delete(delete) => delete.return_capacity,
        }
    }

    /// How its capacity is told, to change it.
    pub const fn return_capacity_mut(&mut self) -> &mut ReturnConsumedCapacity {
        match self {
            Self::Put(put) => &mut put.return_capacity,
            Self::Update(update) => &mut update.return_capacity,
            Self::Delete(delete) => &mut delete.return_capacity,
        }
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
        match self {
            Self::Put(put) => put.return_collection,
            Self::Update(update) => update.return_collection,
            Self::Delete(delete) => delete.return_collection,
        }
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
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Put(put) => put.validate(),
            Self::Update(update) => update.validate(),
            Self::Delete(delete) => delete.validate(),
        }
    }

    /// Checks a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        match self {
            Self::Put(put) => put.check(table),
            Self::Update(update) => update.check(table),
            Self::Delete(delete) => delete.check(table),
        }
    }

    /// The key of the item that it writes.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when the request has no key for this table, which
    /// [`check`](WriteItem::check) tells too.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// What the write makes of the item as it stands; see the `apply` of each write. The request has
    /// passed [`check`](WriteItem::check). A put gives its item away, so that it can be applied once.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](Error::ConditionalCheckFailed) when the condition does not hold,
    /// [`Validation`](Error::Validation) when an update does not fit the item.
    pub fn apply(&mut self, table: &TableDef, old: Option<&Item>) -> Result<Applied> {
        match self {
            Self::Put(put) => put.apply(table, old),
            Self::Update(update) => update.apply(table, old),
            Self::Delete(delete) => delete.apply(table, old),
        }
    }

    /// A number that two requests share only if they write the same: stable over restarts and builds.
    /// What a request returns does not count.
    ///
    /// ```
    /// use floe_store::{Item, op::{PutItem, WriteItem}};
    ///
    /// let put = |n| WriteItem::from(PutItem::new("Orders", Item::new().with("id", n)));
    /// assert_eq!(put(1).fingerprint(), put(1).fingerprint());
    /// assert_ne!(put(1).fingerprint(), put(2).fingerprint());
    /// ```
    pub fn fingerprint(&self) -> u128 {
        let mut fingerprint = Fingerprint::new();
        match self {
            Self::Put(put) => fingerprint.put(put),
            Self::Update(update) => fingerprint.update_item(update),
            Self::Delete(delete) => fingerprint.delete(delete),
        }
        fingerprint.finish()
    }
}

/// What a write makes of an item.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Applied {
    /// The item after the write; `None` when there is none.
    pub new: Option<Item>,
    /// The attributes that the write returns.
    pub returned: Option<Item>,
}

/// The attributes of the key, taken out of an item.
pub(super) fn key_of(table: &TableDef, item: &Item) -> Result<Item> {
    table
        .key
        .key_of(item)
        .ok_or_else(|| Error::validation("The provided key element does not match the schema"))
}

/// Evaluates the condition of a write on the item as it stands.
pub(super) fn check_old(
    condition: Option<&Condition>,
    old: Option<&Item>,
    return_old: bool,
) -> Result<()> {
    const ABSENT: &Item = &Item::new();
    match condition {
        Some(condition) if !condition.evaluate(old.unwrap_or(ABSENT)) => {
            Err(Error::ConditionalCheckFailed {
                item: old.filter(|_| return_old).cloned().map(Box::new),
            })
        }
        _ => Ok(()),
    }
}

/// Refuses the return values that only an update has.
pub(super) fn check_old_only(return_values: ReturnValues) -> Result<()> {
    match return_values {
        ReturnValues::None | ReturnValues::AllOld => Ok(()),
        ReturnValues::UpdatedOld | ReturnValues::AllNew | ReturnValues::UpdatedNew => {
            Err(enveloped(Error::validation(
                "ReturnValues can only be ALL_OLD or NONE",
            )))
        }
    }
}

/// Checks the length of a token.
pub(super) fn check_token(token: Option<&str>) -> Result<()> {
    let mut faults = Faults::new();
    faults.token(token);
    faults.into_result()
}

impl From<PutItem> for WriteItem {
    fn from(put: PutItem) -> Self {
        Self::Put(put)
    }
}

impl From<UpdateItem> for WriteItem {
    fn from(update: UpdateItem) -> Self {
        Self::Update(update)
    }
}

impl From<DeleteItem> for WriteItem {
    fn from(delete: DeleteItem) -> Self {
        Self::Delete(delete)
    }
}

/// Which attributes a write returns. Put and delete know `None` and `AllOld` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ReturnValues {
    /// None.
    #[default]
    None,
    /// The whole item as it was.
    AllOld,
    /// The updated attributes as they were.
    UpdatedOld,
    /// The whole item as it is now.
    AllNew,
    /// The updated attributes as they are now.
    UpdatedNew,
}

impl ReturnValues {
    /// The name that DynamoDB gives it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::AllOld => "ALL_OLD",
            Self::UpdatedOld => "UPDATED_OLD",
            Self::AllNew => "ALL_NEW",
            Self::UpdatedNew => "UPDATED_NEW",
        }
    }
}

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
