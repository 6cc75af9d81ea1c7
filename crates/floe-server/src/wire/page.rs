//! Common parts of Query and Scan: 32-bit numbers, `Select`, the start of a page, and the response. [`members`]
//! declares their members and makes the first checks.

mod members;

use floe_store::Item;
use floe_store::expr::{Condition, Parser, Paths};
use floe_store::json::{Reader, Token, ValidationLayer, ValueFault, Writer, write_item};
use floe_store::op::{Faults, Page, Select, as_constraint_error};

use super::body::{object, write_list};
use super::expressions::Placeholders;
use super::legacy::attributes_to_get;
use super::legacy::filter::{Filters, filter};
use super::read::{Read, ValueContext};
use super::request_error::{RequestError, Result};
use super::value::Attributes;
use super::write::{estimated_bytes, write_consumed};

pub(crate) use members::{PageMembers, Segments};

/// A 32-bit integer. Numbers out of range and fractions are coerced to the nearest integer toward zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int {
    /// The coerced number.
    pub(crate) value: i32,
    /// Whether the number that was sent differs.
    pub(crate) coerced: bool,
}

impl<'a> Read<'a> for Int {
    const CLASS: &'static str = <i32 as Read<'a>>::CLASS;

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        if reader.peek()? != Token::Number {
            // Rejected with the type that was found.
            return i32::read(reader, context).map(|value| Self::of(value, value.into()));
        }
        let text = reader.number()?;
        let sent: f64 = text.parse().unwrap_or(0.0);
        // The conversion saturates and truncates, as in Java.
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

    /// Returns the number as a count. Negative numbers were rejected before.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.value).unwrap_or(0)
    }
}

/// The values of `Select`, in the order of DynamoDB's messages.
const SELECTS: [&str; 4] = [
    "SPECIFIC_ATTRIBUTES",
    "COUNT",
    "ALL_ATTRIBUTES",
    "ALL_PROJECTED_ATTRIBUTES",
];

/// The parameters of a page before its expressions are parsed.
pub(crate) struct PageParameters {
    pub(crate) placeholders: Placeholders,
    pub(crate) start_key: Option<Item>,
    /// Legacy parameters that expressions replace.
    pub(crate) filter: Option<Condition>,
    pub(crate) listed: Option<Paths>,
}

/// The filter, projection and selection of a page.
pub(crate) struct PageSelection {
    pub(crate) filter: Option<Condition>,
    pub(crate) projection: Option<Paths>,
    pub(crate) select: Option<Select>,
}

impl PageMembers<'_> {
    /// Processes the parameters that come before expressions in DynamoDB's order.
    pub(crate) fn begin(
        &mut self,
        filters: Option<Filters<'_>>,
        layer: ValidationLayer,
    ) -> Result<PageParameters> {
        let placeholders = Placeholders::new(self.names.take(), self.values.take(), layer)?;
        let filter = filter(filters, self.conditional_operator.as_deref(), layer)?;
        let listed = self.attributes_to_get.as_deref();
        let listed = listed.map(attributes_to_get).transpose()?;
        Ok(PageParameters {
            placeholders,
            start_key: start_key(self.exclusive_start_key.take(), layer)?,
            filter,
            listed,
        })
    }

    /// Parses the expressions; without them, uses the legacy parameters.
    pub(crate) fn parse(
        &self,
        parser: &mut Parser<'_>,
        filter: Option<Condition>,
        listed: Option<Paths>,
    ) -> Result<PageSelection> {
        let filter = match &self.filter {
            Some(text) => Some(parser.filter(text)?),
            None => filter,
        };
        let projection = match &self.projection {
            Some(text) => Some(parser.projection(text)?),
            None => listed,
        };
        Ok(PageSelection {
            filter,
            projection,
            select: self.select()?,
        })
    }

    /// Returns the value of `Select`, which must be consistent with the other parameters.
    fn select(&self) -> Result<Option<Select>> {
        let Some(keyword) = self.select.as_deref() else {
            return Ok(None);
        };
        let mut faults = Faults::new();
        faults.one_of(keyword, "select", &SELECTS);
        faults.into_result()?;
        // The value was validated.
        let select = Select::from_name(keyword).unwrap_or(Select::SpecificAttributes);
        match self.select_error(select) {
            None => Ok(Some(select)),
            Some(message) => {
                Err(as_constraint_error(floe_store::Error::Validation(message)).into())
            }
        }
    }

    fn select_error(&self, select: Select) -> Option<String> {
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

/// Validates the start key of a page.
fn start_key(key: Option<Attributes>, layer: ValidationLayer) -> Result<Option<Item>> {
    match key {
        None => Ok(None),
        Some(Attributes { item, fault: None }) => Ok(Some(item)),
        Some(Attributes {
            fault: Some(fault), ..
        }) => {
            let message = fault.message(layer);
            Err(RequestError::validation(match fault {
                ValueFault::Empty | ValueFault::MultipleTypes => {
                    format!("The provided starting key is invalid: {message}")
                }
                _ => message,
            }))
        }
    }
}

/// Writes the response to a query or scan, each item with the given function.
pub(crate) fn write_page(
    page: &Page,
    select: Option<Select>,
    write: impl Fn(&mut Writer, &Item),
) -> Vec<u8> {
    object(256 + estimated_bytes(&page.items), |w| {
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
