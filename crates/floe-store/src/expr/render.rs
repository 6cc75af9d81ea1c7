//! Trees to text.

use std::collections::BTreeMap;

use super::condition::Condition;
use super::key::KeyCondition;
use super::projection::Paths;
use super::update::Update;
use crate::item::Name;
use crate::value::Value;

/// Renders the expressions of one request.
#[derive(Debug, Default)]
pub struct Renderer {
    names: BTreeMap<String, Name>,
    values: BTreeMap<String, Value>,
}

impl Renderer {
    /// A renderer for a request.
    pub fn new() -> Self {
        Self::default()
    }
    /// Condition or filter.
    pub fn condition(&mut self, _condition: &Condition) -> String {
        String::new()
    }
    /// Update.
    pub fn update(&mut self, _update: &Update) -> String {
        String::new()
    }
    /// Projection.
    pub fn projection(&mut self, _paths: &Paths) -> String {
        String::new()
    }
    /// Key condition.
    pub fn key_condition(&mut self, _condition: &KeyCondition) -> String {
        String::new()
    }
    /// Names.
    pub fn names(&self) -> &BTreeMap<String, Name> {
        &self.names
    }
    /// Values.
    pub fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }
}
