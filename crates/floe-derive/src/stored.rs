//! Fields that are stored as attributes, shared by models, entities and registries.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Path, Result, Token, Type,
    Visibility,
};

use crate::attributes::{
    Default, Errors, KnownAttributes, SeenAttributes, error_at, for_each, optional_expression,
};
use crate::shape::{default_value, generated_at, option_of};

/// A field of the struct.
pub(crate) struct StoredField {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name in the struct.
    pub(crate) name: String,
    /// The name of the attribute.
    pub(crate) attribute: String,
    pub(crate) default: Option<Default>,
    pub(crate) is_serde: bool,
    /// Whether it has the mark of its pattern: the id, the hash.
    pub(crate) is_marked: bool,
    pub(crate) seen: SeenAttributes,
}

/// The attributes of the fields of a pattern.
pub(crate) struct FieldAttributes {
    /// The name of the attribute of the derive: `entity`.
    pub(crate) derive: &'static str,
    /// The attributes of fields: the mark, `rename`, `default` and `serde`.
    pub(crate) words: KnownAttributes,
    /// The mark of one special field, such as `id`; empty if there is none.
    pub(crate) mark: &'static str,
    /// Parses the name of an attribute.
    pub(crate) rename: fn(&ParseNestedMeta<'_>) -> Result<String>,
}

impl StoredField {
    /// A field without attributes; `None` for a field without a name.
    pub(crate) fn new(field: &Field) -> Option<Self> {
        let ident = field.ident.clone()?;
        let name = ident.unraw().to_string();
        Some(Self {
            vis: field.vis.clone(),
            ident,
            ty: field.ty.clone(),
            attribute: name.clone(),
            name,
            default: None,
            is_serde: false,
            is_marked: false,
            seen: SeenAttributes::default(),
        })
    }

    /// Applies an attribute that fields of every pattern have: `default` or `serde`.
    pub(crate) fn take(&mut self, word: &str, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if word == "serde" {
            self.is_serde = true;
        } else {
            self.default = Some(optional_expression(meta)?);
        }
        Ok(())
    }

    fn with_attributes(
        mut self,
        supported: &FieldAttributes,
        attributes: &[Attribute],
    ) -> Result<Self> {
        for_each(supported.derive, attributes, |meta| {
            match supported.words.word(meta, &mut self.seen)?.as_str() {
                "rename" => self.attribute = (supported.rename)(meta)?,
                word if word == supported.mark => self.is_marked = true,
                word => self.take(word, meta)?,
            }
            Ok(())
        })?;
        Ok(self)
    }

    /// Parses all fields. Records the errors.
    pub(crate) fn all(
        supported: &FieldAttributes,
        fields: &Punctuated<Field, Token![,]>,
        errors: &mut Errors,
    ) -> Vec<Self> {
        let fields = fields.iter().filter_map(|field| {
            let def = Self::new(field)?;
            errors.note(def.with_attributes(supported, &field.attrs))
        });
        fields.collect()
    }

    /// An error at an attribute of the field, or at the field if it does not have that attribute.
    pub(crate) fn error(&self, word: &str, message: impl std::fmt::Display) -> Error {
        self.seen.error(word, self.ident.span(), message)
    }

    /// The conversion between the field and its stored value: `to_value` or `from_value`.
    pub(crate) fn conversion(&self, krate: &Path, name: &str) -> TokenStream {
        let ty = &self.ty;
        // An error about an unsupported type is reported at the type.
        let span = generated_at(ty.span());
        let function = Ident::new(name, span);
        if self.is_serde {
            quote_spanned!(span=> #krate::model::document::#function::<#ty>)
        } else {
            quote_spanned!(span=> <#ty as #krate::Attribute>::#function)
        }
    }

    /// The kind of the field. For serde it is only known at run time.
    pub(crate) fn kind(&self, krate: &Path) -> TokenStream {
        let (ty, span) = (&self.ty, generated_at(self.ty.span()));
        if self.is_serde {
            quote!(#krate::model::schema::FieldKind::Other)
        } else {
            quote_spanned!(span=> <#ty as #krate::Attribute>::KIND)
        }
    }

    /// Whether the field may be absent.
    pub(crate) fn optional(&self, krate: &Path) -> TokenStream {
        let (ty, span) = (&self.ty, generated_at(self.ty.span()));
        if self.is_serde {
            let is_option = option_of(ty).is_some();
            quote!(#is_option)
        } else {
            quote_spanned!(span=> <#ty as #krate::Attribute>::OPTIONAL)
        }
    }

    /// A statement that writes the field of `self`, a value of the owner, to `attributes`, with the support module
    /// of its pattern.
    fn write(&self, krate: &Path, support: &TokenStream, owner: &str) -> TokenStream {
        let (ident, name, attribute) = (&self.ident, &self.name, &self.attribute);
        let encode = self.conversion(krate, "to_value");
        quote! {
            #support::write_field(#owner, #name, #attribute, #encode(&self.#ident), &mut attributes)?;
        }
    }

    /// The field with its value, read from the stored attributes.
    pub(crate) fn read(
        &self,
        krate: &Path,
        support: &TokenStream,
        (owner, stored): (&str, &TokenStream),
    ) -> TokenStream {
        let (ident, name, attribute) = (&self.ident, &self.name, &self.attribute);
        let mut decode = self.conversion(krate, "from_value");
        if let Some(default) = &self.default {
            let default = default_value(&self.ty, default);
            decode = quote!(|stored| #krate::model::support::or_default(stored, #decode, #default));
        }
        quote!(#ident: #support::read_field(#owner, #name, #attribute, #stored, #decode)?,)
    }
}

/// Generates the function that writes all fields of `self`, with capacity for `more` further attributes.
pub(crate) fn to_attributes(
    fields: &[StoredField],
    krate: &Path,
    support: &TokenStream,
    owner: &str,
    more: usize,
) -> TokenStream {
    let capacity = fields.len() + more;
    let writes = fields
        .iter()
        .map(|field| field.write(krate, support, owner));
    quote! {
        fn to_attributes(&self) -> #krate::error::Result<#support::Item> {
            let mut attributes = #support::Item::with_capacity(#capacity);
            #(#writes)*
            ::core::result::Result::Ok(attributes)
        }
    }
}

/// The named fields of a struct. Otherwise one of three errors: unnamed fields, an enum, a union.
pub(crate) fn named_fields<'i>(
    input: &'i DeriveInput,
    [unnamed, is_enum, is_union]: [&str; 3],
) -> Result<&'i Punctuated<Field, Token![,]>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(&fields.named),
            _ => error_at(&input.ident, unnamed),
        },
        Data::Enum(data) => Err(Error::new(data.enum_token.span, is_enum)),
        Data::Union(data) => Err(Error::new(data.union_token.span, is_union)),
    }
}

/// Checks that each attribute belongs to one field, and runs `check` on its name.
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
            let message = format!(
                "duplicate attribute name `{name}`: field `{first}` already uses it\nhelp: choose another name with `rename = \"..\"`"
            );
            errors.add(field.error("rename", message));
        }
    }
    errors.finish(())
}
