//! What is refused of enums of events, where and with which words.
//!
//! That the code compiles and works is tested where it can run: in `floe`.

use super::expand;

/// The places and messages of the errors, in order.
fn errors(source: &str) -> Vec<(String, String)> {
    let input = syn::parse_str(source).unwrap();
    let Err(errors) = expand(&input) else {
        return Vec::new();
    };
    let told = errors.into_iter().map(|error| {
        let place = error.span().source_text().unwrap_or_default();
        (place, error.to_string())
    });
    told.collect()
}

/// Checks that there is exactly this error, at this place.
#[track_caller]
fn check(source: &str, place: &str, message: &str) {
    assert_eq!(errors(source), [(place.to_owned(), message.to_owned())]);
}

/// Checks the error of the attributes of a variant with a body.
#[track_caller]
fn check_variant(attributes: &str, place: &str, message: &str) {
    let source = format!("enum E {{ #[event({attributes})] Added {{ a: u8 }} }}");
    check(&source, place, message);
}

#[test]
fn words_that_are_unknown_are_refused_with_those_that_are_known() {
    check_variant(
        "rename = \"x\"",
        "rename",
        "unknown attribute `rename`: the attributes of a variant are `name`, `alias`, `version`, `upcast`",
    );
    check(
        "enum E { A { #[event(skip)] a: u8 } }",
        "skip",
        "unknown attribute `skip`: the attributes of a field are `rename`, `default`",
    );
    check(
        "#[event(tag = \"t\")] enum E { A }",
        "tag",
        "unknown attribute `tag`: the attributes of an enum of events are `rename_all`, `crate`",
    );
    check(
        "#[event(rename_all = \"Title Case\")] enum E { A }",
        "\"Title Case\"",
        "unknown case `Title Case`: the cases are `camelCase`, `PascalCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, \
         `kebab-case`",
    );
    // Attributes of others are theirs.
    assert_eq!(
        errors("#[serde(tag = \"t\")] enum E { #[model(key)] A }"),
        []
    );
}

#[test]
fn words_are_given_once() {
    check_variant(
        "name = \"a\", name = \"b\"",
        "name",
        "`name` is given twice",
    );
    check(
        "enum E { A { #[event(default)] #[event(default)] a: u8 } }",
        "default",
        "`default` is given twice",
    );
    assert_eq!(
        errors("enum E { #[event(alias = \"a\", alias = \"b\")] A }"),
        []
    );
}

#[test]
fn events_are_enums_of_one_form() {
    check(
        "struct Added { a: u8 }",
        "struct",
        "events are the variants of an enum: wrap the struct in one, `enum AddedEvent { Added(Added) }`",
    );
    check(
        "union Added { a: u8 }",
        "union",
        "events are the variants of an enum",
    );
    check(
        "enum E {}",
        "E",
        "an enum of events has at least one variant",
    );
    let generic =
        "an enum of events cannot be generic: its events have one form; write an enum for each";
    check("enum E<T> { A(T) }", "<T>", generic);
    check("enum E<'a> { A(&'a str) }", "<'a>", generic);
}

#[test]
fn variants_hold_nothing_one_value_or_names() {
    let message = "a variant holds nothing, one value, or named fields: give the fields names";
    check("enum E { A(u8, u8) }", "(u8, u8)", message);
    check("enum E { A() }", "()", message);
    check(
        "enum E { A(#[event(default)] u8) }",
        "default",
        "the one value of a variant is its whole body and takes no attributes: give it a name, as in \
         `Variant { field: Type }`",
    );
}

#[test]
fn a_stored_name_means_one_variant() {
    let taken = |name: &str, by: &str| {
        format!("the stored name `{name}` is taken by `{by}`: choose another with `name = \"..\"`")
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
    check_variant(
        "name = \"\"",
        "\"\"",
        "the name of a type of event is not empty",
    );
}

#[test]
fn a_name_in_a_body_means_one_field() {
    check(
        "enum E { A { a: u8, #[event(rename = \"a\")] b: u8 } }",
        "b",
        "the name `a` in the body is taken by `a`: choose another with `rename = \"..\"`",
    );
    check(
        "#[event(rename_all = \"camelCase\")] enum E { A { a_b: u8, a__b: u8 } }",
        "a__b",
        "the name `aB` in the body is taken by `a_b`: choose another with `rename = \"..\"`",
    );
    assert_eq!(errors("enum E { A { a: u8 }, B { a: u8 } }"), []);
}

#[test]
fn every_version_before_the_current_has_an_upcaster() {
    check_variant(
        "version = 2",
        "version",
        "version 1 has no upcaster: add `upcast(1 = function)`, which makes version 2 of its body",
    );
    check_variant(
        "version = 4, upcast(3 = f, 1 = f)",
        "version",
        "version 2 has no upcaster: add `upcast(2 = function)`, which makes version 3 of its body",
    );
    assert_eq!(
        errors("enum E { #[event(version = 3, upcast(2 = f, 1 = g))] A(u8) }"),
        []
    );
}

#[test]
fn upcasters_lead_to_the_current_version_one_by_one() {
    check_variant(
        "version = 2, upcast(1 = f, 2 = g)",
        "2",
        "there is nothing to upcast version 2 to: the version of `Added` is 2",
    );
    check_variant(
        "upcast(1 = f)",
        "1",
        "there is nothing to upcast version 1 to: the version of `Added` is 1",
    );
    check_variant(
        "version = 2, upcast(1 = f, 1 = g)",
        "1",
        "version 1 is upcast twice",
    );
    check_variant(
        "version = 2, upcast()",
        "upcast",
        "`upcast` names versions and functions: `upcast(1 = function)`",
    );
    let counted = "versions are counted from 1 and go up to 999";
    check_variant("version = 0", "0", counted);
    check_variant("version = 1000", "1000", counted);
    check_variant("version = 2, upcast(0 = f)", "0", counted);
}

#[test]
fn versions_are_of_bodies() {
    let message = |word: &str| {
        format!(
            "`{word}` is for variants with a body: `A` has none, and ignores those that are stored"
        )
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
fn all_errors_are_told_at_once() {
    let source = "enum E { #[event(x)] A, B { #[event(y)] b: u8, #[event(z)] c: u8 }, C, #[event(name = \"C\")] D }";
    let places = errors(source).into_iter().map(|(place, _)| place);
    assert_eq!(places.collect::<Vec<_>>(), ["x", "y", "z", "\"C\""]);
}
