//! The code of an entity: how it is stored and read.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::parse::EntityDef;
use crate::shape::Shape;
use crate::stored::StoredField;

/// The code of the struct.
pub(super) fn generate(def: &EntityDef) -> TokenStream {
    let (ident, krate, type_name) = (&def.ident, &def.krate, &def.type_name);
    let entity = ident.to_string();
    let (id, id_type) = (&def.id.ident, &def.id.ty);
    let id_name = id.to_string();
    let id_text = quote_spanned!(id_type.span()=> #krate::graph::ToId::to_id(&self.#id));
    let read_id = quote_spanned! {id_type.span()=>
        #krate::graph::support::read_id::<#id_type>(#entity, #id_name, node)?
    };
    let writes = def.fields.iter().map(|field| write(def, field));
    let reads = def.fields.iter().map(|field| read(def, field));
    let capacity = def.fields.len();
    quote! {
        #[automatically_derived]
        impl #krate::graph::Entity for #ident {
            const TYPE: &'static str = #type_name;

            fn id_text(&self) -> ::std::string::String {
                #id_text
            }

            fn to_attributes(&self) -> #krate::error::Result<#krate::graph::support::Item> {
                let mut attributes = #krate::graph::support::Item::with_capacity(#capacity);
                #(#writes)*
                ::core::result::Result::Ok(attributes)
            }

            fn from_node(node: &#krate::graph::Node) -> #krate::error::Result<Self> {
                ::core::result::Result::Ok(Self {
                    #id: #read_id,
                    #(#reads)*
                })
            }
        }
    }
}

fn write(def: &EntityDef, field: &StoredField) -> TokenStream {
    let (krate, ident, ty) = (&def.krate, &field.ident, &field.ty);
    let (entity, name, attribute) = (def.ident.to_string(), ident.to_string(), &field.attribute);
    let value = match field.serde {
        true => quote_spanned!(ty.span()=> #krate::model::document::to_value(&self.#ident)),
        false => quote_spanned!(ty.span()=> #krate::Attribute::to_value(&self.#ident)),
    };
    quote! {
        #krate::graph::support::write_field(#entity, #name, #attribute, #value, &mut attributes)?;
    }
}

fn read(def: &EntityDef, field: &StoredField) -> TokenStream {
    let (krate, ident, ty) = (&def.krate, &field.ident, &field.ty);
    let (entity, name, attribute) = (def.ident.to_string(), ident.to_string(), &field.attribute);
    let decode = match field.serde {
        true => quote_spanned!(ty.span()=> #krate::model::document::from_value::<#ty>),
        false => quote_spanned!(ty.span()=> <#ty as #krate::Attribute>::from_value),
    };
    let decode = match &field.default {
        None => decode,
        Some(default) => {
            let default = match default {
                Some(default) => {
                    let default = Shape::of(ty).value(ty, default);
                    quote!(|| #default)
                }
                None => quote!(::core::default::Default::default),
            };
            quote!(|stored| #krate::model::support::or_default(stored, #decode, #default))
        }
    };
    quote! {
        #ident: #krate::graph::support::read_field(#entity, #name, #attribute, node, #decode)?,
    }
}
