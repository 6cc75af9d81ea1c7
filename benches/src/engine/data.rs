//! The items of all subjects: partitions of a thousand items, about 300 bytes each.

use floe_store::env::{Random, SeededRandom};
use floe_store::{Item, Number, Set, Text, Value};

/// Items in a partition.
pub(super) const PARTITION: u64 = 1000;
/// Number of distinct owners in the index.
const OWNERS: u64 = 1000;

pub(super) fn partition_key(partition: u64) -> String {
    format!("customer-{partition:08}")
}

pub(super) fn owner_key(n: u64) -> String {
    format!("owner-{:04}", n % OWNERS)
}

/// The item with a number, and a score that puts change.
pub(super) fn item(n: u64, score: u64) -> Item {
    Item::from_iter([
        ("pk", Value::from(partition_key(n / PARTITION))),
        ("sk", Value::N(Number::from(n % PARTITION))),
        ("owner", Value::from(owner_key(n))),
        (
            "name",
            Value::from(format!("the customer with the number {n}")),
        ),
        ("status", Value::from("active".to_owned())),
        ("score", Value::N(Number::from(score))),
        ("tags", tags()),
        ("body", Value::from("lorem ipsum dolor sit amet ".repeat(5))),
    ])
}

fn tags() -> Value {
    match Set::new(["blue", "green", "red"].map(Text::from)) {
        Ok(set) => Value::Ss(set),
        Err(_) => Value::Null,
    }
}

pub(super) fn key(n: u64) -> Item {
    Item::from_iter([
        ("pk", Value::from(partition_key(n / PARTITION))),
        ("sk", Value::N(Number::from(n % PARTITION))),
    ])
}

/// Selects random items. The same seed results in the same items.
pub(crate) struct Picker {
    random: SeededRandom,
    items: u64,
}

impl Picker {
    pub(super) fn new(seed: u64, items: u64) -> Self {
        Self {
            random: SeededRandom::new(seed),
            items,
        }
    }

    /// Total number of items.
    pub(super) fn items(&self) -> u64 {
        self.items
    }

    /// The number of a random item.
    pub(super) fn item(&self) -> u64 {
        self.random.below(self.items)
    }

    /// The number of a random item that is followed by at least `count - 1` items in its partition.
    pub(super) fn start_of(&self, count: usize) -> u64 {
        let partitions = (self.items / PARTITION).max(1);
        let room = PARTITION.saturating_sub(count as u64) + 1;
        self.random.below(partitions) * PARTITION + self.random.below(room)
    }

    /// Three different items.
    pub(super) fn three(&self) -> [u64; 3] {
        let first = self.item();
        [first, (first + 1) % self.items, (first + 2) % self.items]
    }

    pub(super) fn score(&self) -> u64 {
        self.random.next_u64() % 1_000_000
    }
}
