//! A change of an item, as passed to handlers, patterns and sinks.

use std::sync::Arc;

use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::{Item, Timestamp, Value};

use crate::key::{PARTITION_ATTRIBUTE, SORT_ATTRIBUTE};

/// A change of one item: the kind of change, the table, the key, and the item before and after.
///
/// Cheap to clone: copies share the record.
///
/// ```
/// use floe::changes::{Change, Cause};
/// use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
/// use floe_store::table::StreamView;
/// use floe_store::{Item, Timestamp};
///
/// let keys = Item::new().with("pk", "lyr#eu.numpy").with("sk", "lyrVrsn#v3");
/// let record = ChangeRecord {
///     event_id: "e1".to_owned(),
///     kind: ChangeKind::Remove,
///     old_image: Some(keys.clone()),
///     new_image: None,
///     keys,
///     sequence: "000000000000000000007".to_owned(),
///     size_bytes: 0,
///     view: StreamView::NewAndOldImages,
///     created: Timestamp::from_millis(0),
///     identity: Some(ServiceIdentity::Expiry),
/// };
/// let change = Change::new("klayers", record);
/// assert_eq!(change.cause(), Some(Cause::Expired));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    table: Arc<str>,
    record: Arc<ChangeRecord>,
    key_names: Option<Arc<KeyNames>>,
}

/// The key attributes of a table, which change records do not identify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    /// The attribute of the partition key.
    pub partition: String,
    /// The attribute of the sort key, if the table has one.
    pub sort: Option<String>,
}

/// Why an item was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The sweeper deleted it after its expiry.
    Expired,
    /// A user deleted it.
    Deleted,
    /// Any cause. Selects handlers; no change has it.
    Any,
}

impl Cause {
    /// Whether this selects removals with the given cause.
    pub(crate) fn selects(self, cause: Self) -> bool {
        self == Self::Any || self == cause
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Deleted => "deleted",
            Self::Any => "removed",
        }
    }
}

impl Change {
    /// Creates a change from a record of this table's change stream.
    pub fn new(table: impl Into<Arc<str>>, record: ChangeRecord) -> Self {
        Self {
            table: table.into(),
            record: Arc::new(record),
            key_names: None,
        }
    }

    setters! {
        /// Returns the same change with known key attributes. Without them, the usual names are tried: `pk` and `sk`,
        /// and those of models and event streams.
        pub fn with_key_names(names: impl Into<Arc<KeyNames>>) => key_names = Some(names.into());
    }

    /// The partition key, if its attribute is known.
    pub fn partition_key(&self) -> Option<&Value> {
        let keys = self.keys();
        match &self.key_names {
            Some(names) => keys.get(&names.partition),
            None => key_of(keys, &PARTITION_NAMES, &SORT_NAMES),
        }
    }

    /// The sort key, if the table has one and its attribute is known.
    pub fn sort_key(&self) -> Option<&Value> {
        let keys = self.keys();
        match &self.key_names {
            Some(names) => keys.get(names.sort.as_ref()?),
            None if keys.len() < 2 => None,
            None => key_of(keys, &SORT_NAMES, &PARTITION_NAMES),
        }
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn table_name(&self) -> &Arc<str> {
        &self.table
    }

    /// The kind of change.
    pub fn kind(&self) -> ChangeKind {
        self.record.kind
    }

    /// Why the item was removed; `None` if it was not removed.
    pub fn cause(&self) -> Option<Cause> {
        let is_expiry = self.record.identity == Some(ServiceIdentity::Expiry);
        let cause = if is_expiry {
            Cause::Expired
        } else {
            Cause::Deleted
        };
        (self.record.kind == ChangeKind::Remove).then_some(cause)
    }

    /// The key of the item.
    pub fn keys(&self) -> &Item {
        &self.record.keys
    }

    /// The item before the change, if it existed and the stream contains it.
    pub fn old_image(&self) -> Option<&Item> {
        self.record.old_image.as_ref()
    }

    /// The item after the change, if it exists and the stream contains it.
    pub fn new_image(&self) -> Option<&Item> {
        self.record.new_image.as_ref()
    }

    /// The most relevant image of the item: the new one, or the last one if the item was removed. If the stream does
    /// not contain it, only the key.
    pub fn item(&self) -> &Item {
        let image = match self.record.kind {
            ChangeKind::Insert | ChangeKind::Modify => self.new_image().or(self.old_image()),
            ChangeKind::Remove => self.old_image(),
        };
        image.unwrap_or_else(|| self.keys())
    }

    /// The sequence number, which orders the changes of an item.
    pub fn sequence(&self) -> &str {
        &self.record.sequence
    }

    /// The unique id of the change. It stays the same on repeated delivery.
    pub fn event_id(&self) -> &str {
        &self.record.event_id
    }

    /// The time of the change, to the second.
    pub fn time(&self) -> Timestamp {
        self.record.created
    }

    /// The record of the change stream.
    pub fn record(&self) -> &ChangeRecord {
        &self.record
    }

    /// Returns the record of the change stream.
    pub fn into_record(self) -> ChangeRecord {
        Arc::unwrap_or_clone(self.record)
    }

    /// Approximate memory usage.
    pub(crate) fn bytes(&self) -> usize {
        self.record.size_bytes
    }
}

/// Usual names of partition keys.
const PARTITION_NAMES: [&str; 4] = ["pk", "PK", PARTITION_ATTRIBUTE, "p"];
/// Usual names of sort keys.
const SORT_NAMES: [&str; 4] = ["sk", "SK", SORT_ATTRIBUTE, "i"];

/// Returns the key attribute with a wanted name, or the only one whose name is not among the others.
fn key_of<'k>(keys: &'k Item, wanted: &[&str], others: &[&str]) -> Option<&'k Value> {
    let is_other = |name: &str| others.contains(&name);
    let wanted = wanted.iter().find_map(|name| keys.get(name));
    wanted.or_else(|| {
        let mut left = keys.iter().filter(|(name, _)| !is_other(name));
        match (left.next(), left.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    })
}
