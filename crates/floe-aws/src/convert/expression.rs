//! Renders expressions as text in which all names and values are placeholders.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use floe_store::expr::{Condition, KeyCondition, Paths, Renderer, Update};

use super::value::attribute;

/// The expressions of one request or action, which share placeholders.
#[derive(Default)]
pub(super) struct Expressions(Renderer);

impl Expressions {
    pub(super) fn condition(&mut self, condition: Option<&Condition>) -> Option<String> {
        condition.map(|condition| self.0.condition(condition))
    }

    /// Returns the text of an update; `None` if it changes nothing.
    pub(super) fn update(&mut self, update: &Update) -> Option<String> {
        Some(self.0.update(update)).filter(|text| !text.is_empty())
    }

    pub(super) fn projection(&mut self, paths: Option<&Paths>) -> Option<String> {
        paths.map(|paths| self.0.projection(paths))
    }

    pub(super) fn key_condition(&mut self, condition: &KeyCondition) -> String {
        self.0.key_condition(condition)
    }

    /// Returns the names of the placeholders, if there are any.
    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        let names = self.0.names().iter();
        let names: HashMap<_, _> = names
            .map(|(placeholder, name)| (placeholder.clone(), name.to_string()))
            .collect();
        Some(names).filter(|names| !names.is_empty())
    }

    /// Returns the values of the placeholders, if there are any.
    pub(super) fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        let values = self.0.values().iter();
        let values: HashMap<_, _> = values
            .map(|(placeholder, value)| (placeholder.clone(), attribute(value)))
            .collect();
        Some(values).filter(|values| !values.is_empty())
    }
}
