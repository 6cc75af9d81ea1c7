//! Generates the patch: values for some of the fields, for writes without a read. Keys never change, so a patch has
//! no key fields; their setters exist only for a better error message.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

use crate::definition::{FieldDef, ModelDef, Role};
use crate::rules::{hygienic, rules_name};
use crate::shape::Shape;

/// Generates the struct of the patch.
pub(crate) fn struct_def(model: &ModelDef) -> TokenStream {
    let (krate, vis, ident) = (&model.krate, &model.vis, &model.ident);
    let name = model.derived_name("Patch");
    let doc = format!(" Values for some of the fields of `{ident}`, for writes without a read.");
    quote! {
        #[doc = #doc]
        #[derive(::core::fmt::Debug, ::core::default::Default)]
        #[must_use]
        #vis struct #name {
            __patch: #krate::model::Patch<#ident>,
        }
    }
}

/// Generates the setters.
pub(crate) fn impls(model: &ModelDef) -> TokenStream {
    let (krate, ident, name) = (&model.krate, &model.ident, model.derived_name("Patch"));
    let setters = model.with_role(Role::Plain).map(setter);
    let components = model.components().into_iter();
    let unsupported_setters = components.map(|field| unsupported(field, krate));
    let patch = hygienic("patch");
    quote! {
        #[allow(dead_code, reason = "generated for every field, used by some")]
        impl #name {
            #(#setters)*
            #(#unsupported_setters)*
        }

        #[automatically_derived]
        impl ::core::convert::From<#name> for #krate::model::Patch<#ident> {
            fn from(#patch: #name) -> Self {
                #patch.__patch
            }
        }
    }
}

fn setter(field: &FieldDef) -> TokenStream {
    let (vis, ident, ty) = (&field.vis, &field.ident, &field.ty);
    let (rules, value) = (rules_name(field), hygienic("value"));
    let doc = format!(" Sets the field `{}`.", field.name);
    let (parameter, own) = if field.shape() == Shape::Text && !field.is_optional() {
        (
            quote!(impl ::core::convert::Into<#ty>),
            quote!(::core::convert::Into::<#ty>::into(#value)),
        )
    } else {
        (quote!(#ty), quote!(#value))
    };
    quote! {
        #[doc = #doc]
        #vis fn #ident(mut self, #value: #parameter) -> Self {
            self.__patch.set(&#rules, &#own);
            self
        }
    }
}

/// A setter of a key field, which no program can call. Without it the compiler would only report an unknown method.
fn unsupported(field: &FieldDef, krate: &Path) -> TokenStream {
    let (vis, ident) = (&field.vis, &field.ident);
    let (value, generic) = (hygienic("value"), hygienic("T"));
    quote! {
        #[doc(hidden)]
        #vis fn #ident<#generic>(self, #value: #generic) -> Self
        where
            #generic: #krate::model::field::ChangesKey,
        {
            #krate::model::field::ChangesKey::never(#value)
        }
    }
}

/// Generates the function that creates an empty patch.
pub(crate) fn function(model: &ModelDef) -> TokenStream {
    let (vis, name) = (&model.vis, model.derived_name("Patch"));
    let doc = format!(
        " Creates an empty patch of `{}`. Add fields with the methods of their names.",
        model.ident
    );
    quote! {
        #[doc = #doc]
        #vis fn patch() -> #name {
            #name {
                __patch: ::core::default::Default::default(),
            }
        }
    }
}
