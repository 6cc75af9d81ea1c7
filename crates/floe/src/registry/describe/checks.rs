//! What the derive would refuse of a struct is refused of its description.

use super::template::{self, Part};
use super::words::{FieldWords, Words, fault};
use crate::attribute::FieldKind;
use crate::error::Result;
use crate::registry::schema::{CONTENT_HASH, Layout, PARTITION_KEY, SORT_KEY};

/// The keys, told apart.
pub(super) struct Keys {
    pub(super) group: Vec<Part>,
    pub(super) version_prefix: String,
    /// Whether the partition key is the version.
    pub(super) layout: Layout,
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
    let wrong = |what| Err(fault(what, &[("pk", &words.pk), ("sk", &words.sk)]));
    let is_version = |parts: &[Part]| template::names(parts).any(|name| name == "version");
    let (group, version, layout) = match (is_version(&pk), is_version(&sk)) {
        (false, true) => (pk, sk, Layout::Grouped),
        (true, false) => (sk, pk, Layout::Versioned),
        _ => return wrong("one key has {version} and the other the fields of the group"),
    };
    let [Part::Text(version_prefix), Part::Name(_)] = version.as_slice() else {
        return wrong("the key of a version is text and {version} behind it");
    };
    let (latest, version_prefix) = (words.latest.as_str(), version_prefix.clone());
    let is_text = !latest.contains(['{', '}']);
    let begins_alike = latest.starts_with(&version_prefix) || version_prefix.starts_with(latest);
    ensure(
        is_text && !begins_alike,
        "the key of the pointer is text, and neither it nor that of a version begins with the other",
        &[("latest", latest), ("version", &version_prefix)],
    )?;
    Ok(Keys {
        group,
        version_prefix,
        layout,
    })
}

/// The field of that name.
pub(super) fn field_named<'w>(words: &'w Words, name: &str) -> Option<&'w FieldWords> {
    words.fields.iter().find(|field| field.name == name)
}

fn check_group(words: &Words, group: &[Part]) -> Result<()> {
    let names: Vec<&str> = template::names(group).collect();
    ensure(!names.is_empty(), "a group has at least one field", &[])?;
    for (at, name) in names.iter().enumerate() {
        let is_name = field_named(words, name).is_some_and(|field| {
            matches!(field.kind, FieldKind::Text | FieldKind::Number) && !field.is_optional
        });
        let is_known = names.iter().take(at).any(|known| known == name);
        let what = "a name in the key of the group is a field, of text or a number, that is always there, once";
        ensure(is_name && !is_known, what, &[("field", name)])?;
    }
    let what = "two fields of a key have a sign between them that tells where one ends";
    ensure(template::is_separated(group), what, &[])
}

fn check_expiry(words: &Words) -> Result<()> {
    let has_status = words.expires.is_none() || words.status.is_some();
    ensure(has_status, "`expires` needs `status`", &[])?;
    let has_expires = words.retention_secs.is_none() || words.expires.is_some();
    ensure(has_expires, "`retention` needs `expires`", &[])
}

fn check_indexes(words: &Words, group: &[Part]) -> Result<()> {
    for (at, (name, key)) in words.indexes.iter().enumerate() {
        let mut before = words.indexes.iter().take(at);
        let is_known = before.any(|(known, by)| known == name || by == key);
        let is_name = template::names(group).any(|field| field == key);
        ensure(
            words.status.is_some() && is_name && !is_known,
            "an index is by status and by a field of the group, one by each",
            &[("index", name), ("key", key)],
        )?;
    }
    Ok(())
}

fn check_hash(words: &Words) -> Result<()> {
    let mut marked = words.fields.iter().filter(|field| field.is_hash);
    let first = marked.next();
    let is_text = first.is_none_or(|field| field.kind == FieldKind::Text && !field.is_optional);
    let what = "the hash is one field of text that is always there";
    ensure(is_text && marked.next().is_none(), what, &[])
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
    let reserved = own.iter().skip(own_count);
    let reserved = reserved.copied().find(|name| name.starts_with('_'));
    if let Some(attribute) = reserved.or_else(|| twice(own)) {
        let what = "an attribute belongs to one field, or to the registry";
        return Err(fault(what, &[("attribute", attribute)]));
    }
    let names = words.fields.iter().map(|field| field.name.as_str());
    match twice(names.collect()) {
        None => Ok(()),
        Some(field) => Err(fault("a field stands twice", &[("field", field)])),
    }
}

/// A name that stands in the list twice.
fn twice(mut names: Vec<&str>) -> Option<&str> {
    names.sort_unstable();
    let mut pairs = names.windows(2);
    let pair = pairs.find(|two| two.first() == two.last())?;
    pair.first().copied()
}

fn ensure(is_right: bool, what: &str, facts: &[(&str, &str)]) -> Result<()> {
    if is_right {
        Ok(())
    } else {
        Err(fault(what, facts))
    }
}
