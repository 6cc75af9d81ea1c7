//! Generates the code of a registry: its schema, how values are stored and read, and what identifies its groups.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::definition::RegistryDef;
use super::template::Part;
use crate::shape::{Shape, TupleSource, generated_at, option, sources_of_one};
use crate::stored::{StoredField, to_attributes};

/// Generates the implementation for the struct.
pub(super) fn generate(def: &RegistryDef) -> TokenStream {
    let (ident, krate) = (&def.ident, &def.words.krate);
    let (schema, assertions) = (schema(def), assertions(def));
    let names = def.group().into_iter().map(|field| {
        let (name, ty) = (&field.ident, &field.ty);
        quote_spanned!(ty.span()=> #krate::Attribute::to_value(&self.#name))
    });
    let (support, owner) = (quote!(#krate::registry::support), def.name());
    let to_attributes = to_attributes(&def.fields, krate, &support, &owner, 8);
    let source = (owner.as_str(), &quote!(item));
    let fields = def.fields.iter();
    let reads = fields.map(|field| field.read(krate, &support, source));
    let (indexes, groups, watched) = (indexes(def), groups(def), watched(def));
    let together = def.keys.is_versioned.then(|| {
        quote! {
            #[automatically_derived]
            impl #krate::registry::LatestTogether for #ident {}
        }
    });
    quote! {
        const _: () = {
            #assertions

            #[automatically_derived]
            impl #krate::registry::Registry for #ident {
                const SCHEMA: &'static #krate::registry::RegistrySchema = #schema;

                fn group(&self) -> #krate::error::Result<#krate::registry::Group<Self>> {
                    #krate::registry::Group::of(&[#(#names),*])
                }

                #to_attributes

                fn from_item(
                    item: &#krate::registry::support::Item,
                ) -> #krate::error::Result<Self> {
                    ::core::result::Result::Ok(Self {
                        #(#reads)*
                    })
                }
            }

            #watched
            #together
            #indexes
            #groups
        };
    }
}

/// Generates how a change router recognises versions, and not pointers, aliases or tombstones.
fn watched(def: &RegistryDef) -> TokenStream {
    let (ident, krate, name) = (&def.ident, &def.words.krate, def.name());
    let schema = quote!(<#ident as #krate::registry::Registry>::SCHEMA);
    quote! {
        #[automatically_derived]
        impl #krate::changes::Watched for #ident {
            const NAME: &'static str = #name;

            fn table() -> &'static str {
                #schema.table
            }

            fn recognises(item: &#krate::registry::support::Item) -> bool {
                #krate::registry::support::is_version(#schema, item)
            }

            fn decode(item: &#krate::registry::support::Item) -> #krate::error::Result<Self> {
                <Self as #krate::registry::Registry>::from_item(item)
            }
        }
    }
}

fn schema(def: &RegistryDef) -> TokenStream {
    let (krate, words, keys) = (&def.words.krate, &def.words, &def.keys);
    let (name, table) = (def.name(), words.table.clone().unwrap_or_default());
    let layout = if keys.is_versioned {
        quote!(Versioned)
    } else {
        quote!(Grouped)
    };
    let mut places = 0_usize..;
    let parts = keys.group.parts.iter().map(|part| match part {
        Part::Text(text) => quote!(#krate::registry::schema::KeyPart::Text(#text)),
        Part::Name(_) => {
            let at = places.next();
            quote!(#krate::registry::schema::KeyPart::Name(#at))
        }
    });
    let parts: Vec<_> = parts.collect();
    let group = def.group();
    let group = group.iter().map(|field| field_schema(def, field));
    let fields = def.fields.iter().map(|field| field_schema(def, field));
    let indexes = words.indexes.iter().map(|index| {
        let (name, group) = (&index.name, def.group());
        let at = group.iter().position(|field| field.ident == index.key);
        let at = at.unwrap_or_default();
        quote!(#krate::registry::schema::StatusIndex { name: #name, field: #at })
    });
    let (version_prefix, latest) = (&keys.version_prefix, &keys.latest);
    let (version, published, deleted, legacy_keys) = (
        &words.version,
        &words.published,
        &words.deleted,
        &words.legacy_keys,
    );
    let (escaped, status) = (keys.group.escaped(), option(words.status.as_ref()));
    let expires = option(words.expires.as_ref());
    let retention = option(words.retention_secs);
    let hash = option(def.hash().map(|field| &field.attribute));
    quote! {
        &#krate::registry::RegistrySchema {
            name: #name,
            table: #table,
            layout: #krate::registry::schema::Layout::#layout,
            group_key: &[#(#parts),*],
            escaped: #escaped,
            group: &[#(#group),*],
            version_prefix: #version_prefix,
            latest: #latest,
            legacy_keys: #legacy_keys,
            fields: &[#(#fields),*],
            version: #version,
            published: #published,
            status: #status,
            expires: #expires,
            deleted: #deleted,
            retention_secs: #retention,
            hash: #hash,
            indexes: &[#(#indexes),*],
        }
    }
}

fn field_schema(def: &RegistryDef, field: &StoredField) -> TokenStream {
    let (krate, name, attribute) = (&def.words.krate, &field.name, &field.attribute);
    let (kind, is_optional) = (field.kind(krate), field.optional(krate));
    quote! {
        #krate::registry::schema::RegistryField {
            name: #name,
            attribute: #attribute,
            kind: #kind,
            is_optional: #is_optional,
        }
    }
}

/// Assertions for types that cannot be recognised by name: a group field is text or a number.
fn assertions(def: &RegistryDef) -> TokenStream {
    let krate = &def.words.krate;
    let checks = def.group().into_iter().map(|field| {
        let (kind, span) = (field.kind(krate), generated_at(field.ty.span()));
        let message = format!(
            "a group field must be text or a number: field={}",
            field.ident.unraw()
        );
        quote_spanned! {span=>
            const _: () = ::core::assert!(
                ::core::matches!(
                    #kind,
                    #krate::model::schema::FieldKind::Text | #krate::model::schema::FieldKind::Number
                ),
                #message
            );
        }
    });
    quote!(#(#checks)*)
}

/// Generates a constant for each index: `BY_PACKAGE`.
fn indexes(def: &RegistryDef) -> TokenStream {
    let (krate, vis, ident) = (&def.words.krate, &def.vis, &def.ident);
    let group = def.group();
    let constants = def.words.indexes.iter().enumerate().map(|(at, index)| {
        let ty = group.iter().find(|field| field.ident == index.key);
        let ty = ty.map(|field| &field.ty);
        let name = constant_name(&index.key);
        let doc = format!(
            " Deployed versions by `{}`: the index `{}`.",
            index.key.unraw(),
            index.name.value()
        );
        quote! {
            #[doc = #doc]
            #vis const #name: #krate::registry::RegistryIndex<#ident, #ty> =
                #krate::registry::RegistryIndex::of(
                    &<#ident as #krate::registry::Registry>::SCHEMA.indexes[#at],
                );
        }
    });
    quote! {
        #[allow(dead_code, reason = "generated for every index, used by some")]
        impl #ident {
            #(#constants)*
        }
    }
}

fn constant_name(key: &Ident) -> Ident {
    let name = key.unraw().to_string().to_uppercase();
    format_ident!("BY_{name}", span = key.span())
}

/// Generates the types that identify a group: its names, or a value of the struct.
fn groups(def: &RegistryDef) -> TokenStream {
    let (krate, ident, group) = (&def.words.krate, &def.ident, def.group());
    let of_value = into_group(
        def,
        &quote!(),
        &quote!(&#ident),
        &quote!(#krate::registry::Registry::group(self)),
    );
    let of_names = match group.as_slice() {
        [only] => of_one(def, only),
        several => of_several(def, several),
    };
    quote!(#of_value #of_names)
}

fn into_group(
    def: &RegistryDef,
    generics: &TokenStream,
    source: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let (krate, ident) = (&def.words.krate, &def.ident);
    quote! {
        #[automatically_derived]
        impl #generics #krate::registry::IntoGroup<#ident> for #source {
            fn into_group(self) -> #krate::error::Result<#krate::registry::Group<#ident>> {
                #body
            }
        }
    }
}

fn of_one(def: &RegistryDef, only: &StoredField) -> TokenStream {
    let (krate, ty) = (&def.words.krate, &only.ty);
    let sources = sources_of_one(ty, Shape::of(ty));
    let impls = sources.iter().map(|(source, value)| {
        let body = quote! {
            let name: #ty = #value;
            #krate::registry::Group::of(&[#krate::Attribute::to_value(&name)])
        };
        into_group(def, &quote!(), source, &body)
    });
    quote!(#(#impls)*)
}

fn of_several(def: &RegistryDef, group: &[&StoredField]) -> TokenStream {
    let krate = &def.words.krate;
    let source = TupleSource::of(group.iter().map(|field| (&field.ty, Shape::of(&field.ty))));
    let names = &source.values;
    let body = quote!(#krate::registry::Group::of(&[#(#krate::Attribute::to_value(&#names)),*]));
    into_group(def, &source.generics, &source.tuple, &body)
}
