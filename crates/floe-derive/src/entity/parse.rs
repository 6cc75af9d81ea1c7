//! Parses a struct into the checked description of an entity. Reports all errors together.

use syn::ext::IdentExt;
use syn::{DeriveInput, Ident, Path, Result, parse_quote};

use crate::attributes::{
    Errors, KnownAttributes, SeenAttributes, crate_path, error_at, error_if, for_each,
    reject_generics, text,
};
use crate::stored::{FieldAttributes, StoredField, check_attributes, named_fields};

/// A struct whose values are entities.
pub(super) struct EntityDef {
    pub(super) ident: Ident,
    pub(super) krate: Path,
    /// The name of the type.
    pub(super) type_name: String,
    pub(super) id: StoredField,
    pub(super) fields: Vec<StoredField>,
}

const STRUCT: KnownAttributes = KnownAttributes::new("an entity", "type crate");

const FIELDS: FieldAttributes = FieldAttributes {
    derive: "entity",
    words: KnownAttributes::new("a field", "id rename default serde"),
    mark: "id",
    rename: |meta| Ok(text(meta)?.value()),
};

const NO_STRUCT: [&str; 3] = [
    "`Entity` can only be derived for structs with named fields",
    "`Entity` can only be derived for structs with named fields\nhelp: write a struct for each type of entity",
    "`Entity` can only be derived for structs with named fields",
];

impl EntityDef {
    pub(super) fn parse(input: &DeriveInput) -> Result<Self> {
        reject_generics(
            &input.generics,
            "`Entity` cannot be derived for a generic struct\nhelp: write a struct for each type",
        )?;
        let mut errors = Errors::default();
        let (mut krate, mut type_name) = (
            parse_quote!(::floe),
            snake(&input.ident.unraw().to_string()),
        );
        let mut seen = SeenAttributes::default();
        errors.note(for_each("entity", &input.attrs, |meta| {
            match STRUCT.word(meta, &mut seen)?.as_str() {
                "crate" => krate = crate_path(meta)?,
                _ => {
                    let name = text(meta)?;
                    type_name = name.value();
                    error_if(type_name.is_empty(), name, "the type name cannot be empty")?;
                }
            }
            Ok(())
        }));
        let fields = named_fields(input, NO_STRUCT)?;
        let mut fields = StoredField::all(&FIELDS, fields, &mut errors);
        errors.note(check_attributes(&fields, not_an_attribute));
        let id = errors.note(id_of(&input.ident, &mut fields));
        let krate = errors.finish(krate)?;
        let Some(id) = id else {
            return error_at(&input.ident, NO_ID);
        };
        Ok(Self {
            ident: input.ident.clone(),
            krate,
            type_name,
            id,
            fields,
        })
    }
}

const NO_ID: &str =
    "the entity has no id\nhelp: name a field `id`, or mark one with `#[entity(id)]`";

/// Removes the id from the fields and returns it: the marked field, or the one named `id`.
fn id_of(ident: &Ident, fields: &mut Vec<StoredField>) -> Result<StoredField> {
    let marked: Vec<usize> = (0..fields.len())
        .filter(|at| fields.get(*at).is_some_and(|field| field.is_marked))
        .collect();
    if let Some(second) = marked.get(1).and_then(|at| fields.get(*at)) {
        let message = "an entity can have only one id\nhelp: join several parts into one text";
        return Err(second.error("id", message));
    }
    let by_name = || fields.iter().position(|field| field.ident == "id");
    let Some(at) = marked.first().copied().or_else(by_name) else {
        return error_at(ident, NO_ID);
    };
    let id = fields.remove(at);
    for word in ["rename", "default", "serde"] {
        if id.seen.has(word) {
            let message = format!(
                "`{word}` does not apply to the id, which is stored as text in the key\nhelp: remove `{word}`"
            );
            return Err(id.error(word, message));
        }
    }
    Ok(id)
}

/// Why a name cannot be the attribute name of a field, if so.
fn not_an_attribute(name: &str) -> Option<String> {
    let message = match name {
        "" => "the attribute name cannot be empty",
        name if name.starts_with('_') => {
            "attribute names that begin with `_` are reserved for the graph\nhelp: choose another name with `rename = \"..\"`"
        }
        _ => return None,
    };
    Some(message.to_owned())
}

/// Converts `ReadingList` to `reading_list`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
