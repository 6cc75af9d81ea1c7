//! Renders expression trees as text.
//!
//! Every name and value becomes a placeholder, so reserved words and special characters do not matter. Parentheses are
//! rendered only where the tree needs them, because DynamoDB rejects redundant ones. Parsing the text returns the same
//! tree.

use std::collections::{BTreeMap, HashMap};

use super::condition::{Comparator, Condition, Operand};
use super::key::{KeyCondition, KeyOp};
use super::path::{Path, Segment};
use super::projection::Paths;
use super::update::{SetOperand, SetValue, Update};
use crate::text::Name;
use crate::value::Value;

#[cfg(test)]
mod tests;

/// Renders the expressions of one request, which share their placeholders.
///
/// ```
/// use floe_store::{Name, Value, expr::{Condition, Path, Renderer, Update}};
///
/// let mut renderer = Renderer::new();
/// let update = renderer.update(&Update::new().set("status", "done").remove("until"));
/// let condition = renderer.condition(&Condition::eq(Path::attribute("status"), "open"));
/// assert_eq!(update, "SET #n0 = :v0 REMOVE #n1");
/// assert_eq!(condition, "#n0 = :v1");
/// assert_eq!(renderer.names()["#n0"], Name::from("status"));
/// assert_eq!(renderer.values()[":v1"], Value::from("open"));
/// ```
///
/// Only trees that pass the [check](super::check) have a valid text; the text of any other tree is rejected when it is
/// parsed.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    names: BTreeMap<String, Name>,
    values: BTreeMap<String, Value>,
    placeholders: HashMap<Name, String>,
}

impl Renderer {
    /// Creates a renderer without placeholders.
    pub fn new() -> Self {
        Self::default()
    }

    /// Renders a `ConditionExpression` or `FilterExpression`.
    pub fn condition(&mut self, condition: &Condition) -> String {
        self.text([Part::Condition(condition)])
    }

    /// Renders an `UpdateExpression`. The text of an empty update is empty, which DynamoDB rejects: omit the parameter
    /// then.
    pub fn update(&mut self, update: &Update) -> String {
        let mut parts = Parts::default();
        parts.section("SET", &update.set, |(path, value)| {
            [Part::Path(path), Part::Text(" = "), Part::SetValue(value)]
        });
        parts.section("REMOVE", &update.remove, |path| [Part::Path(path)]);
        for (section, actions) in [("ADD", &update.add), ("DELETE", &update.delete)] {
            parts.section(section, actions, |(path, value)| {
                [Part::Path(path), Part::Text(" "), Part::Value(value)]
            });
        }
        self.text(parts.0)
    }

    /// Renders a `ProjectionExpression`.
    pub fn projection(&mut self, paths: &Paths) -> String {
        let mut parts = Parts::default();
        parts.list(&paths.0, ", ", |path| [Part::Path(path)]);
        self.text(parts.0)
    }

    /// Renders a `KeyConditionExpression`.
    pub fn key_condition(&mut self, condition: &KeyCondition) -> String {
        let mut parts = Parts::default();
        parts.list(&condition.terms, " AND ", |term| [Part::KeyTerm(term)]);
        self.text(parts.0)
    }

    /// Returns the `ExpressionAttributeNames` of the rendered expressions. Omit the parameter if they are empty.
    pub const fn names(&self) -> &BTreeMap<String, Name> {
        &self.names
    }

    /// Returns the `ExpressionAttributeValues` of the rendered expressions. Omit the parameter if they are empty.
    pub const fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }

    /// Returns the names and the values.
    pub fn into_placeholders(self) -> (BTreeMap<String, Name>, BTreeMap<String, Value>) {
        (self.names, self.values)
    }

    /// Writes parts in order. Composite parts are replaced by their components instead of recursing, so a tree can have
    /// any depth.
    fn text<'e>(&mut self, parts: impl IntoIterator<Item = Part<'e>>) -> String {
        let mut text = String::new();
        let mut pending: Vec<Part<'e>> = parts.into_iter().collect();
        pending.reverse();
        while let Some(part) = pending.pop() {
            let mut inner = Parts::default();
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Name(name) => self.name(&mut text, name),
                Part::Path(path) => self.path(&mut text, path),
                Part::Value(value) => self.value(&mut text, value.clone()),
                Part::TypeName(name) => self.value(&mut text, Value::from(name)),
                Part::Condition(condition) => inner.condition(condition),
                Part::Operand(operand) => inner.operand(operand),
                Part::SetOperand(operand) => inner.set_operand(operand),
                Part::SetValue(value) => inner.set_value(value),
                Part::KeyTerm((name, op)) => inner.key_term(name, op),
            }
            pending.extend(inner.0.into_iter().rev());
        }
        text
    }

    fn name(&mut self, text: &mut String, name: &Name) {
        if let Some(placeholder) = self.placeholders.get(name) {
            text.push_str(placeholder);
            return;
        }
        let placeholder = format!("#n{}", self.names.len());
        text.push_str(&placeholder);
        self.names.insert(placeholder.clone(), name.clone());
        self.placeholders.insert(name.clone(), placeholder);
    }

    fn path(&mut self, text: &mut String, path: &Path) {
        self.name(text, path.root());
        for segment in path.rest() {
            match segment {
                Segment::Name(name) => {
                    text.push('.');
                    self.name(text, name);
                }
                Segment::Index(at) => {
                    text.push('[');
                    text.push_str(&at.to_string());
                    text.push(']');
                }
            }
        }
    }

    fn value(&mut self, text: &mut String, value: Value) {
        let placeholder = format!(":v{}", self.values.len());
        text.push_str(&placeholder);
        self.values.insert(placeholder, value);
    }
}

/// A piece of text to be rendered.
enum Part<'e> {
    Text(&'static str),
    Name(&'e Name),
    Path(&'e Path),
    Value(&'e Value),
    TypeName(&'static str),
    Condition(&'e Condition),
    Operand(&'e Operand),
    SetOperand(&'e SetOperand),
    SetValue(&'e SetValue),
    KeyTerm(&'e (Name, KeyOp)),
}

/// Pieces in text order.
#[derive(Default)]
struct Parts<'e>(Vec<Part<'e>>);

impl<'e> Parts<'e> {
    fn extend(&mut self, parts: impl IntoIterator<Item = Part<'e>>) {
        self.0.extend(parts);
    }

    fn condition(&mut self, condition: &'e Condition) {
        use Part::{Operand, Path, Text, TypeName};

        match condition {
            Condition::Compare(left, comparator, right) => {
                self.infix(Operand(left), comparator.as_str(), Operand(right));
            }
            Condition::Between(operand, low, high) => {
                self.between(Operand(operand), Operand(low), Operand(high));
            }
            Condition::In(operand, choices) => {
                self.extend([Operand(operand), Text(" IN (")]);
                self.list(choices, ", ", |choice| [Operand(choice)]);
                self.extend([Text(")")]);
            }
            // The operators are left-associative: the same operator on the right needs parentheses.
            Condition::And(left, right) => {
                self.grouped(left, matches!(**left, Condition::Or(..)));
                self.extend([Text(" AND ")]);
                let joined = matches!(**right, Condition::And(..) | Condition::Or(..));
                self.grouped(right, joined);
            }
            Condition::Or(left, right) => {
                self.grouped(left, false);
                self.extend([Text(" OR ")]);
                self.grouped(right, matches!(**right, Condition::Or(..)));
            }
            Condition::Not(inner) => {
                self.extend([Text("NOT ")]);
                self.grouped(inner, inner.is_branch());
            }
            Condition::AttributeExists(path) => self.call("attribute_exists", [Path(path)]),
            Condition::AttributeNotExists(path) => self.call("attribute_not_exists", [Path(path)]),
            Condition::AttributeType(operand, value_type) => {
                let name = TypeName(value_type.as_str());
                self.call("attribute_type", [Operand(operand), name]);
            }
            Condition::BeginsWith(operand, prefix) => {
                self.call("begins_with", [Operand(operand), Operand(prefix)]);
            }
            Condition::Contains(operand, element) => {
                self.call("contains", [Operand(operand), Operand(element)]);
            }
        }
    }

    fn grouped(&mut self, condition: &'e Condition, needed: bool) {
        self.extend(needed.then_some(Part::Text("(")));
        self.extend([Part::Condition(condition)]);
        self.extend(needed.then_some(Part::Text(")")));
    }

    fn infix(&mut self, left: Part<'e>, operator: &'static str, right: Part<'e>) {
        let space = || Part::Text(" ");
        self.extend([left, space(), Part::Text(operator), space(), right]);
    }

    fn between(&mut self, operand: Part<'e>, low: Part<'e>, high: Part<'e>) {
        self.infix(operand, "BETWEEN", low);
        self.extend([Part::Text(" AND "), high]);
    }

    /// Appends elements with a separator.
    fn list<A, const N: usize>(
        &mut self,
        elements: &'e [A],
        separator: &'static str,
        parts: impl Fn(&'e A) -> [Part<'e>; N],
    ) {
        for (n, element) in elements.iter().enumerate() {
            self.extend((n > 0).then_some(Part::Text(separator)));
            self.extend(parts(element));
        }
    }

    fn call<const N: usize>(&mut self, function: &'static str, arguments: [Part<'e>; N]) {
        self.extend([Part::Text(function), Part::Text("(")]);
        for (n, argument) in arguments.into_iter().enumerate() {
            self.extend((n > 0).then_some(Part::Text(", ")));
            self.extend([argument]);
        }
        self.extend([Part::Text(")")]);
    }

    fn operand(&mut self, operand: &'e Operand) {
        match operand {
            Operand::Path(path) => self.extend([Part::Path(path)]),
            Operand::Value(value) => self.extend([Part::Value(value)]),
            Operand::Size(path) => self.call("size", [Part::Path(path)]),
        }
    }

    /// Appends a section of an update with its actions, or nothing without actions.
    fn section<A, const N: usize>(
        &mut self,
        keyword: &'static str,
        actions: &'e [A],
        parts: impl Fn(&'e A) -> [Part<'e>; N],
    ) {
        if !actions.is_empty() {
            self.extend((!self.0.is_empty()).then_some(Part::Text(" ")));
            self.extend([Part::Text(keyword), Part::Text(" ")]);
        }
        self.list(actions, ", ", parts);
    }

    fn set_value(&mut self, value: &'e SetValue) {
        let (left, operation) = match value {
            SetValue::Operand(operand) => (operand, None),
            SetValue::Sum(left, right) => (left, Some((" + ", right))),
            SetValue::Difference(left, right) => (left, Some((" - ", right))),
        };
        self.extend([Part::SetOperand(left)]);
        if let Some((operator, right)) = operation {
            self.extend([Part::Text(operator), Part::SetOperand(right)]);
        }
    }

    fn set_operand(&mut self, operand: &'e SetOperand) {
        match operand {
            SetOperand::Path(path) => self.extend([Part::Path(path)]),
            SetOperand::Value(value) => self.extend([Part::Value(value)]),
            SetOperand::IfNotExists(path, otherwise) => {
                self.call(
                    "if_not_exists",
                    [Part::Path(path), Part::SetOperand(otherwise)],
                );
            }
            SetOperand::ListAppend(first, second) => {
                self.call(
                    "list_append",
                    [Part::SetOperand(first), Part::SetOperand(second)],
                );
            }
        }
    }

    fn key_term(&mut self, name: &'e Name, op: &'e KeyOp) {
        use Part::{Name, Value};

        match op {
            KeyOp::Between(low, high) => self.between(Name(name), Value(low), Value(high)),
            KeyOp::BeginsWith(prefix) => self.call("begins_with", [Name(name), Value(prefix)]),
            KeyOp::Eq(value)
            | KeyOp::Lt(value)
            | KeyOp::Le(value)
            | KeyOp::Gt(value)
            | KeyOp::Ge(value) => {
                let comparator = op.comparator().map_or("", Comparator::as_str);
                self.infix(Name(name), comparator, Value(value));
            }
        }
    }
}
