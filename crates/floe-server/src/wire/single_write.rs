//! Common parts of PutItem, UpdateItem and DeleteItem: most members, their checks, and the response.

use floe_store::Engine;
use floe_store::expr::{Condition, Parser};
use floe_store::json::{ValidationLayer, write_item};
use floe_store::op::{Faults, ReturnValues, WriteItem};

use super::body::object;
use super::error_style::ErrorStyle;
use super::expressions::{Parameters, Placeholders, check_condition_size};
use super::legacy::{ExpectedAttributeValue, expected};
use super::parameter::{
    TableName, enum_faults, item_table_name_faults, older_table_name_faults,
    return_capacity_faults, return_collection_faults,
};
use super::read::{Map, Str, members};
use super::request_error::Result;
use super::value::Attribute;
use super::write::{write_collection, write_consumed};

members! {
    /// The members that the three operations have in common.
    WriteMembers<'a> {
        "TableName" => table_name: TableName<'a>,
        "Expected" => expected: Map<'a, ExpectedAttributeValue<'a>>,
        "ReturnValues" => return_values: Str<'a>,
        "ReturnConsumedCapacity" => return_capacity: Str<'a>,
        "ReturnItemCollectionMetrics" => return_collection: Str<'a>,
        "ReturnValuesOnConditionCheckFailure" => return_on_failure: Str<'a>,
        "ConditionalOperator" => conditional_operator: Str<'a>,
        "ConditionExpression" => condition: Str<'a>,
        "ExpressionAttributeNames" => names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => values: Map<'a, Attribute>,
    }
}

/// The values of `ReturnValues`, in the order of the older validation layer.
const RETURN_VALUES: [&str; 5] = ["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"];

impl WriteMembers<'_> {
    /// Returns the faults of PutItem and DeleteItem, including a missing member of theirs.
    pub(crate) fn faults(&self, missing: Option<&str>, layer: ValidationLayer) -> Result<Faults> {
        let mut faults = Faults::new();
        let name = self.table_name.as_deref();
        match layer {
            ValidationLayer::Current => item_table_name_faults(&mut faults, name)?,
            ValidationLayer::Older => older_table_name_faults(&mut faults, name),
        }
        if let Some(member) = missing {
            faults.add_null(member);
        }
        return_capacity_faults(&mut faults, &self.return_capacity);
        self.conditional_operator_faults(&mut faults, layer);
        self.return_values_faults(&mut faults, layer);
        return_collection_faults(&mut faults, &self.return_collection);
        self.return_on_failure_faults(&mut faults);
        Ok(faults)
    }

    /// Records the fault of an invalid `ReturnValues`. The typo in the list of the newer validation layer is
    /// DynamoDB's.
    pub(crate) fn return_values_faults(&self, faults: &mut Faults, layer: ValidationLayer) {
        match (self.return_values.as_deref(), layer) {
            (None, _) => {}
            (Some(keyword), _) if RETURN_VALUES.contains(&keyword) => {}
            (Some(keyword), ValidationLayer::Older) => faults.one_of(keyword, "returnValues", &RETURN_VALUES),
            (Some(_), ValidationLayer::Current) => faults.add_message(
                "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, \
                 UPDATE_NEW, NONE]",
            ),
        }
    }

    /// Records the fault of an invalid `ConditionalOperator`. Only the older validation layer reports it with the other
    /// members.
    pub(crate) fn conditional_operator_faults(&self, faults: &mut Faults, layer: ValidationLayer) {
        if layer == ValidationLayer::Older {
            let keyword = &self.conditional_operator;
            enum_faults(faults, keyword, "conditionalOperator", &["OR", "AND"]);
        }
    }

    /// Records the fault of an invalid `ReturnValuesOnConditionCheckFailure`.
    pub(crate) fn return_on_failure_faults(&self, faults: &mut Faults) {
        let path = "returnValuesOnConditionCheckFailure";
        enum_faults(faults, &self.return_on_failure, path, &["ALL_OLD", "NONE"]);
    }

    /// Rejects forbidden combinations of parameters, including `AttributeUpdates` and the update expression of
    /// UpdateItem.
    pub(crate) fn check_unmixed(
        &self,
        updates: bool,
        update: bool,
        style: ErrorStyle,
    ) -> Result<()> {
        Parameters {
            replaced: &[
                ("AttributeUpdates", updates),
                ("Expected", self.expected.is_some()),
                ("ConditionalOperator", self.conditional_operator.is_some()),
            ],
            expressions: &[
                ("UpdateExpression", update),
                ("ConditionExpression", self.condition.is_some()),
            ],
            names: self.names.is_some(),
            values: self.values.is_some(),
        }
        .check(style)
    }

    /// Converts `Expected` to a condition, if the request has it.
    pub(crate) fn expected(&mut self, style: ErrorStyle) -> Result<Option<Condition>> {
        let (attributes, operator) = (self.expected.take(), &self.conditional_operator);
        match (&attributes, operator) {
            (None, None) => Ok(None),
            _ => expected(attributes, operator.as_deref(), style),
        }
    }

    /// Parses the condition, after the other expressions of the request.
    pub(crate) fn parse<T>(
        &mut self,
        style: ErrorStyle,
        other: impl FnOnce(&mut Parser<'_>) -> floe_store::Result<T>,
    ) -> Result<(T, Option<Condition>)> {
        let placeholders = Placeholders::new(self.names.take(), self.values.take(), style)?;
        let mut parser = placeholders.parser();
        let wrap = |error| style.wrap(error);
        let text = self.condition.as_deref();
        if text == Some("") {
            parser.condition("").map_err(wrap)?;
        }
        let other = other(&mut parser).map_err(wrap)?;
        let condition = text.map(|text| {
            check_condition_size(text, style)?;
            parser.condition(text).map_err(wrap)
        });
        let condition = condition.transpose()?;
        parser.finish().map_err(wrap)?;
        Ok((other, condition))
    }

    /// Converts a validated `ReturnValues`.
    pub(crate) fn returned(&self) -> ReturnValues {
        let keyword = self.return_values.as_deref();
        keyword
            .and_then(ReturnValues::from_name)
            .unwrap_or_default()
    }
}

/// Sets the condition of an operation, and which values it returns.
macro_rules! with_common_members {
    ($operation:expr, $members:expr, $condition:expr) => {{
        let (mut operation, members) = ($operation, $members);
        operation.condition = $condition;
        operation.return_values = members.returned();
        operation.return_old_on_failure = members.return_on_failure.as_deref() == Some("ALL_OLD");
        operation.return_capacity =
            $crate::wire::parameter::return_capacity(&members.return_capacity);
        operation.return_collection =
            $crate::wire::parameter::return_collection(&members.return_collection);
        operation
    }};
}

pub(crate) use with_common_members;

/// Writes an item, and returns the response.
pub(crate) async fn apply_write(
    engine: &dyn Engine,
    write: WriteItem,
    table_name: &TableName<'_>,
) -> floe_store::Result<Vec<u8>> {
    let mut output = engine.write_item(write).await?;
    table_name.restore_names(&mut output.consumed);
    Ok(object(64, |w| {
        if let Some(attributes) = &output.attributes {
            write_item(w.name("Attributes"), attributes);
        }
        write_consumed(w, output.consumed.as_ref());
        if let Some(collection) = &output.collection {
            write_collection(w.name("ItemCollectionMetrics"), collection);
        }
    }))
}
