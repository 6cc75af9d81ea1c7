//! UpdateTimeToLive: enables or disables the expiry of items.

use super::constraint::Faults;
use crate::error::{Error, Result};
use crate::limits::TTL_ATTRIBUTE_NAME_BYTES;
use crate::table::TableDef;
use crate::text::Name;

/// Enables or disables expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateTimeToLive {
    /// The table.
    pub table_name: String,
    /// The attribute with the expiry time in epoch seconds.
    pub attribute: Name,
    /// Whether to enable expiry.
    pub enabled: bool,
}

impl UpdateTimeToLive {
    /// Enables expiry at the time in this attribute.
    pub fn enable(table_name: impl Into<String>, attribute: impl Into<Name>) -> Self {
        Self {
            table_name: table_name.into(),
            attribute: attribute.into(),
            enabled: true,
        }
    }

    /// Disables expiry by this attribute.
    pub fn disable(table_name: impl Into<String>, attribute: impl Into<Name>) -> Self {
        Self {
            enabled: false,
            ..Self::enable(table_name, attribute)
        }
    }

    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| self.add_faults(faults))
    }

    /// Adds the faults of lengths, which one error lists together.
    pub fn add_faults(&self, faults: &mut Faults) {
        faults.table_name_by_pattern(&self.table_name);
        let path = "timeToLiveSpecification.attributeName";
        faults.length(&self.attribute, path, TTL_ATTRIBUTE_NAME_BYTES);
    }

    /// Returns the definition after a valid request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) if expiry is already in this state, or enabled for another attribute.
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
    /// The errors of [`apply`](UpdateTimeToLive::apply).
    pub fn check(&self, table: &TableDef) -> Result<()> {
        self.apply(table).map(drop)
    }
}
