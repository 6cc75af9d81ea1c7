//! Generates the code of an event enum: the names of its types, and how bodies are encoded and decoded.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Path};

use super::definition::{BodyDef, VariantDef, stored_name};
use super::parse::EnumDef;
use crate::rules::hygienic;
use crate::shape::{Shape, generated_at};
use crate::stored::StoredField;

/// Generates the implementation for the enum.
pub(super) fn generate(def: &EnumDef) -> TokenStream {
    let (ident, krate) = (&def.ident, &def.krate);
    let variants = || def.variants.iter();
    let names = variants().map(name);
    let writes = variants().map(|variant| write(krate, variant));
    let reads = variants().map(|variant| read(krate, variant));
    let (event_type, data) = (hygienic("event_type"), hygienic("data"));
    quote! {
        const _: () = {
            #[automatically_derived]
            #[allow(deprecated, reason = "deprecated events are still decoded")]
            impl #krate::events::Event for #ident {
                fn event_type(&self) -> &'static str {
                    match self {
                        #(#names,)*
                    }
                }

                fn encode(&self) -> #krate::error::Result<::std::vec::Vec<u8>> {
                    match self {
                        #(#writes,)*
                    }
                }

                fn decode(
                    #event_type: &str,
                    #data: &[u8],
                ) -> #krate::error::Result<::core::option::Option<Self>> {
                    ::core::result::Result::Ok(::core::option::Option::Some(match #event_type {
                        #(#reads,)*
                        _ => return ::core::result::Result::Ok(::core::option::Option::None),
                    }))
                }
            }
        };
    }
}

fn current_name(variant: &VariantDef) -> String {
    stored_name(&variant.name, variant.version)
}

fn name(variant: &VariantDef) -> TokenStream {
    let (ident, name) = (&variant.ident, current_name(variant));
    quote!(Self::#ident { .. } => #name)
}

/// The match arm that encodes the body.
fn write(krate: &Path, variant: &VariantDef) -> TokenStream {
    let (ident, name) = (&variant.ident, current_name(variant));
    match &variant.body {
        BodyDef::Nothing => {
            quote!(Self::#ident => ::core::result::Result::Ok(::std::vec::Vec::new()))
        }
        BodyDef::Whole(ty) => {
            let value = hygienic("value");
            let write = quote_spanned! {generated_at(ty.span())=>
                #krate::events::support::write_whole::<#ty>(#name, #value)
            };
            quote!(Self::#ident(#value) => #write)
        }
        BodyDef::Fields(fields) => {
            let values: Vec<_> = (0..fields.len()).map(value_name).collect();
            let idents = fields.iter().map(|field| &field.ident);
            let mut body = quote!(#krate::events::support::Writer::new(#name));
            for (field, value) in fields.iter().zip(&values) {
                let (ty, name) = (&field.ty, &field.attribute);
                body = quote_spanned!(generated_at(ty.span())=> #body.field::<#ty>(#name, #value)?);
            }
            quote! {
                Self::#ident { #(#idents: #values),* } => ::core::result::Result::Ok(#body.finish())
            }
        }
    }
}

/// The match arm that decodes every stored version of the body.
fn read(krate: &Path, variant: &VariantDef) -> TokenStream {
    let ident = &variant.ident;
    let names = (1..=variant.version).map(|version| names_of(variant, version));
    let names = quote!(#(#names)|*);
    match &variant.body {
        BodyDef::Nothing => quote!(#names => Self::#ident),
        BodyDef::Whole(ty) => {
            let body = upcast(krate, variant);
            let read = quote_spanned!(generated_at(ty.span())=> #body.whole::<#ty>()?);
            quote!(#names => Self::#ident(#read))
        }
        BodyDef::Fields(fields) => {
            let body = upcast(krate, variant);
            let read = read_fields(krate, ident, fields, &body);
            quote!(#names => { #read })
        }
    }
}

/// The pattern of the stored names of a version.
fn names_of(variant: &VariantDef, version: u32) -> TokenStream {
    let name = stored_name(&variant.name, version);
    let aliases = variant.aliases.iter();
    let aliases = aliases.map(|alias| stored_name(&alias.value(), version));
    quote!(#name #(| #aliases)*)
}

/// An expression for the stored body in the current version.
fn upcast(krate: &Path, variant: &VariantDef) -> TokenStream {
    let (event_type, data) = (hygienic("event_type"), hygienic("data"));
    let current = variant.version;
    let version = if current == 1 {
        quote!(1)
    } else {
        let older = (1..current).map(|version| {
            let names = names_of(variant, version);
            quote!(#names => #version)
        });
        quote!(match #event_type { #(#older,)* _ => #current })
    };
    let mut upcasters: Vec<_> = variant.upcasters.iter().collect();
    upcasters.sort_by_key(|upcaster| upcaster.version);
    let steps = upcasters.into_iter().map(|upcaster| {
        let (version, function) = (upcaster.version, &upcaster.function);
        quote_spanned!(generated_at(function.span())=> .upcast(#version, #function)?)
    });
    quote!(#krate::events::support::Body::new(#event_type, #version, #data)#(#steps)*)
}

/// Statements that read the fields of a body and build the variant.
fn read_fields(
    krate: &Path,
    ident: &Ident,
    fields: &[StoredField],
    body: &TokenStream,
) -> TokenStream {
    let slots_name = hygienic("slots");
    let (mut slots, mut pattern) = (quote!(()), quote!(()));
    for (at, field) in fields.iter().enumerate().rev() {
        let (ty, name, value) = (&field.ty, &field.attribute, value_name(at));
        let slot = quote_spanned! {generated_at(ty.span())=>
            #krate::events::support::slot::<#ty>(#name)
        };
        slots = quote!((#slot, #slots));
        pattern = quote!((#value, #pattern));
    }
    let values = fields.iter().enumerate().map(|(at, field)| {
        let (ident, value) = (&field.ident, value(field, &value_name(at)));
        quote!(#ident: #value)
    });
    quote! {
        let mut #slots_name = #slots;
        #body.fields(&mut #slots_name)?;
        let #pattern = #slots_name;
        Self::#ident { #(#values),* }
    }
}

/// An expression for the value of a slot.
fn value(field: &StoredField, slot: &Ident) -> TokenStream {
    let (ty, event_type) = (&field.ty, hygienic("event_type"));
    match &field.default {
        None => quote!(#slot.required(#event_type)?),
        Some(None) => quote_spanned! {generated_at(ty.span())=>
            #slot.or_else(<#ty as ::core::default::Default>::default)
        },
        Some(Some(default)) => {
            let default = Shape::of(ty).value(ty, default);
            quote!(#slot.or_else(|| #default))
        }
    }
}

fn value_name(at: usize) -> Ident {
    let name = format_ident!("value_{at}");
    hygienic(&name.to_string())
}
