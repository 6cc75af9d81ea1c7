//! The errors of invalid registries and their spans.
//!
//! The generated code is compiled and tested in `floe`.

use super::expand;
use crate::test_support;

const KEYS: &str =
    r##"table = "layers", pk = "lyr#{region}.{package}", sk = "v#{version}", latest = "v0#""##;
const FIELDS: &str = "region: String, package: String";

#[track_caller]
fn check(source: &str, place: &str, message: &str) {
    test_support::check(expand, source, place, message);
}

/// As [`check`], for a registry with valid keys, these additional attributes and these fields.
#[track_caller]
fn check_attributes_of(words: &str, fields: &str, place: &str, message: &str) {
    let source = format!("#[registry({KEYS}, {words})] struct R {{ {FIELDS}, {fields} }}");
    check(&source, place, message);
}

/// As [`check`], for a registry with these keys.
#[track_caller]
fn check_keys(pk: &str, sk: &str, latest: &str, place: &str, message: &str) {
    let source = format!(
        r#"#[registry(table = "layers", pk = "{pk}", sk = "{sk}", latest = "{latest}")] struct R {{ {FIELDS} }}"#
    );
    check(&source, &format!("{place:?}"), message);
}

#[test]
fn only_structs_with_named_fields_are_registries() {
    check(
        "enum R { A }",
        "enum",
        "`Registry` can only be derived for structs with named fields",
    );
    check(
        "struct R(u8);",
        "R",
        "`Registry` can only be derived for structs with named fields",
    );
    check(
        "struct R<T> { t: T }",
        "<T>",
        "`Registry` cannot be derived for a generic struct\nhelp: write a struct for each type",
    );
}

#[test]
fn registry_requires_keys_and_a_table() {
    check(
        "struct R { a: String }",
        "R",
        "a registry requires the keys `pk` and `sk`, and the pointer key `latest`\nhelp: write \
        `#[registry(pk = \"lyr#{region}.{package}\", sk = \"lyrVrsn#v{version}\", latest = \"lyrVrsn0#\")]`",
    );
    check(
        r#"#[registry(pk = "{a}", sk = "v{version}", latest = "l")] struct R { a: String }"#,
        "R",
        "a registry requires a table\nhelp: add `#[registry(table = \"..\")]`",
    );
}

#[test]
fn keys_contain_the_version_and_the_group_separately() {
    check_keys(
        "{version}",
        "v{version}",
        "l",
        "v{version}",
        "both keys contain `{version}`\nhelp: use `{version}` in one key, and the group fields in the other",
    );
    check_keys(
        "{region}",
        "{package}",
        "l",
        "{package}",
        "no key contains the version\nhelp: add `{version}` to `pk` or `sk`",
    );
    check_keys(
        "lyr",
        "v{version}",
        "l",
        "lyr",
        "the group key requires at least one field\nhelp: write `pckg#{package}`",
    );
    let prefix = "a version key must be text followed by the version, so that versions are sorted by number\nhelp: write \
        `vrsn#v{version}`";
    check_keys("{region}", "{version}", "l", "{version}", prefix);
    check_keys("{region}", "v{version}#", "l", "v{version}#", prefix);
}

#[test]
fn group_key_requires_distinct_and_separated_fields() {
    check_keys(
        "{nation}",
        "v{version}",
        "l",
        "{nation}",
        "no field `nation` in the struct",
    );
    check_keys(
        "{region}#{region}",
        "v{version}",
        "l",
        "{region}#{region}",
        "duplicate field `region` in the group key",
    );
    let apart = "two fields of a key require a separator between them\nhelp: use a character such as `.` or `#`";
    for pk in ["{region}{package}", "{region}x{package}"] {
        check_keys(pk, "v{version}", "l", pk, apart);
    }
    check_keys(
        "{region",
        "v{version}",
        "l",
        "{region",
        "unclosed brace\nhelp: write `{field}`",
    );
    check_keys(
        "region}",
        "v{version}",
        "l",
        "region}",
        "unmatched closing brace",
    );
    check_keys(
        "{}",
        "v{version}",
        "l",
        "{}",
        "expected a field name in braces\nhelp: write `{field}`",
    );
}

#[test]
fn pointer_key_must_differ_from_version_keys() {
    let message = |latest: &str| {
        format!(
            "the pointer key and the version keys must not begin with each other, because aliases extend the pointer \
            key: version=v# latest={latest}"
        )
    };
    for latest in ["v#", "v", "v#0"] {
        check_keys("{region}", "v#{version}", latest, latest, &message(latest));
    }
    let empty = "the pointer key must be text without fields\nhelp: write `latest = \"lyrVrsn0#\"`";
    check_keys("{region}", "v#{version}", "", "", empty);
}

#[test]
fn group_fields_must_be_plain_and_required() {
    let source = |field: &str| {
        format!(
            r#"#[registry(table = "layers", pk = "{{a}}", sk = "v{{version}}", latest = "l")] struct R {{ {field} }}"#
        )
    };
    check(
        &source("a: Option<String>"),
        "Option<String>",
        "a group field cannot be an `Option`\nhelp: remove `Option`",
    );
    for word in ["default", "serde", "hash"] {
        check(
            &source(&format!("#[registry({word})] a: String")),
            word,
            &format!(
                "`{word}` does not apply to group fields, which are stored in keys\nhelp: remove `{word}`"
            ),
        );
    }
}

#[test]
fn dependent_attributes_are_required_together() {
    check_attributes_of(
        r#"expires = "ttl""#,
        "",
        "expires",
        "`expires` requires `status`, because only deprecated versions expire\nhelp: add `status = \"..\"`",
    );
    check_attributes_of(
        r#"status = "s", retention = "30d""#,
        "",
        "retention",
        "`retention` requires `expires`\nhelp: add `expires = \"..\"`",
    );
    check_attributes_of(
        r#"index(name = "by-region", key = region)"#,
        "",
        r#""by-region""#,
        "an index of a registry requires `status`\nhelp: add `status = \"..\"`",
    );
    check_attributes_of(
        r#"status = "s", index(name = "by-arn", key = arn)"#,
        "arn: String",
        "arn",
        "the index field `arn` is not a group field",
    );
    check_attributes_of(
        r#"status = "s", index(name = "one", key = region), index(name = "two", key = region)"#,
        "",
        r#""two""#,
        "duplicate index: another index has this name or this field",
    );
    check_attributes_of(
        r#"status = "s", index(name = "one")"#,
        "",
        "index",
        "an index of a registry requires a name and a group field\nhelp: write `index(name = \"..\", key = field)`",
    );
}

#[test]
fn retention_must_be_a_duration() {
    let message = "invalid retention\nhelp: write a number of days, hours, minutes or seconds: `30d`, `12h`, `90m`, `45s`";
    for text in ["", "30", "d", "30 d", "1w", "0d", "99999999999999999999d"] {
        let words = format!(r#"status = "s", expires = "e", retention = "{text}""#);
        check_attributes_of(&words, "", &format!("{text:?}"), message);
    }
}

#[test]
fn hash_must_be_one_string() {
    check_attributes_of(
        "legacy_keys",
        "#[registry(hash)] a: u64",
        "u64",
        "the hash must be a `String`",
    );
    check_attributes_of(
        "legacy_keys",
        "#[registry(hash)] a: String, #[registry(hash)] b: String",
        "hash",
        "a registry can have only one hash\nhelp: join several parts into one text",
    );
}

#[test]
fn reserved_and_duplicate_attribute_names_are_rejected() {
    for name in [
        "pk",
        "sk",
        "version",
        "published_date",
        "deleted_date",
        "content_hash",
        "_x",
        "dplySts",
    ] {
        check_attributes_of(
            r#"status = "dplySts""#,
            &format!("{name}: String"),
            name,
            &format!(
                "attribute name `{name}` is reserved for the registry\nhelp: choose another name with `rename = \"..\"`"
            ),
        );
    }
    check_attributes_of(
        "legacy_keys",
        r#"a: u8, #[registry(rename = "a")] b: u8"#,
        "rename",
        "duplicate attribute name `a`: field `a` already uses it\nhelp: choose another name with `rename = \"..\"`",
    );
    check_attributes_of(
        r#"status = "version""#,
        "",
        "R",
        "two attributes of the registry have the same name: attribute=version",
    );
}

#[test]
fn unknown_attributes_are_rejected_with_a_list_of_known_ones() {
    check_attributes_of(
        "key = 1",
        "",
        "key",
        "unknown attribute `key`\nhelp: the attributes of a registry are `table`, `pk`, `sk`, `latest`, `version`, \
         `published`, `deleted`, `status`, `expires`, `retention`, `index`, `legacy_keys`, `crate`",
    );
    check_attributes_of(
        "legacy_keys",
        "#[registry(key)] a: u8",
        "key",
        "unknown attribute `key`\nhelp: the attributes of a field are `rename`, `default`, `serde`, `hash`",
    );
}

#[test]
fn separators_of_the_key_are_escaped_in_names() {
    let source = format!("#[registry({KEYS})] struct R {{ {FIELDS} }}");
    let code = expand(&syn::parse_str(&source).unwrap())
        .unwrap()
        .to_string();
    assert!(code.contains(r##"escaped : "#.""##), "{code}");
}
