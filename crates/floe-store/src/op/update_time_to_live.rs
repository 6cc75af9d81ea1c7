//! UpdateTimeToLive: switches the expiry of items on or off.

use super::constraint::Faults;
use crate::error::{Error, Result};
use crate::limits::TTL_ATTRIBUTE_NAME_BYTES;
use crate::table::TableDef;
use crate::text::Name;

/// Switches expiry on or off.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateTimeToLive {
    /// The table.
    pub table_name: String,
    /// The attribute that holds the moment of expiry in epoch seconds.
    pub attribute: Name,
    /// On or off.
    pub enabled: bool,
}

impl UpdateTimeToLive {
    /// Lets items expire at the moment that this attribute names.
    pub fn enable(table_name: impl Into<String>, attribute: impl Into<Name>) -> Self {
        Self {
            table_name: table_name.into(),
            attribute: attribute.into(),
            enabled: true,
        }
    }

    /// Lets items stay that expired by this attribute.
    pub fn disable(table_name: impl Into<String>, attribute: impl Into<Name>) -> Self {
        Self {
            enabled: false,
            ..Self::enable(table_name, attribute)
        }
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| self.add_faults(faults))
    }

    /// Adds the faults of lengths, which are told together.
    pub fn add_faults(&self, faults: &mut Faults) {
        faults.table_name_by_pattern(&self.table_name);
        let path = "timeToLiveSpecification.attributeName";
        faults.length(&self.attribute, path, TTL_ATTRIBUTE_NAME_BYTES);
    }

    /// The definition after the change of a valid request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when expiry already is as it should be, or is on for another
    /// attribute.
    pub fn apply(&self, current: &TableDef) -> Result<TableDef> {
        match &current.ttl_attribute {
            Some(attribute) if *attribute != self.attribute => Err(Error::Validation(format!(
                "TimeToLive is active on a different AttributeName: current AttributeName is \
                 {attribute}"
            ))),
            Some(_) if self.enabled => Err(Error::validation("TimeToLive is already enabled")),
            None if !self.enabled => Err(Error::validation("TimeToLive is already disabled")),
            _ => Ok(TableDef {
                ttl_attribute: self.enabled.then(|| self.attribute.clone()),
                ..current.clone()
            }),
        }
    }

    /// Checks a valid request against its table; see [`apply`](UpdateTimeToLive::apply).
    ///
    /// # Errors
    ///
    /// As [`apply`](UpdateTimeToLive::apply).
    pub fn check(&self, table: &TableDef) -> Result<()> {
        self.apply(table).map(drop)
    }
}
