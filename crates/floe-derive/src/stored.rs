//! Fields that are stored as attributes, as entities and registries have them: read from a struct the same way.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Path, Result, Token, Type};

use crate::attributes::{
    Default, Errors, Given, Vocabulary, for_each, optional_expression, refused,
};
use crate::shape::default_value;

/// A field of the struct.
pub(crate) struct StoredField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name of the attribute.
    pub(crate) attribute: String,
    pub(crate) default: Option<Default>,
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
    /// The word for the one field that is unlike the others, if there is one.
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

impl StoredField {
    /// An error at a word of the field, or at the field if it has no such word.
    pub(crate) fn error(&self, word: &str, message: impl std::fmt::Display) -> Error {
        self.given.error(word, self.ident.span(), message)
    }

    /// The name in the struct.
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    /// A statement that writes the field of `self`, a value of the owner, to `attributes`, by the functions of the support
    /// module of its pattern.
    pub(crate) fn write(&self, krate: &Path, support: &TokenStream, owner: &str) -> TokenStream {
        let (ident, ty, name, attribute) = (&self.ident, &self.ty, self.name(), &self.attribute);
        let value = match self.serde {
            true => quote_spanned!(ty.span()=> #krate::model::document::to_value(&self.#ident)),
            false => quote_spanned!(ty.span()=> #krate::Attribute::to_value(&self.#ident)),
        };
        quote!(#support::write_field(#owner, #name, #attribute, #value, &mut attributes)?;)
    }

    /// The field with its value, as it is read from what is stored.
    pub(crate) fn read(
        &self,
        krate: &Path,
        support: &TokenStream,
        (owner, stored): (&str, &TokenStream),
    ) -> TokenStream {
        let (ident, ty, name, attribute) = (&self.ident, &self.ty, self.name(), &self.attribute);
        let decode = match self.serde {
            true => quote_spanned!(ty.span()=> #krate::model::document::from_value::<#ty>),
            false => quote_spanned!(ty.span()=> <#ty as #krate::Attribute>::from_value),
        };
        let decode = match self
            .default
            .as_ref()
            .map(|default| default_value(ty, default))
        {
            None => decode,
            Some(default) => {
                quote!(|stored| #krate::model::support::or_default(stored, #decode, #default))
            }
        };
        quote!(#ident: #support::read_field(#owner, #name, #attribute, #stored, #decode)?,)
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
            _ => refused(&input.ident, unnamed),
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
        let name = field.attribute.as_str();
        if let Some(message) = check(name) {
            errors.add(field.error("rename", message));
        }
        if let Some(first) = seen.insert(name, &field.ident) {
            let message = format!("the attribute `{name}` is the field `{first}`");
            errors.add(field.error("rename", message));
        }
    }
    errors.finish(())
}
