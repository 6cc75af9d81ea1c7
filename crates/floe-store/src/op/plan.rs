//! Read plans: what a query or scan asks of an engine, settled against the table.
//!
//! A plan answers every question that does not need the data: which index, which range, where to go
//! on, whether the table must be read besides a local index, and what an item looks like in the answer.
//! An engine walks the range, and for each entry it reads:
//!
//! 1. [fetches](ReadPlan::fetches) the whole item if the plan says so,
//! 2. drops it if the [filter](ReadPlan::filter) does not hold,
//! 3. puts what [`answer`](ReadPlan::answer) makes of it on the page,
//! 4. ends the page with it if the [`Meter`](super::Meter) says that the page is full.

use super::constraint::{Faults, enveloped, invalid, validate_table_name};
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

/// Declares a query or a scan: what it has of its own, and what both have.
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
                /// The index, or the table itself if absent.
                pub index_name: Option<String> = None,
                /// What must hold of an item to be returned. Items that it leaves out are read and paid for.
                pub filter: Option<$crate::expr::Condition> = None,
                /// Which parts of the items to return.
                pub projection: Option<$crate::expr::Paths> = None,
                /// What to return where no projection says it.
                pub select: Option<$crate::op::Select> = None,
                /// The most items to read, before the filter.
                pub limit: Option<usize> = None,
                /// Where the page before ended.
                pub start_key: Option<$crate::item::Item> = None,
                $($own)+
                /// Whether the read sees every write answered before; not on a global index.
                pub consistent: bool = false,
                /// How much to tell about the cost.
                pub return_capacity: $crate::capacity::ReturnConsumedCapacity = Default::default(),
            }

            $(#[$new_doc])*
            pub fn new;
        }

        impl $operation {
            $crate::declare::setters! {
                /// Reads this index.
                index(index_name: impl Into<String>) => index_name = Some(index_name.into());
                /// Reads at most so many items, before the filter.
                limit(items: usize) => limit = Some(items);
                /// Goes on where the page before ended.
                start_key(key: Option<$crate::item::Item>) => start_key = key;
                /// Returns only items for which this holds.
                filter(filter: $crate::expr::Condition) => filter = Some(filter);
                /// Sees every write answered before.
                consistent() => consistent = true;
                /// Returns only these parts.
                projection(paths: $crate::expr::Paths) => projection = Some(paths);
                /// Returns this of each item.
                select(select: $crate::op::Select) => select = Some(select);
            }

            /// Checks a valid request against its table; see [`plan`](Self::plan), which does it too.
            ///
            /// # Errors
            ///
            /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
            pub fn check(&self, table: &$crate::table::TableDef) -> $crate::error::Result<()> {
                self.plan(table).map(drop)
            }

            fn read(&self) -> $crate::op::plan::Read<'_> {
                $crate::op::plan::Read {
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
    /// What a query or scan returns of each item where no projection says it.
    pub enum Select {
        /// Everything, also what a local index has not copied.
        AllAttributes = "ALL_ATTRIBUTES",
        /// What the index has copied.
        AllProjectedAttributes = "ALL_PROJECTED_ATTRIBUTES",
        /// What the projection names.
        SpecificAttributes = "SPECIFIC_ATTRIBUTES",
        /// Nothing but the count.
        Count = "COUNT",
    }
}

/// One of several parts into which a scan divides a table. Every item is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The part, from 0.
    pub index: usize,
    /// How many parts there are.
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

    /// The error for a starting key that lies in another segment, which only an engine can know: how
    /// keys are spread over segments is its own.
    pub fn foreign_start_key(&self) -> Error {
        Error::Validation(format!(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use \
             ExclusiveStartKey with correct Segment. TotalSegments: {} Segment: {}",
            self.total, self.index
        ))
    }
}

/// What a query or scan asks of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPlan<'a> {
    /// The table.
    pub table: &'a TableDef,
    /// The index to read, or the table itself.
    pub index: Option<&'a IndexDef>,
    /// What to walk, for a query; a scan walks everything.
    pub range: Option<KeyRange>,
    /// Which part to walk, for a parallel scan.
    pub segment: Option<Segment>,
    /// Whether to walk in ascending order.
    pub forward: bool,
    /// After which entry to start: the key of the table and of the index together.
    pub start_key: Option<&'a Item>,
    /// The most entries to read, before the filter.
    pub limit: Option<usize>,
    /// What must hold of an item to be returned.
    pub filter: Option<&'a Condition>,
    /// What an answer holds of each item.
    pub returned: Returned<'a>,
    /// Whether a local index lacks attributes that the answer needs, so that the whole item must be read from the
    /// table, and paid for, for each entry read.
    pub fetches: bool,
    /// How fresh the data must be, for which the read is charged.
    pub consistency: Consistency,
}

/// What an answer holds of each item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Returned<'a> {
    /// Everything.
    All,
    /// What the index has copied.
    Projected,
    /// These parts.
    Paths(&'a Paths),
    /// Nothing: the items are only counted.
    Count,
}

impl<'a> ReadPlan<'a> {
    /// The key by which the entries are ordered: the index's or the table's.
    pub fn key(&self) -> &'a KeySchema {
        self.index.map_or(&self.table.key, |index| &index.key)
    }

    /// What the answer holds of an item that passed the filter; `None` if it is only counted.
    pub fn answer(&self, item: Item) -> Option<Item> {
        match (self.returned, self.index) {
            (Returned::Count, _) => None,
            (Returned::Paths(paths), _) => Some(paths.project(&item)),
            (Returned::All, _) | (Returned::Projected, None) => Some(item),
            (Returned::Projected, Some(index)) => Some(match index.projection {
                Projection::All => item,
                _ => item
                    .into_iter()
                    .filter(|(name, _)| index.projects(&self.table.key, name))
                    .collect(),
            }),
        }
    }

    /// The key with which a later page goes on after this entry: the attributes of the table's key and of
    /// the index's.
    pub fn last_key(&self, entry: &Item) -> Item {
        entry.pick(self.key_attributes())
    }

    /// The names of the key attributes of the table and the index, some of them perhaps twice.
    fn key_attributes(&self) -> impl Iterator<Item = &'a Name> {
        let index = self.index.into_iter().flat_map(|i| i.key.attributes());
        self.table.key.attributes().chain(index).map(|a| &a.name)
    }
}

/// The parts of a query or scan that are settled alike.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) index_name: Option<&'a str>,
    pub(super) filter: Option<&'a Condition>,
    pub(super) projection: Option<&'a Paths>,
    pub(super) select: Option<Select>,
    pub(super) limit: Option<usize>,
    pub(super) start_key: Option<&'a Item>,
    pub(super) consistent: bool,
}

impl<'a> Read<'a> {
    /// Checks the parts alone, before the table is looked up.
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

    /// The limit of a page is at least 1; one beyond 32 bits is as good as none. It is told with the other numbers and
    /// with a name that is empty, before a name that is wrong.
    fn validate_numbers(&self, table_name: &str, segment: Option<Segment>) -> Result<()> {
        Faults::check(|faults| {
            if let Some(limit) = self.limit {
                faults.value_unseen(limit, "Limit", 1..=usize::MAX);
            }
            if let Some(segment) = segment {
                faults.value_unseen(segment.index, "Segment", 0..=SCAN_SEGMENTS_MAX - 1);
                faults.value_unseen(segment.total, "TotalSegments", 1..=SCAN_SEGMENTS_MAX);
            }
            faults.length_unseen(table_name, "TableName", 1..=usize::MAX);
        })
    }

    /// The combinations of `Select` with a projection and an index that make no sense.
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
        Err(enveloped(Error::validation(message)))
    }

    /// The index that is read, if the request names one.
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

    /// The paths of filter and projection must not lead into key attributes.
    pub(super) fn check_references(&self, table: &TableDef) -> Result<()> {
        references::check_condition(table, self.filter)?;
        references::check_projection(table, self.projection)
    }

    /// A global index that does not copy everything cannot answer everything.
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

    /// A global index cannot answer what it has not copied; a local one fetches it.
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

    /// A query of an index cannot compare what the index has not copied. A scan takes it for absent.
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

    /// The plan to read everything, once everything has been checked.
    pub(super) fn plan(self, table: &'a TableDef, index: Option<&'a IndexDef>) -> ReadPlan<'a> {
        let returned = match (self.select, self.projection) {
            (Some(Select::Count), _) => Returned::Count,
            (_, Some(paths)) => Returned::Paths(paths),
            (Some(Select::AllAttributes), None) => Returned::All,
            (_, None) if index.is_some() => Returned::Projected,
            (_, None) => Returned::All,
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
            consistency: Consistency::of_read(self.consistent),
        }
    }

    fn fetches(&self, table: &TableDef, index: &IndexDef, returned: Returned<'_>) -> bool {
        if index.projection == Projection::All || index.kind == IndexKind::Global {
            return false;
        }
        matches!(returned, Returned::All)
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

/// The name of the index, and those of these attributes that it does not copy; `None` if it copies all.
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

/// Checks that a starting key is exactly the key of the table and the index together.
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

/// Checks that a query could have stopped at the starting key.
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
