//! The derive macros of Floe's models, events, entities and registries.
//!
//! `#[derive(Model)]` parses the struct and its `#[model(..)]` attributes into a checked description (`parse`) and
//! generates code from that: the schema and the rules of the fields (`schema`, `rules`), the key (`key`), the row
//! (`row`), the patch (`patch`), the columns for query conditions (`fields`) and the rest (`model`). The runtime
//! part of the generated code is in `floe::model`; this crate contains only what can be decided at compile time.
//!
//! `#[derive(Event)]` does the same for event enums with `#[event(..)]` attributes (`event`), `#[derive(Entity)]`
//! for entities of the graph with `#[entity(..)]` attributes (`entity`), and `#[derive(Registry)]` for registries
//! of versions with `#[registry(..)]` attributes (`registry`).

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

/// Implements a model for a struct: a value that is stored as an item of a table.
///
/// For `struct Order` it generates `OrderKey` (the key fields by name), `OrderRow` (the fields in a transaction),
/// `OrderPatch` (some of the fields, for writes without a read), `OrderFields` (the fields for query conditions),
/// `Order::key(..)`, `Order::patch()`, a constant for each index and, if every field outside of the key is optional
/// or has a default, `Order::from_key(..)`. Field types implement `floe::Attribute`, or are marked
/// `#[model(serde)]`; key types also implement `Clone`, `Debug`, `Eq` and `Hash`.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `table = ".."` | the table. Default: the name of the struct |
/// | `sort_key = ".."` | the prefix of every sort key of the model, for models that share a table |
/// | `sort_key_encoding = "json"` | encodes numbers in sort keys as the JavaScript library does |
/// | `index(name = "..", key(a), sort(b), sparse, project(keys))` | an index. Projections: `project(all)`
/// (default), `project(keys)`, `project(include(c, d))` |
/// | `exactly_once` | the outcome of every commit is always known |
/// | `stream` | the table has a change stream with the old and the new image of each change |
/// | `crate = ".."` | the path of the `floe` crate. Default: `::floe` |
///
/// # Attributes of fields
///
/// | attribute | meaning |
/// |---|---|
/// | `key` | a partition key field. Default: a field `id: Uuid` |
/// | `sort_key` | a sort key field; the last ones can be omitted from keys if they have defaults |
/// | `default`, `default = ..` | the value of the field if a stored item lacks the attribute |
/// | `read_only` | the field cannot be changed after the item was created: `set` returns an error |
/// | `min = ..`, `max = ..` | minimum and maximum of a number |
/// | `length(min = .., max = ..)` | minimum and maximum length of text, bytes or a collection |
/// | `pattern = ".."` | a regular expression that text must match |
/// | `one_of(..)` | the allowed values |
/// | `custom = path` | a function `fn(&T) -> Result<(), String>` that validates values |
/// | `json_schema = ".."` | the JSON Schema of a document |
/// | `expires` | the time at which the item expires |
/// | `serde` | stored with serde |
/// | `rename = ".."` | the name of the attribute. Default: the name of the field |
///
/// Constraints of an `Option` apply to its value, if any.
#[proc_macro_derive(Model, attributes(model))]
pub fn derive_model(input: TokenStream) -> TokenStream {
    expanded(input, expand)
}

/// Implements events for an enum: each variant is an event type, stored under the name of the variant.
///
/// A variant has no fields, one unnamed field, or named fields, which are stored as JSON. Field types implement
/// serde's `Serialize` and `Deserialize`; the enum itself need not. Stored fields that the variant does not have
/// are ignored, so programs can read what newer ones wrote. A field that a stored body lacks is an error, unless
/// the field has a default or is an `Option`.
///
/// # Attributes of the enum
///
/// | attribute | meaning |
/// |---|---|
/// | `rename_all = ".."` | the case of field names in bodies: `camelCase`, `PascalCase`, `snake_case`,
/// `SCREAMING_SNAKE_CASE` or `kebab-case`. Default: `snake_case`. Does not change the names of event types |
/// | `crate = ".."` | the path of the `floe` crate. Default: `::floe` |
///
/// # Attributes of variants
///
/// | attribute | meaning |
/// |---|---|
/// | `name = ".."` | the name of the event type. Default: the name of the variant |
/// | `alias = ".."` | another name of stored events of this type; can be repeated |
/// | `version = ..` | the version of the body, from 1. Default: 1. Version 1 is stored under the plain name, later
/// ones as `Name.v2` |
/// | `upcast(1 = path, ..)` | functions `fn(Json) -> Result<Json, impl Display>` that convert a stored body to the
/// next version, one for each version before the current one. An empty body is `null` |
///
/// A version newer than the program is an unknown event type.
///
/// # Attributes of named fields
///
/// | attribute | meaning |
/// |---|---|
/// | `rename = ".."` | the name in the body |
/// | `default`, `default = ..` | the value of the field if a stored body lacks it |
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    expanded(input, event::expand)
}

/// Implements an entity of the graph for a struct: a value that is stored under its type and its id.
///
/// The id is the field named `id` or the marked one: text, a `Uuid` or a number, stored as text. Types of other
/// fields implement `floe::Attribute`, or are marked `#[entity(serde)]`. Relations and indexes are declared
/// separately.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `type = ".."` | the name of the type. Default: the name of the struct in snake case |
/// | `crate = ".."` | the path of the `floe` crate. Default: `::floe` |
///
/// # Attributes of fields
///
/// | attribute | meaning |
/// |---|---|
/// | `id` | the id. Default: the field named `id` |
/// | `rename = ".."` | the name of the attribute. Default: the name of the field |
/// | `default`, `default = ..` | the value of the field if a stored entity lacks the attribute |
/// | `serde` | stored with serde |
#[proc_macro_derive(Entity, attributes(entity))]
pub fn derive_entity(input: TokenStream) -> TokenStream {
    expanded(input, entity::expand)
}

/// Implements a registry for a struct: its values are published in numbered versions, by group.
///
/// The texts of the two keys define the layout: one key contains the fields of the group, the other the number of
/// the version. `pk = "lyr#{region}.{package}", sk = "lyrVrsn#v{version}"` stores the versions of a group in one
/// partition, in order; `pk = "bld#v{version}", sk = "pckg#{package}"` stores all groups of a version in one
/// partition, and all pointers to latest versions in another. Separators inside of names are escaped, and numbers
/// are padded with zeros.
///
/// Group fields are text or numbers. Types of other fields implement `floe::Attribute`, or are marked
/// `#[registry(serde)]`. Each index has a constant: `Layer::BY_PACKAGE`.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `table = ".."` | the table; several registries can share it |
/// | `pk = ".."`, `sk = ".."` | the texts of the keys |
/// | `latest = ".."` | the text in place of the version's key in the pointer to the latest version |
/// | `status = ".."` | the attribute with the status of a deployed version: `latest` or `deprecated`. Without it,
/// versions have no status |
/// | `expires = ".."` | the attribute with the expiry of a version, in epoch seconds |
/// | `retention = ".."` | how long deprecated versions are kept: `30d`, `12h`, `90m`, `45s` |
/// | `index(name = "..", key = field)` | a sparse index of deployed versions by a group field and the status |
/// | `version = ".."` | the attribute with the version number. Default: `version` |
/// | `published = ".."` | the attribute with the time of publication. Default: `published_date` |
/// | `deleted = ".."` | the attribute with the time of deletion. Default: `deleted_date` |
/// | `legacy_keys` | numbers in keys are not padded, and a name at the end of a key is not escaped |
/// | `crate = ".."` | the path of the `floe` crate. Default: `::floe` |
///
/// # Attributes of fields
///
/// | attribute | meaning |
/// |---|---|
/// | `rename = ".."` | the name of the attribute. Default: the name of the field |
/// | `default`, `default = ..` | the value of the field if a stored version lacks the attribute |
/// | `serde` | stored with serde |
/// | `hash` | a `String` with the hash of the content. Default: a hash of all fields outside of the group |
#[proc_macro_derive(Registry, attributes(registry))]
pub fn derive_registry(input: TokenStream) -> TokenStream {
    expanded(input, registry::expand)
}

/// The generated code, or the errors of the input.
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
mod test_support;
#[cfg(test)]
mod tests;
