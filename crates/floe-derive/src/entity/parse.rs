//! From the tokens of a struct to the checked description of its entities. All errors are told at once.

use std::collections::BTreeMap;

use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, Path, Result, Type, parse_quote};

use crate::attributes::{Errors, Given, Vocabulary, for_each, optional_expression, text};

/// A struct whose values are entities.
pub(super) struct EntityDef {
    pub(super) ident: Ident,
    pub(super) krate: Path,
    /// The name of the type.
    pub(super) type_name: String,
    pub(super) id: FieldDef,
    pub(super) fields: Vec<FieldDef>,
}

/// A field of the struct.
pub(super) struct FieldDef {
    pub(super) ident: Ident,
    pub(super) ty: Type,
    /// The name of the attribute.
    pub(super) attribute: String,
    pub(super) default: Option<Option<Expr>>,
    pub(super) serde: bool,
    is_id: bool,
    given: Given,
}

const STRUCT: Vocabulary = Vocabulary {
    place: "an entity",
    known: &["type", "crate"],
    repeated: &[],
};

const FIELD: Vocabulary = Vocabulary {
    place: "a field",
    known: &["id", "rename", "default", "serde"],
    repeated: &[],
};

impl EntityDef {
    pub(super) fn parse(input: &DeriveInput) -> Result<Self> {
        if !input.generics.params.is_empty() {
            let message =
                "an entity cannot be generic: its type has one name; write a struct for each";
            return Err(Error::new_spanned(&input.generics, message));
        }
        let mut errors = Errors::default();
        let (mut krate, mut type_name) = (
            parse_quote!(::floe),
            snake(&input.ident.unraw().to_string()),
        );
        let mut given = Given::default();
        errors.note(for_each("entity", &input.attrs, |meta| {
            match STRUCT.word(meta, &mut given)?.as_str() {
                "crate" => krate = text(meta)?.parse_with(Path::parse_mod_style)?,
                _ => {
                    let name = text(meta)?;
                    type_name = name.value();
                    if type_name.is_empty() {
                        return Err(Error::new_spanned(name, "the name of a type is not empty"));
                    }
                }
            }
            Ok(())
        }));
        let fields = named_fields(input)?.iter().filter_map(|field| {
            let ident = field.ident.as_ref()?;
            errors.note(FieldDef::parse(field, ident))
        });
        let mut fields: Vec<FieldDef> = fields.collect();
        errors.note(check_names(&fields));
        let id = errors.note(id_of(&input.ident, &mut fields));
        let krate = errors.finish(krate)?;
        let Some(id) = id else {
            return Err(Error::new_spanned(&input.ident, NO_ID));
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

const NO_ID: &str = "an entity has an id: name a field `id`, or mark one with `#[entity(id)]`";

fn named_fields(
    input: &DeriveInput,
) -> Result<&syn::punctuated::Punctuated<Field, syn::Token![,]>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(&fields.named),
            _ => Err(Error::new_spanned(
                &input.ident,
                "an entity is a struct with named fields: they are its attributes",
            )),
        },
        Data::Enum(data) => Err(Error::new(
            data.enum_token.span,
            "an entity is a struct: write one for each type of entity",
        )),
        Data::Union(data) => Err(Error::new(data.union_token.span, "an entity is a struct")),
    }
}

/// Takes the id out of the fields: the marked one, or the one of that name.
fn id_of(ident: &Ident, fields: &mut Vec<FieldDef>) -> Result<FieldDef> {
    let marked: Vec<usize> = (0..fields.len())
        .filter(|at| fields.get(*at).is_some_and(|field| field.is_id))
        .collect();
    if let Some(second) = marked.get(1).and_then(|at| fields.get(*at)) {
        let message = "an entity has one id: join several parts into one text";
        return Err(second.given.error("id", second.ident.span(), message));
    }
    let named = || fields.iter().position(|field| field.ident == "id");
    let Some(at) = marked.first().copied().or_else(named) else {
        return Err(Error::new_spanned(ident, NO_ID));
    };
    let id = fields.remove(at);
    for word in ["rename", "default", "serde"] {
        if id.given.has(word) {
            let message = format!("`{word}` is for attributes: an id is stored as text in the key");
            return Err(id.given.error(word, id.ident.span(), message));
        }
    }
    Ok(id)
}

/// An attribute belongs to one field, and not to the graph.
fn check_names(fields: &[FieldDef]) -> Result<()> {
    let mut errors = Errors::default();
    let mut seen: BTreeMap<&str, &Ident> = BTreeMap::new();
    for field in fields {
        let place = field.ident.span();
        if field.attribute.starts_with('_') {
            let message = "names that begin with an underscore are the graph's own: choose another with \
                           `rename = \"..\"`";
            errors.note::<()>(Err(field.given.error("rename", place, message)));
        }
        if field.attribute.is_empty() {
            let message = "the name of an attribute is not empty";
            errors.note::<()>(Err(field.given.error("rename", place, message)));
        }
        if let Some(first) = seen.insert(&field.attribute, &field.ident) {
            let message = format!("the attribute `{}` is the field `{first}`", field.attribute);
            errors.note::<()>(Err(field.given.error("rename", place, message)));
        }
    }
    errors.finish(())
}

impl FieldDef {
    fn parse(field: &Field, ident: &Ident) -> Result<Self> {
        let mut def = Self {
            ident: ident.clone(),
            ty: field.ty.clone(),
            attribute: ident.unraw().to_string(),
            default: None,
            serde: false,
            is_id: false,
            given: Given::default(),
        };
        for_each("entity", &field.attrs, |meta| {
            match FIELD.word(meta, &mut def.given)?.as_str() {
                "id" => def.is_id = true,
                "rename" => def.attribute = text(meta)?.value(),
                "serde" => def.serde = true,
                _ => def.default = Some(optional_expression(meta)?),
            }
            Ok(())
        })?;
        Ok(def)
    }
}

/// `ReadingList` as `reading_list`.
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
