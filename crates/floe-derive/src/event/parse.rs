//! From the tokens of an enum to the checked description of its events. All errors are told at once.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitInt, LitStr, Path, Result, Token,
    Type, Variant, parenthesized, parse_quote,
};

use super::case::Case;
use super::checks;
use crate::attributes::{Errors, Given, Vocabulary, for_each, optional_expression, text};

/// An enum of events whose parts fit together.
pub(super) struct EnumDef {
    pub(super) ident: Ident,
    pub(super) krate: Path,
    /// The case of the fields in bodies.
    case: Case,
    pub(super) variants: Vec<VariantDef>,
}

/// A variant: one type of event.
pub(super) struct VariantDef {
    pub(super) ident: Ident,
    /// The name of the type, and where it was given.
    pub(super) name: String,
    pub(super) name_literal: Option<LitStr>,
    pub(super) aliases: Vec<LitStr>,
    /// The version of the body, from 1.
    pub(super) version: u32,
    pub(super) upcasters: Vec<Upcaster>,
    pub(super) body: BodyDef,
    pub(super) given: Given,
}

/// What a variant holds.
pub(super) enum BodyDef {
    Nothing,
    Whole(Box<Type>),
    Fields(Vec<FieldDef>),
}

/// A named field of a variant.
pub(super) struct FieldDef {
    pub(super) ident: Ident,
    pub(super) ty: Type,
    /// The name in the body.
    pub(super) name: String,
    pub(super) default: Option<Option<Expr>>,
}

/// What makes the next version of a body of this version.
pub(super) struct Upcaster {
    pub(super) literal: LitInt,
    pub(super) version: u32,
    pub(super) function: Expr,
}

const ENUM: Vocabulary = Vocabulary {
    place: "an enum of events",
    known: &["rename_all", "crate"],
    repeated: &[],
};

const VARIANT: Vocabulary = Vocabulary {
    place: "a variant",
    known: &["name", "alias", "version", "upcast"],
    repeated: &["alias"],
};

const FIELD: Vocabulary = Vocabulary {
    place: "a field",
    known: &["rename", "default"],
    repeated: &[],
};

impl EnumDef {
    pub(super) fn parse(input: &DeriveInput) -> Result<Self> {
        checks::generics(&input.generics)?;
        let variants = variants(input)?;
        let mut errors = Errors::default();
        let mut def = Self {
            ident: input.ident.clone(),
            krate: parse_quote!(::floe),
            case: Case::Snake,
            variants: Vec::new(),
        };
        let mut given = Given::default();
        errors.note(for_each("event", &input.attrs, |meta| {
            match ENUM.word(meta, &mut given)?.as_str() {
                "crate" => def.krate = text(meta)?.parse_with(Path::parse_mod_style)?,
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
            given: Given::default(),
        };
        errors.note(for_each("event", &variant.attrs, |meta| def.take(meta)));
        // What is missing may be in an attribute that could not be read.
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
                _ => Err(Error::new_spanned(
                    fields,
                    "a variant holds nothing, one value, or named fields: give the fields names",
                )),
            },
            Fields::Named(fields) => {
                let mut errors = Errors::default();
                let parsed = fields.named.iter().filter_map(|field| {
                    let ident = field.ident.as_ref()?;
                    errors.note(FieldDef::parse(field, ident, self.case))
                });
                let parsed: Vec<_> = parsed.collect();
                errors.note(checks::field_names(&parsed));
                errors.finish(BodyDef::Fields(parsed))
            }
        }
    }
}

fn variants(input: &DeriveInput) -> Result<&Punctuated<Variant, Token![,]>> {
    let message = "events are the variants of an enum";
    match &input.data {
        Data::Enum(data) if data.variants.is_empty() => {
            let message = "an enum of events has at least one variant";
            Err(Error::new_spanned(&input.ident, message))
        }
        Data::Enum(data) => Ok(&data.variants),
        Data::Struct(data) => {
            let message = format!(
                "{message}: wrap the struct in one, `enum {0}Event {{ {0}({0}) }}`",
                input.ident
            );
            Err(Error::new(data.struct_token.span, message))
        }
        Data::Union(data) => Err(Error::new(data.union_token.span, message)),
    }
}

fn no_name(meta: &ParseNestedMeta<'_>) -> Error {
    let message = "the one value of a variant is its whole body and takes no attributes: give it a name, as in \
                   `Variant { field: Type }`";
    Error::new_spanned(&meta.path, message)
}

impl VariantDef {
    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match VARIANT.word(meta, &mut self.given)?.as_str() {
            "name" => {
                let literal = checks::type_name(text(meta)?)?;
                self.name = literal.value();
                self.name_literal = Some(literal);
            }
            "alias" => self.aliases.push(checks::type_name(text(meta)?)?),
            "version" => self.version = checks::version(&meta.value()?.parse()?)?,
            _ => self.upcasters = upcasters(meta)?,
        }
        Ok(())
    }
}

impl FieldDef {
    fn parse(field: &Field, ident: &Ident, case: Case) -> Result<Self> {
        let mut def = Self {
            ident: ident.clone(),
            ty: field.ty.clone(),
            name: case.apply(&ident.unraw().to_string()),
            default: None,
        };
        let mut given = Given::default();
        for_each("event", &field.attrs, |meta| {
            match FIELD.word(meta, &mut given)?.as_str() {
                "rename" => def.name = text(meta)?.value(),
                _ => def.default = Some(optional_expression(meta)?),
            }
            Ok(())
        })?;
        Ok(def)
    }
}

fn upcasters(meta: &ParseNestedMeta<'_>) -> Result<Vec<Upcaster>> {
    let content;
    parenthesized!(content in meta.input);
    let list = Punctuated::<Upcaster, Token![,]>::parse_terminated(&content)?;
    if list.is_empty() {
        let message = "`upcast` names versions and functions: `upcast(1 = function)`";
        return Err(Error::new_spanned(&meta.path, message));
    }
    Ok(list.into_iter().collect())
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
