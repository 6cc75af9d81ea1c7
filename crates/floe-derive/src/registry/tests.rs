//! What is refused of registries, where and with which words.
//!
//! That the code compiles and works is tested where it can run: in `floe`.

use super::expand;

const KEYS: &str =
    r##"table = "layers", pk = "lyr#{region}.{package}", sk = "v#{version}", latest = "v0#""##;
const FIELDS: &str = "region: String, package: String";

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

/// As [`check`], of a registry with good keys, these words besides and these fields.
#[track_caller]
fn check_words(words: &str, fields: &str, place: &str, message: &str) {
    let source = format!("#[registry({KEYS}, {words})] struct R {{ {FIELDS}, {fields} }}");
    check(&source, place, message);
}

/// As [`check`], of a registry with these keys.
#[track_caller]
fn check_keys(pk: &str, sk: &str, latest: &str, place: &str, message: &str) {
    let source = format!(
        r#"#[registry(table = "layers", pk = "{pk}", sk = "{sk}", latest = "{latest}")] struct R {{ {FIELDS} }}"#
    );
    check(&source, &format!("{place:?}"), message);
}

#[test]
fn a_registry_is_a_struct_with_names() {
    check(
        "enum R { A }",
        "enum",
        "a registry is a struct with named fields",
    );
    check(
        "struct R(u8);",
        "R",
        "a registry is a struct with named fields: they are its attributes",
    );
    check(
        "struct R<T> { t: T }",
        "<T>",
        "a registry cannot be generic: its versions have one form; write a struct for each",
    );
}

#[test]
fn a_registry_has_keys_and_a_table() {
    check(
        "struct R { a: String }",
        "R",
        "a registry has two keys, one with the fields of the group and one with the version, and the text that \
         stands for the version in the pointer to the latest: `#[registry(pk = \"lyr#{region}.{package}\", sk = \
         \"lyrVrsn#v{version}\", latest = \"lyrVrsn0#\")]`",
    );
    check(
        r#"#[registry(pk = "{a}", sk = "v{version}", latest = "l")] struct R { a: String }"#,
        "R",
        "a registry has a table: `#[registry(table = \"..\")]`",
    );
}

#[test]
fn one_key_has_the_version_and_the_other_the_group() {
    check_keys(
        "{version}",
        "v{version}",
        "l",
        "v{version}",
        "one key has the version and the other the group: `{version}` stands in both",
    );
    check_keys(
        "{region}",
        "{package}",
        "l",
        "{package}",
        "one key has the version: write `{version}` where its number stands",
    );
    check_keys(
        "lyr",
        "v{version}",
        "l",
        "lyr",
        "a group has at least one field: `pckg#{package}`",
    );
    let prefix = "the key of a version is text and the number behind it, so that versions sort by it: \
                  `vrsn#v{version}`";
    check_keys("{region}", "{version}", "l", "{version}", prefix);
    check_keys("{region}", "v{version}#", "l", "v{version}#", prefix);
}

#[test]
fn the_group_is_of_fields_that_can_be_told_apart() {
    check_keys(
        "{nation}",
        "v{version}",
        "l",
        "{nation}",
        "the struct has no field `nation`",
    );
    check_keys(
        "{region}#{region}",
        "v{version}",
        "l",
        "{region}#{region}",
        "the field `region` stands twice in the key",
    );
    let apart =
        "two fields of a key have a sign between them that tells where one ends, as `.` or `#`";
    for pk in ["{region}{package}", "{region}x{package}"] {
        check_keys(pk, "v{version}", "l", pk, apart);
    }
    check_keys(
        "{region",
        "v{version}",
        "l",
        "{region",
        "a brace is open: `{field}`",
    );
    check_keys(
        "region}",
        "v{version}",
        "l",
        "region}",
        "a brace is closed that is not open",
    );
    check_keys(
        "{}",
        "v{version}",
        "l",
        "{}",
        "the name of a field stands in braces: `{field}`",
    );
}

#[test]
fn a_pointer_is_no_version() {
    let message = |latest: &str| {
        format!(
            "the key of the pointer could be that of a version, or of an alias behind it: neither may begin with the \
             other: version=v# latest={latest}"
        )
    };
    for latest in ["v#", "v", "v#0"] {
        check_keys("{region}", "v#{version}", latest, latest, &message(latest));
    }
    let empty =
        "the key of the pointer is text that stands for the version: `latest = \"lyrVrsn0#\"`";
    check_keys("{region}", "v#{version}", "", "", empty);
}

#[test]
fn a_field_of_the_group_is_always_there() {
    let source = |field: &str| {
        format!(
            r#"#[registry(table = "layers", pk = "{{a}}", sk = "v{{version}}", latest = "l")] struct R {{ {field} }}"#
        )
    };
    check(
        &source("a: Option<String>"),
        "Option<String>",
        "a field of the group is always there: it cannot be an `Option`",
    );
    for word in ["default", "serde", "hash"] {
        check(
            &source(&format!("#[registry({word})] a: String")),
            word,
            &format!("`{word}` is not for fields of the group, which stand in keys"),
        );
    }
}

#[test]
fn what_belongs_together_is_given_together() {
    check_words(
        r#"expires = "ttl""#,
        "",
        "expires",
        "what expires are deprecated versions: `expires` needs `status = \"..\"`",
    );
    check_words(
        r#"status = "s", retention = "30d""#,
        "",
        "retention",
        "the moment after which a version goes stands in an attribute: `retention` needs `expires = \"..\"`",
    );
    check_words(
        r#"index(name = "by-region", key = region)"#,
        "",
        r#""by-region""#,
        "an index of a registry is by status: it needs `status = \"..\"`",
    );
    check_words(
        r#"status = "s", index(name = "by-arn", key = arn)"#,
        "arn: String",
        "arn",
        "an index is by a field of the group: `arn` is none",
    );
    check_words(
        r#"status = "s", index(name = "one", key = region), index(name = "two", key = region)"#,
        "",
        r#""two""#,
        "there is an index of this name or by this field already",
    );
    check_words(
        r#"status = "s", index(name = "one")"#,
        "",
        "index",
        "an index has a name and a field of the group: `index(name = \"..\", key = field)`",
    );
}

#[test]
fn a_retention_is_a_duration() {
    let message =
        "a retention is a number of days, hours, minutes or seconds: `30d`, `12h`, `90m`, `45s`";
    for text in ["", "30", "d", "30 d", "1w", "0d", "99999999999999999999d"] {
        let words = format!(r#"status = "s", expires = "e", retention = "{text}""#);
        check_words(&words, "", &format!("{text:?}"), message);
    }
}

#[test]
fn a_hash_is_one_text() {
    check_words(
        "legacy_keys",
        "#[registry(hash)] a: u64",
        "u64",
        "the hash of the content is a `String`",
    );
    check_words(
        "legacy_keys",
        "#[registry(hash)] a: String, #[registry(hash)] b: String",
        "hash",
        "a registry has one hash: join several into one text",
    );
}

#[test]
fn attributes_are_the_fields_own_and_different() {
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
        check_words(
            r#"status = "dplySts""#,
            &format!("{name}: String"),
            name,
            &format!(
                "the attribute `{name}` is the registry's own: choose another with `rename = \"..\"`"
            ),
        );
    }
    check_words(
        "legacy_keys",
        r#"a: u8, #[registry(rename = "a")] b: u8"#,
        "rename",
        "the attribute `a` is the field `a`",
    );
    check_words(
        r#"status = "version""#,
        "",
        "R",
        "two attributes of the registry have one name: attribute=version",
    );
}

#[test]
fn words_that_are_unknown_are_refused_with_those_that_are_known() {
    check_words(
        "key = 1",
        "",
        "key",
        "unknown attribute `key`: the attributes of a registry are `table`, `pk`, `sk`, `latest`, `version`, \
         `published`, `deleted`, `status`, `expires`, `retention`, `index`, `legacy_keys`, `crate`",
    );
    check_words(
        "legacy_keys",
        "#[registry(key)] a: u8",
        "key",
        "unknown attribute `key`: the attributes of a field are `rename`, `default`, `serde`, `hash`",
    );
}

#[test]
fn signs_of_the_key_are_escaped_in_names() {
    let source = format!("#[registry({KEYS})] struct R {{ {FIELDS} }}");
    let code = expand(&syn::parse_str(&source).unwrap())
        .unwrap()
        .to_string();
    assert!(code.contains(r##"escaped : "#.""##), "{code}");
}
