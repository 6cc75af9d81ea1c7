//! Generates the complete code of a model.
//!
//! The key, the row and the patch are next to the struct; everything else is inside one `const _`, where its names
//! cannot conflict with others.

use proc_macro2::TokenStream;
use quote::quote;

use crate::definition::{FieldDef, ModelDef, Role};
use crate::rules::{default_name, hygienic, rules_name};
use crate::shape::Shape;
use crate::{fields, key, patch, row, rules, schema};

/// Generates the code of the model.
pub(crate) fn generate(model: &ModelDef) -> TokenStream {
    let structs = [
        key::struct_def,
        row::struct_def,
        patch::struct_def,
        fields::struct_def,
    ]
    .map(|part| part(model));
    let impls = [key::impls, row::impls, patch::impls].map(|part| part(model));
    let (rules, assertions) = (rules::generate(model), schema::assertions(model));
    let (model_impl, functions) = (model_impl(model), functions(model));
    quote! {
        #(#structs)*
        const _: () = {
            #rules
            #assertions
            #model_impl
            #functions
            #(#impls)*
        };
    }
}

fn model_impl(model: &ModelDef) -> TokenStream {
    let (krate, ident, row_name) = (&model.krate, &model.ident, model.derived_name("Row"));
    let (schema, key) = (schema::generate(model), key::key_of(model));
    let (item, core) = (hygienic("item"), hygienic("core"));
    let stored = model.fields.iter().filter(|field| model.is_stored(field));
    let writes = stored.map(|field| {
        let (ident, rules) = (&field.ident, rules_name(field));
        quote!(#rules.store(&self.#ident, &mut #item)?;)
    });
    let writes: Vec<TokenStream> = writes.collect();
    let mutable = (!writes.is_empty()).then(|| quote!(mut));
    let reads = model.fields.iter().map(|field| {
        let (ident, value) = (&field.ident, read(model, field));
        quote!(#ident: #value)
    });
    let into_row = row::from_value(model, &core);
    let (fields_name, columns) = (model.derived_name("Fields"), fields::columns(model));
    quote! {
        #[automatically_derived]
        impl #krate::model::Model for #ident {
            const SCHEMA: &'static #krate::model::Schema = #schema;

            type Row<'tx> = #row_name<'tx>;

            type Fields = #fields_name;

            fn fields() -> &'static #fields_name {
                #columns
            }

            fn key_of(&self) -> #krate::error::Result<#krate::model::Key<Self>> {
                #key
            }

            fn to_item(&self) -> #krate::error::Result<#krate::model::support::Item> {
                let #mutable #item = #krate::model::Model::key_of(self)?.encoded().to_item();
                #(#writes)*
                ::core::result::Result::Ok(#item)
            }

            fn from_item(#item: &#krate::model::support::Item) -> #krate::error::Result<Self> {
                ::core::result::Result::Ok(Self {
                    #(#reads,)*
                })
            }

            fn into_row(self, #core: #krate::model::row::RowCore<'_>) -> Self::Row<'_> {
                #into_row
            }
        }
    }
}

/// An expression for the value of a field in a stored `item`.
fn read(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let (krate, rules, item) = (&model.krate, rules_name(field), hygienic("item"));
    if field.role == Role::Plain {
        quote!(#rules.load(#item)?)
    } else {
        let schema = quote!(<Self as #krate::model::Model>::SCHEMA);
        quote!(#krate::model::support::load_component(&#rules, #schema, #item)?)
    }
}

/// Generates the functions of the struct itself.
fn functions(model: &ModelDef) -> TokenStream {
    let (krate, vis, ident) = (&model.krate, &model.vis, &model.ident);
    let parts = hygienic("parts");
    let (from_key, patch) = (from_key(model), patch::function(model));
    let indexes = fields::indexes(model);
    let doc = format!(
        " Creates a key of `{ident}` from its key fields, in the order of the struct, or from `{}`.",
        model.derived_name("Key")
    );
    quote! {
        #[allow(dead_code, reason = "generated for every model, used by some")]
        impl #ident {
            #indexes

            #[doc = #doc]
            ///
            /// # Errors
            ///
            /// `InvalidField` if a key field is invalid.
            #vis fn key(
                #parts: impl #krate::model::IntoKey<#ident>,
            ) -> #krate::error::Result<#krate::model::Key<#ident>> {
                #krate::model::IntoKey::into_key(#parts)
            }

            #from_key

            #patch
        }
    }
}

/// Generates `from_key`, if every other field can be omitted.
fn from_key(model: &ModelDef) -> Option<TokenStream> {
    if !model.with_role(Role::Plain).all(can_be_omitted) {
        return None;
    }
    let (krate, vis, ident) = (&model.krate, &model.vis, &model.ident);
    let (parts, item) = (hygienic("parts"), hygienic("item"));
    let values = model.fields.iter().map(|field| {
        let (ident, default) = (&field.ident, default_name(field));
        let value = match (field.role, &field.default) {
            (Role::Plain, Some(_)) => quote!(#default()),
            _ => read(model, field),
        };
        quote!(#ident: #value)
    });
    Some(quote! {
        /// Creates a value with this key; all other fields are absent or have their defaults.
        ///
        /// # Errors
        ///
        /// `InvalidField` if a key field is invalid.
        #vis fn from_key(#parts: impl #krate::model::IntoKey<#ident>) -> #krate::error::Result<Self> {
            let #item = &#krate::model::IntoKey::into_key(#parts)?.encoded().to_item();
            ::core::result::Result::Ok(Self {
                #(#values,)*
            })
        }
    })
}

/// Whether the field can be omitted: it has a default, is optional, or is a set.
fn can_be_omitted(field: &FieldDef) -> bool {
    field.default.is_some() || field.is_optional() || field.shape() == Shape::Set
}
