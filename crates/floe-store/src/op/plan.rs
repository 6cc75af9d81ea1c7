//! Read plans: what a query or scan reads, resolved against the table.
//!
//! A plan contains everything that does not depend on the data: the index, the range, the starting position, whether
//! the table must be read in addition to a local index, and which attributes are returned. An engine iterates over the
//! range, and for each entry it:
//!
//! 1. [fetches](ReadPlan::fetches) the whole item if the plan says so,
//! 2. drops it if the [filter](ReadPlan::filter) does not hold,
//! 3. adds the result of [`response_item`](ReadPlan::response_item) to the page,
//! 4. ends the page if the [`Meter`](super::Meter) says that it is full.

use super::constraint::{Faults, as_constraint_error, invalid, validate_table_name};
use super::values::check_values;
use super::{keys, references};
use crate::capacity::Consistency;
use crate::declare::named;
use crate::error::{Error, Result, ensure, ensure_none};
use crate::expr::{Condition, ExpressionKind, KeyRange, Path, Paths};
use crate::item::Item;
use crate::limits::SCAN_SEGMENTS_MAX;
use crate::table::{IndexDef, IndexKind, KeyAttribute, KeySchema, Projection, TableDef};
use crate::text::Name;
use crate::value::Value;

/// Declares a query or a scan: its own members and the common ones.
macro_rules! page_read {
    (
        $(#[$doc:meta])*
        pub struct $operation:ident {
            $( $(#[$given_doc:meta])* pub $given:ident: $given_type:ty, )*
            ;
            $($own:tt)+
        }
        $(#[$new_doc:meta])*
        pub fn new;
    ) => {
        $crate::declare::operation! {
            $(#[$doc])*
            pub struct $operation {
                $( $(#[$given_doc])* pub $given: $given_type, )*
                ;
                /// The index to read. Default: the table itself.
                pub index_name: Option<String> = None,
                /// The condition for returning an item. Items that it excludes are still read and charged.
                pub filter: Option<$crate::expr::Condition> = None,
                /// Which parts of the items to return.
                pub projection: Option<$crate::expr::Paths> = None,
                /// What to return without a projection.
                pub select: Option<$crate::op::Select> = None,
                /// Maximum number of items to read, before the filter.
                pub limit: Option<usize> = None,
                /// The last key of the previous page.
                pub start_key: Option<$crate::item::Item> = None,
                $($own)+
                /// Whether the read is strongly consistent; not supported by global indexes.
                pub consistent: bool = false,
                /// How much detail about the cost to return.
                pub return_capacity: $crate::capacity::ReturnConsumedCapacity = Default::default(),
            }

            $(#[$new_doc])*
            pub fn new;
        }

        impl $operation {
            $crate::declare::setters! {
                /// Reads this index.
                index(index_name: impl Into<String>) => index_name = Some(index_name.into());
                /// Reads at most this many items, before the filter.
                limit(items: usize) => limit = Some(items);
                /// Continues after the previous page.
                start_key(key: Option<$crate::item::Item>) => start_key = key;
                /// Returns only items that satisfy this filter.
                filter(filter: $crate::expr::Condition) => filter = Some(filter);
                /// Makes the read strongly consistent.
                consistent() => consistent = true;
                /// Returns only these parts.
                projection(paths: $crate::expr::Paths) => projection = Some(paths);
                /// Selects what to return of each item.
                select(select: $crate::op::Select) => select = Some(select);
            }

            /// Checks a valid request against its table; [`plan`](Self::plan) does so as well.
            ///
            /// # Errors
            ///
            /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
            pub fn check(&self, table: &$crate::table::TableDef) -> $crate::error::Result<()> {
                self.plan(table).map(drop)
            }

            fn read(&self) -> $crate::op::plan::PageRead<'_> {
                $crate::op::plan::PageRead {
                    index_name: self.index_name.as_deref(),
                    filter: self.filter.as_ref(),
                    projection: self.projection.as_ref(),
                    select: self.select,
                    limit: self.limit,
                    start_key: self.start_key.as_ref(),
                    consistent: self.consistent,
                }
            }
        }
    };
}
pub(super) use page_read;

named! {
    /// What a query or scan returns of each item without a projection.
    pub enum Select {
        /// All attributes, including those that a local index does not contain.
        AllAttributes = "ALL_ATTRIBUTES",
        /// The attributes that the index contains.
        AllProjectedAttributes = "ALL_PROJECTED_ATTRIBUTES",
        /// The attributes in the projection.
        SpecificAttributes = "SPECIFIC_ATTRIBUTES",
        /// Only the number of items.
        Count = "COUNT",
    }
}

/// One of several parts of a table in a parallel scan. Every item is in exactly one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The index of the segment, from 0.
    pub index: usize,
    /// The number of segments.
    pub total: usize,
}

impl Segment {
    pub(super) fn validate_order(&self) -> Result<()> {
        ensure(self.index < self.total, || {
            Error::validation(
                "The Segment parameter is zero-based and must be less than parameter TotalSegments",
            )
        })
    }

    /// The error for a starting key in another segment. Only an engine can detect this, because it assigns keys to
    /// segments.
    pub fn start_key_in_other_segment(&self) -> Error {
        Error::Validation(format!(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use \
             ExclusiveStartKey with correct Segment. TotalSegments: {} Segment: {}",
            self.total, self.index
        ))
    }
}

/// What a query or scan reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPlan<'a> {
    /// The table.
    pub table: &'a TableDef,
    /// The index to read; `None` for the table itself.
    pub index: Option<&'a IndexDef>,
    /// The key range of a query; `None` for a scan.
    pub range: Option<KeyRange>,
    /// The segment of a parallel scan.
    pub segment: Option<Segment>,
    /// Whether to read in ascending order.
    pub forward: bool,
    /// The entry to start after: the key of the table and of the index.
    pub start_key: Option<&'a Item>,
    /// Maximum number of entries to read, before the filter.
    pub limit: Option<usize>,
    /// The condition for returning an item.
    pub filter: Option<&'a Condition>,
    /// What the response contains of each item.
    pub returned: ReturnedAttributes<'a>,
    /// Whether the response needs attributes that a local index lacks, so that the whole item is read from the table,
    /// and charged, for each entry.
    pub fetches: bool,
    /// The consistency, which determines the charge.
    pub consistency: Consistency,
}

/// What the response contains of each item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReturnedAttributes<'a> {
    /// All attributes.
    All,
    /// The attributes that the index contains.
    Projected,
    /// These parts.
    Paths(&'a Paths),
    /// Nothing: items are only counted.
    Count,
}

impl<'a> ReadPlan<'a> {
    /// Returns the key that orders the entries: of the index or of the table.
    pub fn key(&self) -> &'a KeySchema {
        self.index.map_or(&self.table.key, |index| &index.key)
    }

    /// Returns what the response contains of an item that passed the filter; `None` if items are only counted.
    pub fn response_item(&self, item: Item) -> Option<Item> {
        match (self.returned, self.index) {
            (ReturnedAttributes::Count, _) => None,
            (ReturnedAttributes::Paths(paths), _) => Some(paths.project(&item)),
            (ReturnedAttributes::All, _) | (ReturnedAttributes::Projected, None) => Some(item),
            (ReturnedAttributes::Projected, Some(index)) => Some(match index.projection {
                Projection::All => item,
                _ => item
                    .into_iter()
                    .filter(|(name, _)| index.projects(&self.table.key, name))
                    .collect(),
            }),
        }
    }

    /// Returns the key for continuing after this entry: the key attributes of the table and the index.
    pub fn last_key(&self, entry: &Item) -> Item {
        entry.pick(self.key_attributes())
    }

    /// Iterates over the key attributes of the table and the index. Some names may repeat.
    fn key_attributes(&self) -> impl Iterator<Item = &'a Name> {
        let index = self.index.into_iter().flat_map(|i| i.key.attributes());
        self.table.key.attributes().chain(index).map(|a| &a.name)
    }
}

/// The common parts of a query and a scan.
#[derive(Clone, Copy)]
pub(super) struct PageRead<'a> {
    pub(super) index_name: Option<&'a str>,
    pub(super) filter: Option<&'a Condition>,
    pub(super) projection: Option<&'a Paths>,
    pub(super) select: Option<Select>,
    pub(super) limit: Option<usize>,
    pub(super) start_key: Option<&'a Item>,
    pub(super) consistent: bool,
}

impl<'a> PageRead<'a> {
    /// Checks the request alone, without the table.
    pub(super) fn validate(&self, table_name: &str, segment: Option<Segment>) -> Result<()> {
        self.validate_numbers(table_name, segment)?;
        validate_table_name(table_name)?;
        self.start_key.map_or(Ok(()), check_values)?;
        if let Some(filter) = self.filter {
            filter.check_as(ExpressionKind::Filter)?;
        }
        self.projection.map_or(Ok(()), Paths::check)?;
        self.validate_select()
    }

    /// A limit is at least 1; one beyond 32 bits has no effect. It is reported together with the other numbers and with
    /// an empty table name, before an invalid table name.
    fn validate_numbers(&self, table_name: &str, segment: Option<Segment>) -> Result<()> {
        Faults::check(|faults| {
            if let Some(limit) = self.limit {
                faults.value_hidden(limit, "Limit", 1..=usize::MAX);
            }
            if let Some(segment) = segment {
                faults.value_hidden(segment.index, "Segment", 0..=SCAN_SEGMENTS_MAX - 1);
                faults.value_hidden(segment.total, "TotalSegments", 1..=SCAN_SEGMENTS_MAX);
            }
            faults.length_hidden(table_name, "TableName", 1..=usize::MAX);
        })
    }

    /// Rejects invalid combinations of `Select` with a projection and an index.
    fn validate_select(&self) -> Result<()> {
        let message = match (self.select, self.projection, self.index_name) {
            (Some(Select::SpecificAttributes), None, _) => {
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get \
                 SPECIFIC_ATTRIBUTES"
            }
            (Some(Select::AllAttributes), Some(_), _) => {
                "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"
            }
            (Some(Select::AllProjectedAttributes), Some(_), _) => {
                "Cannot specify the ProjectionExpression when choosing to get \
                 ALL_PROJECTED_ATTRIBUTES"
            }
            (Some(Select::Count), Some(_), _) => {
                "Cannot specify the ProjectionExpression when choosing to get only the Count"
            }
            (Some(Select::AllProjectedAttributes), None, None) => {
                "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
            }
            _ => return Ok(()),
        };
        Err(as_constraint_error(Error::validation(message)))
    }

    /// Returns the index, if the request names one.
    pub(super) fn index(&self, table: &'a TableDef) -> Result<Option<&'a IndexDef>> {
        let Some(name) = self.index_name else {
            return Ok(None);
        };
        let index = table.index(name).ok_or_else(|| {
            Error::Validation(format!(
                "The table does not have the specified index: {name}"
            ))
        })?;
        ensure(!self.consistent || index.kind == IndexKind::Local, || {
            Error::validation("Consistent reads are not supported on global secondary indexes")
        })?;
        Ok(Some(index))
    }

    /// Rejects paths in the filter or projection that lead into key attributes.
    pub(super) fn check_references(&self, table: &TableDef) -> Result<()> {
        references::check_condition(table, self.filter)?;
        references::check_projection(table, self.projection)
    }

    /// Rejects `ALL_ATTRIBUTES` on a global index that does not contain all attributes.
    pub(super) fn check_select_all(&self, index: Option<&IndexDef>) -> Result<()> {
        let partial = index.filter(|index| {
            self.select == Some(Select::AllAttributes)
                && index.kind == IndexKind::Global
                && index.projection != Projection::All
        });
        ensure_none(partial, |index| {
            invalid(format_args!(
                "Select type ALL_ATTRIBUTES is not supported for global secondary index {} \
                 because its projection type is not ALL",
                index.name
            ))
        })
    }

    /// Rejects a projection of attributes that a global index does not contain. For a local one they are fetched.
    pub(super) fn check_projected(&self, table: &TableDef, index: Option<&IndexDef>) -> Result<()> {
        let global = index.filter(|index| index.kind == IndexKind::Global);
        let missing = unprojected(table, global, projection_roots(self.projection));
        ensure_none(missing, |(index, missing)| {
            let missing = missing.join(", ");
            invalid(format_args!(
                "Global secondary index {index} does not project [{missing}]"
            ))
        })
    }

    /// Rejects a filter of a query on attributes that the index does not contain. A scan treats them as missing.
    pub(super) fn check_filtered(&self, table: &TableDef, index: Option<&IndexDef>) -> Result<()> {
        let missing = unprojected(table, index, filter_roots(self.filter));
        ensure_none(missing, |(index, mut missing)| {
            missing.sort_unstable();
            invalid(format_args!(
                "Secondary index {index} does not project one or more filter attributes: [{}]",
                missing.join(", ")
            ))
        })
    }

    /// Returns the plan for reading everything, after all checks.
    pub(super) fn plan(self, table: &'a TableDef, index: Option<&'a IndexDef>) -> ReadPlan<'a> {
        let returned = match (self.select, self.projection) {
            (Some(Select::Count), _) => ReturnedAttributes::Count,
            (_, Some(paths)) => ReturnedAttributes::Paths(paths),
            (Some(Select::AllAttributes), None) => ReturnedAttributes::All,
            (_, None) if index.is_some() => ReturnedAttributes::Projected,
            (_, None) => ReturnedAttributes::All,
        };
        ReadPlan {
            fetches: index.is_some_and(|index| self.fetches(table, index, returned)),
            table,
            index,
            range: None,
            segment: None,
            forward: true,
            start_key: self.start_key,
            limit: self.limit,
            filter: self.filter,
            returned,
            consistency: Consistency::from_consistent_read(self.consistent),
        }
    }

    fn fetches(
        &self,
        table: &TableDef,
        index: &IndexDef,
        returned: ReturnedAttributes<'_>,
    ) -> bool {
        if index.projection == Projection::All || index.kind == IndexKind::Global {
            return false;
        }
        matches!(returned, ReturnedAttributes::All)
            || projection_roots(self.projection).any(|name| !index.projects(&table.key, name))
    }
}

fn projection_roots(projection: Option<&Paths>) -> impl Iterator<Item = &Name> {
    projection
        .into_iter()
        .flat_map(|paths| &paths.0)
        .map(Path::root)
}

fn filter_roots(filter: Option<&Condition>) -> impl Iterator<Item = &Name> {
    filter
        .into_iter()
        .flat_map(Condition::paths)
        .map(Path::root)
}

/// Returns the name of the index and those of the attributes that it lacks; `None` if it lacks none.
fn unprojected<'n>(
    table: &TableDef,
    index: Option<&'n IndexDef>,
    names: impl Iterator<Item = &'n Name>,
) -> Option<(&'n str, Vec<&'n str>)> {
    let index = index?;
    let mut missing = Vec::new();
    for name in names {
        if !index.projects(&table.key, name) && !missing.contains(&name.as_str()) {
            missing.push(name.as_str());
        }
    }
    (!missing.is_empty()).then_some((index.name.as_str(), missing))
}

const START_KEY_INVALID: &str = "The provided starting key is invalid";

/// Checks that a starting key has exactly the key attributes of the table and the index.
pub(super) fn check_start_key(
    table: &TableDef,
    index: Option<&IndexDef>,
    start_key: &Item,
) -> Result<()> {
    let invalid = || Error::validation(START_KEY_INVALID);
    let index_attributes = index.into_iter().flat_map(|i| i.key.attributes());
    let index_only = index_attributes.filter(|a| !table.key.contains(&a.name));
    let mut expected = 0;
    for attribute in table.key.attributes().chain(index_only) {
        expected += 1;
        let value = start_key.get(&attribute.name).ok_or_else(invalid)?;
        ensure(attribute.kind.matches(value), invalid)?;
    }
    ensure(start_key.len() == expected, invalid)?;
    keys::check_key_filled(&table.key, start_key)
}

/// Checks that the query could have stopped at the starting key.
pub(super) fn check_start_in_range(
    table: &TableDef,
    index: Option<&IndexDef>,
    range: &KeyRange,
    start_key: &Item,
) -> Result<()> {
    const ONE_ROW: &str = "The query can return at most one row and cannot be restarted";
    let key = index.map_or(&table.key, |index| &index.key);
    let holds =
        |(attribute, value): (&KeyAttribute, &Value)| start_key.get(&attribute.name) == Some(value);
    let mut partition = key.partition.iter().zip(&range.partition);
    let last = partition.next_back();
    ensure(partition.all(holds), || Error::validation(ONE_ROW))?;
    let mut prefix = key.sort.iter().zip(&range.sort_prefix);
    let ranged = key.sort.get(range.sort_prefix.len());
    let in_range = ranged
        .zip(range.range.as_ref())
        .is_none_or(|(attribute, op)| {
            let value = start_key.get(&attribute.name);
            value.is_some_and(|value| op.holds(value))
        });
    ensure(prefix.all(holds) && in_range, || {
        Error::validation("The provided starting key does not match the range key predicate")
    })?;
    if last.is_none_or(holds) {
        return Ok(());
    }
    let ranged = !range.sort_prefix.is_empty() || range.range.is_some();
    Err(Error::validation(if ranged {
        ONE_ROW
    } else if index.is_none() && key.sort.is_empty() {
        "The provided exclusive start key is invalid"
    } else {
        "The provided starting key is outside query boundaries based on provided conditions"
    }))
}
