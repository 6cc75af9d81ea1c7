//! Parses an enum into the checked description of its events. Reports all errors together.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Data, DeriveInput, Error, Fields, Ident, LitInt, Path, Result, Token, Variant, parse_quote,
};

use super::case::Case;
use super::checks;
use super::definition::{BodyDef, Upcaster, VariantDef};
use crate::attributes::{
    Errors, KnownAttributes, SeenAttributes, crate_path, error_at, for_each, list_of,
    reject_generics, text,
};
use crate::stored::{FieldAttributes, StoredField};

/// A checked event enum.
pub(super) struct EnumDef {
    pub(super) ident: Ident,
    pub(super) krate: Path,
    /// The case of field names in bodies.
    case: Case,
    pub(super) variants: Vec<VariantDef>,
}

const ENUM: KnownAttributes = KnownAttributes::new("an event enum", "rename_all crate");

const VARIANT: KnownAttributes =
    KnownAttributes::repeating("alias", "a variant", "name alias version upcast");

const FIELDS: FieldAttributes = FieldAttributes {
    derive: "event",
    words: KnownAttributes::new("a field", "rename default"),
    mark: "",
    rename: |meta| Ok(text(meta)?.value()),
};

impl EnumDef {
    pub(super) fn parse(input: &DeriveInput) -> Result<Self> {
        reject_generics(
            &input.generics,
            "`Event` cannot be derived for a generic enum\nhelp: write an enum for each type",
        )?;
        let variants = variants(input)?;
        let mut errors = Errors::default();
        let mut def = Self {
            ident: input.ident.clone(),
            krate: parse_quote!(::floe),
            case: Case::Snake,
            variants: Vec::new(),
        };
        let mut seen = SeenAttributes::default();
        errors.note(for_each("event", &input.attrs, |meta| {
            match ENUM.word(meta, &mut seen)?.as_str() {
                "crate" => def.krate = crate_path(meta)?,
                _ => def.case = Case::parse(&text(meta)?)?,
            }
            Ok(())
        }));
        let parsed = variants.iter().map(|variant| def.variant(variant));
        let parsed: Vec<_> = parsed.filter_map(|variant| errors.note(variant)).collect();
        def.variants = parsed;
        errors.note(checks::stored_names(&def.variants));
        errors.finish(def)
    }

    fn variant(&self, variant: &Variant) -> Result<VariantDef> {
        let mut errors = Errors::default();
        let body = errors.note(self.body(variant));
        let mut def = VariantDef {
            ident: variant.ident.clone(),
            name: variant.ident.unraw().to_string(),
            name_literal: None,
            aliases: Vec::new(),
            version: 1,
            upcasters: Vec::new(),
            body: body.unwrap_or(BodyDef::Nothing),
            seen: SeenAttributes::default(),
        };
        errors.note(for_each("event", &variant.attrs, |meta| def.take(meta)));
        // A missing attribute may be in one that could not be parsed, so check only without errors.
        let def = errors.finish(def)?;
        checks::variant(&def)?;
        Ok(def)
    }

    fn body(&self, variant: &Variant) -> Result<BodyDef> {
        match &variant.fields {
            Fields::Unit => Ok(BodyDef::Nothing),
            Fields::Unnamed(fields) => match fields.unnamed.first() {
                Some(field) if fields.unnamed.len() == 1 => {
                    for_each("event", &field.attrs, |meta| Err(no_name(meta)))?;
                    Ok(BodyDef::Whole(Box::new(field.ty.clone())))
                }
                _ => error_at(
                    fields,
                    "a variant can have no fields, one unnamed field, or named fields\nhelp: name the fields",
                ),
            },
            Fields::Named(fields) => {
                let mut errors = Errors::default();
                let mut fields = StoredField::all(&FIELDS, &fields.named, &mut errors);
                for field in fields.iter_mut().filter(|field| !field.seen.has("rename")) {
                    field.attribute = self.case.apply(&field.attribute);
                }
                errors.note(checks::field_names(&fields));
                errors.finish(BodyDef::Fields(fields))
            }
        }
    }
}

fn variants(input: &DeriveInput) -> Result<&Punctuated<Variant, Token![,]>> {
    let message = "`Event` can only be derived for enums";
    match &input.data {
        Data::Enum(data) if data.variants.is_empty() => {
            let message = "an event enum requires at least one variant";
            error_at(&input.ident, message)
        }
        Data::Enum(data) => Ok(&data.variants),
        Data::Struct(data) => {
            let message = format!(
                "{message}\nhelp: wrap the struct in an enum: `enum {0}Event {{ {0}({0}) }}`",
                input.ident
            );
            Err(Error::new(data.struct_token.span, message))
        }
        Data::Union(data) => Err(Error::new(data.union_token.span, message)),
    }
}

fn no_name(meta: &ParseNestedMeta<'_>) -> Error {
    let message = "an unnamed field is the whole body and takes no attributes\nhelp: name the field: \
        `Variant { field: Type }`";
    Error::new_spanned(&meta.path, message)
}

impl VariantDef {
    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match VARIANT.word(meta, &mut self.seen)?.as_str() {
            "name" => {
                let literal = checks::type_name(text(meta)?)?;
                self.name = literal.value();
                self.name_literal = Some(literal);
            }
            "alias" => self.aliases.push(checks::type_name(text(meta)?)?),
            "version" => self.version = checks::version(&meta.value()?.parse()?)?,
            _ => {
                let message =
                    "`upcast` requires versions and functions\nhelp: write `upcast(1 = function)`";
                self.upcasters = list_of(meta, message)?;
            }
        }
        Ok(())
    }
}

impl Parse for Upcaster {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let literal: LitInt = input.parse()?;
        let version = checks::version(&literal)?;
        input.parse::<Token![=]>()?;
        Ok(Self {
            literal,
            version,
            function: input.parse()?,
        })
    }
}
