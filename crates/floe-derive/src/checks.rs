//! Compile-time checks of models. Each error points at the code and says what to do instead.

use std::collections::BTreeMap;

use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Ident, LitStr, Result};

use crate::attributes::{Errors, error_at, error_if, list};
use crate::constraint::check_bounds;
use crate::definition::{FieldDef, ModelDef, Role};
use crate::fields::index_name;
use crate::index::IndexDef;
use crate::shape::{Shape, option_of};

/// The allowed lengths of names of tables and indexes in DynamoDB.
const NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=255;

/// The maximum length of an attribute name that an index projects or uses as key.
const ATTRIBUTE_BYTES_MAX: usize = 255;

/// Parses the name of a table or an index.
pub(crate) fn resource_name(what: &str, name: &LitStr) -> Result<String> {
    let text = name.value();
    let message = invalid_name(what, &text);
    error_if(!is_resource_name(&text), name, message)?;
    Ok(text)
}

pub(crate) fn default_table(ident: &Ident) -> Result<()> {
    let name = ident.unraw().to_string();
    let problem = invalid_name("table", &name);
    let message = format!("{problem}, or choose a table name with `#[model(table = \"..\")]`");
    error_if(!is_resource_name(&name), ident, message)
}

fn is_resource_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    NAME_CHARS.contains(&name.len()) && name.chars().all(allowed)
}

fn invalid_name(what: &str, name: &str) -> String {
    format!(
        "invalid {what} name `{name}`\nhelp: use 3 to 255 of the characters a-z, A-Z, 0-9, `_`, `-` and `.`"
    )
}

pub(crate) fn sort_constant(constant: &LitStr) -> Result<String> {
    let text = constant.value();
    error_if(text.is_empty(), constant, "the sort key cannot be empty")?;
    error_if(text.contains('\0'), constant, "a key cannot contain NUL")?;
    Ok(text)
}

pub(crate) fn is_json_encoding(encoding: &LitStr) -> Result<bool> {
    match encoding.value().as_str() {
        "json" => Ok(true),
        "ordered" => Ok(false),
        other => error_at(
            encoding,
            format!(
                "unknown sort key encoding `{other}`\nhelp: the encodings are `ordered` (default) and `json`"
            ),
        ),
    }
}

pub(crate) fn attribute_name(name: &LitStr) -> Result<String> {
    let text = name.value();
    error_if(
        text.is_empty() || text.len() > ATTRIBUTE_BYTES_MAX,
        name,
        format!("an attribute name must have 1 to {ATTRIBUTE_BYTES_MAX} bytes"),
    )?;
    Ok(text)
}

/// Checks a single field.
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
        "attribute names that begin with `_` are reserved: attribute={name}\nhelp: choose another name with \
            `#[model(rename = \"..\")]`"
    );
    Err(field.error("rename", message))
}

/// An absent attribute is one value: `Some(None)` and `Some` of an empty set would be read back as `None`. Types whose
/// names say nothing are checked by the compiler.
fn one_absence(field: &FieldDef) -> Result<()> {
    let Some(inner) = option_of(&field.ty) else {
        return Ok(());
    };
    error_if(
        option_of(inner).is_some(),
        &field.ty,
        "`Some(None)` would be stored as no attribute and read back as `None`: use one `Option`, or an enum with \
         `#[model(serde)]`",
    )?;
    error_if(
        field.shape() == Shape::Set,
        &field.ty,
        "an empty set is stored as no attribute, so `Some` of an empty set would be read back as `None`: use the set \
         without `Option`",
    )
}

/// Checks a field that is part of the key.
fn component(field: &FieldDef) -> Result<()> {
    let error = |word: &str, message: &str| Err(field.error(word, message));
    if field.role == Role::Partition && field.default.is_some() {
        return error(
            "default",
            "a partition key field cannot have a default, because it identifies the item\nhelp: remove `default`",
        );
    }
    if field.read_only {
        return error(
            "read_only",
            "`read_only` has no effect on a key field, which never changes\nhelp: remove `read_only`",
        );
    }
    if field.expires {
        let message = "a key field cannot be the expiry\nhelp: use a field outside of the key";
        return error("expires", message);
    }
    error_if(
        field.is_optional(),
        &field.ty,
        "a key field cannot be an `Option`\nhelp: remove `Option`",
    )?;
    error_if(
        field.shape() == Shape::Float,
        &field.ty,
        "a key field cannot be a float, because floats are not exact\nhelp: use an integer, `Number` or `String`",
    )?;
    Ok(())
}

fn constraints(field: &FieldDef) -> Result<()> {
    for constraint in &field.constraints {
        if let Some(unsupported) = constraint.unsupported(field.shape()) {
            let word = constraint.word();
            let message = format!("`{word}` {unsupported}");
            return Err(field.seen.error(word, field.ty.span(), message));
        }
    }
    Ok(())
}

fn expiry(field: &FieldDef) -> Result<()> {
    use Shape::{Decimal, Integer, Unknown};
    match field.shape() {
        Integer | Decimal | Unknown => Ok(()),
        _ if !field.expires => Ok(()),
        _ => error_at(
            &field.ty,
            "an expiry field must be `Expiry` or `Option<Expiry>`",
        ),
    }
}

/// Checks a model whose fields are valid on their own.
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
    error_if(
        model.with_role(Role::Partition).next().is_none(),
        &model.ident,
        format!(
            "model `{}` has no key\nhelp: mark one or more fields with `#[model(key)]`, or add a field `id: Uuid`",
            model.ident
        ),
    )
}

fn one_expiry(model: &ModelDef) -> Result<()> {
    let mut fields = model.fields.iter().filter(|field| field.expires);
    match (fields.next(), fields.next()) {
        (Some(first), Some(second)) => {
            let first = &first.name;
            let message =
                format!("a model can have only one expiry field: `{first}` is already one");
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
            let message = format!(
                "duplicate attribute name `{name}`: field `{other}` already uses it\nhelp: choose another name with `#[model(rename = \"..\")]`"
            );
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
        format!("duplicate index name `{name}`")
    } else {
        format!(
            "indexes `{name}` and `{other}` have the same constant `{constant}`\nhelp: rename one of them"
        )
    };
    error_at(&index.name, message)
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
            let message = format!("duplicate field `{name}` in the index key");
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
        format!("no field `{name}` in model `{of}`\nhelp: the fields are {known}"),
    )
}

/// Checks a field in the key of an index. Types that cannot be recognised by name are checked by an assertion in
/// the generated code.
fn index_key(index: &IndexDef, name: &Ident, field: &FieldDef) -> Result<()> {
    error_if(
        field.is_optional() && !index.sparse,
        name,
        format!(
            "field `{name}` is optional, so items without it are not in the index\nhelp: add `sparse` to the index, or \
                make the field required"
        ),
    )?;
    error_if(
        field.shape() == Shape::Bool || field.shape().is_collection() || field.is_serde,
        name,
        "an index key field must be text, a number or bytes",
    )?;
    Ok(())
}
