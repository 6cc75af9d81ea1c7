//! Read plans: what a query or scan asks of an engine, settled against the table.
//!
//! A plan answers every question that does not need the data: which index, which range, where to go
//! on, whether the table must be read besides a local index, and what an item looks like in the answer.
//! An engine walks the range, and for each entry it reads:
//!
//! 1. [fetches](ReadPlan::fetches) the whole item if the plan says so,
//! 2. drops it if the [filter](ReadPlan::filter) does not hold,
//! 3. puts what [`answer`](ReadPlan::answer) makes of it on the page,
//! 4. ends the page with it if the [`Meter`](crate::capacity::Meter) says that the page is full.

use super::constraint::{enveloped, invalid};
use super::{Segment, Select, keys, references};
use crate::capacity::Consistency;
use crate::error::{Error, Result};
use crate::expr::{Condition, KeyOp, KeyRange, Path, Paths};
use crate::item::Item;
use crate::table::{IndexDef, IndexKind, KeySchema, Projection, TableDef};
use crate::text::Name;
use crate::value::Value;

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
    /// The combinations of `Select` with a projection and an index that make no sense.
    pub(super) fn validate_select(&self) -> Result<()> {
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
        if self.consistent && index.kind == IndexKind::Global {
            return Err(Error::validation(
                "Consistent reads are not supported on global secondary indexes",
            ));
        }
        Ok(Some(index))
    }

    /// The paths of filter and projection must not lead into key attributes.
    pub(super) fn check_references(&self, table: &TableDef) -> Result<()> {
        references::check_condition(table, self.filter)?;
        references::check_projection(table, self.projection)
    }

    /// A global index that does not copy everything cannot answer everything.
    pub(super) fn check_select_all(&self, index: Option<&IndexDef>) -> Result<()> {
        match index {
            Some(index)
                if self.select == Some(Select::AllAttributes)
                    && index.kind == IndexKind::Global
                    && index.projection != Projection::All =>
            {
                Err(invalid(format_args!(
                    "Select type ALL_ATTRIBUTES is not supported for global secondary index {} \
                     because its projection type is not ALL",
                    index.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// A global index cannot answer what it has not copied; a local one fetches it.
    pub(super) fn check_projected(&self, table: &TableDef, index: Option<&IndexDef>) -> Result<()> {
        let Some(index) = index.filter(|i| i.kind == IndexKind::Global) else {
            return Ok(());
        };
        let missing = unprojected(table, index, projection_roots(self.projection));
        if missing.is_empty() {
            return Ok(());
        }
        Err(invalid(format_args!(
            "Global secondary index {} does not project [{}]",
            index.name,
            missing.join(", ")
        )))
    }

    /// A query of an index cannot compare what the index has not copied. A scan takes it for absent.
    pub(super) fn check_filtered(&self, table: &TableDef, index: Option<&IndexDef>) -> Result<()> {
        let Some(index) = index else {
            return Ok(());
        };
        let mut missing = unprojected(table, index, filter_roots(self.filter));
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        Err(invalid(format_args!(
            "Secondary index {} does not project one or more filter attributes: [{}]",
            index.name,
            missing.join(", ")
        )))
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
        .flat_map(|paths| paths.0.iter().map(Path::root))
}

fn filter_roots(filter: Option<&Condition>) -> impl Iterator<Item = &Name> {
    filter
        .into_iter()
        .flat_map(Condition::paths)
        .map(Path::root)
}

fn unprojected<'n>(
    table: &TableDef,
    index: &IndexDef,
    names: impl Iterator<Item = &'n Name>,
) -> Vec<&'n str> {
    let mut missing = Vec::new();
    for name in names {
        if !index.projects(&table.key, name) && !missing.contains(&name.as_str()) {
            missing.push(name.as_str());
        }
    }
    missing
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
        if !attribute.kind.matches(value) {
            return Err(invalid());
        }
    }
    if start_key.len() != expected {
        return Err(invalid());
    }
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
    let holds = |attribute: &Name, value: &Value| start_key.get(attribute) == Some(value);
    let mut partition = key.partition.iter().zip(&range.partition);
    let last = partition.next_back();
    if partition.any(|(attribute, value)| !holds(&attribute.name, value)) {
        return Err(Error::validation(ONE_ROW));
    }
    let mut prefix = key.sort.iter().zip(&range.sort_prefix);
    let ranged = key
        .sort
        .get(range.sort_prefix.len())
        .zip(range.range.as_ref());
    let in_range = prefix.all(|(attribute, value)| holds(&attribute.name, value))
        && ranged.is_none_or(|(attribute, op)| {
            start_key
                .get(&attribute.name)
                .is_some_and(|value| satisfies(value, op))
        });
    if !in_range {
        return Err(Error::validation(
            "The provided starting key does not match the range key predicate",
        ));
    }
    if last.is_none_or(|(attribute, value)| holds(&attribute.name, value)) {
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

/// Whether a value of a key satisfies a condition on it.
fn satisfies(value: &Value, op: &KeyOp) -> bool {
    let order = |other: &Value| value.compare(other);
    match op {
        KeyOp::Eq(other) => value == other,
        KeyOp::Lt(other) => order(other).is_some_and(|o| o.is_lt()),
        KeyOp::Le(other) => order(other).is_some_and(|o| o.is_le()),
        KeyOp::Gt(other) => order(other).is_some_and(|o| o.is_gt()),
        KeyOp::Ge(other) => order(other).is_some_and(|o| o.is_ge()),
        KeyOp::Between(low, high) => {
            order(low).is_some_and(|o| o.is_ge()) && order(high).is_some_and(|o| o.is_le())
        }
        KeyOp::BeginsWith(prefix) => match (value, prefix) {
            (Value::S(text), Value::S(prefix)) => text.starts_with(prefix.as_str()),
            (Value::B(bytes), Value::B(prefix)) => bytes.starts_with(prefix),
            _ => false,
        },
    }
}
