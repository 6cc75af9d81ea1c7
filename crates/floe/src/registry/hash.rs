//! The content hash of a version: SHA-256 over names and values in a canonical form.

use floe_store::{Item, Value, hex};
use sha2::{Digest, Sha256};

use super::schema::RegistrySchema;

/// The hash of a content: the value of the declared hash field, or a hash of all fields outside of the group.
pub(super) fn content_hash(schema: &RegistrySchema, content: &Item) -> String {
    if let Some(attribute) = schema.hash {
        let declared = content.get(attribute).and_then(Value::as_s);
        return declared.unwrap_or_default().to_owned();
    }
    let mut hash = Sha256::new();
    let is_group = |name: &str| schema.group.iter().any(|field| field.attribute == name);
    for (name, value) in content.iter().filter(|(name, _)| !is_group(name)) {
        add_bytes(&mut hash, name.as_bytes());
        add(&mut hash, value);
    }
    hex::encode(&hash.finalize())
}

/// Adds bytes after their length, so that adjacent values cannot be confused.
fn add_bytes(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn add(hash: &mut Sha256, value: &Value) {
    add_bytes(hash, value.value_type().as_str().as_bytes());
    match value {
        Value::S(text) => add_bytes(hash, text.as_bytes()),
        Value::N(number) => add_bytes(hash, number.to_string().as_bytes()),
        Value::B(bytes) => add_bytes(hash, bytes),
        Value::Bool(flag) => add_bytes(hash, &[u8::from(*flag)]),
        Value::Null => {}
        Value::L(list) => {
            hash.update((list.len() as u64).to_be_bytes());
            list.iter().for_each(|value| add(hash, value));
        }
        Value::M(map) => {
            hash.update((map.len() as u64).to_be_bytes());
            for (name, value) in map.iter() {
                add_bytes(hash, name.as_bytes());
                add(hash, value);
            }
        }
        Value::Ss(set) => add_set(hash, set.iter().map(|text| text.as_bytes().to_vec())),
        Value::Ns(set) => add_set(hash, set.iter().map(|n| n.to_string().into_bytes())),
        Value::Bs(set) => add_set(hash, set.iter().cloned()),
    }
}

/// Adds the elements in sorted order, because sets are unordered.
fn add_set(hash: &mut Sha256, elements: impl Iterator<Item = Vec<u8>>) {
    let mut elements: Vec<Vec<u8>> = elements.collect();
    elements.sort_unstable();
    hash.update((elements.len() as u64).to_be_bytes());
    elements.iter().for_each(|element| add_bytes(hash, element));
}

#[cfg(test)]
mod tests {
    use floe_store::{Set, Text};

    use super::*;
    use crate::registry::keys::tests::{BUILDS, LAYERS};

    #[test]
    fn declared_hash_field_is_the_hash() {
        let content = Item::new().with("pckg", "a").with("requirementsHsh", "abc");
        assert_eq!(content_hash(&BUILDS, &content), "abc");
    }

    #[test]
    fn hash_depends_on_the_content_only() {
        let set = |names: [&str; 2]| Value::Ss(Set::new(names.map(Text::from)).unwrap());
        let hash = |item: Item| content_hash(&LAYERS, &item);
        let item = Item::new().with("arn", "a").with("tags", set(["x", "y"]));
        let same = Item::new().with("tags", set(["y", "x"])).with("arn", "a");
        assert_eq!(hash(item.clone()), hash(same));
        assert_eq!(hash(item.clone()), hash(item.clone().with("rgn", "eu")));
        assert_ne!(hash(item.clone()), hash(item.clone().with("arn", "b")));
        assert_ne!(
            hash(item.clone()),
            hash(item.clone().with("a", Value::Null))
        );
        let pair = |a: &str, b: &str| Item::new().with("x", a).with("y", b);
        assert_ne!(hash(pair("ab", "c")), hash(pair("a", "bc")));
        assert_eq!(hash(item).len(), 64);
    }
}
