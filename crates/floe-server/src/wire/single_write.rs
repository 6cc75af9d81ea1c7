//! What PutItem, UpdateItem and DeleteItem have in common: the words for what they return, their conditions, and
//! their answer.

use floe_store::expr::{Condition, Parser};
use floe_store::json::{Layer, Writer, write_item};
use floe_store::limits::EXPRESSION_BYTES_MAX;
use floe_store::op::{Faults, ReturnValues, WriteItemOutput};

use super::legacy::{ExpectedAttributeValue, expected};
use super::parameter::{item_table_name_faults, older_table_name_faults};
use super::read::Map;
use super::refusal::Result;
use super::voice::Voice;
use super::write::{write_collection, write_consumed};

/// The words for `ReturnValues`, in the order in which the older layer of validation lists them.
const RETURN_VALUES: [&str; 5] = ["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"];

/// What to return, of a word that has been checked.
pub(crate) fn return_values(word: Option<&str>) -> ReturnValues {
    match word {
        Some("ALL_OLD") => ReturnValues::AllOld,
        Some("UPDATED_OLD") => ReturnValues::UpdatedOld,
        Some("ALL_NEW") => ReturnValues::AllNew,
        Some("UPDATED_NEW") => ReturnValues::UpdatedNew,
        _ => ReturnValues::None,
    }
}

/// The fault of a `ReturnValues` that is none of the words for it. The list of them in the newer layer of validation
/// has a slip of the pen.
pub(crate) fn return_values_faults(faults: &mut Faults, word: Option<&str>, layer: Layer) {
    match (word, layer) {
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
/// tells with the other members.
pub(crate) fn conditional_operator_faults(faults: &mut Faults, word: Option<&str>, layer: Layer) {
    if let (Some(word), Layer::Older) = (word, layer) {
        faults.one_of(word, "conditionalOperator", &["OR", "AND"]);
    }
}

/// The fault of a name that is missing or cannot be a table's, as each layer of validation tells it.
pub(crate) fn table_name_faults(
    faults: &mut Faults,
    name: Option<&str>,
    layer: Layer,
) -> Result<()> {
    match layer {
        Layer::Current => item_table_name_faults(faults, name)?,
        Layer::Older => older_table_name_faults(faults, name),
    }
    Ok(())
}

/// The fault of a `ReturnValuesOnConditionCheckFailure` that is none of the words for it.
pub(crate) fn return_on_failure_faults(faults: &mut Faults, word: Option<&str>) {
    if let Some(word) = word {
        let path = "returnValuesOnConditionCheckFailure";
        faults.one_of(word, path, &["ALL_OLD", "NONE"]);
    }
}

/// The condition that a request has as an expression.
pub(crate) fn condition(
    parser: &mut Parser<'_>,
    expression: Option<&str>,
    voice: Voice,
) -> Result<Option<Condition>> {
    let Some(text) = expression else {
        return Ok(None);
    };
    // Of this expression alone DynamoDB tells how long it is.
    if text.len() > EXPRESSION_BYTES_MAX {
        let size = text.len();
        return Err(voice.refuse(format!(
            "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: \
             {size}"
        )));
    }
    let condition = parser.condition(text);
    condition
        .map(Some)
        .map_err(|error| voice.refuse_error(error))
}

/// The condition that a request has as `Expected`, which has none as an expression.
pub(crate) fn expected_condition(
    attributes: Option<Map<'_, ExpectedAttributeValue<'_>>>,
    operator: Option<&str>,
    voice: Voice,
) -> Result<Option<Condition>> {
    match (&attributes, operator) {
        (None, None) => Ok(None),
        _ => expected(attributes, operator, voice),
    }
}

/// The answer to a write of one item.
pub(crate) fn write_answer(output: &WriteItemOutput) -> Vec<u8> {
    let mut writer = Writer::with_capacity(64);
    writer.object(|w| {
        if let Some(attributes) = &output.attributes {
            write_item(w.name("Attributes"), attributes);
        }
        write_consumed(w, output.consumed.as_ref());
        if let Some(collection) = &output.collection {
            write_collection(w.name("ItemCollectionMetrics"), collection);
        }
    });
    writer.into_bytes()
}
