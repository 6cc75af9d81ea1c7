//! What is refused of entities, where and with which words.
//!
//! That the code compiles and works is tested where it can run: in `floe`.

use super::expand;

/// Checks that there is exactly this error, at this place.
#[track_caller]
fn check(source: &str, place: &str, message: &str) {
    let input = syn::parse_str(source).unwrap();
    let errors: Vec<_> = expand(&input)
        .unwrap_err()
        .into_iter()
        .map(|error| {
            let place = error.span().source_text().unwrap_or_default();
            (place, error.to_string())
        })
        .collect();
    assert_eq!(errors, [(place.to_owned(), message.to_owned())]);
}

#[test]
fn an_entity_is_a_struct_with_names() {
    check(
        "enum E { A }",
        "enum",
        "an entity is a struct: write one for each type of entity",
    );
    check(
        "struct E(u8);",
        "E",
        "an entity is a struct with named fields: they are its attributes",
    );
    check(
        "struct E<T> { id: String, t: T }",
        "<T>",
        "an entity cannot be generic: its type has one name; write a struct for each",
    );
}

#[test]
fn an_entity_has_one_id() {
    check(
        "struct E { name: String }",
        "E",
        "an entity has an id: name a field `id`, or mark one with `#[entity(id)]`",
    );
    check(
        "struct E { #[entity(id)] a: String, #[entity(id)] b: String }",
        "id",
        "an entity has one id: join several parts into one text",
    );
    check(
        "struct E { #[entity(default)] id: String }",
        "default",
        "`default` is for attributes: an id is stored as text in the key",
    );
}

#[test]
fn names_are_the_entitys_own_and_different() {
    check(
        "struct E { id: String, _meta: u8 }",
        "_meta",
        "names that begin with an underscore are the graph's own: choose another with `rename = \"..\"`",
    );
    check(
        "struct E { id: String, a: u8, #[entity(rename = \"a\")] b: u8 }",
        "rename",
        "the attribute `a` is the field `a`",
    );
    check(
        "#[entity(type = \"\")] struct E { id: String }",
        "\"\"",
        "the name of a type is not empty",
    );
}

#[test]
fn words_that_are_unknown_are_refused_with_those_that_are_known() {
    check(
        "#[entity(table = \"t\")] struct E { id: String }",
        "table",
        "unknown attribute `table`: the attributes of an entity are `type`, `crate`",
    );
    check(
        "struct E { id: String, #[entity(key)] a: u8 }",
        "key",
        "unknown attribute `key`: the attributes of a field are `id`, `rename`, `default`, `serde`",
    );
}

#[test]
fn without_a_name_a_type_has_that_of_its_struct() {
    let input = syn::parse_str("struct ReadingList { id: String }").unwrap();
    let code = expand(&input).unwrap().to_string();
    assert!(code.contains("\"reading_list\""), "{code}");
}
