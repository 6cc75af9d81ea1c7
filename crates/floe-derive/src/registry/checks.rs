//! What is refused of registries when the program is compiled, each with the place and what to do instead.

use syn::ext::IdentExt;
use syn::{Error, Ident, Result};

use super::definition::{Keys, RegistryDef, Words, field_named};
use super::template::{Template, VERSION};
use crate::attributes::{Errors, refuse_if, refused};
use crate::shape::{Shape, option_of};
use crate::stored::{self, StoredField};

/// The keys of the table, and where the hash of the content stands unless it is a field.
const OWN: [&str; 2] = ["pk", "sk"];
const CONTENT_HASH: &str = "content_hash";

/// Tells the two keys apart.
pub(super) fn keys(ident: &Ident, words: &Words, fields: &[StoredField]) -> Result<Keys> {
    let (Some(pk), Some(sk), Some(latest)) = (&words.pk, &words.sk, &words.latest) else {
        let message = "a registry has two keys, one with the fields of the group and one with the version, and the \
                       text that stands for the version in the pointer to the latest: `#[registry(pk = \
                       \"lyr#{region}.{package}\", sk = \"lyrVrsn#v{version}\", latest = \"lyrVrsn0#\")]`";
        return refused(ident, message);
    };
    let (group, version) = match (pk.is_of_version(), sk.is_of_version()) {
        (false, true) => (pk, sk),
        (true, false) => (sk, pk),
        (true, true) => {
            let message =
                "one key has the version and the other the group: `{version}` stands in both";
            return Err(sk.error(message));
        }
        (false, false) => {
            let message = "one key has the version: write `{version}` where its number stands";
            return Err(sk.error(message));
        }
    };
    check_group(group, fields)?;
    let version_prefix = version.version_prefix()?;
    let text = latest.value();
    if text.is_empty() || text.contains(['{', '}']) {
        let message =
            "the key of the pointer is text that stands for the version: `latest = \"lyrVrsn0#\"`";
        return refused(latest, message);
    }
    refuse_if(
        text.starts_with(&version_prefix) || version_prefix.starts_with(&text),
        latest,
        format!(
            "the key of the pointer could be that of a version, or of an alias behind it: neither may begin with \
             the other: version={version_prefix} latest={text}"
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
        return Err(group.error("a group has at least one field: `pckg#{package}`"));
    }
    for (at, name) in names.iter().enumerate() {
        let Some(field) = field_named(fields, name) else {
            return Err(group.error(format!("the struct has no field `{name}`")));
        };
        if names.iter().take(at).any(|known| known == name) {
            return Err(group.error(format!("the field `{name}` stands twice in the key")));
        }
        check_name(field)?;
    }
    group.check_separators()
}

/// A field of the group is always there, and has one form.
fn check_name(field: &StoredField) -> Result<()> {
    for word in ["default", "serde", "hash"] {
        if field.given.has(word) {
            let message = format!("`{word}` is not for fields of the group, which stand in keys");
            return Err(field.error(word, message));
        }
    }
    let message = "a field of the group is always there: it cannot be an `Option`";
    refuse_if(option_of(&field.ty).is_some(), &field.ty, message)
}

/// What can be told of the whole.
pub(super) fn registry(def: &RegistryDef) -> Result<()> {
    let mut errors = Errors::default();
    if def.words.table.is_none() {
        let message = "a registry has a table: `#[registry(table = \"..\")]`";
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
        let message = "what expires are deprecated versions: `expires` needs `status = \"..\"`";
        return Err(words.given.error("expires", place, message));
    }
    if words.retention_secs.is_some() && words.expires.is_none() {
        let message = "the moment after which a version goes stands in an attribute: `retention` needs \
                       `expires = \"..\"`";
        return Err(words.given.error("retention", place, message));
    }
    Ok(())
}

fn check_indexes(def: &RegistryDef) -> Result<()> {
    let group = def.group();
    for (at, index) in def.words.indexes.iter().enumerate() {
        refuse_if(
            def.words.status.is_none(),
            &index.name,
            "an index of a registry is by status: it needs `status = \"..\"`",
        )?;
        refuse_if(
            !group.iter().any(|field| field.ident == index.key),
            &index.key,
            format!(
                "an index is by a field of the group: `{}` is none",
                index.key.unraw()
            ),
        )?;
        let mut before = def.words.indexes.iter().take(at);
        refuse_if(
            before.any(|other| other.name.value() == index.name.value() || other.key == index.key),
            &index.name,
            "there is an index of this name or by this field already",
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
        let message = "a registry has one hash: join several into one text";
        return Err(second.error("hash", message));
    }
    let is_text = Shape::of(&first.ty) == Shape::Text && !first.is_serde;
    let message = "the hash of the content is a `String`";
    refuse_if(!is_text, &first.ty, message)
}

/// An attribute belongs to one field, and not to the registry.
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
            "two attributes of the registry have one name: attribute={}",
            twice.first().copied().unwrap_or(VERSION)
        );
        errors.add(Error::new_spanned(&def.ident, message));
    }
    errors.note(stored::check_attributes(&def.fields, |name| {
        let is_own = own.contains(&name) || name.starts_with('_');
        is_own.then(|| {
            format!(
                "the attribute `{name}` is the registry's own: choose another with `rename = \"..\"`"
            )
        })
    }));
    errors.finish(())
}
