//! Parameters that many operations share.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Deref, RangeInclusive};

use floe_store::ConsumedCapacity;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::json::Reader;
use floe_store::op::{Faults, validate_table_name};

use super::read::{Read, Str, ValueContext};
use super::request_error::Result;

/// The name of a table in a request: plain, or as the last part of the table's ARN
/// (`arn:aws:dynamodb:eu-west-1:123456789012:table/Orders`). Dereferences to the plain name.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct TableName<'a> {
    given: Str<'a>,
    /// Start of the plain name.
    start: usize,
}

impl<'a> TableName<'a> {
    pub(crate) fn new(given: Str<'a>) -> Self {
        let start = plain_name_start(&given).unwrap_or(0);
        Self { given, start }
    }

    /// Returns the ARN if the table was given by ARN.
    pub(crate) fn arn(&self) -> Option<&str> {
        (self.start > 0).then_some(&*self.given)
    }

    /// Sets the table name in the consumed capacity to the one in the request.
    pub(crate) fn restore_names(&self, consumed: &mut Option<ConsumedCapacity>) {
        if let Some(consumed) = consumed
            && self.start > 0
        {
            consumed.table_name = self.given.to_string();
        }
    }
}

/// The ARNs that a request over several tables uses instead of plain names. The response repeats them.
#[derive(Debug, Default)]
pub(crate) struct RequestTableNames(BTreeMap<String, String>);

impl RequestTableNames {
    /// Returns the plain name of a table, and records its ARN if the request uses it.
    pub(crate) fn plain_name(&mut self, name: TableName<'_>) -> String {
        if name.start > 0 {
            let given = self.0.entry((*name).to_owned());
            given.or_insert_with(|| name.given.to_string());
        }
        String::from(name)
    }

    /// Returns the name of a table as in the request.
    pub(crate) fn name_in_request<'n>(&'n self, plain: &'n str) -> &'n str {
        self.0.get(plain).map_or(plain, String::as_str)
    }

    /// Sets the table names in the consumed capacity to those in the request.
    pub(crate) fn restore_names(&self, consumed: &mut [ConsumedCapacity]) {
        if self.0.is_empty() {
            return;
        }
        for cost in consumed {
            cost.table_name = self.name_in_request(&cost.table_name).to_owned();
        }
    }
}

/// Returns the start of the plain name in the ARN of a table; `None` for anything else.
fn plain_name_start(given: &str) -> Option<usize> {
    let mut parts = given.strip_prefix("arn:")?.splitn(5, ':');
    let (_partition, service) = (parts.next()?, parts.next()?);
    let (_region, _account) = (parts.next()?, parts.next()?);
    let name = parts.next()?.strip_prefix("table/")?;
    let is_plain = service == "dynamodb" && !name.contains('/');
    is_plain.then(|| given.len() - name.len())
}

impl Deref for TableName<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.given.get(self.start..).unwrap_or(&self.given)
    }
}

impl From<TableName<'_>> for String {
    fn from(name: TableName<'_>) -> Self {
        match name.start {
            0 => name.given.into_owned(),
            _ => (*name).to_owned(),
        }
    }
}

impl<'a> Read<'a> for TableName<'a> {
    const CLASS: &'static str = Str::CLASS;

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        Str::read(reader, context).map(Self::new)
    }
}

/// Records the fault of a table name that is missing or invalid, for item operations. An empty name is an error on its
/// own.
pub(crate) fn item_table_name_faults(faults: &mut Faults, name: Option<&str>) -> Result<()> {
    match name {
        None => faults.add_null("tableName"),
        Some("") => validate_table_name("")?,
        Some(name) => faults.table_name(name),
    }
    Ok(())
}

/// Like [`item_table_name_faults`], with the messages of the older validation layer, which reports an empty name
/// together with other faults.
pub(crate) fn older_table_name_faults(faults: &mut Faults, name: Option<&str>) {
    match name {
        None => faults.add_null("tableName"),
        Some("") => faults.length("", "tableName", 1..=255),
        Some(name) => {
            faults.pattern(name, "tableName");
            faults.length(name, "tableName", 1..=255);
        }
    }
}

/// A text member that may be absent.
pub(crate) type OptionalStr<'a> = Option<Str<'a>>;

/// Records the fault of a missing member.
pub(crate) fn require<T>(faults: &mut Faults, member: &Option<T>, path: impl Display) {
    if member.is_none() {
        faults.add_null(path);
    }
}

/// Records the fault of a text that is missing, too short or too long.
pub(crate) fn length_faults(
    faults: &mut Faults,
    text: &Option<Str<'_>>,
    path: &str,
    range: RangeInclusive<usize>,
) {
    match text {
        None => faults.add_null(path),
        Some(text) => faults.length(text, path, range),
    }
}

/// Records the fault of a text that is not one of the enum values.
pub(crate) fn enum_faults(
    faults: &mut Faults,
    keyword: &OptionalStr<'_>,
    path: impl Display,
    keywords: &[&str],
) {
    if let Some(keyword) = keyword {
        faults.one_of(keyword, path, keywords);
    }
}

/// Records the fault of a text that is missing or not one of the enum values.
pub(crate) fn required_enum_faults(
    faults: &mut Faults,
    keyword: &OptionalStr<'_>,
    path: impl Display,
    keywords: &[&str],
) {
    require(faults, keyword, &path);
    enum_faults(faults, keyword, path, keywords);
}

/// Records the fault of an invalid `ReturnConsumedCapacity`.
pub(crate) fn return_capacity_faults(faults: &mut Faults, keyword: &OptionalStr<'_>) {
    let keywords = &["INDEXES", "TOTAL", "NONE"];
    enum_faults(faults, keyword, "returnConsumedCapacity", keywords);
}

/// Converts a validated `ReturnConsumedCapacity`.
pub(crate) fn return_capacity(keyword: &OptionalStr<'_>) -> ReturnConsumedCapacity {
    let known = keyword
        .as_deref()
        .and_then(ReturnConsumedCapacity::from_name);
    known.unwrap_or_default()
}

/// Records the fault of an invalid `ReturnItemCollectionMetrics`.
pub(crate) fn return_collection_faults(faults: &mut Faults, keyword: &OptionalStr<'_>) {
    let keywords = &["SIZE", "NONE"];
    enum_faults(faults, keyword, "returnItemCollectionMetrics", keywords);
}

/// Converts a validated `ReturnItemCollectionMetrics`.
pub(crate) fn return_collection(keyword: &OptionalStr<'_>) -> bool {
    keyword.as_deref() == Some("SIZE")
}

/// Records the fault of a `Limit` outside of 1 to `most`.
pub(crate) fn limit_faults(faults: &mut Faults, limit: Option<i32>, most: usize) {
    if let Some(limit) = limit {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        faults.value(limit, "limit", 1..=most);
    }
}

/// Converts a validated limit.
pub(crate) fn limit(limit: Option<i32>) -> Option<usize> {
    limit.map(|limit| usize::try_from(limit).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_arns_are_accepted_as_names() {
        for (given, plain) in [
            ("Orders", "Orders"),
            (
                "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders",
                "Orders",
            ),
            ("arn:aws-cn:dynamodb::1:table/Orders", "Orders"),
            ("arn:aws:dynamodb:eu-west-1:1:table/", ""),
            (
                "arn:aws:s3:eu-west-1:1:table/Orders",
                "arn:aws:s3:eu-west-1:1:table/Orders",
            ),
            (
                "arn:aws:dynamodb:eu-west-1:1:table/Orders/index/by_date",
                "arn:aws:dynamodb:eu-west-1:1:table/Orders/index/by_date",
            ),
            (
                "arn:aws:dynamodb:eu-west-1:1",
                "arn:aws:dynamodb:eu-west-1:1",
            ),
        ] {
            let name = TableName::new(given.into());
            assert_eq!(&*name, plain, "given={given}");
            assert_eq!(String::from(name), plain, "given={given}");
        }
    }
}
