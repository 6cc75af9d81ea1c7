//! Random expressions: conditions, updates, projections and key conditions.

use floe_store::expr::{
    Comparator, Condition, KeyCondition, KeyOp, Operand, Path, Paths, SetOperand, SetValue, Update,
};
use floe_store::table::{KeyAttribute, KeyKind, KeySchema, TableDef};
use floe_store::{Value, ValueType};

use super::values::{ATTRIBUTES, FIELDS};
use super::{Generator, RandomChoices};

const COMPARATORS: [Comparator; 6] = {
    use Comparator::{Eq, Ge, Gt, Le, Lt, Ne};
    [Eq, Ne, Lt, Le, Gt, Ge]
};

const TYPES: [ValueType; 10] = {
    use ValueType::{B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
    [S, N, B, Bool, Null, M, L, Ss, Ns, Bs]
};

impl RandomChoices {
    /// A path to an attribute, sometimes to an element inside of one.
    fn path(&self) -> Path {
        if self.chance(75) {
            return Path::attribute(self.text(&ATTRIBUTES));
        }
        // Usually into an attribute with documents; a path into an index key is rejected.
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

    /// A type with an order.
    fn kind(&self) -> KeyKind {
        self.one_of(&[KeyKind::S, KeyKind::N, KeyKind::B])
    }

    fn comparator(&self) -> Comparator {
        self.one_of(&COMPARATORS)
    }
}

impl Generator {
    /// A path; rarely one to or into the key.
    fn any_path(&self, table: &TableDef) -> Path {
        if self.random.rarely(60) {
            let path = Path::attribute(self.key_name(table));
            return if self.random.chance(10) {
                path.field("x")
            } else {
                path
            };
        }
        self.random.path()
    }

    /// An operand of any type.
    fn operand(&self, table: &TableDef) -> Operand {
        match self.random.below(10) {
            0..5 => Operand::Path(self.any_path(table)),
            5 => Operand::Size(self.any_path(table)),
            _ => Operand::Value(self.random.value(1)),
        }
    }

    /// An operand of an ordered type, rarely of any type.
    fn ordered_operand(&self, table: &TableDef) -> Operand {
        match self.random.below(100) {
            0..30 => Operand::Path(self.any_path(table)),
            30..40 => Operand::Size(self.any_path(table)),
            40..43 => Operand::Value(self.random.value(1)),
            _ => Operand::Value(self.random.key_value(self.random.kind())),
        }
    }

    /// The bounds of `BETWEEN`, usually of one type and in order, because others are rejected.
    fn bounds(&self, table: &TableDef) -> (Operand, Operand) {
        if self.random.chance(15) {
            return (self.ordered_operand(table), self.ordered_operand(table));
        }
        let kind = self.random.kind();
        let (one, two) = (self.random.key_value(kind), self.random.key_value(kind));
        match one.compare(&two) {
            Some(order) if order.is_gt() => (two.into(), one.into()),
            _ => (one.into(), two.into()),
        }
    }

    /// A condition: a tree with this maximum number of levels.
    pub(super) fn condition(&self, table: &TableDef, levels: usize) -> Condition {
        if levels > 0 && self.random.chance(35) {
            let left = self.condition(table, levels - 1);
            return match self.random.below(3) {
                0 => left.and(self.condition(table, levels - 1)),
                1 => left.or(self.condition(table, levels - 1)),
                _ => left.not(),
            };
        }
        let path = self.any_path(table);
        match self.random.below(12) {
            0..2 => Condition::AttributeExists(path),
            2..4 => Condition::AttributeNotExists(path),
            4 => Condition::AttributeType(path.into(), self.random.one_of(&TYPES)),
            5 => {
                let kind = if self.random.chance(80) {
                    KeyKind::S
                } else {
                    self.random.kind()
                };
                Condition::BeginsWith(path.into(), self.random.key_value(kind).into())
            }
            6 => Condition::Contains(path.into(), self.operand(table)),
            7 => {
                let (low, high) = self.bounds(table);
                Condition::Between(path.into(), low, high)
            }
            8 => {
                let choices = (0..=self.random.below(3)).map(|_| self.operand(table));
                Condition::In(path.into(), choices.collect())
            }
            9 => {
                let (left, right) = (self.ordered_operand(table), self.ordered_operand(table));
                Condition::Compare(left, self.random.comparator(), right)
            }
            10 => {
                let comparator = if self.random.chance(50) {
                    Comparator::Eq
                } else {
                    Comparator::Ne
                };
                let value = self.attribute_value(table, path.root());
                Condition::Compare(path.into(), comparator, value.into())
            }
            _ => Condition::Compare(
                path.into(),
                self.random.comparator(),
                self.ordered_operand(table),
            ),
        }
    }

    /// A condition with this probability in percent.
    pub(super) fn some_condition(&self, table: &TableDef, percent: usize) -> Option<Condition> {
        self.random
            .chance(percent)
            .then(|| self.condition(table, 2))
    }

    /// A projection with this probability in percent.
    pub(super) fn some_projection(&self, table: &TableDef, percent: usize) -> Option<Paths> {
        self.random.chance(percent).then(|| {
            let paths = (0..=self.random.below(3)).map(|_| self.any_path(table));
            Paths(paths.collect())
        })
    }

    /// An update with up to three actions.
    pub(super) fn update(&self, table: &TableDef) -> Update {
        let mut update = Update::new();
        for _ in 0..self.random.below(4) {
            // Most updates change whole attributes; those inside documents usually fail.
            let path = if self.random.chance(70) {
                Path::attribute(self.random.text(&ATTRIBUTES))
            } else {
                self.any_path(table)
            };
            let used = update.paths().any(|other| other.root() == path.root());
            if used && !self.random.chance(10) {
                continue;
            }
            match self.random.below(10) {
                0..5 => update
                    .set
                    .push((path.clone(), self.set_value(table, &path))),
                5..7 => update.remove.push(path),
                7..9 => update.add.push((path, self.addend())),
                _ => update.delete.push((path, self.random.set())),
            }
        }
        update
    }

    fn addend(&self) -> Value {
        match self.random.below(10) {
            0..6 => (self.random.below(5) as u64).into(),
            6..9 => self.random.set(),
            _ => self.random.value(1),
        }
    }

    fn set_value(&self, table: &TableDef, path: &Path) -> SetValue {
        let number = || SetOperand::Value((self.random.below(9) as u64).into());
        let own = || SetOperand::Path(path.clone());
        match self.random.below(16) {
            0 => SetValue::Sum(own(), number()),
            1 => SetValue::Difference(own(), number()),
            2 => SetValue::Sum(SetOperand::if_not_exists(path.clone(), 0), number()),
            3 => {
                let list = Value::L(vec![self.random.value(1)]);
                SetValue::Operand(SetOperand::list_append(own(), list))
            }
            4 => {
                let kept = SetOperand::if_not_exists(path.clone(), Vec::<Value>::new());
                let list = Value::L(vec![self.random.value(1)]);
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

    /// A key condition on a table or index, sometimes an invalid one.
    pub(super) fn key_condition(&self, key: &KeySchema) -> KeyCondition {
        let mut terms = Vec::new();
        for attribute in &key.partition {
            let value = self.random.partition_value(attribute.kind);
            terms.push((attribute.name.clone(), KeyOp::Eq(value)));
        }
        for attribute in &key.sort {
            if self.random.chance(40) {
                break;
            }
            let op = self.key_op(attribute);
            let ends = !matches!(op, KeyOp::Eq(_));
            terms.push((attribute.name.clone(), op));
            if ends && !self.random.rarely(20) {
                break;
            }
        }
        if self.random.rarely(30) {
            match self.random.below(3) {
                0 => drop(terms.pop()),
                1 => terms.push(("v".into(), KeyOp::Eq(1.into()))),
                _ => {
                    if let Some((_, op)) = terms.first_mut() {
                        *op = KeyOp::Eq(self.random.value(1));
                    }
                }
            }
        }
        KeyCondition { terms }
    }

    fn key_op(&self, attribute: &KeyAttribute) -> KeyOp {
        let value = || {
            if self.random.rarely(15) {
                self.random.value(1)
            } else {
                self.random.key_value(attribute.kind)
            }
        };
        match self.random.below(9) {
            0..2 => KeyOp::Eq(value()),
            2 => KeyOp::Lt(value()),
            3 => KeyOp::Le(value()),
            4 => KeyOp::Gt(value()),
            5 => KeyOp::Ge(value()),
            6 => KeyOp::BeginsWith(value()),
            _ => {
                let (one, two) = (value(), value());
                match one.compare(&two) {
                    // Usually in order, because the reverse order is rejected.
                    Some(order) if order.is_gt() && !self.random.chance(10) => {
                        KeyOp::Between(two, one)
                    }
                    _ => KeyOp::Between(one, two),
                }
            }
        }
    }
}
