//! Checks of the values in a request: nesting, names and size.
//!
//! The types guarantee the rest: numbers are in range and sets are valid by construction.

use super::constraint::invalid;
use crate::error::{Error, Result, ensure};
use crate::item::{Item, ItemStats};
use crate::limits::{ATTRIBUTE_NAME_BYTES_MAX, ITEM_BYTES_MAX, NESTING_LEVELS_MAX};
use crate::size::{CONTAINER_BYTES, ENTRY_BYTES, value_size};
use crate::value::Value;

/// Collects what all checks need in one pass, so that a write visits each value once.
#[derive(Debug, Default)]
pub(super) struct ItemChecker(ItemStats);

impl ItemChecker {
    /// Visits an item. The visit stops below the deepest allowed level, so nesting cannot overflow the stack.
    pub(super) fn of(item: &Item) -> Self {
        if let Some(stats) = item.stats() {
            return Self(*stats);
        }
        let mut checker = Self::default();
        for (name, value) in item.iter() {
            checker.attribute(name, value, 1);
        }
        checker
    }

    fn attribute(&mut self, name: &str, value: &Value, level: usize) {
        self.0.has_empty_name |= name.is_empty();
        self.0.name_bytes_max = self.0.name_bytes_max.max(name.len());
        self.0.bytes += name.len();
        self.value(value, level);
    }
    fn value(&mut self, value: &Value, level: usize) {
        self.0.levels = self.0.levels.max(level);
        match value {
            _ if level > NESTING_LEVELS_MAX => {}
            Value::M(map) => {
                self.0.bytes += CONTAINER_BYTES + map.len() * ENTRY_BYTES;
                for (name, value) in map.iter() {
                    self.attribute(name, value, level + 1);
                }
            }
            Value::L(list) => {
                self.0.bytes += CONTAINER_BYTES + list.len() * ENTRY_BYTES;
                for value in list {
                    self.value(value, level + 1);
                }
            }
            scalar_or_set => self.0.bytes += value_size(scalar_or_set),
        }
    }

    /// The size of the item, provided that nothing is nested too deep.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Checks names and nesting. Empty names are reported first.
    pub(super) fn check(&self) -> Result<()> {
        self.check_shape(
            "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels \
             beyond supported limit",
        )
    }

    fn check_shape(&self, too_deep: &str) -> Result<()> {
        let unnamed = self.0.has_empty_name;
        ensure(!unnamed, || Error::validation("Empty attribute name"))?;
        let deep = self.0.levels > NESTING_LEVELS_MAX;
        ensure(!deep, || Error::validation(too_deep))?;
        ensure(self.0.name_bytes_max <= ATTRIBUTE_NAME_BYTES_MAX, || {
            invalid("Attribute name is too large, must be less than 65536 bytes")
        })
    }

    /// Checks the size of an item for a put.
    pub(super) fn check_size(&self) -> Result<()> {
        ensure(self.bytes() <= ITEM_BYTES_MAX, || {
            Error::validation("Item size has exceeded the maximum allowed size")
        })
    }

    /// Checks the item that results from an update.
    pub(super) fn check_updated(&self) -> Result<()> {
        self.check_shape("Nesting Levels have exceeded supported limits")?;
        ensure(self.bytes() <= ITEM_BYTES_MAX, item_too_large_to_update)
    }
}

pub(super) fn item_too_large_to_update() -> Error {
    Error::validation("Item size to update has exceeded the maximum allowed size")
}

/// Checks the names and the nesting of a key's values.
pub(super) fn check_values(key: &Item) -> Result<()> {
    ItemChecker::of(key).check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::item_size;
    use crate::value::Value;

    /// A number inside this many lists.
    fn lists(levels: usize) -> Value {
        (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]))
    }

    fn check(item: &Item) -> String {
        match ItemChecker::of(item).check() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn scalars_may_be_nested_in_31_lists_or_maps() {
        assert_eq!(check(&Item::new().with("a", lists(31))), "");
        let too_deep = "Nesting Levels have exceeded supported limits: Attributes in the item have \
                        nested levels beyond supported limit";
        assert_eq!(check(&Item::new().with("a", lists(32))), too_deep);
        let in_a_map = Item::new().with("a", Value::M(Item::new().with("b", lists(31))));
        assert_eq!(check(&in_a_map), too_deep);
        let checker = ItemChecker::of(&in_a_map);
        assert_eq!(
            checker.check_updated().unwrap_err().to_string(),
            "Nesting Levels have exceeded supported limits"
        );
    }

    #[test]
    fn empty_names_are_rejected_on_every_level() {
        assert_eq!(check(&Item::new().with("", 1)), "Empty attribute name");
        let nested = Value::L(vec![Value::M(Item::new().with("", 1))]);
        assert_eq!(
            check(&Item::new().with("a", nested)),
            "Empty attribute name"
        );
    }

    #[test]
    fn overlong_names_are_rejected_on_every_level() {
        let named = |bytes: usize| Item::new().with("x".repeat(bytes), 1);
        let within = |item: Item| Item::new().with("a", Value::L(vec![Value::M(item)]));
        for item in [named(65_535), within(named(65_535))] {
            assert_eq!(check(&item), "");
            assert!(ItemChecker::of(&item).check_updated().is_ok());
        }
        let too_long = "One or more parameter values were invalid: Attribute name is too large, must \
                        be less than 65536 bytes";
        for item in [named(65_536), within(named(65_536))] {
            assert_eq!(check(&item), too_long);
            let updated = ItemChecker::of(&item).check_updated();
            assert_eq!(updated.unwrap_err().to_string(), too_long);
        }
    }

    #[test]
    fn checked_size_matches_item_size() {
        let item = Item::new()
            .with("text", "abc")
            .with(
                "map",
                Item::new().with("a", lists(3)).with("b", Value::Null),
            )
            .with("list", Value::L(vec![Value::from(true), lists(2)]));
        assert_eq!(ItemChecker::of(&item).bytes(), item_size(&item));
    }

    #[test]
    fn items_are_limited_to_400_kb() {
        let item = |bytes: usize| Item::new().with("a", "x".repeat(bytes - 1));
        let (fits, over) = (
            ItemChecker::of(&item(409_600)),
            ItemChecker::of(&item(409_601)),
        );
        assert!(fits.check_size().is_ok() && fits.check_updated().is_ok());
        assert_eq!(
            over.check_size().unwrap_err().to_string(),
            "Item size has exceeded the maximum allowed size"
        );
        assert_eq!(
            over.check_updated().unwrap_err().to_string(),
            "Item size to update has exceeded the maximum allowed size"
        );
    }
}
