//! Generates the schema: everything about the model that is known at compile time.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::attributes::Default;
use crate::definition::{FieldDef, ModelDef, Role};
use crate::index::{IndexDef, Projection};
use crate::rules::default_name;
use crate::shape::{generated_at, literal, option, option_of};

/// The expression of the schema.
pub(crate) fn generate(model: &ModelDef) -> TokenStream {
    let krate = &model.krate;
    let (name, table) = (model.ident.unraw().to_string(), &model.table);
    let fields = model.fields.iter().map(|field| field_schema(model, field));
    let indexes = model.indexes.iter().map(|index| index_schema(model, index));
    let sort_constant = option(model.sort_constant.as_ref());
    let encoding = if model.json_sort_key {
        quote!(Json)
    } else {
        quote!(Ordered)
    };
    let expires = model.fields.iter().find(|field| field.expires);
    let expires = option(expires.map(|field| &field.attribute));
    let (exactly_once, stream) = (model.exactly_once, model.stream);
    quote! {
        &#krate::model::schema::Schema {
            model: #name,
            table: #table,
            fields: &[#(#fields),*],
            sort_constant: #sort_constant,
            sort_key_encoding: #krate::model::schema::SortKeyEncoding::#encoding,
            indexes: &[#(#indexes),*],
            expires: #expires,
            exactly_once: #exactly_once,
            stream: #stream,
        }
    }
}

fn field_schema(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let krate = &model.krate;
    let (name, attribute) = (&field.name, &field.attribute);
    let role = match field.role {
        Role::Partition => quote!(Partition),
        Role::Sort => quote!(Sort),
        Role::Plain => quote!(Plain),
    };
    let (kind, optional) = (field.kind(krate), field.optional(krate));
    let read_only = field.read_only || field.role != Role::Plain;
    let has_default = field.default.is_some();
    let json_schema = json_schema(model, field);
    quote! {
        #krate::model::schema::FieldSchema {
            name: #name,
            attribute: #attribute,
            role: #krate::model::schema::Role::#role,
            kind: #kind,
            optional: #optional,
            read_only: #read_only,
            has_default: #has_default,
            json_schema: #json_schema,
        }
    }
}

/// A function that returns the JSON Schema of a field: that of its type, with the additions of the attributes.
fn json_schema(model: &ModelDef, field: &FieldDef) -> TokenStream {
    let (krate, ty) = (&model.krate, &field.ty);
    let span = generated_at(ty.span());
    let (shape, value_type) = (field.shape(), field.value_type());
    let mut additions: Vec<TokenStream> = field
        .constraints
        .iter()
        .filter_map(|constraint| constraint.describe(shape, value_type, field.is_serde))
        .collect();
    if has_constant_default(field) {
        let default = default_name(field);
        additions.push(quote!(.keyword::<#ty>("default", #default())));
    }
    if field.is_serde {
        quote!(|| #krate::model::support::Description::any() #(#additions)* .finish())
    } else if additions.is_empty() {
        quote_spanned!(span=> <#ty as #krate::model::Attribute>::json_schema)
    } else {
        quote!(|| #krate::model::support::Description::of::<#ty>() #(#additions)* .finish())
    }
}

/// Whether the default is constant, so that a schema can contain it.
fn has_constant_default(field: &FieldDef) -> bool {
    let is_constant =
        |default: &Default| default.as_ref().is_none_or(|expr| literal(expr).is_some());
    !field.is_serde && field.default.as_ref().is_some_and(is_constant)
}

fn index_schema(model: &ModelDef, index: &IndexDef) -> TokenStream {
    let krate = &model.krate;
    let (name, sparse) = (&index.name, index.sparse);
    let (key, sort) = (names(&index.key), names(&index.sort));
    let projection = match &index.projection {
        Projection::All => quote!(All),
        Projection::Keys => quote!(Keys),
        Projection::Include(fields) => {
            let fields = names(fields);
            quote!(Include(#fields))
        }
    };
    quote! {
        #krate::model::schema::IndexSchema {
            name: #name,
            key: #key,
            sort: #sort,
            sparse: #sparse,
            projection: #krate::model::schema::IndexProjection::#projection,
        }
    }
}

fn names(fields: &[Ident]) -> TokenStream {
    let names = fields.iter().map(|field| field.unraw().to_string());
    quote!(&[#(#names),*])
}

/// Assertions for types that cannot be recognised by name: the type of an index key field is allowed in indexes, and the type
/// inside an `Option` is never absent itself.
pub(crate) fn assertions(model: &ModelDef) -> TokenStream {
    let (keys, options) = (index_keys(model), options(model));
    quote!(#keys #options)
}

fn options(model: &ModelDef) -> TokenStream {
    let krate = &model.krate;
    let checks = model.fields.iter().filter_map(|field| {
        let inner = option_of(&field.ty).filter(|_| !field.is_serde)?;
        let message = format!(
            "the type inside of the `Option` may be absent itself, so `Some` of it would be read back as `None`: \
             take the type without `Option`: field={}",
            field.name
        );
        let span = generated_at(inner.span());
        Some(quote_spanned! {span=>
            const _: () = ::core::assert!(!<#inner as #krate::Attribute>::OPTIONAL, #message);
        })
    });
    quote!(#(#checks)*)
}

fn index_keys(model: &ModelDef) -> TokenStream {
    let krate = &model.krate;
    let checks = model.indexes.iter().flat_map(|index| {
        index.key_fields().filter_map(|name| {
            let field = model.field(name)?;
            let kind = field.kind(krate);
            let message = format!(
                "an index key field must be text, a number or bytes: index={} field={}",
                index.name.value(),
                name.unraw()
            );
            let span = generated_at(name.span());
            Some(quote_spanned! {span=>
                const _: () = ::core::assert!(
                    !::core::matches!(#kind, #krate::model::schema::FieldKind::Other),
                    #message
                );
            })
        })
    });
    quote!(#(#checks)*)
}
