//! Generates the rules of each field: a `Rules` static, and a function for its default.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::constraint::{Constraint, VALUE};
use crate::definition::{FieldDef, ModelDef, Role};
use crate::shape::{generated_at, literal, option};

/// The name of the static with the rules of a field.
pub(crate) fn rules_name(field: &FieldDef) -> Ident {
    format_ident!("__RULES_{}", field.name.to_uppercase())
}

/// The name of the function that returns the default of a field.
pub(crate) fn default_name(field: &FieldDef) -> Ident {
    format_ident!("__default_{}", field.name)
}

/// Generates the rules and defaults of all fields.
pub(crate) fn generate(model: &ModelDef) -> TokenStream {
    let rules = model.fields.iter().map(|field| rules(model, field));
    let defaults = model.fields.iter().filter_map(default);
    quote!(#(#rules)* #(#defaults)*)
}

fn rules(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let (ty, name, attribute) = (&field.ty, &field.name, &field.attribute);
    let krate = &model.krate;
    let (static_name, model_name) = (rules_name(field), model.ident.unraw().to_string());
    let read_only = field.read_only || field.role != Role::Plain;
    let index_bytes_max = index_bytes_max(model, field);
    let (check, bounds, encode, decode) = (
        check(model, field),
        bounds(model, field),
        field.conversion(krate, "to_value"),
        decode(model, field),
    );
    quote! {
        static #static_name: #krate::model::field::Rules<#ty> = #krate::model::field::Rules {
            model: #model_name,
            field: #name,
            attribute: #attribute,
            read_only: #read_only,
            index_bytes_max: #index_bytes_max,
            check: #check,
            bounds: #bounds,
            encode: #encode,
            decode: #decode,
        };
    }
}

/// The maximum length of the field as an index key; sort keys are shorter.
fn index_bytes_max(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let krate = &model.krate;
    let is_in = |names: &[Ident]| names.contains(&field.ident);
    option(if model.indexes.iter().any(|index| is_in(&index.sort)) {
        Some(quote!(#krate::model::support::INDEX_SORT_BYTES_MAX))
    } else if model.indexes.iter().any(|index| is_in(&index.key)) {
        Some(quote!(#krate::model::support::INDEX_KEY_BYTES_MAX))
    } else {
        None
    })
}

fn check(model: &ModelDef, field: &FieldDef) -> TokenStream {
    if field.constraints.is_empty() {
        return quote!(|_| ::core::result::Result::Ok(()));
    }
    let (krate, shape, ty) = (&model.krate, field.shape(), field.value_type());
    let value = hygienic(VALUE);
    let constraints = field.constraints.iter();
    let checks = constraints.map(|constraint| constraint.check(krate, shape, ty));
    let body = quote!({ #(#checks)* ::core::result::Result::Ok(()) });
    if field.is_optional() {
        quote!(|#value| #krate::model::constraint::optional(#value, |#value: &#ty| #body))
    } else {
        quote!(|#value: &#ty| #body)
    }
}

/// A function that gives the bounds of the field as numbers of the store.
fn bounds(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let krate = &model.krate;
    let bounds = quote!(#krate::model::field::Bounds);
    if field.constraints.is_empty() {
        return quote!(#bounds::default);
    }
    let (shape, ty) = (field.shape(), field.value_type());
    let is_min = |constraint: &&Constraint| matches!(constraint, Constraint::Min(_));
    let is_max = |constraint: &&Constraint| matches!(constraint, Constraint::Max(_));
    let constraints = || field.constraints.iter().filter(|_| !field.is_serde);
    let min = constraints().find(is_min);
    let max = constraints().find(is_max);
    let count = usize::from(min.is_some()) + usize::from(max.is_some());
    let has_others = field.constraints.len() > count;
    let bound = |constraint: Option<&Constraint>| match constraint {
        Some(constraint) => constraint.bound(krate, shape, ty),
        None => quote!(::core::option::Option::None),
    };
    let (min, max) = (bound(min), bound(max));
    quote!(|| #bounds { min: #min, max: #max, has_others: #has_others })
}

fn decode(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let krate = &model.krate;
    let decode = field.conversion(krate, "from_value");
    if field.default.is_none() || field.role != Role::Plain {
        return decode;
    }
    let (stored, default) = (hygienic("stored"), default_name(field));
    quote!(|#stored| #krate::model::support::or_default(#stored, #decode, #default))
}

fn default(field: &FieldDef) -> Option<TokenStream> {
    let (name, ty) = (default_name(field), &field.ty);
    let value = match field.default.as_ref()? {
        None => {
            let span = generated_at(ty.span());
            quote_spanned!(span=> <#ty as ::core::default::Default>::default())
        }
        Some(expr) => {
            let value = field.shape().value(field.value_type(), expr);
            if field.is_optional() && literal(expr).is_some() {
                option(Some(value))
            } else {
                value
            }
        }
    };
    Some(quote! {
        fn #name() -> #ty {
            #value
        }
    })
}

/// A variable name that expressions of the user cannot access.
pub(crate) fn hygienic(name: &str) -> Ident {
    Ident::new(name, proc_macro2::Span::mixed_site())
}
