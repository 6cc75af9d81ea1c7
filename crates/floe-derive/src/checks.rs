//! What is refused when the program is compiled, each with the place and what to do instead.

use std::collections::BTreeMap;

use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Ident, LitStr, Result};

use crate::attributes::{Errors, list, refuse_if, refused};
use crate::constraint::check_bounds;
use crate::definition::{FieldDef, ModelDef, Role};
use crate::fields::index_name;
use crate::index::IndexDef;
use crate::shape::{Shape, option_of};

/// DynamoDB's names of tables and indexes.
const NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=255;

/// An attribute's name that an index copies or has as its key is at most this long.
const ATTRIBUTE_BYTES_MAX: usize = 255;

/// The name of a table or an index.
pub(crate) fn resource_name(what: &str, name: &LitStr) -> Result<String> {
    let text = name.value();
    let message = invalid_name(what, &text);
    refuse_if(!is_resource_name(&text), name, message)?;
    Ok(text)
}

pub(crate) fn default_table(ident: &Ident) -> Result<()> {
    let name = ident.unraw().to_string();
    let problem = invalid_name("table", &name);
    let message = format!("{problem}; name the table with `#[model(table = \"..\")]`");
    refuse_if(!is_resource_name(&name), ident, message)
}

fn is_resource_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    NAME_CHARS.contains(&name.len()) && name.chars().all(allowed)
}

fn invalid_name(what: &str, name: &str) -> String {
    format!("the name of the {what} is not 3 to 255 of a-z, A-Z, 0-9, _, - and .: {what}={name}")
}

pub(crate) fn sort_constant(constant: &LitStr) -> Result<String> {
    let text = constant.value();
    refuse_if(text.is_empty(), constant, "the sort key cannot be empty")?;
    refuse_if(
        text.contains('\0'),
        constant,
        "text in a key cannot contain NUL",
    )?;
    Ok(text)
}

pub(crate) fn is_json_encoding(encoding: &LitStr) -> Result<bool> {
    match encoding.value().as_str() {
        "json" => Ok(true),
        "ordered" => Ok(false),
        other => refused(
            encoding,
            format!(
                "unknown encoding `{other}`: the encodings are `ordered`, the default, and `json`"
            ),
        ),
    }
}

pub(crate) fn attribute_name(name: &LitStr) -> Result<String> {
    let text = name.value();
    refuse_if(
        text.is_empty() || text.len() > ATTRIBUTE_BYTES_MAX,
        name,
        format!("the name of an attribute has 1 to {ATTRIBUTE_BYTES_MAX} bytes"),
    )?;
    Ok(text)
}

/// What can be told of a field alone.
pub(crate) fn field(field: &FieldDef) -> Result<()> {
    let mut errors = Errors::default();
    errors.note(reserved(field));
    if field.role != Role::Plain {
        errors.note(component(field));
    }
    errors.note(one_absence(field));
    errors.note(constraints(field));
    errors.note(check_bounds(&field.constraints));
    errors.note(expiry(field));
    errors.finish(())
}

fn reserved(field: &FieldDef) -> Result<()> {
    if !field.attribute.starts_with('_') {
        return Ok(());
    }
    let name = &field.attribute;
    let message = format!(
        "attributes that begin with `_` are reserved, as `_id`, `_sk` and `_tx`: attribute={name}; \
         give another with `#[model(rename = \"..\")]`"
    );
    Err(field.error("rename", message))
}

/// An absent attribute is one value: `Some(None)` and `Some` of an empty set would be read back as `None`. Types whose
/// names say nothing are checked by the compiler.
fn one_absence(field: &FieldDef) -> Result<()> {
    let Some(inner) = option_of(&field.ty) else {
        return Ok(());
    };
    refuse_if(
        option_of(inner).is_some(),
        &field.ty,
        "`Some(None)` would be stored as no attribute and read back as `None`: use one `Option`, or an enum with \
         `#[model(serde)]`",
    )?;
    refuse_if(
        field.shape() == Shape::Set,
        &field.ty,
        "an empty set is stored as no attribute, so `Some` of an empty set would be read back as `None`: use the set \
         without `Option`",
    )
}

/// A field that is part of the key.
fn component(field: &FieldDef) -> Result<()> {
    let error = |word: &str, message: &str| Err(field.error(word, message));
    if field.role == Role::Partition && field.default.is_some() {
        return error(
            "default",
            "a component of the partition key cannot have a default: it is what tells items apart",
        );
    }
    if field.read_only {
        return error("read_only", "keys never change: remove `read_only`");
    }
    if field.expires {
        let message = "a component of the key cannot tell when the item expires";
        return error("expires", message);
    }
    refuse_if(
        field.is_optional(),
        &field.ty,
        "a component of the key is never absent: take the type without `Option`",
    )?;
    refuse_if(
        field.shape() == Shape::Float,
        &field.ty,
        "a component of the key cannot be a float, which is not exact: take an integer, \
                       `Number` or text",
    )?;
    Ok(())
}

fn constraints(field: &FieldDef) -> Result<()> {
    for constraint in &field.constraints {
        if let Some(refusal) = constraint.refusal(field.shape()) {
            let word = constraint.word();
            let message = format!("`{word}` {refusal}");
            return Err(field.given.error(word, field.ty.span(), message));
        }
    }
    Ok(())
}

fn expiry(field: &FieldDef) -> Result<()> {
    use Shape::{Decimal, Integer, Unknown};
    match field.shape() {
        Integer | Decimal | Unknown => Ok(()),
        _ if !field.expires => Ok(()),
        _ => refused(
            &field.ty,
            "a field that tells when the item expires is an `Expiry` or an `Option<Expiry>`",
        ),
    }
}

/// What can be told of a model whose fields are well.
pub(crate) fn model(model: &ModelDef) -> Result<()> {
    let mut errors = Errors::default();
    errors.note(has_key(model));
    errors.note(one_expiry(model));
    errors.note(distinct_attributes(model));
    for (at, index) in model.indexes.iter().enumerate() {
        let others = model.indexes.iter().take(at);
        errors.note(distinct_index(index, others));
        errors.note(resource_name("index", &index.name));
        errors.note(index_fields(model, index));
    }
    errors.finish(())
}

fn has_key(model: &ModelDef) -> Result<()> {
    refuse_if(
        model.with_role(Role::Partition).next().is_none(),
        &model.ident,
        "the model has no key: mark one or more fields with `#[model(key)]`, or add a field `id: Uuid`",
    )
}

fn one_expiry(model: &ModelDef) -> Result<()> {
    let mut fields = model.fields.iter().filter(|field| field.expires);
    match (fields.next(), fields.next()) {
        (Some(first), Some(second)) => {
            let first = &first.name;
            let message = format!("an item expires at one time: `{first}` tells it already");
            Err(second.error("expires", message))
        }
        _ => Ok(()),
    }
}

fn distinct_attributes(model: &ModelDef) -> Result<()> {
    let mut seen: BTreeMap<&str, &FieldDef> = BTreeMap::new();
    for field in &model.fields {
        if let Some(other) = seen.insert(&field.attribute, field) {
            let (other, name) = (&other.name, &field.attribute);
            let message =
                format!("the field `{other}` is stored under that name already: attribute={name}");
            return Err(field.error("rename", message));
        }
    }
    Ok(())
}

fn distinct_index<'a>(
    index: &IndexDef,
    mut others: impl Iterator<Item = &'a IndexDef>,
) -> Result<()> {
    let (name, constant) = (index.name.value(), index_name(index));
    let Some(other) = others.find(|other| index_name(other) == constant) else {
        return Ok(());
    };
    let other = other.name.value();
    let message = if other == name {
        format!("two indexes have the same name: index={name}")
    } else {
        format!("two indexes come to the same constant `{constant}`: index={name} other={other}")
    };
    refused(&index.name, message)
}

fn index_fields(model: &ModelDef, index: &IndexDef) -> Result<()> {
    let mut errors = Errors::default();
    for name in index.fields() {
        if model.field(name).is_none() {
            errors.add(unknown_field(model, name));
        }
    }
    let mut seen: Vec<&Ident> = Vec::new();
    for name in index.key_fields() {
        if seen.contains(&name) {
            let message = format!("`{name}` is twice in the key of the index");
            errors.add(Error::new_spanned(name, message));
        }
        seen.push(name);
        errors.note(
            model
                .field(name)
                .map_or(Ok(()), |field| index_key(index, name, field)),
        );
    }
    errors.finish(())
}

fn unknown_field(model: &ModelDef, name: &Ident) -> Error {
    let known = list(model.fields.iter().map(|field| field.name.as_str()));
    let of = &model.ident;
    Error::new_spanned(
        name,
        format!("`{of}` has no field `{name}`: its fields are {known}"),
    )
}

/// A field in the key of an index. Types whose names say nothing are checked by the compiler.
fn index_key(index: &IndexDef, name: &Ident, field: &FieldDef) -> Result<()> {
    refuse_if(
        field.is_optional() && !index.sparse,
        name,
        format!(
            "items without `{name}` are not in the index: say so with `sparse`, or make the field \
             required"
        ),
    )?;
    refuse_if(
        field.shape() == Shape::Bool || field.shape().is_collection() || field.is_serde,
        name,
        "a field in the key of an index is text, a number or bytes",
    )?;
    Ok(())
}
