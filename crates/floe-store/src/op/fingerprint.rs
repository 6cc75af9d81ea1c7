//! Fingerprints of requests: what tells a repeated request from another one with the same token.
//!
//! A fingerprint is kept on disk and compared by later builds of the program, so nothing of it is left
//! to the compiler: it is FNV-1a with 128 bits over a walk that is written out here, in which every
//! part carries a tag or a length and no two different requests give the same bytes.

use std::fmt::{self, Write};

use super::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use crate::expr::{Condition, Operand, Path, Segment, SetOperand, SetValue, Update};
use crate::item::Item;
use crate::number::Number;
use crate::value::Value;

const FNV_OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A hash that is the same in every process, build and release.
#[derive(Debug)]
pub(super) struct Fingerprint(u128);

impl Fingerprint {
    pub(super) const fn new() -> Self {
        Self(FNV_OFFSET)
    }

    pub(super) const fn finish(self) -> u128 {
        self.0
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    fn tag(&mut self, tag: u8) {
        self.bytes(&[tag]);
    }

    pub(super) fn length(&mut self, length: usize) {
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
        // The canonical text holds no such byte, so it ends the number. Writing here cannot fail.
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
            Value::S(text) => {
                self.tag(0);
                self.text(text);
            }
            Value::N(number) => {
                self.tag(1);
                self.number(number);
            }
            Value::B(bytes) => {
                self.tag(2);
                self.blob(bytes);
            }
            Value::Bool(flag) => self.bytes(&[3, u8::from(*flag)]),
            Value::Null => self.tag(4),
            Value::M(map) => {
                self.tag(5);
                self.item(map);
            }
            Value::L(list) => {
                self.tag(6);
                self.each(list, Self::value);
            }
            Value::Ss(set) => {
                self.tag(7);
                self.each(set.as_slice(), |f, text| f.text(text));
            }
            Value::Ns(set) => {
                self.tag(8);
                self.each(set.as_slice(), Self::number);
            }
            Value::Bs(set) => {
                self.tag(9);
                self.each(set.as_slice(), |f, bytes| f.blob(bytes));
            }
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
            Segment::Name(name) => {
                f.tag(0);
                f.text(name);
            }
            Segment::Index(at) => {
                f.tag(1);
                f.length(*at);
            }
        });
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Path(path) => {
                self.tag(0);
                self.path(path);
            }
            Operand::Value(value) => {
                self.tag(1);
                self.value(value);
            }
            Operand::Size(path) => {
                self.tag(2);
                self.path(path);
            }
        }
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare(left, comparator, right) => {
                self.tag(0);
                self.text(comparator.as_str());
                self.operand(left);
                self.operand(right);
            }
            Condition::Between(probe, low, high) => {
                self.tag(1);
                self.operand(probe);
                self.operand(low);
                self.operand(high);
            }
            Condition::In(probe, choices) => {
                self.tag(2);
                self.operand(probe);
                self.each(choices, Self::operand);
            }
            Condition::And(left, right) => self.pair(3, left, right),
            Condition::Or(left, right) => self.pair(4, left, right),
            Condition::Not(inner) => {
                self.tag(5);
                self.condition(inner);
            }
            Condition::AttributeExists(path) => {
                self.tag(6);
                self.path(path);
            }
            Condition::AttributeNotExists(path) => {
                self.tag(7);
                self.path(path);
            }
            Condition::AttributeType(operand, value_type) => {
                self.tag(8);
                self.operand(operand);
                self.text(value_type.as_str());
            }
            Condition::BeginsWith(operand, prefix) => {
                self.tag(9);
                self.operand(operand);
                self.operand(prefix);
            }
            Condition::Contains(operand, element) => {
                self.tag(10);
                self.operand(operand);
                self.operand(element);
            }
        }
    }

    fn pair(&mut self, tag: u8, left: &Condition, right: &Condition) {
        self.tag(tag);
        self.condition(left);
        self.condition(right);
    }

    fn optional_condition(&mut self, condition: Option<&Condition>) {
        self.tag(u8::from(condition.is_some()));
        if let Some(condition) = condition {
            self.condition(condition);
        }
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
            SetValue::Operand(operand) => {
                self.tag(0);
                self.set_operand(operand);
            }
            SetValue::Sum(left, right) => {
                self.tag(1);
                self.set_operand(left);
                self.set_operand(right);
            }
            SetValue::Difference(left, right) => {
                self.tag(2);
                self.set_operand(left);
                self.set_operand(right);
            }
        }
    }

    fn set_operand(&mut self, operand: &SetOperand) {
        match operand {
            SetOperand::Path(path) => {
                self.tag(0);
                self.path(path);
            }
            SetOperand::Value(value) => {
                self.tag(1);
                self.value(value);
            }
            SetOperand::IfNotExists(path, otherwise) => {
                self.tag(2);
                self.path(path);
                self.set_operand(otherwise);
            }
            SetOperand::ListAppend(first, second) => {
                self.tag(3);
                self.set_operand(first);
                self.set_operand(second);
            }
        }
    }

    /// What a write does. What it returns and what it tells about its cost do not count: DynamoDB
    /// compares the parameters of the write alone.
    pub(super) fn put(&mut self, put: &PutItem) {
        self.tag(0);
        self.text(&put.table_name);
        self.item(&put.item);
        self.optional_condition(put.condition.as_ref());
        self.tag(u8::from(put.return_old_on_failure));
    }

    pub(super) fn update_item(&mut self, update: &UpdateItem) {
        self.tag(1);
        self.text(&update.table_name);
        self.item(&update.key);
        self.update(&update.update);
        self.optional_condition(update.condition.as_ref());
        self.tag(u8::from(update.return_old_on_failure));
    }

    pub(super) fn delete(&mut self, delete: &DeleteItem) {
        self.tag(2);
        self.text(&delete.table_name);
        self.item(&delete.key);
        self.optional_condition(delete.condition.as_ref());
        self.tag(u8::from(delete.return_old_on_failure));
    }

    fn check(&mut self, check: &ConditionCheck) {
        self.tag(3);
        self.text(&check.table_name);
        self.item(&check.key);
        self.condition(&check.condition);
        self.tag(u8::from(check.return_old_on_failure));
    }

    pub(super) fn action(&mut self, action: &TransactWrite) {
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
    fn the_hash_is_fnv_1a_with_128_bits() {
        // Test vectors of the algorithm's authors.
        for (input, hash) in [
            ("", 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d),
            ("a", 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964),
            ("foobar", 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18),
        ] {
            let mut fingerprint = Fingerprint::new();
            fingerprint.bytes(input.as_bytes());
            assert_eq!(fingerprint.finish(), hash, "{input}");
        }
    }
}
