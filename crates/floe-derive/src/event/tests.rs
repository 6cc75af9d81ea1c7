//! The errors of invalid event enums and their spans.
//!
//! The generated code is compiled and tested in `floe`.

use super::expand;
use crate::test_support;

fn errors(source: &str) -> Vec<(String, String)> {
    test_support::errors(expand, source)
}

#[track_caller]
fn check(source: &str, place: &str, message: &str) {
    test_support::check(expand, source, place, message);
}

/// Checks the error of the attributes of a variant with a body.
#[track_caller]
fn check_variant(attributes: &str, place: &str, message: &str) {
    let source = format!("enum E {{ #[event({attributes})] Added {{ a: u8 }} }}");
    check(&source, place, message);
}

#[test]
fn unknown_attributes_are_rejected_with_a_list_of_known_ones() {
    check_variant(
        "rename = \"x\"",
        "rename",
        "unknown attribute `rename`\nhelp: the attributes of a variant are `name`, `alias`, `version`, `upcast`",
    );
    check(
        "enum E { A { #[event(skip)] a: u8 } }",
        "skip",
        "unknown attribute `skip`\nhelp: the attributes of a field are `rename`, `default`",
    );
    check(
        "#[event(tag = \"t\")] enum E { A }",
        "tag",
        "unknown attribute `tag`\nhelp: the attributes of an event enum are `rename_all`, `crate`",
    );
    check(
        "#[event(rename_all = \"Title Case\")] enum E { A }",
        "\"Title Case\"",
        "unknown case `Title Case`\nhelp: the cases are `camelCase`, `PascalCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, \
         `kebab-case`",
    );
    // Attributes of other macros are ignored.
    assert_eq!(
        errors("#[serde(tag = \"t\")] enum E { #[model(key)] A }"),
        []
    );
}

#[test]
fn duplicate_attributes_are_rejected() {
    check_variant(
        "name = \"a\", name = \"b\"",
        "name",
        "duplicate attribute `name`",
    );
    check(
        "enum E { A { #[event(default)] #[event(default)] a: u8 } }",
        "default",
        "duplicate attribute `default`",
    );
    assert_eq!(
        errors("enum E { #[event(alias = \"a\", alias = \"b\")] A }"),
        []
    );
}

#[test]
fn only_enums_without_generics_are_events() {
    check(
        "struct Added { a: u8 }",
        "struct",
        "`Event` can only be derived for enums\nhelp: wrap the struct in an enum: `enum AddedEvent { Added(Added) }`",
    );
    check(
        "union Added { a: u8 }",
        "union",
        "`Event` can only be derived for enums",
    );
    check(
        "enum E {}",
        "E",
        "an event enum requires at least one variant",
    );
    let generic = "`Event` cannot be derived for a generic enum\nhelp: write an enum for each type";
    check("enum E<T> { A(T) }", "<T>", generic);
    check("enum E<'a> { A(&'a str) }", "<'a>", generic);
}

#[test]
fn variants_have_no_fields_one_unnamed_field_or_named_fields() {
    let message =
        "a variant can have no fields, one unnamed field, or named fields\nhelp: name the fields";
    check("enum E { A(u8, u8) }", "(u8, u8)", message);
    check("enum E { A() }", "()", message);
    check(
        "enum E { A(#[event(default)] u8) }",
        "default",
        "an unnamed field is the whole body and takes no attributes\nhelp: name the field: `Variant { field: Type }`",
    );
}

#[test]
fn duplicate_stored_names_are_rejected() {
    let taken = |name: &str, by: &str| {
        format!(
            "duplicate stored name `{name}`: variant `{by}` already uses it\nhelp: choose another name with `name = \"..\"`"
        )
    };
    check(
        "enum E { A, #[event(name = \"A\")] B }",
        "\"A\"",
        &taken("A", "A"),
    );
    check(
        "enum E { #[event(name = \"B\")] A, B }",
        "B",
        &taken("B", "A"),
    );
    check(
        "enum E { A, #[event(alias = \"C\", alias = \"A\")] B }",
        "\"A\"",
        &taken("A", "A"),
    );
    check(
        "enum E { #[event(alias = \"A\")] A }",
        "\"A\"",
        &taken("A", "A"),
    );
    check(
        "enum E { #[event(version = 2, upcast(1 = f))] A(u8), #[event(name = \"A.v2\")] B }",
        "\"A.v2\"",
        &taken("A.v2", "A"),
    );
    check_variant("name = \"\"", "\"\"", "the event type name cannot be empty");
}

#[test]
fn duplicate_names_in_a_body_are_rejected() {
    check(
        "enum E { A { a: u8, #[event(rename = \"a\")] b: u8 } }",
        "b",
        "duplicate field name `a` in the body: field `a` already uses it\nhelp: choose another name with `rename = \"..\"`",
    );
    check(
        "#[event(rename_all = \"camelCase\")] enum E { A { a_b: u8, a__b: u8 } }",
        "a__b",
        "duplicate field name `aB` in the body: field `a_b` already uses it\nhelp: choose another name with `rename = \"..\"`",
    );
    assert_eq!(errors("enum E { A { a: u8 }, B { a: u8 } }"), []);
}

#[test]
fn every_earlier_version_requires_an_upcaster() {
    check_variant(
        "version = 2",
        "version",
        "missing upcaster for version 1\nhelp: add `upcast(1 = function)`; the function converts the body to version 2",
    );
    check_variant(
        "version = 4, upcast(3 = f, 1 = f)",
        "version",
        "missing upcaster for version 2\nhelp: add `upcast(2 = function)`; the function converts the body to version 3",
    );
    assert_eq!(
        errors("enum E { #[event(version = 3, upcast(2 = f, 1 = g))] A(u8) }"),
        []
    );
}

#[test]
fn invalid_upcasters_are_rejected() {
    check_variant(
        "version = 2, upcast(1 = f, 2 = g)",
        "2",
        "cannot upcast version 2: the current version of `Added` is 2",
    );
    check_variant(
        "upcast(1 = f)",
        "1",
        "cannot upcast version 1: the current version of `Added` is 1",
    );
    check_variant(
        "version = 2, upcast(1 = f, 1 = g)",
        "1",
        "duplicate upcaster for version 1",
    );
    check_variant(
        "version = 2, upcast()",
        "upcast",
        "`upcast` requires versions and functions\nhelp: write `upcast(1 = function)`",
    );
    let counted = "a version must be between 1 and 999";
    check_variant("version = 0", "0", counted);
    check_variant("version = 1000", "1000", counted);
    check_variant("version = 2, upcast(0 = f)", "0", counted);
}

#[test]
fn versions_require_a_body() {
    let message = |word: &str| {
        format!("`{word}` requires a body, but variant `A` has none\nhelp: remove `{word}`")
    };
    check(
        "enum E { #[event(version = 2)] A }",
        "version",
        &message("version"),
    );
    check(
        "enum E { #[event(upcast(1 = f))] A }",
        "upcast",
        &message("upcast"),
    );
}

#[test]
fn all_errors_are_reported_together() {
    let source = "enum E { #[event(x)] A, B { #[event(y)] b: u8, #[event(z)] c: u8 }, C, #[event(name = \"C\")] D }";
    let places = errors(source).into_iter().map(|(place, _)| place);
    assert_eq!(places.collect::<Vec<_>>(), ["x", "y", "z", "\"C\""]);
}
