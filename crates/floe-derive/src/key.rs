//! Generates the key: a struct of its fields, and conversions from other types to the key.

use proc_macro2::TokenStream;
use quote::quote;

use crate::definition::{FieldDef, ModelDef};
use crate::rules::{default_name, rules_name};
use crate::shape::{TupleSource, sources_of_one};

/// Generates the struct of the key fields. Their types can be compared and hashed.
pub(crate) fn struct_def(model: &ModelDef) -> TokenStream {
    let (vis, name) = (&model.vis, model.derived_name("Key"));
    let doc = format!(" The key fields of `{}`.", model.ident);
    let components = model.components();
    let fields = components.iter().map(|field| {
        let (vis, ident, ty) = (&field.vis, &field.ident, &field.ty);
        let doc = format!(" The key field `{}`.", field.name);
        quote!(#[doc = #doc] #vis #ident: #ty)
    });
    quote! {
        #[doc = #doc]
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::hash::Hash,
        )]
        #vis struct #name {
            #(#fields,)*
        }
    }
}

/// Generates the implementations of `IntoKey`.
pub(crate) fn impls(model: &ModelDef) -> TokenStream {
    let name = model.derived_name("Key");
    let key = key_of(model);
    let of_struct = into_key(model, &quote!(), &quote!(#name), &key);
    let components = model.components();
    let of_parts = (1..=components.len())
        .filter(|count| is_sufficient(&components, *count))
        .map(|count| from_parts(model, &components, count));
    quote!(#of_struct #(#of_parts)*)
}

/// Whether this number of key fields is sufficient: the others belong to the sort key and have defaults.
fn is_sufficient(components: &[&FieldDef], count: usize) -> bool {
    let mut rest = components.iter().skip(count);
    rest.all(|field| field.default.is_some())
}

/// An expression for the key of `self`, which has the key fields.
pub(crate) fn key_of(model: &ModelDef) -> TokenStream {
    let krate = &model.krate;
    let components = model.components();
    let parts = components.iter().map(|field| {
        let (name, ident, rules) = (&field.name, &field.ident, rules_name(field));
        quote!((#name, #krate::model::support::component(&#rules, &self.#ident)))
    });
    quote!(#krate::model::Key::of(&[#(#parts),*]))
}

fn into_key(
    model: &ModelDef,
    generics: &TokenStream,
    source: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let (krate, ident) = (&model.krate, &model.ident);
    quote! {
        #[automatically_derived]
        impl #generics #krate::model::IntoKey<#ident> for #source {
            fn into_key(self) -> #krate::error::Result<#krate::model::Key<#ident>> {
                #body
            }
        }
    }
}

/// A conversion from the first key fields: one value or a tuple.
fn from_parts(model: &ModelDef, components: &[&FieldDef], count: usize) -> TokenStream {
    match (components, count) {
        ([only, ..], 1) => from_single(model, components, only),
        _ => from_tuple(model, components, count),
    }
}

fn from_single(model: &ModelDef, components: &[&FieldDef], only: &FieldDef) -> TokenStream {
    let ty = &only.ty;
    let mut sources = sources_of_one(ty, only.shape());
    if only.shape().is_copied() {
        sources.push((quote!(&#ty), quote!(*self)));
    }
    let impls = sources.iter().map(|(source, value)| {
        let body = build(model, components, std::slice::from_ref(value));
        into_key(model, &quote!(), source, &body)
    });
    quote!(#(#impls)*)
}

fn from_tuple(model: &ModelDef, components: &[&FieldDef], count: usize) -> TokenStream {
    let given = components.iter().take(count);
    let source = TupleSource::of(given.map(|field| (&field.ty, field.shape())));
    let body = build(model, components, &source.values);
    into_key(model, &source.generics, &source.tuple, &body)
}

/// Builds the key through the struct: the first fields have these values, the others their defaults.
fn build(model: &ModelDef, components: &[&FieldDef], values: &[TokenStream]) -> TokenStream {
    let (krate, name) = (&model.krate, model.derived_name("Key"));
    let given = values
        .iter()
        .cloned()
        .map(Some)
        .chain(std::iter::repeat(None));
    let fields = components.iter().zip(given).map(|(field, value)| {
        let ident = &field.ident;
        let default = default_name(field);
        let value = value.unwrap_or_else(|| quote!(#default()));
        quote!(#ident: #value)
    });
    quote!(#krate::model::IntoKey::into_key(#name { #(#fields),* }))
}
