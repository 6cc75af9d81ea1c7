//! What Query and Scan have in common: their numbers, `Select`, where a page starts, and the page as it is
//! answered. Their members and the checks that come before everything else are in [`members`].

mod members;

use floe_store::Item;
use floe_store::expr::{Condition, Parser, Paths};
use floe_store::json::{Layer, Reader, Token, ValueFault, Writer, write_item};
use floe_store::op::{Faults, Page, Select, enveloped};

use super::body::{object, write_list};
use super::expressions::Placeholders;
use super::legacy::attributes_to_get;
use super::legacy::filter::{Filters, filter};
use super::read::{Place, Read};
use super::refusal::{Refusal, Result};
use super::value::Attributes;
use super::write::{room, write_consumed};

pub(crate) use members::{PageMembers, Segments};

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
    const CLASS: &'static str = <i32 as Read<'a>>::CLASS;

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        if reader.peek()? != Token::Number {
            // Refused with what was found.
            return i32::read(reader, place).map(|value| Self::of(value, value.into()));
        }
        let text = reader.number()?;
        let sent: f64 = text.parse().unwrap_or(0.0);
        // The conversion saturates and cuts off what stands behind the point, as Java's does.
        Ok(match text.parse() {
            Ok(value) => Self::of(value, value.into()),
            Err(_) => Self::of(sent as i32, sent),
        })
    }
}

impl Int {
    fn of(value: i32, sent: f64) -> Self {
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

/// What is known of a page before its expressions are parsed.
pub(crate) struct Begun {
    pub(crate) placeholders: Placeholders,
    pub(crate) start_key: Option<Item>,
    /// What the parameters ask for that expressions have replaced.
    pub(crate) filter: Option<Condition>,
    pub(crate) listed: Option<Paths>,
}

/// Which items and which parts of them a page is to hold.
pub(crate) struct Wanted {
    pub(crate) filter: Option<Condition>,
    pub(crate) projection: Option<Paths>,
    pub(crate) select: Option<Select>,
}

impl PageMembers<'_> {
    /// Takes what comes before the expressions, in DynamoDB's order.
    pub(crate) fn begin(&mut self, filters: Option<Filters<'_>>, layer: Layer) -> Result<Begun> {
        let placeholders = Placeholders::new(self.names.take(), self.values.take(), layer)?;
        let filter = filter(filters, self.conditional_operator.as_deref(), layer)?;
        let listed = self.attributes_to_get.as_deref();
        let listed = listed.map(attributes_to_get).transpose()?;
        Ok(Begun {
            placeholders,
            start_key: start_key(self.exclusive_start_key.take(), layer)?,
            filter,
            listed,
        })
    }

    /// What the expressions ask for, or else what the parameters did that they have replaced.
    pub(crate) fn parse(
        &self,
        parser: &mut Parser<'_>,
        filter: Option<Condition>,
        listed: Option<Paths>,
    ) -> Result<Wanted> {
        let filter = match &self.filter {
            Some(text) => Some(parser.filter(text)?),
            None => filter,
        };
        let projection = match &self.projection {
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
        let Some(word) = self.select.as_deref() else {
            return Ok(None);
        };
        let mut faults = Faults::new();
        faults.one_of(word, "select", &SELECTS);
        faults.into_result()?;
        // The word has been checked.
        let select = Select::from_name(word).unwrap_or(Select::SpecificAttributes);
        match self.refusal(select) {
            None => Ok(Some(select)),
            Some(message) => Err(enveloped(floe_store::Error::Validation(message)).into()),
        }
    }

    fn refusal(&self, select: Select) -> Option<String> {
        let named = match select {
            Select::Count => "only the Count",
            _ => select.as_str(),
        };
        let given = match (&self.attributes_to_get, &self.projection) {
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
            (Select::AllProjectedAttributes, None) if self.index_name.is_none() => Some(format!(
                "{named} can be used only when Querying using an IndexName"
            )),
            (_, None) => None,
        }
    }
}

/// Where a page starts.
fn start_key(key: Option<Attributes>, layer: Layer) -> Result<Option<Item>> {
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
    object(256 + room(&page.items), |w| {
        w.name("Count").number(page.count);
        if select != Some(Select::Count) {
            write_list(w, "Items", &page.items, write);
        }
        if let Some(last_key) = &page.last_key {
            write_item(w.name("LastEvaluatedKey"), last_key);
        }
        w.name("ScannedCount").number(page.scanned_count);
        write_consumed(w, page.consumed.as_ref());
    })
}
