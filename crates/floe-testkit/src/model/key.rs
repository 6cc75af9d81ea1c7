//! The order of keys.

use std::cmp::Ordering;

use floe_store::table::KeySchema;
use floe_store::{Item, Value};

/// The values of key attributes, in DynamoDB's order. An attribute of a key has the same type in all items, so two
/// keys of a table or index are always comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(Vec<Value>);

impl Key {
    /// The key of an item in a table, without missing attributes.
    pub(super) fn of(schema: &KeySchema, item: &Item) -> Self {
        let values = schema.attributes().filter_map(|a| item.get(&a.name));
        Self(values.cloned().collect())
    }

    /// The key of an entry in an index: the index key, then the table key.
    pub(super) fn of_entry(index: &KeySchema, table: &KeySchema, item: &Item) -> Self {
        let attributes = index.attributes().chain(table.attributes());
        let values = attributes.filter_map(|a| item.get(&a.name));
        Self(values.cloned().collect())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let pairs = self.0.iter().zip(&other.0);
        let orders = pairs.map(|(a, b)| a.compare(b).unwrap_or(Ordering::Equal));
        let differing = orders.into_iter().find(|order| order.is_ne());
        differing.unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::TableDef;
    use floe_store::table::KeyKind;

    #[test]
    fn keys_order_by_partition_then_by_sort_value() {
        let table = TableDef::builder("Sorted", "pk", KeyKind::S)
            .sort_key("sk", KeyKind::N)
            .build()
            .unwrap();
        let key =
            |pk: &str, sk: i32| Key::of(&table.key, &Item::new().with("pk", pk).with("sk", sk));
        assert!(key("a", 10) < key("b", 2));
        assert!(key("a", 2) < key("a", 10));
        assert_eq!(key("a", 2), key("a", 2));
    }
}
