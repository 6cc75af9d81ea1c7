//! Fields that are stored as attributes, as entities and registries have them: read from a struct the same way.

use std::collections::BTreeMap;

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, Result, Token, Type};

use crate::attributes::{Errors, Given, Vocabulary, for_each, optional_expression};

/// A field of the struct.
pub(crate) struct StoredField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name of the attribute.
    pub(crate) attribute: String,
    pub(crate) default: Option<Option<Expr>>,
    pub(crate) serde: bool,
    /// Whether it has the mark of its pattern: the id, the hash.
    pub(crate) is_marked: bool,
    pub(crate) given: Given,
}

/// How the fields of a pattern are marked.
pub(crate) struct Marks {
    /// The attribute of the derive: `entity`.
    pub(crate) derive: &'static str,
    /// The words that fields have: the mark, `rename`, `default` and `serde`.
    pub(crate) words: Vocabulary,
    /// The word for the one field that is unlike the others.
    pub(crate) mark: &'static str,
    /// Reads the name of an attribute.
    pub(crate) rename: fn(&ParseNestedMeta<'_>) -> Result<String>,
}

impl StoredField {
    fn parse(marks: &Marks, field: &Field, ident: &Ident) -> Result<Self> {
        let mut def = Self {
            ident: ident.clone(),
            ty: field.ty.clone(),
            attribute: ident.unraw().to_string(),
            default: None,
            serde: false,
            is_marked: false,
            given: Given::default(),
        };
        for_each(marks.derive, &field.attrs, |meta| {
            match marks.words.word(meta, &mut def.given)?.as_str() {
                "rename" => def.attribute = (marks.rename)(meta)?,
                "serde" => def.serde = true,
                word if word == marks.mark => def.is_marked = true,
                _ => def.default = Some(optional_expression(meta)?),
            }
            Ok(())
        })?;
        Ok(def)
    }

    /// All of these fields; what is wrong with one is noted.
    pub(crate) fn all(
        marks: &Marks,
        fields: &Punctuated<Field, Token![,]>,
        errors: &mut Errors,
    ) -> Vec<Self> {
        let fields = fields.iter().filter_map(|field| {
            let ident = field.ident.as_ref()?;
            errors.note(Self::parse(marks, field, ident))
        });
        fields.collect()
    }
}

/// The fields of a struct, or why it is none: its fields have no names, it is an enum, it is a union.
pub(crate) fn named_fields<'i>(
    input: &'i DeriveInput,
    [unnamed, is_enum, is_union]: [&str; 3],
) -> Result<&'i Punctuated<Field, Token![,]>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(&fields.named),
            _ => Err(Error::new_spanned(&input.ident, unnamed)),
        },
        Data::Enum(data) => Err(Error::new(data.enum_token.span, is_enum)),
        Data::Union(data) => Err(Error::new(data.union_token.span, is_union)),
    }
}

/// An attribute belongs to one field, which some attributes cannot be: the check tells why.
pub(crate) fn check_attributes(
    fields: &[StoredField],
    check: impl Fn(&str) -> Option<String>,
) -> Result<()> {
    let mut errors = Errors::default();
    let mut seen: BTreeMap<&str, &Ident> = BTreeMap::new();
    for field in fields {
        let (place, name) = (field.ident.span(), field.attribute.as_str());
        let mut refuse = |message: String| {
            errors.note::<()>(Err(field.given.error("rename", place, message)));
        };
        if let Some(message) = check(name) {
            refuse(message);
        }
        if let Some(first) = seen.insert(name, &field.ident) {
            refuse(format!("the attribute `{name}` is the field `{first}`"));
        }
    }
    errors.finish(())
}
