//! Validates descriptions by the rules of the derive.

use super::parse::{Description, FieldDescription, invalid_description};
use super::template::{self, Part};
use crate::attribute::FieldKind;
use crate::error::Result;
use crate::registry::schema::{CONTENT_HASH, Layout, PARTITION_KEY, SORT_KEY};

/// The parsed keys.
pub(super) struct Keys {
    pub(super) group: Vec<Part>,
    pub(super) version_prefix: String,
    /// Whether the partition key is the version or the group.
    pub(super) layout: Layout,
}

/// Parses the keys and validates the description.
pub(super) fn checked(description: &Description) -> Result<Keys> {
    let keys = keys(description)?;
    check_group(description, &keys.group)?;
    check_expiry(description)?;
    check_indexes(description, &keys.group)?;
    check_hash(description)?;
    check_attributes(description)?;
    Ok(keys)
}

fn keys(description: &Description) -> Result<Keys> {
    let (pk, sk) = (
        template::parse("pk", &description.pk)?,
        template::parse("sk", &description.sk)?,
    );
    let error = |what| {
        Err(invalid_description(
            what,
            &[("pk", &description.pk), ("sk", &description.sk)],
        ))
    };
    let is_version = |parts: &[Part]| template::names(parts).any(|name| name == "version");
    let (group, version, layout) = match (is_version(&pk), is_version(&sk)) {
        (false, true) => (pk, sk, Layout::Grouped),
        (true, false) => (sk, pk, Layout::Versioned),
        _ => {
            return error(
                "one key must contain {version} and the other one the fields of the group",
            );
        }
    };
    let [Part::Text(version_prefix), Part::Name(_)] = version.as_slice() else {
        return error("the key of a version must be text followed by {version}");
    };
    let (latest, version_prefix) = (description.latest.as_str(), version_prefix.clone());
    let is_text = !latest.contains(['{', '}']);
    let begins_alike = latest.starts_with(&version_prefix) || version_prefix.starts_with(latest);
    ensure(
        is_text && !begins_alike,
        "the key of the pointer must be text, and neither it nor the prefix of a version's key may begin with the other",
        &[("latest", latest), ("version", &version_prefix)],
    )?;
    Ok(Keys {
        group,
        version_prefix,
        layout,
    })
}

/// Returns the field with a name.
pub(super) fn field_named<'w>(
    description: &'w Description,
    name: &str,
) -> Option<&'w FieldDescription> {
    description.fields.iter().find(|field| field.name == name)
}

fn check_group(description: &Description, group: &[Part]) -> Result<()> {
    let names: Vec<&str> = template::names(group).collect();
    ensure(
        !names.is_empty(),
        "a group must have at least one field",
        &[],
    )?;
    for (at, name) in names.iter().enumerate() {
        let is_name = field_named(description, name).is_some_and(|field| {
            matches!(field.kind, FieldKind::Text | FieldKind::Number) && !field.is_optional
        });
        let is_known = names.iter().take(at).any(|interned| interned == name);
        let what =
            "a name in the key of the group must be a required text or number field, used once";
        ensure(is_name && !is_known, what, &[("field", name)])?;
    }
    let what = "two fields of a key must be separated by a punctuation character";
    ensure(template::is_separated(group), what, &[])
}

fn check_expiry(description: &Description) -> Result<()> {
    let has_status = description.expires.is_none() || description.status.is_some();
    ensure(has_status, "`expires` needs `status`", &[])?;
    let has_expires = description.retention_secs.is_none() || description.expires.is_some();
    ensure(has_expires, "`retention` needs `expires`", &[])
}

fn check_indexes(description: &Description, group: &[Part]) -> Result<()> {
    for (at, (name, key)) in description.indexes.iter().enumerate() {
        let mut before = description.indexes.iter().take(at);
        let is_known = before.any(|(interned, by)| interned == name || by == key);
        let is_name = template::names(group).any(|field| field == key);
        ensure(
            description.status.is_some() && is_name && !is_known,
            "an index needs `status` and a field of the group, and each field can have one index",
            &[("index", name), ("key", key)],
        )?;
    }
    Ok(())
}

fn check_hash(description: &Description) -> Result<()> {
    let mut marked = description.fields.iter().filter(|field| field.is_hash);
    let first = marked.next();
    let is_text = first.is_none_or(|field| field.kind == FieldKind::Text && !field.is_optional);
    let what = "at most one field can be the hash, and it must be a required text field";
    ensure(is_text && marked.next().is_none(), what, &[])
}

/// Checks that each attribute belongs to one field, or to the registry.
fn check_attributes(description: &Description) -> Result<()> {
    let mut own = vec![
        PARTITION_KEY,
        SORT_KEY,
        &description.version,
        &description.published,
        &description.deleted,
    ];
    own.extend(description.status.as_deref());
    own.extend(description.expires.as_deref());
    if !description.fields.iter().any(|field| field.is_hash) {
        own.push(CONTENT_HASH);
    }
    let own_count = own.len();
    own.extend(
        description
            .fields
            .iter()
            .map(|field| field.attribute.as_str()),
    );
    let reserved = own.iter().skip(own_count);
    let reserved = reserved.copied().find(|name| name.starts_with('_'));
    if let Some(attribute) = reserved.or_else(|| twice(own)) {
        let what = "an attribute must belong to one field, or to the registry";
        return Err(invalid_description(what, &[("attribute", attribute)]));
    }
    let names = description.fields.iter().map(|field| field.name.as_str());
    match twice(names.collect()) {
        None => Ok(()),
        Some(field) => Err(invalid_description(
            "a field is declared twice",
            &[("field", field)],
        )),
    }
}

/// Returns a name that occurs twice in the list.
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
        Err(invalid_description(what, facts))
    }
}
