//! What Query and Scan have in common: their numbers, `Select`, where a page starts, and the page as it is
//! answered. The checks of their members that come before everything else are in [`members`].

mod members;

use floe_store::Item;
use floe_store::expr::{Condition, Parser, Paths};
use floe_store::json::{Layer, Named, Reader, Token, ValueFault, Writer, write_item};
use floe_store::op::{Faults, Page, Select, enveloped};

use super::legacy::attributes_to_get;
use super::legacy::filter::{Filters, filter_values};
use super::read::{Map, Place, Read, Str};
use super::refusal::{Refusal, Result};
use super::value::{Attribute, Attributes};
use super::write::{room, write_consumed};

pub(crate) use members::Members;

/// A whole number of 32 bits, and whether it is what was sent: one that is out of range or has a fraction is taken
/// for the nearest that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int {
    /// The number.
    pub(crate) value: i32,
    /// Whether another number was sent.
    pub(crate) coerced: bool,
}

impl<'a> Read<'a> for Int {
    fn class() -> String {
        <i32 as Read<'a>>::class()
    }

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        if reader.peek()? != Token::Number {
            // Refused with what was found.
            return i32::read(reader, place).map(|value| Self {
                value,
                coerced: false,
            });
        }
        let text = reader.number()?;
        Ok(match text.parse() {
            Ok(value) => Self {
                value,
                coerced: false,
            },
            Err(_) => Self::coerced(text.parse().unwrap_or(0.0)),
        })
    }
}

impl Int {
    fn coerced(sent: f64) -> Self {
        // The conversion saturates and cuts off what stands behind the point, as Java's does.
        let value = sent as i32;
        Self {
            value,
            coerced: f64::from(value) != sent,
        }
    }

    /// How many that is; negative numbers have been refused.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.value).unwrap_or(0)
    }
}

/// The words for `Select`, in the order in which DynamoDB lists them.
const SELECTS: [&str; 4] = [
    "SPECIFIC_ATTRIBUTES",
    "COUNT",
    "ALL_ATTRIBUTES",
    "ALL_PROJECTED_ATTRIBUTES",
];

/// Which items and which parts of them a page is to hold.
pub(crate) struct Wanted {
    pub(crate) filter: Option<Condition>,
    pub(crate) projection: Option<Paths>,
    pub(crate) select: Option<Select>,
}

/// Which items and which parts of them a request asks for, in its words.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'r> {
    /// `Select`
    pub(crate) select: Option<&'r str>,
    /// `AttributesToGet`
    pub(crate) attributes_to_get: Option<&'r [Str<'r>]>,
    /// `ProjectionExpression`
    pub(crate) projection: Option<&'r str>,
    /// `FilterExpression`
    pub(crate) filter: Option<&'r str>,
    /// Whether an index is read.
    pub(crate) of_index: bool,
}

impl Parts<'_> {
    /// What `AttributesToGet` lists.
    pub(crate) fn listed(&self) -> Result<Option<Paths>> {
        self.attributes_to_get.map(attributes_to_get).transpose()
    }

    /// What the expressions ask for, or else what the parameters did that they have replaced.
    pub(crate) fn parse(
        &self,
        parser: &mut Parser<'_>,
        filter: Option<Condition>,
        listed: Option<Paths>,
    ) -> Result<Wanted> {
        let filter = match self.filter {
            Some(text) => Some(parser.filter(text)?),
            None => filter,
        };
        let projection = match self.projection {
            Some(text) => Some(parser.projection(text)?),
            None => listed,
        };
        Ok(Wanted {
            filter,
            projection,
            select: self.select()?,
        })
    }

    /// What `Select` says, which must suit the rest.
    fn select(&self) -> Result<Option<Select>> {
        let Some(word) = self.select else {
            return Ok(None);
        };
        let mut faults = Faults::new();
        faults.one_of(word, "select", &SELECTS);
        faults.into_result()?;
        let (select, named) = match word {
            "ALL_ATTRIBUTES" => (Select::AllAttributes, word),
            "ALL_PROJECTED_ATTRIBUTES" => (Select::AllProjectedAttributes, word),
            "COUNT" => (Select::Count, "only the Count"),
            _ => (Select::SpecificAttributes, word),
        };
        match self.refusal(select, named) {
            None => Ok(Some(select)),
            Some(message) => Err(enveloped(floe_store::Error::Validation(message)).into()),
        }
    }

    fn refusal(&self, select: Select, named: &str) -> Option<String> {
        let given = match (self.attributes_to_get, self.projection) {
            (Some(_), _) => Some("AttributesToGet"),
            (None, Some(_)) => Some("ProjectionExpression"),
            (None, None) => None,
        };
        match (select, given) {
            (Select::SpecificAttributes, None) => Some(format!(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get {named}"
            )),
            (Select::SpecificAttributes, Some(_)) => None,
            (_, Some(member)) => Some(format!(
                "Cannot specify the {member} when choosing to get {named}"
            )),
            (Select::AllProjectedAttributes, None) if !self.of_index => Some(format!(
                "{named} can be used only when Querying using an IndexName"
            )),
            (_, None) => None,
        }
    }
}

/// Refuses attributes without a name in the members of a request, before everything that expressions say.
pub(crate) fn check_names(
    attributes_to_get: Option<&[Str<'_>]>,
    start_key: Option<&Attributes>,
    values: Option<&Map<'_, Attribute>>,
    filters: &[Option<&Filters<'_>>],
) -> Result<()> {
    let filters = filters.iter().copied().flatten().flat_map(filter_values);
    let values = values.into_iter().flat_map(|values| &values.0);
    let mut faults = values
        .map(|(_, value)| value)
        .chain(filters)
        .map(|value| &value.fault)
        .chain(start_key.map(|key| &key.fault));
    let mut names = attributes_to_get.into_iter().flatten();
    if names.any(|name| name.is_empty())
        || faults.any(|fault| fault.as_ref().is_some_and(ValueFault::is_nameless))
    {
        return Err(Refusal::validation(
            ValueFault::EmptyName(Named::Attribute).message(Layer::Current),
        ));
    }
    Ok(())
}

/// Refuses values that no expression could hold: a projection holds none.
pub(crate) fn check_values_wanted(values: bool, conditions: bool) -> Result<()> {
    match values && !conditions {
        true => Err(Refusal::validation(
            "ExpressionAttributeValues can only be specified when using expressions",
        )),
        false => Ok(()),
    }
}

/// Where a page starts.
pub(crate) fn start_key(key: Option<Attributes>, layer: Layer) -> Result<Option<Item>> {
    match key {
        None => Ok(None),
        Some(Attributes { item, fault: None }) => Ok(Some(item)),
        Some(Attributes {
            fault: Some(fault), ..
        }) => {
            let message = fault.message(layer);
            Err(Refusal::validation(match fault {
                ValueFault::Empty | ValueFault::Several => {
                    format!("The provided starting key is invalid: {message}")
                }
                _ => message,
            }))
        }
    }
}

/// The answer to a query or scan, with items written so.
pub(crate) fn write_page(
    page: &Page,
    select: Option<Select>,
    write: impl Fn(&mut Writer, &Item),
) -> Vec<u8> {
    let mut writer = Writer::with_capacity(256 + room(&page.items));
    writer.object(|w| {
        w.name("Count").number(page.count);
        if select != Some(Select::Count) {
            let items = page.items.iter();
            w.name("Items")
                .array(|w| items.for_each(|item| write(w, item)));
        }
        if let Some(last_key) = &page.last_key {
            write_item(w.name("LastEvaluatedKey"), last_key);
        }
        w.name("ScannedCount").number(page.scanned_count);
        write_consumed(w, page.consumed.as_ref());
    });
    writer.into_bytes()
}
