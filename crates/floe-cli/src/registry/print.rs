//! Prints versions: one as a list of fields, several as rows, or as JSON.

use floe::registry::schema::RegistryField;
use floe::registry::{RegistrySchema, Version};
use floe_store::json::Writer;
use floe_store::{Item, Timestamp};

use crate::{Output, Result, Table, cell, object, print_json, utc};

/// Prints a version.
pub(super) fn print_version(
    output: Output,
    schema: &RegistrySchema,
    version: &Version<Item>,
) -> Result {
    output.either(&|w| write(w, output, version), &|| {
        let mut summary = Table::key_value();
        summary.entry("version", version.number);
        summary.entry("status", status(version));
        summary.entry_if_some("published", version.published.map(utc::date_time));
        summary.entry_if_some("expires", expires(version).map(utc::date_time));
        summary.entry_if_some("deleted", version.deleted.map(utc::date_time));
        summary.entry_if_some("held by", is_held(version).then(|| held(version)));
        let hash = version.hash.as_ref().filter(|hash| !hash.is_empty());
        summary.entry_if_some("hash", hash);
        for field in schema.fields {
            let value = version.value.get(field.attribute);
            summary.entry_if_some(field.name, value.map(cell));
        }
        summary.print()
    })
}

/// Prints versions, with the key fields of their groups if `with_group`.
pub(super) fn print_versions(
    output: Output,
    schema: &RegistrySchema,
    versions: &[Version<Item>],
    with_group: bool,
) -> Result {
    if output.is_json() {
        let mut versions = versions.iter();
        return versions.try_for_each(|version| print_json(&|w| write(w, output, version)));
    }
    let is_name = |field: &&RegistryField| schema.group.iter().any(|name| name.name == field.name);
    let fields = schema.fields.iter();
    let (names, contents): (Vec<_>, Vec<_>) = fields.partition(is_name);
    let field = |field: &'static RegistryField| -> Column {
        let of = |version: &Version<Item>| version.value.get(field.attribute).map(cell);
        (
            field.name,
            Box::new(move |version| of(version).unwrap_or_default()),
        )
    };
    let published = |version: &Version<Item>| version.published.map(utc::date_time);
    let mut columns: Vec<Column> = Vec::new();
    columns.extend(names.into_iter().filter(|_| with_group).map(field));
    columns.push(("version", Box::new(|version| version.number.to_string())));
    columns.push(("status", Box::new(|version| status(version).to_owned())));
    columns.push((
        "published",
        Box::new(move |version| published(version).unwrap_or_default()),
    ));
    if versions.iter().any(|version| until(version).is_some()) {
        let until = |version: &Version<Item>| until(version).map(utc::date);
        columns.push((
            "until",
            Box::new(move |version| until(version).unwrap_or_default()),
        ));
    }
    if versions.iter().any(is_held) {
        columns.push(("held by", Box::new(held)));
    }
    columns.extend(contents.into_iter().map(field));
    let mut table = Table::new(columns.iter().map(|(name, _)| *name));
    for version in versions {
        table.row(columns.iter().map(|(_, of)| of(version)));
    }
    table.print()
}

/// A column: its name, and its cell for a version.
type Column = (&'static str, Box<dyn Fn(&Version<Item>) -> String>);

/// The time of deletion or expiry.
fn until(version: &Version<Item>) -> Option<Timestamp> {
    version.deleted.or_else(|| expires(version))
}

const fn is_held(version: &Version<Item>) -> bool {
    version.is_pinned || !version.aliases.is_empty()
}

fn status(version: &Version<Item>) -> &'static str {
    match (version.status, version.is_deployed()) {
        (_, false) => "deleted",
        (Some(status), true) => status.as_str(),
        (None, true) => "deployed",
    }
}

fn expires(version: &Version<Item>) -> Option<Timestamp> {
    let secs = version.expires.map(|expires| expires.as_secs());
    secs.map(|secs| Timestamp::from_millis(secs.saturating_mul(1000)))
}

/// The pin and aliases that keep the version from expiring.
fn held(version: &Version<Item>) -> String {
    let pin = version.is_pinned.then_some("pin");
    let aliases = version.aliases.iter().map(String::as_str);
    let held: Vec<_> = pin.into_iter().chain(aliases).collect();
    held.join(", ")
}

fn write(w: &mut Writer, output: Output, version: &Version<Item>) {
    object!(w;
        "version": version.number, "status": version.status.map(|status| status.as_str()),
        "published_ms": version.published.map(Timestamp::as_millis),
        "expires_ms": expires(version).map(Timestamp::as_millis),
        "deleted_ms": version.deleted.map(Timestamp::as_millis), "pinned": version.is_pinned,
        "aliases": version.aliases, "hash": version.hash, "item": output.item(&version.value)
    );
}
