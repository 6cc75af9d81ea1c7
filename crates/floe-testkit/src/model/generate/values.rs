//! Random values, keys and items.

use floe_store::table::{KeyAttribute, KeyKind, TableDef};
use floe_store::{Item, Name, Number, Set, Text, Value};

use super::{Generator, RandomChoices};

/// Attributes other than table keys. Some tables use some of them as index keys.
pub(super) const ATTRIBUTES: [&str; 12] = [
    "g", "h", "k", "l", "b", "n", "v", "w", "m", "list", "tags", "expires",
];

/// Names of map fields.
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

impl RandomChoices {
    fn number(&self) -> Number {
        if self.chance(50) {
            return Number::from(self.below(8) as u64);
        }
        parsed(self.text(&NUMBERS))
    }

    /// A value for a key attribute.
    pub(super) fn key_value(&self, kind: KeyKind) -> Value {
        match kind {
            KeyKind::S => self.text(&KEY_TEXTS).into(),
            KeyKind::N => parsed(self.text(&KEY_NUMBERS)).into(),
            KeyKind::B => Value::B(self.pick(&BINARIES).map_or_else(Vec::new, |b| b.to_vec())),
        }
    }

    /// A value for a partition key attribute, from a smaller set, so that most items and queries share a partition.
    pub(super) fn partition_value(&self, kind: KeyKind) -> Value {
        if self.chance(75) {
            self.common_partition_value(kind)
        } else {
            self.key_value(kind)
        }
    }

    /// The value of the partition with most items.
    pub(super) fn common_partition_value(&self, kind: KeyKind) -> Value {
        match kind {
            KeyKind::S => "a".into(),
            KeyKind::N => 1.into(),
            KeyKind::B => Value::B(vec![0]),
        }
    }

    /// A set of up to three elements.
    pub(super) fn set(&self) -> Value {
        let mut set = None;
        // The union drops duplicate elements.
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

    /// A value with documents nested up to this number of levels.
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

    /// A number inside of this number of nested lists.
    fn nested(&self, levels: usize) -> Value {
        (0..levels).fold(Value::from(1), |value, _| Value::L(vec![value]))
    }
}

impl Generator {
    /// A key of the table, sometimes an invalid one.
    pub(super) fn key(&self, table: &TableDef) -> Item {
        // Without a sort key, each item has its own partition.
        let shares_partitions = !table.key.sort.is_empty();
        let partition = table.key.partition.iter().map(|a| {
            if shares_partitions {
                (a.name.clone(), self.random.partition_value(a.kind))
            } else {
                (a.name.clone(), self.random.key_value(a.kind))
            }
        });
        let sort = table.key.sort.iter();
        let sort = sort.map(|a| (a.name.clone(), self.random.key_value(a.kind)));
        let mut key: Item = partition.chain(sort).collect();
        if self.random.rarely(15) {
            self.invalidate(table, &mut key);
        }
        key
    }

    /// The name of an attribute of the table's key.
    pub(super) fn key_name(&self, table: &TableDef) -> Name {
        let names: Vec<Name> = table.key.attributes().map(|a| a.name.clone()).collect();
        let name = self.random.pick(&names).cloned();
        name.unwrap_or_else(|| "pk".into())
    }

    /// Makes a key invalid.
    fn invalidate(&self, table: &TableDef, key: &mut Item) {
        let name = self.key_name(table);
        match self.random.below(6) {
            0 => drop(key.remove(&name)),
            1 => drop(key.insert(name, self.random.value(1))),
            2 => drop(key.insert("extra", 1)),
            3 => drop(key.insert(name, "")),
            4 => drop(key.insert(name, "x".repeat(1000 + self.random.below(1100)))),
            _ => drop(key.insert("", 1)),
        }
    }

    /// An item of the table.
    pub(super) fn item(&self, table: &TableDef) -> Item {
        let mut item = self.key(table);
        for _ in 0..self.random.below(6) {
            let name = self.random.text(&ATTRIBUTES);
            if !table.key.contains(name) {
                item.insert(name, self.attribute_value(table, name));
            }
        }
        // An index on several attributes would rarely contain an item by chance.
        if let Some(index) = self.random.pick(&table.indexes)
            && self.random.chance(50)
        {
            for attribute in index.key.attributes() {
                let name = &attribute.name;
                if !table.key.contains(name) {
                    item.insert(name, self.attribute_value(table, name));
                }
            }
        }
        if self.random.rarely(12) {
            self.enlarge(&mut item);
        }
        item
    }

    /// Makes an item large or deep, sometimes beyond the limit.
    fn enlarge(&self, item: &mut Item) {
        match self.random.below(8) {
            0 => drop(item.insert("v", "x".repeat(409_600))),
            1 => drop(item.insert("deep", self.random.nested(30 + self.random.below(4)))),
            2 => drop(item.insert("v", "x".repeat(1000 * (1 + self.random.below(9))))),
            _ => drop(item.insert("v", "x".repeat(20_000 * (1 + self.random.below(19))))),
        }
    }

    /// A value for an attribute, usually of the right type if it is an index key.
    pub(super) fn attribute_value(&self, table: &TableDef, name: &str) -> Value {
        let keys = || table.indexes.iter().map(|index| &index.key);
        let is_it = |attribute: &&KeyAttribute| attribute.name == *name;
        let key = keys().flat_map(|key| key.attributes()).find(is_it);
        let parts = keys().any(|key| key.partition.iter().any(|a| is_it(&a)));
        match key {
            _ if self.random.rarely(10) => self.random.value(3),
            Some(attribute) if parts => self.random.partition_value(attribute.kind),
            Some(attribute) => self.random.key_value(attribute.kind),
            _ if name == "expires" => self.expiry(),
            _ if name == "n" && self.random.chance(80) => (self.random.below(20) as u64).into(),
            _ if name == "tags" && self.random.chance(80) => self.random.set(),
            _ if name == "list" && self.random.chance(80) => {
                let values = (0..self.random.below(4)).map(|_| self.random.value(1));
                Value::L(values.collect())
            }
            _ if name == "m" && self.random.chance(80) => {
                let fields = super::values::FIELDS.map(|field| (field, self.random.value(1)));
                Value::M(fields.into_iter().take(1 + self.random.below(3)).collect())
            }
            _ => self.random.value(3),
        }
    }

    /// A time of expiry near the current time.
    fn expiry(&self) -> Value {
        let now = self.now.as_secs();
        match self.random.below(10) {
            0 => self.random.value(1),
            1 => 0.into(),
            2 => (now - 6 * 365 * 86_400).into(),
            3..6 => (now - self.random.below(5000) as u64).into(),
            _ => (now + self.random.below(5000) as u64).into(),
        }
    }
}
