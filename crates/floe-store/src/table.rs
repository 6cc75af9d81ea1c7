//! Tables: their keys, indexes, streams and expiry.
//!
//! [`TableDef`] is a definition that has been checked: it can only be built by
//! [`CreateTable::definition`](crate::op::CreateTable::definition) or the [builder](TableDef::builder),
//! so engines rely on it without looking again.

mod settings;

use std::collections::BTreeMap;

use crate::declare::{named, setters};
use crate::env::Timestamp;
use crate::item::Item;
use crate::key_length::key_bytes;
use crate::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX, TTL_AGE_MAX};
use crate::size::attribute_size;
use crate::text::Name;
use crate::value::{Value, ValueType};

pub use settings::{
    Billing, Encryption, OnDemandThroughput, Scaling, TableClass, TableHistory, Throughput,
};

named! {
    /// The types that a key attribute can have.
    #[derive(PartialOrd, Ord)]
    pub enum KeyKind {
        /// String.
        S = "S",
        /// Number.
        N = "N",
        /// Binary.
        B = "B",
    }
}

impl KeyKind {
    /// The type of the values.
    pub const fn value_type(self) -> ValueType {
        match self {
            Self::S => ValueType::S,
            Self::N => ValueType::N,
            Self::B => ValueType::B,
        }
    }

    /// Whether the value is of this type.
    pub fn matches(self, value: &Value) -> bool {
        value.value_type() == self.value_type()
    }
}

/// An attribute that is part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyAttribute {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub kind: KeyKind,
}

impl KeyAttribute {
    /// A key attribute of this name and type.
    pub fn new(name: impl Into<Name>, kind: KeyKind) -> Self {
        let name = name.into();
        Self { name, kind }
    }

    /// What the item holds of it, if that is of its type.
    fn value_in<'i>(&self, item: &'i Item) -> Option<&'i Value> {
        item.get(&self.name)
            .filter(|value| self.kind.matches(value))
    }
}

/// One attribute of a key and its role there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySchemaElement {
    /// The attribute.
    pub name: Name,
    /// Its role.
    pub role: KeyRole,
}

named! {
    /// The role of an attribute in a key.
    pub enum KeyRole {
        /// Partition key.
        Hash = "HASH",
        /// Sort key.
        Range = "RANGE",
    }
}

/// The attributes that form a key. A table has one partition attribute and at most one sort attribute;
/// a global index has up to four of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySchema {
    /// The partition key: at least one attribute.
    pub partition: Vec<KeyAttribute>,
    /// The sort key: may be empty.
    pub sort: Vec<KeyAttribute>,
}

impl KeySchema {
    /// All attributes, partition first, in their declared order.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.partition.iter().chain(&self.sort)
    }

    /// The attributes with their roles, as requests and descriptions list them.
    pub fn elements(&self) -> Vec<KeySchemaElement> {
        let element = |attribute: &KeyAttribute, role| KeySchemaElement {
            name: attribute.name.clone(),
            role,
        };
        let partition = self.partition.iter().map(|a| element(a, KeyRole::Hash));
        let sort = self.sort.iter().map(|a| element(a, KeyRole::Range));
        partition.chain(sort).collect()
    }

    /// Whether the attribute is part of the key.
    pub fn contains(&self, name: &str) -> bool {
        self.attributes().any(|a| a.name == *name)
    }

    /// The key attributes of an item, if all are there with the right type.
    pub fn key_of(&self, item: &Item) -> Option<Item> {
        let attribute = |a: &KeyAttribute| Some((a.name.clone(), a.value_in(item)?.clone()));
        self.attributes().map(attribute).collect()
    }
}

/// Which attributes an index copies from its items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    /// All of them.
    All,
    /// Only the keys of the table and the index.
    KeysOnly,
    /// The keys, and these.
    Include(Vec<Name>),
}

impl Projection {
    /// The attributes that it names beside the keys.
    pub(crate) fn included(&self) -> &[Name] {
        match self {
            Self::Include(names) => names,
            Self::All | Self::KeysOnly => &[],
        }
    }
}

/// Whether an index has a partition key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// A global index: its own partition key, read eventually.
    Global,
    /// A local index: the table's partition key with another sort key.
    Local,
}

/// A secondary index. Items that lack one of its key attributes are not in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexDef {
    /// Its name, unique in the table.
    pub name: String,
    /// Global or local.
    pub kind: IndexKind,
    /// Its key.
    pub key: KeySchema,
    /// What it copies.
    pub projection: Projection,
    /// Its own throughput, for a global index of a provisioned table.
    pub throughput: Option<Throughput>,
    /// How far it scales, for a global index.
    pub scaling: Scaling,
}

impl IndexDef {
    /// How it is paid for: as its table is.
    pub fn billing(&self) -> Billing {
        self.throughput
            .map_or(Billing::OnDemand, Billing::Provisioned)
    }

    /// Whether the index holds this item: every key attribute is there with the right type, none is empty, and
    /// they are not too long together. An item that was there before the index may have such values.
    pub fn holds(&self, item: &Item) -> bool {
        let fits = |attributes: &[KeyAttribute], bytes_max| {
            let mut total = 0;
            attributes.iter().all(|a| {
                a.value_in(item).is_some_and(|value| {
                    let bytes = key_bytes(value);
                    total += bytes;
                    (bytes > 0 || a.kind == KeyKind::N) && total <= bytes_max
                })
            })
        };
        fits(&self.key.partition, PARTITION_KEY_BYTES_MAX)
            && fits(&self.key.sort, SORT_KEY_BYTES_MAX)
    }

    /// Whether the index copies the attribute.
    pub fn projects(&self, table_key: &KeySchema, name: &str) -> bool {
        self.projection == Projection::All
            || self.key.contains(name)
            || table_key.contains(name)
            || self.projection.included().iter().any(|n| *n == *name)
    }

    /// The part of an item that the index copies.
    pub fn project(&self, table_key: &KeySchema, item: &Item) -> Item {
        if self.projection == Projection::All {
            return item.clone();
        }
        let copy = |(name, value): (&Name, &Value)| (name.clone(), value.clone());
        self.projected(table_key, item).map(copy).collect()
    }

    /// The size of the index's entry for an item that it [holds](IndexDef::holds).
    pub fn entry_size(&self, table_key: &KeySchema, item: &Item) -> usize {
        let size = |(name, value): (&Name, &Value)| attribute_size(name, value);
        self.projected(table_key, item).map(size).sum()
    }

    /// Whether two items have the same entry in the index.
    pub fn same_entry(&self, table_key: &KeySchema, one: &Item, other: &Item) -> bool {
        self.projected(table_key, one)
            .eq(self.projected(table_key, other))
    }

    /// Whether two items have the same key in the index.
    pub fn same_key(&self, one: &Item, other: &Item) -> bool {
        let mut attributes = self.key.attributes();
        attributes.all(|a| one.get(&a.name) == other.get(&a.name))
    }

    fn projected<'a>(
        &'a self,
        table_key: &'a KeySchema,
        item: &'a Item,
    ) -> impl Iterator<Item = (&'a Name, &'a Value)> {
        item.iter()
            .filter(move |(name, _)| self.projects(table_key, name))
    }
}

named! {
    /// Which images a change record holds.
    pub enum StreamView {
        /// Only the key.
        KeysOnly = "KEYS_ONLY",
        /// The item after the change.
        NewImage = "NEW_IMAGE",
        /// The item before the change.
        OldImage = "OLD_IMAGE",
        /// Both.
        NewAndOldImages = "NEW_AND_OLD_IMAGES",
    }
}

impl StreamView {
    /// Whether records hold the item before the change.
    pub const fn has_old(self) -> bool {
        matches!(self, Self::OldImage | Self::NewAndOldImages)
    }

    /// Whether records hold the item after the change.
    pub const fn has_new(self) -> bool {
        matches!(self, Self::NewImage | Self::NewAndOldImages)
    }
}

/// A checked definition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Its name.
    pub name: String,
    /// Its primary key.
    pub key: KeySchema,
    /// Its indexes, local and global, each name once.
    pub indexes: Vec<IndexDef>,
    /// How it is paid for.
    pub billing: Billing,
    /// The images in its change stream, if it has one.
    pub stream: Option<StreamView>,
    /// The attribute that holds the moment of expiry in epoch seconds, if expiry is on.
    pub ttl_attribute: Option<Name>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Whether the table refuses to be deleted.
    pub deletion_protection: bool,
    /// The storage class, if one was chosen.
    pub class: Option<TableClass>,
    /// How far it scales.
    pub scaling: Scaling,
    /// The key that it is encrypted with, if it is not the store's own.
    pub encryption: Option<Encryption>,
}

impl TableDef {
    /// Starts a definition: a name and the partition key.
    ///
    /// ```
    /// use floe_store::table::{KeyKind, Projection, StreamView};
    /// use floe_store::TableDef;
    ///
    /// let orders = TableDef::builder("Orders", "customer", KeyKind::S)
    ///     .sort_key("placed", KeyKind::N)
    ///     .global_index("by_product", [("product", KeyKind::S)], [("placed", KeyKind::N)], Projection::All)
    ///     .stream(StreamView::NewAndOldImages)
    ///     .build()?;
    /// assert_eq!(orders.indexes.len(), 1);
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn builder(
        name: impl Into<String>,
        partition_key: impl Into<Name>,
        kind: KeyKind,
    ) -> TableBuilder {
        TableBuilder {
            definition: Self {
                name: name.into(),
                key: KeySchema {
                    partition: vec![KeyAttribute::new(partition_key, kind)],
                    sort: Vec::new(),
                },
                indexes: Vec::new(),
                billing: Billing::OnDemand,
                stream: None,
                ttl_attribute: None,
                tags: BTreeMap::new(),
                deletion_protection: false,
                class: None,
                scaling: Scaling::default(),
                encryption: None,
            },
        }
    }

    /// The index of that name.
    pub fn index(&self, name: &str) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The global indexes.
    pub fn global_indexes(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().filter(|i| i.kind == IndexKind::Global)
    }

    /// The local indexes.
    pub fn local_indexes(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().filter(|i| i.kind == IndexKind::Local)
    }

    /// Whether an item has expired at this moment: its TTL attribute is a number of seconds in the past,
    /// and not more than five years in the past, which DynamoDB takes for a mistake.
    ///
    /// ```
    /// use floe_store::{Item, TableDef, Timestamp, table::KeyKind};
    ///
    /// let sessions = TableDef::builder("Sessions", "id", KeyKind::S).ttl("until").build()?;
    /// let session = Item::new().with("id", "s-1").with("until", 1000);
    /// assert!(!sessions.expired(&session, Timestamp::from_millis(999_999)));
    /// assert!(sessions.expired(&session, Timestamp::from_millis(1_000_000)));
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn expired(&self, item: &Item, now: Timestamp) -> bool {
        self.expiry(item)
            .is_some_and(|at| at <= now.as_secs() && now.as_secs() - at <= FIVE_YEARS_SECS)
    }

    /// The moment of expiry that an item names, in epoch seconds.
    pub fn expiry(&self, item: &Item) -> Option<u64> {
        item.get(self.ttl_attribute.as_deref()?)?.as_n()?.to_u64()
    }
}

/// How far back a moment of expiry may lie and still count.
pub const FIVE_YEARS_SECS: u64 = TTL_AGE_MAX.as_secs();

/// Builds a [`TableDef`] in code. [`build`](TableBuilder::build) checks it as the request for the table.
#[derive(Clone, Debug)]
pub struct TableBuilder {
    pub(crate) definition: TableDef,
}

impl TableBuilder {
    setters! {
        /// Adds a sort key.
        sort_key(name: impl Into<Name>, kind: KeyKind) => definition.key.sort = vec![KeyAttribute::new(name, kind)];
        /// Switches the change stream on.
        stream(view: StreamView) => definition.stream = Some(view);
        /// Sets the attribute that holds the moment of expiry.
        ttl(attribute: impl Into<Name>) => definition.ttl_attribute = Some(attribute.into());
        /// Sets how the table is paid for; by the request if nothing is said. Global indexes get the same
        /// throughput as the table.
        billing(billing: Billing) => definition.billing = billing;
        /// Makes the table refuse to be deleted.
        deletion_protection() => definition.deletion_protection = true;
    }

    /// Adds a global index with up to four partition and four sort attributes.
    #[must_use]
    pub fn global_index<N: Into<Name>, M: Into<Name>>(
        self,
        name: impl Into<String>,
        partition: impl IntoIterator<Item = (N, KeyKind)>,
        sort: impl IntoIterator<Item = (M, KeyKind)>,
        projection: Projection,
    ) -> Self {
        let key = KeySchema {
            partition: key_attributes(partition),
            sort: key_attributes(sort),
        };
        self.push_index(name.into(), IndexKind::Global, key, projection)
    }

    /// Adds a local index: the table's partition key with another sort key.
    #[must_use]
    pub fn local_index(
        self,
        name: impl Into<String>,
        sort_key: impl Into<Name>,
        kind: KeyKind,
        projection: Projection,
    ) -> Self {
        let key = KeySchema {
            partition: self.definition.key.partition.clone(),
            sort: vec![KeyAttribute::new(sort_key, kind)],
        };
        self.push_index(name.into(), IndexKind::Local, key, projection)
    }

    /// Adds a tag.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.definition.tags.insert(key.into(), value.into());
        self
    }

    fn push_index(
        mut self,
        name: String,
        kind: IndexKind,
        key: KeySchema,
        projection: Projection,
    ) -> Self {
        self.definition.indexes.push(IndexDef {
            name,
            kind,
            key,
            projection,
            throughput: None,
            scaling: Scaling::default(),
        });
        self
    }
}

fn key_attributes<N: Into<Name>>(
    attributes: impl IntoIterator<Item = (N, KeyKind)>,
) -> Vec<KeyAttribute> {
    let attributes = attributes.into_iter();
    attributes
        .map(|(name, kind)| KeyAttribute::new(name, kind))
        .collect()
}

named! {
    /// Whether a table or an index can be used.
    #[non_exhaustive]
    pub enum TableStatus {
        /// It is being made.
        Creating = "CREATING",
        /// It is being changed.
        Updating = "UPDATING",
        /// It is being removed.
        Deleting = "DELETING",
        /// It is ready.
        Active = "ACTIVE",
    }
}

/// A table as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDescription {
    /// Its definition.
    pub definition: TableDef,
    /// Whether it can be used.
    pub status: TableStatus,
    /// When it was made.
    pub created: Timestamp,
    /// How many items it holds.
    pub item_count: u64,
    /// How many bytes they weigh, as DynamoDB counts.
    pub size_bytes: u64,
    /// The resource name.
    pub arn: String,
    /// A name that no other table ever has, not even one of the same name made later.
    pub id: String,
    /// The indexes, in the order of the definition.
    pub indexes: Vec<IndexDescription>,
    /// The newest change stream, even if it has been switched off.
    pub latest_stream: Option<StreamHandle>,
    /// When its settings changed.
    pub history: TableHistory,
}

/// An index as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// Whether it can be used.
    pub status: TableStatus,
    /// Whether it is being filled from the items that were there before it.
    pub backfilling: bool,
    /// How many entries it holds.
    pub item_count: u64,
    /// How many bytes they weigh.
    pub size_bytes: u64,
    /// The resource name.
    pub arn: String,
}

/// The name of a change stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHandle {
    /// The resource name.
    pub arn: String,
    /// When the stream was switched on, which tells the streams of one table apart.
    pub label: String,
}
