//! The errors of invalid models and their spans, and parts of the generated code.
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

/// Checks the error of one field of a model with a key.
#[track_caller]
fn check_field(field: &str, place: &str, message: &str) {
    check(
        &format!("struct Order {{ id: Uuid, {field} }}"),
        place,
        message,
    );
}

/// Checks the error of the attributes of a struct.
#[track_caller]
fn check_model(attributes: &str, place: &str, message: &str) {
    let fields = "id: Uuid, product: String, note: Option<String>, tags: Vec<String>";
    let source = format!("#[model({attributes})] struct Order {{ {fields} }}");
    check(&source, place, message);
}

/// The generated code without spaces, which depend on the origin of the tokens.
fn code(source: &str) -> String {
    let tokens = expand(&syn::parse_str(source).unwrap()).unwrap();
    syn::parse2::<syn::File>(tokens.clone()).unwrap();
    without_spaces(&tokens.to_string())
}

fn without_spaces(code: &str) -> String {
    code.split_whitespace().collect()
}

#[track_caller]
fn assert_contains(code: &str, part: &str) {
    assert!(code.contains(&without_spaces(part)), "no {part} in {code}");
}

#[test]
fn unknown_attributes_are_rejected_with_a_list_of_known_ones() {
    check_field(
        "#[model(colour)] a: i64",
        "colour",
        "unknown attribute `colour`\nhelp: the attributes of a field are `key`, `sort_key`, `default`, `read_only`, \
         `min`, `max`, `length`, `pattern`, `one_of`, `custom`, `json_schema`, `expires`, `serde`, `rename`",
    );
    check_model(
        "tabel = \"x\"",
        "tabel",
        "unknown attribute `tabel`\nhelp: the attributes of a model are `table`, `sort_key`, `sort_key_encoding`, \
         `exactly_once`, `stream`, `index`, `crate`",
    );
    check_model(
        "index(name = \"by_product\", key(product), unique)",
        "unique",
        "unknown attribute `unique`\nhelp: the attributes of an index are `name`, `key`, `sort`, `sparse`, `project`",
    );
    check_model(
        "index(name = \"by_product\", key(product), project(some))",
        "some",
        "unknown attribute `some`\nhelp: the attributes of `project` are `keys`, `all`, `include`",
    );
    check_field(
        "#[model(length(least = 1))] a: String",
        "least",
        "unknown attribute `least`\nhelp: the attributes of `length` are `min`, `max`",
    );
    check_model(
        "sort_key_encoding = \"hex\"",
        "\"hex\"",
        "unknown sort key encoding `hex`\nhelp: the encodings are `ordered` (default) and `json`",
    );
}

#[test]
fn duplicate_attributes_are_rejected() {
    check_field(
        "#[model(min = 1, min = 2)] a: i64",
        "min",
        "duplicate attribute `min`",
    );
    check_field(
        "#[model(read_only)] #[model(read_only)] a: i64",
        "read_only",
        "duplicate attribute `read_only`",
    );
    check_model(
        "exactly_once, exactly_once",
        "exactly_once",
        "duplicate attribute `exactly_once`",
    );
}

#[test]
fn only_structs_with_named_fields_are_models() {
    let message = "`Model` can only be derived for structs with named fields";
    check("enum Order { A }", "enum", message);
    check("struct Order(i64);", "Order", message);
    check("struct Order;", "Order", message);
    let message =
        "`Model` cannot be derived for a generic struct\nhelp: write a struct for each type";
    check("struct Order<T> { id: Uuid, a: T }", "<T>", message);
    check("struct Order<'a> { id: Uuid, a: &'a str }", "<'a>", message);
}

#[test]
fn invalid_keys_are_rejected() {
    let message = "model `Order` has no key\nhelp: mark one or more fields with `#[model(key)]`, or add a field `id: Uuid`";
    check("struct Order { a: i64 }", "Order", message);
    check("struct Order { id: String }", "Order", message);
    check(
        "struct Order { #[model(sort_key)] a: i64 }",
        "Order",
        message,
    );
    let message = "a partition key field cannot have a default, because it identifies the item\nhelp: remove `default`";
    check(
        "struct Order { #[model(key, default = 5)] a: i64 }",
        "default",
        message,
    );
    check_field(
        "#[model(sort_key, read_only)] a: i64",
        "read_only",
        "`read_only` has no effect on a key field, which never changes\nhelp: remove `read_only`",
    );
    check_field(
        "#[model(sort_key, expires)] a: i64",
        "expires",
        "a key field cannot be the expiry\nhelp: use a field outside of the key",
    );
    check_field(
        "#[model(sort_key)] a: Option<i64>",
        "Option<i64>",
        "a key field cannot be an `Option`\nhelp: remove `Option`",
    );
    check_field(
        "#[model(sort_key)] a: f64",
        "f64",
        "a key field cannot be a float, because floats are not exact\nhelp: use an integer, `Number` or `String`",
    );
    check_field(
        "#[model(key, sort_key)] a: i64",
        "sort_key",
        "a field can be part of the partition key or of the sort key, not both",
    );
    check_model("sort_key = \"\"", "\"\"", "the sort key cannot be empty");
    check_model(
        r#"sort_key = "a\0""#,
        r#""a\0""#,
        "a key cannot contain NUL",
    );
}

#[test]
fn invalid_and_duplicate_names_are_rejected() {
    check_field(
        "_sk: i64",
        "_sk",
        "attribute names that begin with `_` are reserved: attribute=_sk\nhelp: choose another name with \
        `#[model(rename = \"..\")]`",
    );
    check_field(
        "#[model(rename = \"_a\")] a: i64",
        "rename",
        "attribute names that begin with `_` are reserved: attribute=_a\nhelp: choose another name with \
        `#[model(rename = \"..\")]`",
    );
    check_field(
        "#[model(rename = \"\")] a: i64",
        "\"\"",
        "an attribute name must have 1 to 255 bytes",
    );
    check_field(
        "a: i64, #[model(rename = \"a\")] b: i64",
        "rename",
        "duplicate attribute name `a`: field `a` already uses it\nhelp: choose another name with `#[model(rename = \"..\")]`",
    );
    let rule = "help: use 3 to 255 of the characters a-z, A-Z, 0-9, `_`, `-` and `.`";
    check_model(
        "table = \"my table\"",
        "\"my table\"",
        &format!("invalid table name `my table`\n{rule}"),
    );
    check(
        "struct Or { id: Uuid }",
        "Or",
        &format!(
            "invalid table name `Or`\n{rule}, or choose a table name with `#[model(table = \"..\")]`"
        ),
    );
    check_model(
        "index(name = \"x\", key(product))",
        "\"x\"",
        &format!("invalid index name `x`\n{rule}"),
    );
}

#[test]
fn constraints_on_incompatible_types_are_rejected() {
    let length = "`min` applies to numbers and times\nhelp: to limit the length, use `length(min = .., max = ..)`";
    check_field("#[model(min = 1)] a: String", "min", length);
    check_field("#[model(min = 1)] a: Option<Vec<i64>>", "min", length);
    check_field(
        "#[model(max = 1)] a: bool",
        "max",
        "`max` applies to numbers and times",
    );
    check_field(
        "#[model(length(max = 1))] a: i64",
        "length",
        "`length` applies to text, bytes and collections\nhelp: to limit a number, use `min` and `max`",
    );
    check_field(
        "#[model(pattern = \"a\")] a: i64",
        "pattern",
        "`pattern` applies to text",
    );
    check_field(
        "#[model(one_of(1))] a: Vec<i64>",
        "one_of",
        "`one_of` applies to single values\nhelp: to check the elements, use `custom`",
    );
    check_field(
        "#[model(json_schema = \"{}\")] a: String",
        "json_schema",
        "`json_schema` applies to fields of type `Json`",
    );
    check_field(
        "#[model(expires)] a: String",
        "String",
        "an expiry field must be `Expiry` or `Option<Expiry>`",
    );
}

#[test]
fn impossible_constraints_are_rejected() {
    check_field(
        "#[model(min = 1, max = -1)] a: i64",
        "-1",
        "the minimum is greater than the maximum: min=1 max=-1",
    );
    check_field(
        "#[model(length(min = 3, max = 2))] a: String",
        "2",
        "the minimum is greater than the maximum: min=3 max=2",
    );
    check_field(
        "#[model(length())] a: String",
        "length",
        "`length` requires a bound\nhelp: write `length(min = 1)`, `length(max = 9)` or both",
    );
    check_field(
        "#[model(one_of())] a: i64",
        "one_of",
        "`one_of` requires at least one value\nhelp: write `one_of(1, 2)`",
    );
    check_field(
        "#[model(custom = 5)] a: i64",
        "5",
        "`custom` requires the path of a function\nhelp: write a function `fn(&T) -> Result<(), String>`",
    );
}

#[test]
fn several_expiry_fields_are_rejected() {
    check_field(
        "#[model(expires)] a: Expiry, #[model(expires)] b: Option<Expiry>",
        "expires",
        "a model can have only one expiry field: `a` is already one",
    );
}

#[test]
fn invalid_indexes_are_rejected() {
    check_model(
        "index(name = \"by_price\", key(price))",
        "price",
        "no field `price` in model `Order`\nhelp: the fields are `id`, `product`, `note`, `tags`",
    );
    check_model(
        "index(name = \"by_price\", key(product), project(include(price)))",
        "price",
        "no field `price` in model `Order`\nhelp: the fields are `id`, `product`, `note`, `tags`",
    );
    check_model(
        "index(name = \"by_note\", key(note))",
        "note",
        "field `note` is optional, so items without it are not in the index\nhelp: add `sparse` to the index, or make the field required",
    );
    check_model(
        "index(name = \"by_tags\", key(tags))",
        "tags",
        "an index key field must be text, a number or bytes",
    );
    check_model(
        "index(name = \"twice\", key(product), sort(product))",
        "product",
        "duplicate field `product` in the index key",
    );
    check_model(
        "index(name = \"same\", key(product)), index(name = \"same\", key(id))",
        "\"same\"",
        "duplicate index name `same`",
    );
    check_model(
        "index()",
        "index",
        "an index requires a name and a key\nhelp: write `index(name = \"..\", key(field))`",
    );
    let one = "`project` requires exactly one of `keys`, `all` and `include(field, ..)`";
    check_model(
        "index(name = \"by_all\", key(id), project())",
        "project",
        one,
    );
    check_model(
        "index(name = \"by_all\", key(id), project(keys, all))",
        "project",
        one,
    );
    check_model(
        "index(name = \"by_all\", key())",
        "key",
        "expected at least one field",
    );
    check_model(
        "index(key(product))",
        "index",
        "missing index name\nhelp: add `name = \"..\"`",
    );
    check_model(
        "index(name = \"by_none\")",
        "index",
        "missing index key\nhelp: add `key(field)`",
    );
    check_model(
        "index(name = \"by_five\", key(a, b, c, d, e))",
        "e",
        "too many fields in the index key: fields_max=4",
    );
}

#[test]
fn all_errors_are_reported_together() {
    let reported = errors("struct Order { #[model(colour)] a: i64, #[model(min = 1)] b: String }");
    let places: Vec<&str> = reported.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["colour", "min"]);
}

#[test]
fn id_is_the_key_unless_another_field_is_marked() {
    let own = code("struct Order { id: Uuid, a: i64 }");
    assert_contains(
        &own,
        "name: \"id\", attribute: \"id\", role: ::floe::model::schema::Role::Partition",
    );
    let other = code("struct Order { id: Uuid, #[model(key)] a: i64 }");
    assert_contains(
        &other,
        "name: \"id\", attribute: \"id\", role: ::floe::model::schema::Role::Plain",
    );
}

#[test]
fn sort_key_fields_with_defaults_can_be_omitted() {
    let source = "struct Order {
        #[model(sort_key, default = 1)] last: i64,
        #[model(key)] a: String,
        #[model(key)] b: i64,
        #[model(sort_key, default)] place: bool,
    }";
    let code = code(source);
    let text = "impl<__Text0: ::core::convert::Into<String>> ::floe::model::IntoKey<Order>";
    assert_contains(&code, &format!("{text} for (__Text0, i64,)"));
    assert_contains(&code, &format!("{text} for (__Text0, i64, i64,)"));
    assert_contains(&code, &format!("{text} for (__Text0, i64, i64, bool,)"));
    assert!(!code.contains("forString"));
}

#[test]
fn from_key_is_generated_if_all_other_fields_can_be_omitted() {
    let without = "struct Order { id: Uuid, note: Option<String>, tags: BTreeSet<String>, #[model(default)] a: i64 }";
    assert_contains(&code(without), "fn from_key");
    assert!(!code("struct Order { id: Uuid, a: i64 }").contains("from_key"));
}

#[test]
fn generated_items_have_the_visibility_of_the_struct() {
    let code = code("pub(crate) struct Order { id: Uuid, pub a: i64 }");
    assert_contains(&code, "pub(crate) struct OrderKey");
    assert_contains(&code, "pub(crate) struct OrderRow<'tx>");
    assert_contains(&code, "pub(crate) struct OrderPatch");
    assert_contains(&code, "pub a: ::floe::model::Field<i64>");
    assert_contains(&code, "pub(crate) fn key(");
    assert_contains(&code, "pub fn a(mut self, value: i64) -> Self");
}

#[test]
fn crate_path_can_be_set() {
    let code =
        code("#[model(crate = \"app::data\")] struct Order { id: Uuid, #[model(min = 1)] a: i64 }");
    assert_contains(&code, "impl app::data::model::Model for Order");
    assert!(!code.contains("::floe"));
}

#[test]
fn literals_are_converted_to_the_field_type() {
    let code = code(
        "struct Order {
            id: Uuid,
            #[model(min = -1)] float: f64,
            #[model(max = 9)] number: Number,
            #[model(default = \"x\")] text: String,
            #[model(default = 3)] maybe: Option<i64>,
        }",
    );
    assert_contains(
        &code,
        "::floe::model::constraint::min::<f64>(value, -1.0)?;",
    );
    assert_contains(
        &code,
        "max::<Number>(value, <Number as ::core::convert::From<i64>>::from(9))?;",
    );
    assert_contains(
        &code,
        "{ <String as ::core::convert::From<&str>>::from(\"x\") }",
    );
    assert_contains(&code, "{ ::core::option::Option::Some(3) }");
}

#[test]
fn key_fields_are_stored_as_attributes_if_an_index_uses_them() {
    let code = code(
        "#[model(index(name = \"by_id\", key(id)))] struct Order { id: Uuid, #[model(sort_key)] a: i64 }",
    );
    assert_contains(&code, "__RULES_ID.store(&self.id, &mut item)?;");
    assert!(!code.contains("__RULES_A.store"));
}
