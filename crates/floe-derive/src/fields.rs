//! Generates the columns for query conditions, and a constant for each index.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::definition::ModelDef;
use crate::index::IndexDef;
use crate::rules::rules_name;

/// Generates the struct of the columns.
pub(crate) fn struct_def(model: &ModelDef) -> TokenStream {
    let (krate, vis, ident, name) = (
        &model.krate,
        &model.vis,
        &model.ident,
        model.derived_name("Fields"),
    );
    let doc = format!(" The fields of `{ident}`, for query conditions.");
    let fields = model.fields.iter().map(|field| {
        let (vis, own, ty) = (&field.vis, &field.ident, &field.ty);
        let doc = format!(" The field `{}`.", field.name);
        quote!(#[doc = #doc] #vis #own: #krate::model::query::Column<#ident, #ty>)
    });
    quote! {
        #[doc = #doc]
        #[derive(::core::fmt::Debug)]
        #[allow(dead_code, reason = "generated for every field, used by some")]
        #vis struct #name {
            #(#fields,)*
        }
    }
}

/// An expression for the columns of all fields.
pub(crate) fn columns(model: &ModelDef) -> TokenStream {
    let (krate, name) = (&model.krate, model.derived_name("Fields"));
    let fields = model.fields.iter().map(|field| {
        let (ident, rules) = (&field.ident, rules_name(field));
        quote!(#ident: #krate::model::query::Column::new(&#rules))
    });
    quote! {
        static __FIELDS: #name = #name { #(#fields,)* };
        &__FIELDS
    }
}

/// Generates the constants of the indexes.
pub(crate) fn indexes(model: &ModelDef) -> TokenStream {
    let (krate, vis, ident) = (&model.krate, &model.vis, &model.ident);
    let constants = model.indexes.iter().enumerate().map(|(at, index)| {
        let name = index_name(index);
        let doc = format!(" The index `{}`, for queries.", index.name.value());
        quote! {
            #[doc = #doc]
            #vis const #name: #krate::model::query::Index<#ident> = #krate::model::query::Index::of(
                &<#ident as #krate::model::Model>::SCHEMA.indexes[#at],
            );
        }
    });
    quote!(#(#constants)*)
}

/// The name of the constant of an index: the index name in upper case.
pub(crate) fn index_name(index: &IndexDef) -> Ident {
    let text = index.name.value().to_uppercase();
    let text: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        format_ident!("_{text}", span = index.name.span())
    } else {
        format_ident!("{text}", span = index.name.span())
    }
}
