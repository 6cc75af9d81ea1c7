//! Random values, keys and items.

use floe_store::table::{KeyAttribute, KeyKind, TableDef};
use floe_store::{Item, Name, Number, Set, Text, Value};

use super::{Dice, Generator};

/// Attributes besides the keys of the table, some of them keys of indexes in some tables.
pub(super) const ATTRIBUTES: [&str; 12] = [
    "g", "h", "k", "l", "b", "n", "v", "w", "m", "list", "tags", "expires",
];

/// Names inside maps.
pub(super) const FIELDS: [&str; 3] = ["x", "y", "deep"];

const TEXTS: [&str; 8] = ["a", "b", "ab", "abc", "a\0", "é", "", "banana"];
const KEY_TEXTS: [&str; 12] = [
    "a",
    "b",
    "ab",
    "a\0",
    "é",
    "banana",
    "abc",
    "a\0b",
    "z",
    "A",
    "\u{10ffff}",
    "aa",
];
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "2",
    "10",
    "2.5",
    "-2.5",
    "1e20",
    "1e-20",
    "9.99e125",
    "1e-130",
    "12345678901234567890123456789012345678",
];
const KEY_NUMBERS: [&str; 13] = [
    "0", "1", "-1", "2.5", "10", "1e20", "-10", "9", "100", "-2.5", "0.001", "1e-20", "3",
];
const BINARIES: [&[u8]; 10] = [
    &[0],
    &[0, 0],
    &[1],
    &[255],
    &[1, 2],
    &[0, 255],
    &[127],
    &[128],
    &[255, 255],
    &[0, 1],
];

fn parsed(text: &str) -> Number {
    text.parse().unwrap_or_else(|_| Number::from(0))
}

impl Dice {
    fn number(&self) -> Number {
        if self.chance(50) {
            return Number::from(self.below(8) as u64);
        }
        parsed(self.text(&NUMBERS))
    }

    /// A value that a key attribute may have.
    pub(super) fn key_value(&self, kind: KeyKind) -> Value {
        match kind {
            KeyKind::S => self.text(&KEY_TEXTS).into(),
            KeyKind::N => parsed(self.text(&KEY_NUMBERS)).into(),
            KeyKind::B => Value::B(self.pick(&BINARIES).map_or_else(Vec::new, |b| b.to_vec())),
        }
    }

    /// The same from even fewer values, for the attributes that part a table: most items and queries
    /// shall meet in one partition.
    pub(super) fn partition_value(&self, kind: KeyKind) -> Value {
        if self.chance(75) {
            self.crowded_value(kind)
        } else {
            self.key_value(kind)
        }
    }

    /// The value of the partition in which most items are.
    pub(super) fn crowded_value(&self, kind: KeyKind) -> Value {
        match kind {
            KeyKind::S => "a".into(),
            KeyKind::N => 1.into(),
            KeyKind::B => Value::B(vec![0]),
        }
    }

    /// A set of up to three elements.
    pub(super) fn set(&self) -> Value {
        let mut set = None;
        // Elements are drawn one by one; one that comes twice is dropped by the union.
        for _ in 0..=self.below(3) {
            let next = match self.below(3) {
                0 => Set::new([Text::from(self.text(&TEXTS))]).map(Value::Ss),
                1 => Set::new([self.number()]).map(Value::Ns),
                _ => Set::new([vec![self.below(3) as u8]]).map(Value::Bs),
            };
            set = match (set, next) {
                (Some(Value::Ss(a)), Ok(Value::Ss(b))) => Some(Value::Ss(a.union(b))),
                (Some(Value::Ns(a)), Ok(Value::Ns(b))) => Some(Value::Ns(a.union(b))),
                (Some(Value::Bs(a)), Ok(Value::Bs(b))) => Some(Value::Bs(a.union(b))),
                (None, Ok(first)) => Some(first),
                (kept, _) => kept,
            };
        }
        set.unwrap_or(Value::Null)
    }

    /// Any value, with documents nested up to so many levels.
    pub(super) fn value(&self, levels: usize) -> Value {
        match self.below(if levels == 0 { 7 } else { 10 }) {
            0 | 1 => self.text(&TEXTS).into(),
            2 | 3 => self.number().into(),
            4 => Value::B(vec![self.below(3) as u8; self.below(3)]),
            5 => self.chance(50).into(),
            6 if self.chance(50) => Value::Null,
            6 => self.set(),
            7 => Value::L((0..self.below(4)).map(|_| self.value(levels - 1)).collect()),
            _ => {
                let fields =
                    (0..self.below(3)).map(|_| (self.text(&FIELDS), self.value(levels - 1)));
                Value::M(fields.collect())
            }
        }
    }

    /// A value inside so many lists.
    fn nested(&self, levels: usize) -> Value {
        (0..levels).fold(Value::from(1), |value, _| Value::L(vec![value]))
    }
}

impl Generator {
    /// A key of the table, now and then one that does not fit.
    pub(super) fn key(&self, table: &TableDef) -> Item {
        // Without a sort key, all items have partitions of their own.
        let crowded = !table.key.sort.is_empty();
        let partition = table.key.partition.iter().map(|a| {
            if crowded {
                (a.name.clone(), self.dice.partition_value(a.kind))
            } else {
                (a.name.clone(), self.dice.key_value(a.kind))
            }
        });
        let sort = table.key.sort.iter();
        let sort = sort.map(|a| (a.name.clone(), self.dice.key_value(a.kind)));
        let mut key: Item = partition.chain(sort).collect();
        if self.dice.rarely(15) {
            self.spoil(table, &mut key);
        }
        key
    }

    /// The name of an attribute of the table's key.
    pub(super) fn key_name(&self, table: &TableDef) -> Name {
        let names: Vec<Name> = table.key.attributes().map(|a| a.name.clone()).collect();
        let name = self.dice.pick(&names).cloned();
        name.unwrap_or_else(|| "pk".into())
    }

    /// Makes something wrong with a key.
    fn spoil(&self, table: &TableDef, key: &mut Item) {
        let name = self.key_name(table);
        match self.dice.below(6) {
            0 => drop(key.remove(&name)),
            1 => drop(key.insert(name, self.dice.value(1))),
            2 => drop(key.insert("extra", 1)),
            3 => drop(key.insert(name, "")),
            4 => drop(key.insert(name, "x".repeat(1000 + self.dice.below(1100)))),
            _ => drop(key.insert("", 1)),
        }
    }

    /// An item of the table.
    pub(super) fn item(&self, table: &TableDef) -> Item {
        let mut item = self.key(table);
        for _ in 0..self.dice.below(6) {
            let name = self.dice.text(&ATTRIBUTES);
            if !table.key.contains(name) {
                item.insert(name, self.attribute_value(table, name));
            }
        }
        // Indexes of several attributes would hold next to nothing by chance.
        if let Some(index) = self.dice.pick(&table.indexes)
            && self.dice.chance(50)
        {
            for attribute in index.key.attributes() {
                let name = &attribute.name;
                if !table.key.contains(name) {
                    item.insert(name, self.attribute_value(table, name));
                }
            }
        }
        if self.dice.rarely(12) {
            self.stretch(&mut item);
        }
        item
    }

    /// Makes an item large or deep, sometimes too much so.
    fn stretch(&self, item: &mut Item) {
        match self.dice.below(8) {
            0 => drop(item.insert("v", "x".repeat(409_600))),
            1 => drop(item.insert("deep", self.dice.nested(30 + self.dice.below(4)))),
            2 => drop(item.insert("v", "x".repeat(1000 * (1 + self.dice.below(9))))),
            _ => drop(item.insert("v", "x".repeat(20_000 * (1 + self.dice.below(19))))),
        }
    }

    /// A value for an attribute: one that fits, if it is the key of an index.
    pub(super) fn attribute_value(&self, table: &TableDef, name: &str) -> Value {
        let keys = || table.indexes.iter().map(|index| &index.key);
        let is_it = |attribute: &&KeyAttribute| attribute.name == *name;
        let key = keys().flat_map(|key| key.attributes()).find(is_it);
        let parts = keys().any(|key| key.partition.iter().any(|a| is_it(&a)));
        match key {
            _ if self.dice.rarely(10) => self.dice.value(3),
            Some(attribute) if parts => self.dice.partition_value(attribute.kind),
            Some(attribute) => self.dice.key_value(attribute.kind),
            _ if name == "expires" => self.expiry(),
            _ if name == "n" && self.dice.chance(80) => (self.dice.below(20) as u64).into(),
            _ if name == "tags" && self.dice.chance(80) => self.dice.set(),
            _ if name == "list" && self.dice.chance(80) => {
                let values = (0..self.dice.below(4)).map(|_| self.dice.value(1));
                Value::L(values.collect())
            }
            _ if name == "m" && self.dice.chance(80) => {
                let fields = super::values::FIELDS.map(|field| (field, self.dice.value(1)));
                Value::M(fields.into_iter().take(1 + self.dice.below(3)).collect())
            }
            _ => self.dice.value(3),
        }
    }

    /// A moment of expiry, near the present.
    fn expiry(&self) -> Value {
        let now = self.now.as_secs();
        match self.dice.below(10) {
            0 => self.dice.value(1),
            1 => 0.into(),
            2 => (now - 6 * 365 * 86_400).into(),
            3..6 => (now - self.dice.below(5000) as u64).into(),
            _ => (now + self.dice.below(5000) as u64).into(),
        }
    }
}
