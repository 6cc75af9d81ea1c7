//! What the derive would refuse of a struct is refused of its description.

use super::template::{self, Part};
use super::words::{FieldWords, Words, fault};
use crate::attribute::FieldKind;
use crate::error::Result;
use crate::registry::schema::{CONTENT_HASH, PARTITION_KEY, SORT_KEY};

/// The keys, told apart.
pub(super) struct Keys {
    pub(super) group: Vec<Part>,
    pub(super) version_prefix: String,
    /// Whether the partition key is the version.
    pub(super) is_versioned: bool,
}

/// Tells the keys apart, and refuses what does not go together.
pub(super) fn checked(words: &Words) -> Result<Keys> {
    let keys = keys(words)?;
    check_group(words, &keys.group)?;
    check_expiry(words)?;
    check_indexes(words, &keys.group)?;
    check_hash(words)?;
    check_attributes(words)?;
    Ok(keys)
}

fn keys(words: &Words) -> Result<Keys> {
    let (pk, sk) = (
        template::parse("pk", &words.pk)?,
        template::parse("sk", &words.sk)?,
    );
    let is_version = |parts: &[Part]| template::names(parts).any(|name| name == "version");
    let (group, version, is_versioned) = match (is_version(&pk), is_version(&sk)) {
        (false, true) => (pk, sk, false),
        (true, false) => (sk, pk, true),
        _ => {
            let what = "one key has {version} and the other the fields of the group";
            return Err(fault(what, &[("pk", &words.pk), ("sk", &words.sk)]));
        }
    };
    let version_prefix = match version.as_slice() {
        [Part::Text(prefix), Part::Name(_)] => prefix.clone(),
        _ => {
            let what = "the key of a version is text and {version} behind it";
            return Err(fault(what, &[("pk", &words.pk), ("sk", &words.sk)]));
        }
    };
    let latest = words.latest.as_str();
    if latest.contains(['{', '}'])
        || latest.starts_with(&version_prefix)
        || version_prefix.starts_with(latest)
    {
        let what = "the key of the pointer is text, and neither it nor that of a version begins with the other";
        return Err(fault(
            what,
            &[("latest", latest), ("version", &version_prefix)],
        ));
    }
    Ok(Keys {
        group,
        version_prefix,
        is_versioned,
    })
}

/// The field of that name.
pub(super) fn field_named<'w>(words: &'w Words, name: &str) -> Option<&'w FieldWords> {
    words.fields.iter().find(|field| field.name == name)
}

fn check_group(words: &Words, group: &[Part]) -> Result<()> {
    let names: Vec<&str> = template::names(group).collect();
    if names.is_empty() {
        return Err(fault("a group has at least one field", &[]));
    }
    for (at, name) in names.iter().enumerate() {
        let field = field_named(words, name);
        let is_name = |field: &&FieldWords| {
            matches!(field.kind, FieldKind::Text | FieldKind::Number) && !field.is_optional
        };
        if field.filter(is_name).is_none() || names.iter().take(at).any(|known| known == name) {
            let what = "a name in the key of the group is a field, of text or a number, that is always there, once";
            return Err(fault(what, &[("field", name)]));
        }
    }
    match template::is_separated(group) {
        true => Ok(()),
        false => Err(fault(
            "two fields of a key have a sign between them that tells where one ends",
            &[],
        )),
    }
}

fn check_expiry(words: &Words) -> Result<()> {
    if words.expires.is_some() && words.status.is_none() {
        return Err(fault("`expires` needs `status`", &[]));
    }
    match words.retention_secs.is_some() && words.expires.is_none() {
        true => Err(fault("`retention` needs `expires`", &[])),
        false => Ok(()),
    }
}

fn check_indexes(words: &Words, group: &[Part]) -> Result<()> {
    for (at, (name, key)) in words.indexes.iter().enumerate() {
        let mut before = words.indexes.iter().take(at);
        let is_known = before.any(|(known, by)| known == name || by == key);
        let is_name = template::names(group).any(|field| field == key);
        if words.status.is_none() || !is_name || is_known {
            let what = "an index is by status and by a field of the group, one by each";
            return Err(fault(what, &[("index", name), ("key", key)]));
        }
    }
    Ok(())
}

fn check_hash(words: &Words) -> Result<()> {
    let mut marked = words.fields.iter().filter(|field| field.is_hash);
    let first = marked.next();
    let is_text = first.is_none_or(|field| field.kind == FieldKind::Text && !field.is_optional);
    match is_text && marked.next().is_none() {
        true => Ok(()),
        false => Err(fault(
            "the hash is one field of text that is always there",
            &[],
        )),
    }
}

/// An attribute belongs to one field, or to the registry.
fn check_attributes(words: &Words) -> Result<()> {
    let mut own = vec![
        PARTITION_KEY,
        SORT_KEY,
        &words.version,
        &words.published,
        &words.deleted,
    ];
    own.extend(words.status.as_deref());
    own.extend(words.expires.as_deref());
    if !words.fields.iter().any(|field| field.is_hash) {
        own.push(CONTENT_HASH);
    }
    let own_count = own.len();
    own.extend(words.fields.iter().map(|field| field.attribute.as_str()));
    let reserved = own
        .iter()
        .skip(own_count)
        .find(|name| name.starts_with('_'));
    let mut sorted = own.clone();
    sorted.sort_unstable();
    let mut pairs = sorted.windows(2);
    let twice = pairs.find(|two| two.first() == two.last());
    let twice = twice.and_then(|two| two.first());
    match reserved.or(twice) {
        None => check_names(words),
        Some(attribute) => {
            let what = "an attribute belongs to one field, or to the registry";
            Err(fault(what, &[("attribute", attribute)]))
        }
    }
}

fn check_names(words: &Words) -> Result<()> {
    let names = words.fields.iter().enumerate();
    let mut twice = names.filter(|(at, field)| {
        let mut before = words.fields.iter().take(*at);
        before.any(|known| known.name == field.name)
    });
    match twice.next() {
        None => Ok(()),
        Some((_, field)) => Err(fault("a field stands twice", &[("field", &field.name)])),
    }
}
