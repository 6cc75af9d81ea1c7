//! Random expressions: conditions, updates, projections and key conditions.

use floe_store::expr::{
    Comparator, Condition, KeyCondition, KeyOp, Operand, Path, Paths, SetOperand, SetValue, Update,
};
use floe_store::table::{KeyAttribute, KeyKind, KeySchema, TableDef};
use floe_store::{Value, ValueType};

use super::values::{ATTRIBUTES, FIELDS};
use super::{Dice, Generator};

const COMPARATORS: [Comparator; 6] = {
    use Comparator::{Eq, Ge, Gt, Le, Lt, Ne};
    [Eq, Ne, Lt, Le, Gt, Ge]
};

const TYPES: [ValueType; 10] = {
    use ValueType::{B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
    [S, N, B, Bool, Null, M, L, Ss, Ns, Bs]
};

impl Dice {
    /// A path to an attribute, sometimes into one.
    fn path(&self) -> Path {
        if self.chance(75) {
            return Path::attribute(self.text(&ATTRIBUTES));
        }
        // Mostly into what is a document; into the key of an index it is refused.
        let mut path = match self.below(20) {
            0 => Path::attribute(self.text(&ATTRIBUTES)).field("x"),
            1..11 => Path::attribute("m").field(self.text(&FIELDS)),
            _ => Path::attribute("list").index(self.below(4)),
        };
        while self.chance(25) {
            path = if self.chance(50) {
                path.field(self.text(&FIELDS))
            } else {
                path.index(self.below(4))
            };
        }
        path
    }

    /// One of the types that have an order.
    fn kind(&self) -> KeyKind {
        self.one_of(&[KeyKind::S, KeyKind::N, KeyKind::B])
    }

    fn comparator(&self) -> Comparator {
        self.one_of(&COMPARATORS)
    }
}

impl Generator {
    /// A path that requests use: rarely one into the key.
    fn any_path(&self, table: &TableDef) -> Path {
        if self.dice.rarely(60) {
            let path = Path::attribute(self.key_name(table));
            return if self.dice.chance(10) {
                path.field("x")
            } else {
                path
            };
        }
        self.dice.path()
    }

    /// An operand of any type.
    fn operand(&self, table: &TableDef) -> Operand {
        match self.dice.below(10) {
            0..5 => Operand::Path(self.any_path(table)),
            5 => Operand::Size(self.any_path(table)),
            _ => Operand::Value(self.dice.value(1)),
        }
    }

    /// An operand that has an order, rarely one that has none.
    fn ordered_operand(&self, table: &TableDef) -> Operand {
        match self.dice.below(100) {
            0..30 => Operand::Path(self.any_path(table)),
            30..40 => Operand::Size(self.any_path(table)),
            40..43 => Operand::Value(self.dice.value(1)),
            _ => Operand::Value(self.dice.key_value(self.dice.kind())),
        }
    }

    /// The bounds of `BETWEEN`: mostly of one type and in order, since others are refused.
    fn bounds(&self, table: &TableDef) -> (Operand, Operand) {
        if self.dice.chance(15) {
            return (self.ordered_operand(table), self.ordered_operand(table));
        }
        let kind = self.dice.kind();
        let (one, two) = (self.dice.key_value(kind), self.dice.key_value(kind));
        match one.compare(&two) {
            Some(order) if order.is_gt() => (two.into(), one.into()),
            _ => (one.into(), two.into()),
        }
    }

    /// A condition, as a tree of up to so many levels.
    pub(super) fn condition(&self, table: &TableDef, levels: usize) -> Condition {
        if levels > 0 && self.dice.chance(35) {
            let left = self.condition(table, levels - 1);
            return match self.dice.below(3) {
                0 => left.and(self.condition(table, levels - 1)),
                1 => left.or(self.condition(table, levels - 1)),
                _ => left.not(),
            };
        }
        let path = self.any_path(table);
        match self.dice.below(12) {
            0..2 => Condition::AttributeExists(path),
            2..4 => Condition::AttributeNotExists(path),
            4 => Condition::AttributeType(path.into(), self.dice.one_of(&TYPES)),
            5 => {
                let kind = if self.dice.chance(80) {
                    KeyKind::S
                } else {
                    self.dice.kind()
                };
                Condition::BeginsWith(path.into(), self.dice.key_value(kind).into())
            }
            6 => Condition::Contains(path.into(), self.operand(table)),
            7 => {
                let (low, high) = self.bounds(table);
                Condition::Between(path.into(), low, high)
            }
            8 => {
                let choices = (0..=self.dice.below(3)).map(|_| self.operand(table));
                Condition::In(path.into(), choices.collect())
            }
            9 => {
                let (left, right) = (self.ordered_operand(table), self.ordered_operand(table));
                Condition::Compare(left, self.dice.comparator(), right)
            }
            10 => {
                let comparator = if self.dice.chance(50) {
                    Comparator::Eq
                } else {
                    Comparator::Ne
                };
                let value = self.attribute_value(table, path.root());
                Condition::Compare(path.into(), comparator, value.into())
            }
            _ => Condition::Compare(
                path.into(),
                self.dice.comparator(),
                self.ordered_operand(table),
            ),
        }
    }

    /// A condition about half of the time.
    pub(super) fn some_condition(&self, table: &TableDef, percent: usize) -> Option<Condition> {
        self.dice.chance(percent).then(|| self.condition(table, 2))
    }

    /// Paths to return, some of the time.
    pub(super) fn some_projection(&self, table: &TableDef, percent: usize) -> Option<Paths> {
        self.dice.chance(percent).then(|| {
            let paths = (0..=self.dice.below(3)).map(|_| self.any_path(table));
            Paths(paths.collect())
        })
    }

    /// An update of one to three clauses.
    pub(super) fn update(&self, table: &TableDef) -> Update {
        let mut update = Update::new();
        for _ in 0..self.dice.below(4) {
            // Most updates are of whole attributes; into documents they mostly fail.
            let path = if self.dice.chance(70) {
                Path::attribute(self.dice.text(&ATTRIBUTES))
            } else {
                self.any_path(table)
            };
            let used = update.paths().any(|other| other.root() == path.root());
            if used && !self.dice.chance(10) {
                continue;
            }
            match self.dice.below(10) {
                0..5 => update
                    .set
                    .push((path.clone(), self.set_value(table, &path))),
                5..7 => update.remove.push(path),
                7..9 => update.add.push((path, self.addend())),
                _ => update.delete.push((path, self.dice.set())),
            }
        }
        update
    }

    fn addend(&self) -> Value {
        match self.dice.below(10) {
            0..6 => (self.dice.below(5) as u64).into(),
            6..9 => self.dice.set(),
            _ => self.dice.value(1),
        }
    }

    fn set_value(&self, table: &TableDef, path: &Path) -> SetValue {
        let number = || SetOperand::Value((self.dice.below(9) as u64).into());
        let own = || SetOperand::Path(path.clone());
        match self.dice.below(16) {
            0 => SetValue::Sum(own(), number()),
            1 => SetValue::Difference(own(), number()),
            2 => SetValue::Sum(SetOperand::if_not_exists(path.clone(), 0), number()),
            3 => {
                let list = Value::L(vec![self.dice.value(1)]);
                SetValue::Operand(SetOperand::list_append(own(), list))
            }
            4 => {
                let kept = SetOperand::if_not_exists(path.clone(), Vec::<Value>::new());
                let list = Value::L(vec![self.dice.value(1)]);
                SetValue::Operand(SetOperand::list_append(list, kept))
            }
            5 => SetValue::Operand(SetOperand::Path(self.any_path(table))),
            6 => {
                let otherwise = self.attribute_value(table, path.root());
                SetValue::Operand(SetOperand::if_not_exists(self.any_path(table), otherwise))
            }
            _ => SetValue::Operand(SetOperand::Value(self.attribute_value(table, path.root()))),
        }
    }

    /// A key condition on a table or index, now and then one that does not fit.
    pub(super) fn key_condition(&self, key: &KeySchema) -> KeyCondition {
        let mut terms = Vec::new();
        for attribute in &key.partition {
            let value = self.dice.partition_value(attribute.kind);
            terms.push((attribute.name.clone(), KeyOp::Eq(value)));
        }
        for attribute in &key.sort {
            if self.dice.chance(40) {
                break;
            }
            let op = self.key_op(attribute);
            let ends = !matches!(op, KeyOp::Eq(_));
            terms.push((attribute.name.clone(), op));
            if ends && !self.dice.rarely(20) {
                break;
            }
        }
        if self.dice.rarely(30) {
            match self.dice.below(3) {
                0 => drop(terms.pop()),
                1 => terms.push(("v".into(), KeyOp::Eq(1.into()))),
                _ => {
                    if let Some((_, op)) = terms.first_mut() {
                        *op = KeyOp::Eq(self.dice.value(1));
                    }
                }
            }
        }
        KeyCondition { terms }
    }

    fn key_op(&self, attribute: &KeyAttribute) -> KeyOp {
        let value = || {
            if self.dice.rarely(15) {
                self.dice.value(1)
            } else {
                self.dice.key_value(attribute.kind)
            }
        };
        match self.dice.below(9) {
            0..2 => KeyOp::Eq(value()),
            2 => KeyOp::Lt(value()),
            3 => KeyOp::Le(value()),
            4 => KeyOp::Gt(value()),
            5 => KeyOp::Ge(value()),
            6 => KeyOp::BeginsWith(value()),
            _ => {
                let (one, two) = (value(), value());
                match one.compare(&two) {
                    // Mostly in order, since the other way round is refused.
                    Some(order) if order.is_gt() && !self.dice.chance(10) => {
                        KeyOp::Between(two, one)
                    }
                    _ => KeyOp::Between(one, two),
                }
            }
        }
    }
}
