//! Generates the row: the fields of an item in a transaction. A dropped row reports its reads and writes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use crate::definition::{ModelDef, Role};
use crate::key::key_of;
use crate::rules::{hygienic, rules_name};

/// Generates the struct of the row.
pub(crate) fn struct_def(model: &ModelDef) -> TokenStream {
    let (krate, vis, name) = (&model.krate, &model.vis, model.derived_name("Row"));
    let doc = format!(
        " A row of `{}` in a transaction. Changes of its fields are committed with the transaction.",
        model.ident
    );
    let fields = model.fields.iter().map(|field| {
        let (vis, ident, ty) = (&field.vis, &field.ident, &field.ty);
        let (doc, cell) = match field.role {
            Role::Plain => (format!(" The field `{}`.", field.name), quote!(Field)),
            _ => (
                format!(" The key field `{}`.", field.name),
                quote!(KeyField),
            ),
        };
        quote!(#[doc = #doc] #vis #ident: #krate::model::#cell<#ty>)
    });
    quote! {
        #[doc = #doc]
        #vis struct #name<'tx> {
            #(#fields,)*
            __core: #krate::model::row::RowCore<'tx>,
        }
    }
}

/// Generates the methods and implementations of the row.
pub(crate) fn impls(model: &ModelDef) -> TokenStream {
    let (row, drop, debug, methods) = (row(model), drop(model), debug(model), methods(model));
    quote!(#methods #row #drop #debug)
}

/// An expression for the row of `self`, a value of the model, with the given core.
pub(crate) fn from_value(model: &ModelDef, core: &Ident) -> TokenStream {
    let (krate, name) = (&model.krate, model.derived_name("Row"));
    let fields = model.fields.iter().map(|field| {
        let (ident, rules) = (&field.ident, rules_name(field));
        match field.role {
            Role::Plain => {
                quote!(#ident: #krate::model::Field::new(&#rules, self.#ident, #core.is_new()))
            }
            _ => quote!(#ident: #krate::model::KeyField::new(self.#ident)),
        }
    });
    quote!(#name { #(#fields,)* __core: #core })
}

fn methods(model: &ModelDef) -> TokenStream {
    let (krate, vis, ident) = (&model.krate, &model.vis, &model.ident);
    let (name, key) = (model.derived_name("Row"), key_of(model));
    let bounds = bounds(model, &quote!(::core::clone::Clone));
    let values = model.fields.iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        quote!(#ident: <#ty as ::core::clone::Clone>::clone(&self.#ident))
    });
    quote! {
        #[allow(dead_code, reason = "generated for every model, used by some")]
        impl #name<'_> {
            /// Whether the item is created by this transaction.
            #vis fn is_new(&self) -> bool {
                self.__core.is_new()
            }

            /// The key of the item.
            ///
            /// # Errors
            ///
            /// `InvalidField` if a stored value is invalid in a key.
            #vis fn key(&self) -> #krate::error::Result<#krate::model::Key<#ident>> {
                #key
            }

            /// Returns the value, which can leave the transaction. This reads every field, so the commit
            /// depends on all of them.
            #vis fn to_model(&self) -> #ident
            where
                #(#bounds,)*
            {
                #ident { #(#values,)* }
            }
        }
    }
}

fn row(model: &ModelDef) -> TokenStream {
    let (krate, ident, name) = (&model.krate, &model.ident, model.derived_name("Row"));
    quote! {
        #[automatically_derived]
        impl<'tx> #krate::model::row::Row<'tx> for #name<'tx> {
            type Model = #ident;

            fn core(&mut self) -> &mut #krate::model::row::RowCore<'tx> {
                &mut self.__core
            }
        }
    }
}

fn drop(model: &ModelDef) -> TokenStream {
    let name = model.derived_name("Row");
    let reports = model.with_role(Role::Plain).map(|field| {
        let ident = &field.ident;
        quote!(self.__core.report(&self.#ident);)
    });
    quote! {
        #[automatically_derived]
        impl ::core::ops::Drop for #name<'_> {
            fn drop(&mut self) {
                #(#reports)*
                self.__core.finish();
            }
        }
    }
}

/// Bounds on the types of all fields. The unused lifetime makes an unsatisfied bound disable the implementation;
/// without it, the bound would be a compile error.
fn bounds(model: &ModelDef, bound: &TokenStream) -> Vec<TokenStream> {
    let types = model.fields.iter().map(|field| &field.ty);
    types.map(|ty| quote!(for<'any> #ty: #bound)).collect()
}

/// Implements `Debug` for the row if all its fields implement it.
fn debug(model: &ModelDef) -> TokenStream {
    let name = model.derived_name("Row");
    let text = name.to_string();
    let formatter = hygienic("formatter");
    let bounds = bounds(model, &quote!(::core::fmt::Debug));
    let fields = model.fields.iter().map(|field| {
        let (name, ident) = (&field.name, &field.ident);
        quote!(.field(#name, &self.#ident))
    });
    quote! {
        impl ::core::fmt::Debug for #name<'_>
        where
            #(#bounds,)*
        {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter.debug_struct(#text) #(#fields)* .finish()
            }
        }
    }
}
