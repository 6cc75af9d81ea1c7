//! Generates the code of an entity: how it is stored and read.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::parse::EntityDef;
use crate::stored::to_attributes;

/// Generates the implementation for the struct.
pub(super) fn generate(def: &EntityDef) -> TokenStream {
    let (ident, krate, type_name) = (&def.ident, &def.krate, &def.type_name);
    let entity = ident.to_string();
    let (id, id_type) = (&def.id.ident, &def.id.ty);
    let id_name = id.to_string();
    let id_text = quote_spanned!(id_type.span()=> #krate::graph::ToId::to_id(&self.#id));
    let read_id = quote_spanned! {id_type.span()=>
        #krate::graph::support::read_id::<#id_type>(#entity, #id_name, node)?
    };
    let (support, source) = (quote!(#krate::graph::support), quote!(&node.attributes));
    let to_attributes = to_attributes(&def.fields, krate, &support, &entity, 0);
    let fields = def.fields.iter();
    let reads = fields.map(|field| field.read(krate, &support, (entity.as_str(), &source)));
    quote! {
        #[automatically_derived]
        impl #krate::graph::Entity for #ident {
            const TYPE: &'static str = #type_name;

            fn id_text(&self) -> ::std::string::String {
                #id_text
            }

            #to_attributes

            fn from_node(node: &#krate::graph::Node) -> #krate::error::Result<Self> {
                ::core::result::Result::Ok(Self {
                    #id: #read_id,
                    #(#reads)*
                })
            }
        }
    }
}
