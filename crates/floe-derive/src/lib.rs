//! The derive macros of Floe's models, events, entities and registries.
//!
//! `#[derive(Model)]` reads the struct and its `#[model(..)]` attributes into a checked description
//! (`parse`) and writes code from that: the schema and the rules of the fields (`schema`, `rules`), the key
//! (`key`), the row (`row`), the patch (`patch`), the fields in conditions (`fields`) and what ties them together
//! (`model`). What the generated
//! code does at run time is in `floe::model`; here is only what can be decided when the program is compiled.
//!
//! `#[derive(Event)]` does the same for an enum of events and its `#[event(..)]` attributes, in `event`, and
//! `#[derive(Entity)]` for an entity of the graph and its `#[entity(..)]` attributes, in `entity`.
//! `#[derive(Registry)]` does it for a registry of versions and its `#[registry(..)]` attributes, in `registry`.

#![forbid(unsafe_code)]

mod attributes;
mod checks;
mod constraint;
mod definition;
mod entity;
mod event;
mod fields;
mod index;
mod key;
mod model;
mod parse;
mod patch;
mod registry;
mod row;
mod rules;
mod schema;
mod shape;
mod stored;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct a model: a value that is stored as an item of a table.
///
/// For `struct Order` it generates `OrderKey` (the components of the key by name), `OrderRow` (the fields
/// as a transaction hands them out), `OrderPatch` (some of the fields, for writes without a read),
/// `OrderFields` (the fields in conditions of queries), `Order::key(..)`, `Order::patch()`, a constant for each
/// index and, where every field outside the key is optional or has a default,
/// `Order::from_key(..)`. Types of fields implement `floe::Attribute`, or are marked `#[model(serde)]`;
/// those in keys can also be cloned, printed, compared and hashed.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `table = ".."` | the table; without it, the name of the struct |
/// | `sort_key = ".."` | what every sort key of the model begins with, where models share a table |
/// | `sort_key_encoding = "json"` | numbers in sort keys as the JavaScript library writes them |
/// | `index(name = "..", key(a), sort(b), sparse, project(keys))` | an index; also `project(all)`, the default, and `project(include(c, d))` |
/// | `exactly_once` | every commit is made so that its outcome is always known |
/// | `stream` | the table has a change stream, with each item before and after the change |
/// | `crate = ".."` | the path of the `floe` crate, if it is not `::floe` |
///
/// # Attributes of fields
///
/// | attribute | meaning |
/// |---|---|
/// | `key` | a component of the partition key; without any, a field `id: Uuid` is the key |
/// | `sort_key` | a component of the sort key; those at the end that have defaults can be left out of keys |
/// | `default`, `default = ..` | what the field is where a stored item lacks the attribute |
/// | `read_only` | cannot be changed once the item is created: `set` returns an error |
/// | `min = ..`, `max = ..` | bounds of a number |
/// | `length(min = .., max = ..)` | bounds of the length of text, bytes or a collection |
/// | `pattern = ".."` | a regular expression that text has to match |
/// | `one_of(..)` | the values that are allowed |
/// | `custom = path` | a function `fn(&T) -> Result<(), String>` that refuses values |
/// | `json_schema = ".."` | the JSON Schema of a document |
/// | `expires` | when the item expires |
/// | `serde` | stored through serde |
/// | `rename = ".."` | the name of the attribute; without it, the name of the field |
///
/// Constraints of an `Option` hold where there is a value.
#[proc_macro_derive(Model, attributes(model))]
pub fn derive_model(input: TokenStream) -> TokenStream {
    expanded(input, expand)
}

/// Makes an enum one of events: each variant is a type of event, stored under the name of the variant.
///
/// A variant holds nothing, one value, or named fields. What it holds is stored as JSON; the types of its fields
/// implement serde's `Serialize` and `Deserialize`, the enum itself need not. Fields in a stored body that the variant
/// does not have are ignored, so programs read what newer ones have written. Fields that a stored body lacks are an
/// error, unless they have a default or are an `Option`.
///
/// # Attributes of the enum
///
/// | attribute | meaning |
/// |---|---|
/// | `rename_all = ".."` | how fields are written in bodies: `camelCase`, `PascalCase`, `snake_case`, `SCREAMING_SNAKE_CASE` or `kebab-case`; without it, as in the enum. Names of types are not changed by it |
/// | `crate = ".."` | the path of the `floe` crate, if it is not `::floe` |
///
/// # Attributes of variants
///
/// | attribute | meaning |
/// |---|---|
/// | `name = ".."` | the name of the type; without it, the name of the variant |
/// | `alias = ".."` | another name that stored events of the type have; may be given again |
/// | `version = ..` | the version of the body, from 1. The first is stored under the plain name, others as `Name.v2` |
/// | `upcast(1 = path, ..)` | functions `fn(Json) -> Result<Json, impl Display>` that make the next version of a stored body, one for each version before the current. A body that was stored empty is `null` |
///
/// A version that is newer than the program is a type that it does not know.
///
/// # Attributes of named fields
///
/// | attribute | meaning |
/// |---|---|
/// | `rename = ".."` | the name in the body |
/// | `default`, `default = ..` | what the field is where a stored body lacks it |
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    expanded(input, event::expand)
}

/// Makes a struct an entity of the graph: a value that is stored under its type and its id.
///
/// The id is a field of the name `id` or the marked one: text, a `Uuid` or a number, stored as text. Types of other
/// fields implement `floe::Attribute`, or are marked `#[entity(serde)]`. Relations and indexes are declared apart.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `type = ".."` | the name of the type; without it, that of the struct in snake case |
/// | `crate = ".."` | the path of the `floe` crate, if it is not `::floe` |
///
/// # Attributes of fields
///
/// | attribute | meaning |
/// |---|---|
/// | `id` | the id, where it is no field of that name |
/// | `rename = ".."` | the name of the attribute; without it, the name of the field |
/// | `default`, `default = ..` | what the field is where a stored entity lacks the attribute |
/// | `serde` | stored through serde |
#[proc_macro_derive(Entity, attributes(entity))]
pub fn derive_entity(input: TokenStream) -> TokenStream {
    expanded(input, entity::expand)
}

/// Makes a struct a registry: its values are published in numbered versions, group by group.
///
/// The texts of the two keys tell where everything stands: the fields that one of them names form the group, and the other
/// has the number of the version. `pk = "lyr#{region}.{package}", sk = "lyrVrsn#v{version}"` sorts the versions of a group
/// under it; `pk = "bld#v{version}", sk = "pckg#{package}"` has all groups of a version in one partition, and so all
/// pointers to the latest. Names with signs of these texts in them are escaped, numbers are padded with zeros.
///
/// Fields of the group are text or numbers. Types of other fields implement `floe::Attribute`, or are marked
/// `#[registry(serde)]`. For each index there is a constant: `Layer::BY_PACKAGE`.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `table = ".."` | the table, which several registries can share |
/// | `pk = ".."`, `sk = ".."` | the texts of the keys |
/// | `latest = ".."` | what stands in place of the version's key in the pointer to the latest |
/// | `status = ".."` | the attribute that tells whether a deployed version is `latest` or `deprecated`; without it versions have no status |
/// | `expires = ".."` | the attribute that tells when a version goes, in epoch seconds |
/// | `retention = ".."` | how long deprecated versions stay: `30d`, `12h`, `90m`, `45s` |
/// | `index(name = "..", key = field)` | a sparse index of what is deployed, by a field of the group and the status |
/// | `version = ".."` | the attribute of the number; without it, `version` |
/// | `published = ".."` | the attribute of the moment of publication; without it, `published_date` |
/// | `deleted = ".."` | the attribute of the moment of deletion; without it, `deleted_date` |
/// | `legacy_keys` | numbers in keys are not padded, and a name at the end of a key is not escaped |
/// | `crate = ".."` | the path of the `floe` crate, if it is not `::floe` |
///
/// # Attributes of fields
///
/// | attribute | meaning |
/// |---|---|
/// | `rename = ".."` | the name of the attribute; without it, the name of the field |
/// | `default`, `default = ..` | what the field is where a stored version lacks the attribute |
/// | `serde` | stored through serde |
/// | `hash` | a `String` that is the hash of the content; without one, the hash is made of all fields outside of the group |
#[proc_macro_derive(Registry, attributes(registry))]
pub fn derive_registry(input: TokenStream) -> TokenStream {
    expanded(input, registry::expand)
}

/// What is generated for an input, or the errors in it.
fn expanded(
    input: TokenStream,
    expand: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    definition::ModelDef::parse(input).map(|def| model::generate(&def))
}

#[cfg(test)]
mod tests;
