//! Common test fixtures for expressions: placeholders, and random trees from a seed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::condition::{Comparator, Condition, Operand};
use super::parse::Parser;
use super::path::Path;
use super::render::Renderer;
use super::update::{SetOperand, SetValue, Update};
use crate::env::SeededRandom;
use crate::item::Item;
use crate::number::Number;
use crate::text::Name;
use crate::value::{Set, Value, ValueType};

/// The names of placeholders in the tests.
pub(super) static NAMES: LazyLock<BTreeMap<String, Name>> = LazyLock::new(|| {
    let names = [
        ("#a", "a"),
        ("#b", "b"),
        ("#c", "c"),
        ("#three", "[3]"),
        ("#dot", "a.b"),
        ("#name", "name"),
        ("#1", "one"),
        ("#_", "under"),
    ];
    names
        .map(|(key, name)| (key.to_owned(), Name::from(name)))
        .into()
});

/// The values of placeholders in the tests: one of each type, named after it, and some more.
pub(super) static VALUES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let values = [
        (":S", Value::from("text")),
        (":N", Value::from(5)),
        (":B", Value::from(&b"bytes"[..])),
        (":BOOL", Value::from(true)),
        (":NULL", Value::Null),
        (":M", Value::from(Item::new().with("x", 1))),
        (":L", list([1, 2])),
        (":SS", strings(["x", "y"])),
        (":NS", numbers([1, 2])),
        (":BS", Value::from(Set::new([vec![1], vec![2]]).unwrap())),
        (":v", Value::from("v")),
        (":w", Value::from("w")),
        (":x", Value::from("x")),
        (":one", Value::from(1)),
        (":two", Value::from(2)),
        (":typeSS", Value::from("SS")),
        (":typess", Value::from("ss")),
        (":1", Value::from("digit")),
        (":_", Value::from("under")),
    ];
    values.map(|(key, value)| (key.to_owned(), value)).into()
});

/// The value of a placeholder.
pub(super) fn value(placeholder: &str) -> Value {
    VALUES[placeholder].clone()
}

pub(super) fn list<const LEN: usize>(numbers: [i32; LEN]) -> Value {
    Value::L(numbers.map(Value::from).to_vec())
}

pub(super) fn strings<const LEN: usize>(texts: [&str; LEN]) -> Value {
    Value::from(Set::new(texts.map(crate::Text::from)).unwrap())
}

pub(super) fn numbers<const LEN: usize>(numbers: [i32; LEN]) -> Value {
    Value::from(Set::new(numbers.map(Number::from)).unwrap())
}

impl Renderer {
    /// A parser with the placeholders of the rendered expressions.
    pub(super) fn parser(&self) -> Parser<'_> {
        let names = (!self.names().is_empty()).then_some(self.names());
        let values = (!self.values().is_empty()).then_some(self.values());
        Parser::new(names, values)
    }
}

/// Parses a path as printed by [`Display`](std::fmt::Display).
pub(super) fn path(text: &str) -> Path {
    let mut steps = text.split(['.', '[']);
    let root = Path::attribute(steps.next().unwrap());
    steps.fold(root, |path, step| match step.strip_suffix(']') {
        Some(digits) => path.index(digits.parse().unwrap()),
        None => path.field(step),
    })
}

/// A generator of trees and items that is deterministic for a seed.
pub(super) struct Random(SeededRandom);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    pub(super) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Few names, so that paths of different trees overlap. Some of them require a placeholder.
    fn name(&mut self) -> Name {
        Name::from(self.pick(&["a", "b", "c", "name", "a.b", "[3]", "ü-"]))
    }

    pub(super) fn path(&mut self) -> Path {
        let steps = self.below(3);
        (0..steps).fold(Path::attribute(self.name()), |path, _| {
            if self.below(3) == 0 {
                path.index(self.below(4))
            } else {
                path.field(self.name())
            }
        })
    }

    pub(super) fn value(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 8 } else { 10 };
        match self.below(kinds) {
            0 => Value::from(self.pick(&["", "a", "ab", "b", "ü"])),
            1 => Value::from(self.below(5) as u64),
            2 => Value::from(self.pick(&[vec![], vec![0], vec![0, 255]])),
            3 => Value::from(self.below(2) == 0),
            4 => Value::Null,
            5 => self.pick(&[strings(["a"]), strings(["a", "b"]), strings(["", "c"])]),
            6 => self.pick(&[numbers([1]), numbers([1, 2]), numbers([3])]),
            7 => Value::from(Set::new([vec![self.below(3) as u8]]).unwrap()),
            8 => (0..self.below(4))
                .map(|_| self.value(depth - 1))
                .collect::<Vec<_>>()
                .into(),
            _ => Value::from(self.item(depth - 1)),
        }
    }

    pub(super) fn item(&mut self, depth: usize) -> Item {
        (0..self.below(5))
            .map(|_| (self.name(), self.value(depth)))
            .collect()
    }

    fn operand(&mut self) -> Operand {
        match self.below(5) {
            0 => Operand::Size(self.path()),
            1 | 2 => Operand::Path(self.path()),
            _ => Operand::Value(self.value(1)),
        }
    }

    fn leaf(&mut self) -> Condition {
        use Comparator::*;

        match self.below(8) {
            0 | 1 => {
                let comparator = self.pick(&[Eq, Ne, Lt, Le, Gt, Ge]);
                Condition::Compare(self.operand(), comparator, self.operand())
            }
            2 => Condition::Between(self.operand(), self.operand(), self.operand()),
            3 => {
                let choices = (0..=self.below(3)).map(|_| self.operand()).collect();
                Condition::In(self.operand(), choices)
            }
            4 => Condition::AttributeExists(self.path()),
            5 => {
                Condition::AttributeType(self.operand(), self.pick(&[ValueType::S, ValueType::Bs]))
            }
            6 => Condition::BeginsWith(self.operand(), self.operand()),
            _ => Condition::Contains(self.operand(), self.operand()),
        }
    }

    /// A condition that does not necessarily pass the check.
    pub(super) fn condition(&mut self, depth: usize) -> Condition {
        if depth == 0 {
            return self.leaf();
        }
        match self.below(6) {
            0 | 1 => self.condition(depth - 1).and(self.condition(depth - 1)),
            2 | 3 => self.condition(depth - 1).or(self.condition(depth - 1)),
            4 => self.condition(depth - 1).not(),
            _ => self.leaf(),
        }
    }

    fn set_operand(&mut self, depth: usize) -> SetOperand {
        match self.below(if depth == 0 { 3 } else { 6 }) {
            0 => SetOperand::Path(self.path()),
            1 => SetOperand::Value(self.value(1)),
            2 => SetOperand::Value(self.pick(&[Value::from(1), list([1]), list([])])),
            3 | 4 => SetOperand::if_not_exists(self.path(), self.set_operand(depth - 1)),
            _ => SetOperand::list_append(self.set_operand(depth - 1), self.set_operand(depth - 1)),
        }
    }

    /// An update that does not necessarily pass the check.
    pub(super) fn update(&mut self) -> Update {
        let mut update = Update::new();
        for _ in 0..self.below(4) {
            let path = self.path();
            match self.below(6) {
                0 | 1 => {
                    let value = match self.below(4) {
                        0 => SetValue::Sum(self.set_operand(1), self.set_operand(1)),
                        1 => SetValue::Difference(self.set_operand(1), self.set_operand(1)),
                        _ => SetValue::Operand(self.set_operand(2)),
                    };
                    update.set.push((path, value));
                }
                2 | 3 => update.remove.push(path),
                4 => update.add.push((path, self.value(0))),
                _ => update.delete.push((path, self.value(0))),
            }
        }
        update
    }
}
