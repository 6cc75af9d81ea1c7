//! What PutItem, UpdateItem and DeleteItem have in common: most of their members, how these are checked, and the answer.

use floe_store::Engine;
use floe_store::expr::{Condition, Parser};
use floe_store::json::{Layer, write_item};
use floe_store::op::{Faults, ReturnValues, WriteItem};

use super::body::object;
use super::expressions::{Parameters, Placeholders, check_condition_size};
use super::legacy::{ExpectedAttributeValue, expected};
use super::parameter::{
    TableName, item_table_name_faults, older_table_name_faults, return_capacity_faults,
    return_collection_faults, word_faults,
};
use super::read::{Map, Str, members};
use super::refusal::Result;
use super::value::Attribute;
use super::voice::Voice;
use super::write::{write_collection, write_consumed};

members! {
    /// The members that the three have in common.
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

/// The words for `ReturnValues`, in the order in which the older layer of validation lists them.
const RETURN_VALUES: [&str; 5] = ["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"];

impl WriteMembers<'_> {
    /// The faults of PutItem and DeleteItem, with the member that is missing beside these.
    pub(crate) fn faults(&self, missing: Option<&str>, layer: Layer) -> Result<Faults> {
        let mut faults = Faults::new();
        let name = self.table_name.as_deref();
        match layer {
            Layer::Current => item_table_name_faults(&mut faults, name)?,
            Layer::Older => older_table_name_faults(&mut faults, name),
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

    /// The fault of a `ReturnValues` that is none of the words for it. The list of them in the newer layer of validation
    /// has a slip of the pen.
    pub(crate) fn return_values_faults(&self, faults: &mut Faults, layer: Layer) {
        match (self.return_values.as_deref(), layer) {
            (None, _) => {}
            (Some(word), _) if RETURN_VALUES.contains(&word) => {}
            (Some(word), Layer::Older) => faults.one_of(word, "returnValues", &RETURN_VALUES),
            (Some(_), Layer::Current) => faults.add_bare(
                "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, \
                 UPDATE_NEW, NONE]",
            ),
        }
    }

    /// The fault of a `ConditionalOperator` that is none of the words for it, which only the older layer of validation
    /// reports with the other members.
    pub(crate) fn conditional_operator_faults(&self, faults: &mut Faults, layer: Layer) {
        if layer == Layer::Older {
            let word = &self.conditional_operator;
            word_faults(faults, word, "conditionalOperator", &["OR", "AND"]);
        }
    }

    /// The fault of a `ReturnValuesOnConditionCheckFailure` that is none of the words for it.
    pub(crate) fn return_on_failure_faults(&self, faults: &mut Faults) {
        let path = "returnValuesOnConditionCheckFailure";
        word_faults(faults, &self.return_on_failure, path, &["ALL_OLD", "NONE"]);
    }

    /// Refuses parameters that cannot be mixed, also with the updates and the update expression of UpdateItem.
    pub(crate) fn check_unmixed(&self, updates: bool, update: bool, voice: Voice) -> Result<()> {
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
        .check(voice)
    }

    /// The condition of `Expected`, in a request that has none as an expression.
    pub(crate) fn expected(&mut self, voice: Voice) -> Result<Option<Condition>> {
        let (attributes, operator) = (self.expected.take(), &self.conditional_operator);
        match (&attributes, operator) {
            (None, None) => Ok(None),
            _ => expected(attributes, operator.as_deref(), voice),
        }
    }

    /// Parses the condition, and before it what else the request has of expressions.
    pub(crate) fn parse<T>(
        &mut self,
        voice: Voice,
        other: impl FnOnce(&mut Parser<'_>) -> floe_store::Result<T>,
    ) -> Result<(T, Option<Condition>)> {
        let placeholders = Placeholders::new(self.names.take(), self.values.take(), voice)?;
        let mut parser = placeholders.parser();
        let refuse = |error| voice.refuse_error(error);
        let text = self.condition.as_deref();
        if text == Some("") {
            parser.condition("").map_err(refuse)?;
        }
        let other = other(&mut parser).map_err(refuse)?;
        let condition = text.map(|text| {
            check_condition_size(text, voice)?;
            parser.condition(text).map_err(refuse)
        });
        let condition = condition.transpose()?;
        parser.finish().map_err(refuse)?;
        Ok((other, condition))
    }

    /// What to return, of a word that has been checked.
    pub(crate) fn returned(&self) -> ReturnValues {
        let word = self.return_values.as_deref();
        word.and_then(ReturnValues::from_name).unwrap_or_default()
    }
}

/// An operation with what the request says of its condition and its answer.
macro_rules! completed {
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

pub(crate) use completed;

/// Writes an item, and gives the answer.
pub(crate) async fn send(
    engine: &dyn Engine,
    write: WriteItem,
    table_name: &TableName<'_>,
) -> floe_store::Result<Vec<u8>> {
    let mut output = engine.write_item(write).await?;
    table_name.name_cost(&mut output.consumed);
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
