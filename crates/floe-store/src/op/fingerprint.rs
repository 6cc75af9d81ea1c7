//! Fingerprints of requests, which distinguish a retry from another request with the same token.
//!
//! Fingerprints are stored on disk and compared by later builds, so the encoding is spelled out here instead of
//! derived: 128-bit FNV-1a over a traversal in which every part has a tag or a length, so that different requests
//! produce different bytes.

use std::fmt::{self, Write};

use super::{
    ConditionCheck, DeleteItem, PutItem, TransactWrite, TransactWriteItems, UpdateItem, WriteItem,
};
use crate::expr::{Condition, Operand, Path, Segment, SetOperand, SetValue, Update};
use crate::item::Item;
use crate::number::Number;
use crate::value::Value;

const FNV_OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A hash that is the same in every process, build and release.
#[derive(Debug)]
struct Fingerprint(u128);

impl WriteItem {
    /// Returns a fingerprint that two requests share only if they write the same. Stable across restarts and builds.
    /// Ignores what the requests return.
    ///
    /// ```
    /// use floe_store::{Item, op::{PutItem, WriteItem}};
    ///
    /// let put = |n| WriteItem::from(PutItem::new("Orders", Item::new().with("id", n)));
    /// assert_eq!(put(1).fingerprint(), put(1).fingerprint());
    /// assert_ne!(put(1).fingerprint(), put(2).fingerprint());
    /// ```
    pub fn fingerprint(&self) -> u128 {
        let mut fingerprint = Fingerprint::new();
        match self {
            Self::Put(put) => fingerprint.put(put),
            Self::Update(update) => fingerprint.update_item(update),
            Self::Delete(delete) => fingerprint.delete(delete),
        }
        fingerprint.0
    }
}

impl TransactWriteItems {
    /// Returns a fingerprint that two transactions share only if they do the same. Stable across restarts and builds.
    /// Ignores the reported cost and the token.
    pub fn fingerprint(&self) -> u128 {
        let mut fingerprint = Fingerprint::new();
        fingerprint.each(&self.actions, Fingerprint::action);
        fingerprint.0
    }
}

impl Fingerprint {
    const fn new() -> Self {
        Self(FNV_OFFSET)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    /// Separates what follows from content with another tag.
    fn tag(&mut self, tag: u8) -> &mut Self {
        self.bytes(&[tag]);
        self
    }

    fn flag(&mut self, flag: bool) {
        self.tag(u8::from(flag));
    }

    fn length(&mut self, length: usize) {
        self.bytes(&(length as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    fn blob(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes(bytes);
    }

    fn number(&mut self, number: &Number) {
        // The canonical text contains no zero byte, so a zero byte terminates it. Writing cannot fail.
        let _infallible = write!(self, "{number}");
        self.tag(0);
    }

    fn item(&mut self, item: &Item) {
        self.length(item.len());
        for (name, value) in item.iter() {
            self.text(name);
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::S(text) => self.tag(0).text(text),
            Value::N(number) => self.tag(1).number(number),
            Value::B(bytes) => self.tag(2).blob(bytes),
            Value::Bool(flag) => self.tag(3).flag(*flag),
            Value::Null => self.bytes(&[4]),
            Value::M(map) => self.tag(5).item(map),
            Value::L(list) => self.tag(6).each(list, Self::value),
            Value::Ss(set) => self.tag(7).each(set.as_slice(), |f, text| f.text(text)),
            Value::Ns(set) => self.tag(8).each(set.as_slice(), Self::number),
            Value::Bs(set) => self.tag(9).each(set.as_slice(), |f, bytes| f.blob(bytes)),
        }
    }

    fn each<T>(&mut self, parts: &[T], mut add: impl FnMut(&mut Self, &T)) {
        self.length(parts.len());
        for part in parts {
            add(self, part);
        }
    }

    fn path(&mut self, path: &Path) {
        self.text(path.root());
        self.each(path.rest(), |f, segment| match segment {
            Segment::Name(name) => f.tag(0).text(name),
            Segment::Index(at) => f.tag(1).length(*at),
        });
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Path(path) => self.tag(0).path(path),
            Operand::Value(value) => self.tag(1).value(value),
            Operand::Size(path) => self.tag(2).path(path),
        }
    }

    fn operands(&mut self, operands: [&Operand; 2]) {
        operands.iter().for_each(|operand| self.operand(operand));
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare(left, comparator, right) => {
                self.tag(0).text(comparator.as_str());
                self.operands([left, right]);
            }
            Condition::Between(probe, low, high) => {
                self.tag(1).operand(probe);
                self.operands([low, high]);
            }
            Condition::In(probe, choices) => {
                self.tag(2).operand(probe);
                self.each(choices, Self::operand);
            }
            Condition::And(left, right) => self.tag(3).conditions(left, right),
            Condition::Or(left, right) => self.tag(4).conditions(left, right),
            Condition::Not(inner) => self.tag(5).condition(inner),
            Condition::AttributeExists(path) => self.tag(6).path(path),
            Condition::AttributeNotExists(path) => self.tag(7).path(path),
            Condition::AttributeType(operand, value_type) => {
                self.tag(8).operand(operand);
                self.text(value_type.as_str());
            }
            Condition::BeginsWith(operand, prefix) => self.tag(9).operands([operand, prefix]),
            Condition::Contains(operand, element) => self.tag(10).operands([operand, element]),
        }
    }

    fn conditions(&mut self, left: &Condition, right: &Condition) {
        self.condition(left);
        self.condition(right);
    }

    fn update(&mut self, update: &Update) {
        self.each(&update.set, |f, (path, value)| {
            f.path(path);
            f.set_value(value);
        });
        self.each(&update.remove, Self::path);
        for clause in [&update.add, &update.delete] {
            self.each(clause, |f, (path, value)| {
                f.path(path);
                f.value(value);
            });
        }
    }

    fn set_value(&mut self, value: &SetValue) {
        match value {
            SetValue::Operand(operand) => self.tag(0).set_operand(operand),
            SetValue::Sum(left, right) => self.tag(1).set_operands(left, right),
            SetValue::Difference(left, right) => self.tag(2).set_operands(left, right),
        }
    }

    fn set_operand(&mut self, operand: &SetOperand) {
        match operand {
            SetOperand::Path(path) => self.tag(0).path(path),
            SetOperand::Value(value) => self.tag(1).value(value),
            SetOperand::IfNotExists(path, otherwise) => {
                self.tag(2).path(path);
                self.set_operand(otherwise);
            }
            SetOperand::ListAppend(first, second) => self.tag(3).set_operands(first, second),
        }
    }

    fn set_operands(&mut self, left: &SetOperand, right: &SetOperand) {
        self.set_operand(left);
        self.set_operand(right);
    }

    /// Hashes the target of a write. Return values are ignored: DynamoDB compares only the parameters of the write.
    fn target(&mut self, tag: u8, table_name: &str, item: &Item) {
        self.tag(tag).text(table_name);
        self.item(item);
    }

    fn failure(&mut self, condition: Option<&Condition>, return_old: bool) {
        self.flag(condition.is_some());
        if let Some(condition) = condition {
            self.condition(condition);
        }
        self.flag(return_old);
    }

    fn put(&mut self, put: &PutItem) {
        self.target(0, &put.table_name, &put.item);
        self.failure(put.condition.as_ref(), put.return_old_on_failure);
    }

    fn update_item(&mut self, update: &UpdateItem) {
        self.target(1, &update.table_name, &update.key);
        self.update(&update.update);
        self.failure(update.condition.as_ref(), update.return_old_on_failure);
    }

    fn delete(&mut self, delete: &DeleteItem) {
        self.target(2, &delete.table_name, &delete.key);
        self.failure(delete.condition.as_ref(), delete.return_old_on_failure);
    }

    fn check(&mut self, check: &ConditionCheck) {
        self.target(3, &check.table_name, &check.key);
        self.condition(&check.condition);
        self.flag(check.return_old_on_failure);
    }

    fn action(&mut self, action: &TransactWrite) {
        match action {
            TransactWrite::Put(put) => self.put(put),
            TransactWrite::Update(update) => self.update_item(update),
            TransactWrite::Delete(delete) => self.delete(delete),
            TransactWrite::Check(check) => self.check(check),
        }
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_128_bit_fnv_1a() {
        // Test vectors by the authors of the algorithm.
        for (input, hash) in [
            ("", 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d),
            ("a", 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964),
            ("foobar", 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18),
        ] {
            let mut fingerprint = Fingerprint::new();
            fingerprint.bytes(input.as_bytes());
            assert_eq!(fingerprint.0, hash, "{input}");
        }
    }
}
