//! Compile-time checks of registries. Each error points at the code and says what to do instead.

use syn::ext::IdentExt;
use syn::{Error, Ident, Result};

use super::definition::{Keys, RegistryAttributes, RegistryDef, field_named};
use super::template::{Template, VERSION};
use crate::attributes::{Errors, error_at, error_if};
use crate::shape::{Shape, option_of};
use crate::stored::{self, StoredField};

/// The key attributes of the table.
const OWN: [&str; 2] = ["pk", "sk"];
/// The attribute with the hash of the content, unless a field contains it.
const CONTENT_HASH: &str = "content_hash";

/// Determines which key contains the group and which the version.
pub(super) fn keys(
    ident: &Ident,
    words: &RegistryAttributes,
    fields: &[StoredField],
) -> Result<Keys> {
    let (Some(pk), Some(sk), Some(latest)) = (&words.pk, &words.sk, &words.latest) else {
        let message = "a registry requires the keys `pk` and `sk`, and the pointer key `latest`\nhelp: write \
                `#[registry(pk = \"lyr#{region}.{package}\", sk = \"lyrVrsn#v{version}\", latest = \"lyrVrsn0#\")]`";
        return error_at(ident, message);
    };
    let (group, version) = match (pk.is_of_version(), sk.is_of_version()) {
        (false, true) => (pk, sk),
        (true, false) => (sk, pk),
        (true, true) => {
            let message = "both keys contain `{version}`\nhelp: use `{version}` in one key, and the group fields in the other";
            return Err(sk.error(message));
        }
        (false, false) => {
            let message = "no key contains the version\nhelp: add `{version}` to `pk` or `sk`";
            return Err(sk.error(message));
        }
    };
    check_group(group, fields)?;
    let version_prefix = version.version_prefix()?;
    let text = latest.value();
    if text.is_empty() || text.contains(['{', '}']) {
        let message =
            "the pointer key must be text without fields\nhelp: write `latest = \"lyrVrsn0#\"`";
        return error_at(latest, message);
    }
    error_if(
        text.starts_with(&version_prefix) || version_prefix.starts_with(&text),
        latest,
        format!(
            "the pointer key and the version keys must not begin with each other, because aliases extend the \
                    pointer key: version={version_prefix} latest={text}"
        ),
    )?;
    Ok(Keys {
        group: group.clone(),
        version_prefix,
        latest: text,
        is_versioned: pk.is_of_version(),
    })
}

fn check_group(group: &Template, fields: &[StoredField]) -> Result<()> {
    let names: Vec<&str> = group.names().collect();
    if names.is_empty() {
        return Err(
            group.error("the group key requires at least one field\nhelp: write `pckg#{package}`")
        );
    }
    for (at, name) in names.iter().enumerate() {
        let Some(field) = field_named(fields, name) else {
            return Err(group.error(format!("no field `{name}` in the struct")));
        };
        if names.iter().take(at).any(|known| known == name) {
            return Err(group.error(format!("duplicate field `{name}` in the group key")));
        }
        check_name(field)?;
    }
    group.check_separators()
}

/// Checks a group field: it must always be present and have one form.
fn check_name(field: &StoredField) -> Result<()> {
    for word in ["default", "serde", "hash"] {
        if field.seen.has(word) {
            let message = format!(
                "`{word}` does not apply to group fields, which are stored in keys\nhelp: remove `{word}`"
            );
            return Err(field.error(word, message));
        }
    }
    let message = "a group field cannot be an `Option`\nhelp: remove `Option`";
    error_if(option_of(&field.ty).is_some(), &field.ty, message)
}

/// Checks the registry as a whole.
pub(super) fn registry(def: &RegistryDef) -> Result<()> {
    let mut errors = Errors::default();
    if def.words.table.is_none() {
        let message = "a registry requires a table\nhelp: add `#[registry(table = \"..\")]`";
        errors.add(Error::new_spanned(&def.ident, message));
    }
    errors.note(check_expiry(def));
    errors.note(check_indexes(def));
    errors.note(check_hash(def));
    errors.note(check_attributes(def));
    errors.finish(())
}

fn check_expiry(def: &RegistryDef) -> Result<()> {
    let (words, place) = (&def.words, def.ident.span());
    if words.expires.is_some() && words.status.is_none() {
        let message = "`expires` requires `status`, because only deprecated versions expire\nhelp: add `status = \"..\"`";
        return Err(words.seen.error("expires", place, message));
    }
    if words.retention_secs.is_some() && words.expires.is_none() {
        let message = "`retention` requires `expires`\nhelp: add `expires = \"..\"`";
        return Err(words.seen.error("retention", place, message));
    }
    Ok(())
}

fn check_indexes(def: &RegistryDef) -> Result<()> {
    let group = def.group();
    for (at, index) in def.words.indexes.iter().enumerate() {
        error_if(
            def.words.status.is_none(),
            &index.name,
            "an index of a registry requires `status`\nhelp: add `status = \"..\"`",
        )?;
        error_if(
            !group.iter().any(|field| field.ident == index.key),
            &index.key,
            format!(
                "the index field `{}` is not a group field",
                index.key.unraw()
            ),
        )?;
        let mut before = def.words.indexes.iter().take(at);
        error_if(
            before.any(|other| other.name.value() == index.name.value() || other.key == index.key),
            &index.name,
            "duplicate index: another index has this name or this field",
        )?;
    }
    Ok(())
}

fn check_hash(def: &RegistryDef) -> Result<()> {
    let mut marked = def.fields.iter().filter(|field| field.is_marked);
    let Some(first) = marked.next() else {
        return Ok(());
    };
    if let Some(second) = marked.next() {
        let message = "a registry can have only one hash\nhelp: join several parts into one text";
        return Err(second.error("hash", message));
    }
    let is_text = Shape::of(&first.ty) == Shape::Text && !first.is_serde;
    let message = "the hash must be a `String`";
    error_if(!is_text, &first.ty, message)
}

/// Checks that each attribute belongs to one field and is not used by the registry itself.
fn check_attributes(def: &RegistryDef) -> Result<()> {
    let (words, mut errors) = (&def.words, Errors::default());
    let mut own = OWN.to_vec();
    own.extend([&words.version, &words.published, &words.deleted].map(String::as_str));
    own.extend(words.status.as_deref());
    own.extend(words.expires.as_deref());
    own.extend(def.hash().is_none().then_some(CONTENT_HASH));
    let mut sorted = own.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|two| two.first() == two.last()) {
        let message = format!(
            "two attributes of the registry have the same name: attribute={}",
            twice.first().copied().unwrap_or(VERSION)
        );
        errors.add(Error::new_spanned(&def.ident, message));
    }
    errors.note(stored::check_attributes(&def.fields, |name| {
        let is_own = own.contains(&name) || name.starts_with('_');
        is_own.then(|| {
            format!(
                "attribute name `{name}` is reserved for the registry\nhelp: choose another name with `rename = \"..\"`"
            )
        })
    }));
    errors.finish(())
}
