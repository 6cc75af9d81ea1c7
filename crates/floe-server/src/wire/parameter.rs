//! Parameters that many operations have.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Deref, RangeInclusive};

use floe_store::ConsumedCapacity;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::json::Reader;
use floe_store::op::{Faults, validate_table_name};

use super::read::{Place, Read, Str};
use super::refusal::Result;

/// The name of a table as a request gives it: plain, or inside the table's resource name
/// (`arn:aws:dynamodb:eu-west-1:123456789012:table/Orders`), of which it is the last part. Stands for the plain name.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct TableName<'a> {
    given: Str<'a>,
    /// Where the plain name begins.
    start: usize,
}

impl<'a> TableName<'a> {
    pub(crate) fn new(given: Str<'a>) -> Self {
        let start = plain_name_start(&given).unwrap_or(0);
        Self { given, start }
    }

    /// The resource name, if it was given as one.
    pub(crate) fn resource_name(&self) -> Option<&str> {
        (self.start > 0).then_some(&*self.given)
    }

    /// States the cost in terms of the table as the request has named it.
    pub(crate) fn name_cost(&self, consumed: &mut Option<ConsumedCapacity>) {
        if let Some(consumed) = consumed
            && self.start > 0
        {
            consumed.table_name = self.given.to_string();
        }
    }
}

/// The tables that a request over several tables names by their resource names, which its answer repeats.
#[derive(Debug, Default)]
pub(crate) struct GivenNames(BTreeMap<String, String>);

impl GivenNames {
    /// The plain name of a table, which is noted if the request gives another.
    pub(crate) fn plain(&mut self, name: TableName<'_>) -> String {
        if name.start > 0 {
            let given = self.0.entry((*name).to_owned());
            given.or_insert_with(|| name.given.to_string());
        }
        String::from(name)
    }

    /// The name of a table as the request gives it.
    pub(crate) fn given<'n>(&'n self, plain: &'n str) -> &'n str {
        self.0.get(plain).map_or(plain, String::as_str)
    }

    /// States costs in terms of the tables as the request has named them.
    pub(crate) fn name_costs(&self, consumed: &mut [ConsumedCapacity]) {
        if self.0.is_empty() {
            return;
        }
        for cost in consumed {
            cost.table_name = self.given(&cost.table_name).to_owned();
        }
    }
}

/// Where the plain name begins in the resource name of a table; `None` in anything else.
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

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        Str::read(reader, place).map(Self::new)
    }
}

/// The fault of a name that is missing or cannot be a table's, for the operations on items. A name that is empty is
/// refused at once, whatever else is wrong.
pub(crate) fn item_table_name_faults(faults: &mut Faults, name: Option<&str>) -> Result<()> {
    match name {
        None => faults.add_null("tableName"),
        Some("") => validate_table_name("")?,
        Some(name) => faults.table_name(name),
    }
    Ok(())
}

/// As [`item_table_name_faults`], in the words of the older layer of validation, which reports a name that is empty
/// together with the rest.
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

/// A word that a request may have, or another text.
pub(crate) type Word<'a> = Option<Str<'a>>;

/// The fault of a member that must be there and is not.
pub(crate) fn require<T>(faults: &mut Faults, member: &Option<T>, path: impl Display) {
    if member.is_none() {
        faults.add_null(path);
    }
}

/// The fault of a text that is missing, or shorter or longer than it may be.
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

/// The fault of a word that is none of these.
pub(crate) fn word_faults(
    faults: &mut Faults,
    word: &Word<'_>,
    path: impl Display,
    words: &[&str],
) {
    if let Some(word) = word {
        faults.one_of(word, path, words);
    }
}

/// The fault of a word that is missing or none of these.
pub(crate) fn required_word_faults(
    faults: &mut Faults,
    word: &Word<'_>,
    path: impl Display,
    words: &[&str],
) {
    require(faults, word, &path);
    word_faults(faults, word, path, words);
}

/// The fault of a `ReturnConsumedCapacity` that is none of the words for it.
pub(crate) fn return_capacity_faults(faults: &mut Faults, word: &Word<'_>) {
    let words = &["INDEXES", "TOTAL", "NONE"];
    word_faults(faults, word, "returnConsumedCapacity", words);
}

/// How much of the cost an answer has, of a word that has been checked.
pub(crate) fn return_capacity(word: &Word<'_>) -> ReturnConsumedCapacity {
    let known = word.as_deref().and_then(ReturnConsumedCapacity::from_name);
    known.unwrap_or_default()
}

/// The fault of a `ReturnItemCollectionMetrics` that is none of the words for it.
pub(crate) fn return_collection_faults(faults: &mut Faults, word: &Word<'_>) {
    let words = &["SIZE", "NONE"];
    word_faults(faults, word, "returnItemCollectionMetrics", words);
}

/// Whether an answer has the sizes of item collections, of a word that has been checked.
pub(crate) fn return_collection(word: &Word<'_>) -> bool {
    word.as_deref() == Some("SIZE")
}

/// The fault of a `Limit` that is not from one to this.
pub(crate) fn limit_faults(faults: &mut Faults, limit: Option<i32>, most: usize) {
    if let Some(limit) = limit {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        faults.value(limit, "limit", 1..=most);
    }
}

/// A limit as operations take it, of one that has been checked.
pub(crate) fn limit(limit: Option<i32>) -> Option<usize> {
    limit.map(|limit| usize::try_from(limit).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_name_stands_for_the_table_in_it() {
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
