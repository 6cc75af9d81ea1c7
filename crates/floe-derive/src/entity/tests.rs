//! The errors of invalid entities and their spans.
//!
//! The generated code is compiled and tested in `floe`.

use super::expand;
use crate::test_support;

#[track_caller]
fn check(source: &str, place: &str, message: &str) {
    test_support::check(expand, source, place, message);
}

#[test]
fn only_structs_with_named_fields_are_entities() {
    check(
        "enum E { A }",
        "enum",
        "`Entity` can only be derived for structs with named fields\nhelp: write a struct for each type of entity",
    );
    check(
        "struct E(u8);",
        "E",
        "`Entity` can only be derived for structs with named fields",
    );
    check(
        "struct E<T> { id: String, t: T }",
        "<T>",
        "`Entity` cannot be derived for a generic struct\nhelp: write a struct for each type",
    );
}

#[test]
fn entity_requires_one_id() {
    check(
        "struct E { name: String }",
        "E",
        "the entity has no id\nhelp: name a field `id`, or mark one with `#[entity(id)]`",
    );
    check(
        "struct E { #[entity(id)] a: String, #[entity(id)] b: String }",
        "id",
        "an entity can have only one id\nhelp: join several parts into one text",
    );
    check(
        "struct E { #[entity(default)] id: String }",
        "default",
        "`default` does not apply to the id, which is stored as text in the key\nhelp: remove `default`",
    );
}

#[test]
fn reserved_and_duplicate_names_are_rejected() {
    check(
        "struct E { id: String, _meta: u8 }",
        "_meta",
        "attribute names that begin with `_` are reserved for the graph\nhelp: choose another name with `rename = \"..\"`",
    );
    check(
        "struct E { id: String, a: u8, #[entity(rename = \"a\")] b: u8 }",
        "rename",
        "duplicate attribute name `a`: field `a` already uses it\nhelp: choose another name with `rename = \"..\"`",
    );
    check(
        "#[entity(type = \"\")] struct E { id: String }",
        "\"\"",
        "the type name cannot be empty",
    );
}

#[test]
fn unknown_attributes_are_rejected_with_a_list_of_known_ones() {
    check(
        "#[entity(table = \"t\")] struct E { id: String }",
        "table",
        "unknown attribute `table`\nhelp: the attributes of an entity are `type`, `crate`",
    );
    check(
        "struct E { id: String, #[entity(key)] a: u8 }",
        "key",
        "unknown attribute `key`\nhelp: the attributes of a field are `id`, `rename`, `default`, `serde`",
    );
}

#[test]
fn type_name_defaults_to_the_struct_name_in_snake_case() {
    let input = syn::parse_str("struct ReadingList { id: String }").unwrap();
    let code = expand(&input).unwrap().to_string();
    assert!(code.contains("\"reading_list\""), "{code}");
}
