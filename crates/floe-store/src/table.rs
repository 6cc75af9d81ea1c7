//! Tables: their keys, indexes, streams and expiry.
//!
//! A [`TableDef`] is always valid: it can only be built by
//! [`CreateTable::definition`](crate::op::CreateTable::definition) or the [builder](TableDef::builder), so engines need
//! no further checks.

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
    /// The types of key attributes.
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
    /// The type of values of this kind.
    pub const fn value_type(self) -> ValueType {
        match self {
            Self::S => ValueType::S,
            Self::N => ValueType::N,
            Self::B => ValueType::B,
        }
    }

    /// Whether the value has this type.
    pub fn matches(self, value: &Value) -> bool {
        value.value_type() == self.value_type()
    }
}

/// An attribute that is part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyAttribute {
    /// The name.
    pub name: Name,
    /// The type.
    pub kind: KeyKind,
}

impl KeyAttribute {
    /// Creates a key attribute with this name and type.
    pub fn new(name: impl Into<Name>, kind: KeyKind) -> Self {
        let name = name.into();
        Self { name, kind }
    }

    /// Returns the item's value of the attribute, if it has the right type.
    fn value_in<'i>(&self, item: &'i Item) -> Option<&'i Value> {
        item.get(&self.name)
            .filter(|value| self.kind.matches(value))
    }
}

/// A key attribute and its role in the key.
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

/// The attributes of a key. A table has one partition attribute and at most one sort attribute; a global index has up
/// to four of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySchema {
    /// The partition key: at least one attribute.
    pub partition: Vec<KeyAttribute>,
    /// The sort key; may be empty.
    pub sort: Vec<KeyAttribute>,
}

impl KeySchema {
    /// Returns all attributes in declared order, partition key first.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.partition.iter().chain(&self.sort)
    }

    /// Returns the attributes with their roles, as in requests and descriptions.
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

    /// Returns the key of an item, if all attributes exist and have the right type.
    pub fn key_of(&self, item: &Item) -> Option<Item> {
        let attribute = |a: &KeyAttribute| Some((a.name.clone(), a.value_in(item)?.clone()));
        self.attributes().map(attribute).collect()
    }
}

/// Which attributes an index copies from the table's items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    /// All attributes.
    All,
    /// Only the keys of the table and the index.
    KeysOnly,
    /// The keys and these attributes.
    Include(Vec<Name>),
}

impl Projection {
    /// Returns the names of the non-key attributes.
    pub(crate) fn included(&self) -> &[Name] {
        match self {
            Self::Include(names) => names,
            Self::All | Self::KeysOnly => &[],
        }
    }
}

/// Whether an index has its own partition key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// A global index: its own partition key, eventually consistent.
    Global,
    /// A local index: the table's partition key with another sort key.
    Local,
}

/// A secondary index. It has no entries for items that lack one of its key attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexDef {
    /// The name, unique in the table.
    pub name: String,
    /// Global or local.
    pub kind: IndexKind,
    /// The key.
    pub key: KeySchema,
    /// The copied attributes.
    pub projection: Projection,
    /// The provisioned throughput, for a global index of a provisioned table.
    pub throughput: Option<Throughput>,
    /// The scaling limits, for a global index.
    pub scaling: Scaling,
}

impl IndexDef {
    /// Returns the billing mode, which is that of the table.
    pub fn billing(&self) -> Billing {
        self.throughput
            .map_or(Billing::OnDemand, Billing::Provisioned)
    }

    /// Whether the index has an entry for this item: every key attribute exists with the right type, none is empty, and
    /// the key is not too long. Items older than the index may have such values.
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

    /// Whether the index contains the attribute.
    pub fn projects(&self, table_key: &KeySchema, name: &str) -> bool {
        self.projection == Projection::All
            || self.key.contains(name)
            || table_key.contains(name)
            || self.projection.included().iter().any(|n| *n == *name)
    }

    /// Returns the attributes of an item that the index contains.
    pub fn project(&self, table_key: &KeySchema, item: &Item) -> Item {
        if self.projection == Projection::All {
            return item.clone();
        }
        let copy = |(name, value): (&Name, &Value)| (name.clone(), value.clone());
        self.projected(table_key, item).map(copy).collect()
    }

    /// Returns the size of the entry for an item that the index [holds](IndexDef::holds).
    pub fn entry_size(&self, table_key: &KeySchema, item: &Item) -> usize {
        let size = |(name, value): (&Name, &Value)| attribute_size(name, value);
        self.projected(table_key, item).map(size).sum()
    }

    /// Whether two items have equal entries in the index.
    pub fn same_entry(&self, table_key: &KeySchema, one: &Item, other: &Item) -> bool {
        self.projected(table_key, one)
            .eq(self.projected(table_key, other))
    }

    /// Whether two items have equal keys in the index.
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
    /// The images that a change record contains.
    pub enum StreamView {
        /// Only the key.
        KeysOnly = "KEYS_ONLY",
        /// The item after the change.
        NewImage = "NEW_IMAGE",
        /// The item before the change.
        OldImage = "OLD_IMAGE",
        /// The item before and after the change.
        NewAndOldImages = "NEW_AND_OLD_IMAGES",
    }
}

impl StreamView {
    /// Whether records contain the old image.
    pub const fn has_old(self) -> bool {
        matches!(self, Self::OldImage | Self::NewAndOldImages)
    }

    /// Whether records contain the new image.
    pub const fn has_new(self) -> bool {
        matches!(self, Self::NewImage | Self::NewAndOldImages)
    }
}

/// A valid table definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// The name.
    pub name: String,
    /// The primary key.
    pub key: KeySchema,
    /// All indexes, with unique names.
    pub indexes: Vec<IndexDef>,
    /// The billing mode.
    pub billing: Billing,
    /// The images in the change stream, if the table has one.
    pub stream: Option<StreamView>,
    /// The attribute with the expiry time in epoch seconds, if expiry is enabled.
    pub ttl_attribute: Option<Name>,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// Whether deleting the table is rejected.
    pub deletion_protection: bool,
    /// The storage class, if set.
    pub class: Option<TableClass>,
    /// The scaling limits.
    pub scaling: Scaling,
    /// The encryption key, if it is not the store's default.
    pub encryption: Option<Encryption>,
}

impl TableDef {
    /// Starts a definition with a name and the partition key.
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

    /// Returns the index of this name.
    pub fn index(&self, name: &str) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// Returns the global indexes.
    pub fn global_indexes(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().filter(|i| i.kind == IndexKind::Global)
    }

    /// Returns the local indexes.
    pub fn local_indexes(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().filter(|i| i.kind == IndexKind::Local)
    }

    /// Whether an item has expired: its TTL attribute is a number of seconds in the past, but at most five years,
    /// beyond which DynamoDB considers it a mistake.
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

    /// Returns the expiry time of an item in epoch seconds.
    pub fn expiry(&self, item: &Item) -> Option<u64> {
        item.get(self.ttl_attribute.as_deref()?)?.as_n()?.to_u64()
    }
}

/// Maximum age of an expiry time; older ones are ignored.
pub const FIVE_YEARS_SECS: u64 = TTL_AGE_MAX.as_secs();

/// Builds a [`TableDef`] in code. [`build`](TableBuilder::build) validates it like a request.
#[derive(Clone, Debug)]
pub struct TableBuilder {
    pub(crate) definition: TableDef,
}

impl TableBuilder {
    setters! {
        /// Adds a sort key.
        sort_key(name: impl Into<Name>, kind: KeyKind) => definition.key.sort = vec![KeyAttribute::new(name, kind)];
        /// Enables the change stream.
        stream(view: StreamView) => definition.stream = Some(view);
        /// Sets the attribute with the expiry time.
        ttl(attribute: impl Into<Name>) => definition.ttl_attribute = Some(attribute.into());
        /// Sets the billing mode. Default: on demand. Global indexes get the throughput of the table.
        billing(billing: Billing) => definition.billing = billing;
        /// Rejects deleting the table.
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
    /// The state of a table or an index.
    #[non_exhaustive]
    pub enum TableStatus {
        /// Being created.
        Creating = "CREATING",
        /// Being changed.
        Updating = "UPDATING",
        /// Being deleted.
        Deleting = "DELETING",
        /// Ready for use.
        Active = "ACTIVE",
    }
}

/// The current state of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDescription {
    /// The definition.
    pub definition: TableDef,
    /// The status.
    pub status: TableStatus,
    /// When the table was created.
    pub created: Timestamp,
    /// The number of items.
    pub item_count: u64,
    /// The size of the items, as DynamoDB counts.
    pub size_bytes: u64,
    /// The ARN.
    pub arn: String,
    /// An id that no other table ever has, not even a later one of the same name.
    pub id: String,
    /// The indexes, in the order of the definition.
    pub indexes: Vec<IndexDescription>,
    /// The latest change stream, even if it is disabled.
    pub latest_stream: Option<StreamHandle>,
    /// When settings were changed.
    pub history: TableHistory,
}

/// The current state of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDescription {
    /// The name.
    pub name: String,
    /// The status.
    pub status: TableStatus,
    /// Whether the index is being filled from existing items.
    pub backfilling: bool,
    /// The number of entries.
    pub item_count: u64,
    /// The size of the entries.
    pub size_bytes: u64,
    /// The ARN.
    pub arn: String,
}

/// The identity of a change stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHandle {
    /// The ARN.
    pub arn: String,
    /// When the stream was enabled, which distinguishes the streams of one table.
    pub label: String,
}
