//! What is refused, where and with which words; and that the rest becomes code.
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

/// Checks the error of one field beside a key.
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

/// The generated code without spaces, which differ by where the tokens come from.
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
fn words_that_are_unknown_are_refused_with_those_that_are_known() {
    check_field(
        "#[model(colour)] a: i64",
        "colour",
        "unknown attribute `colour`: the attributes of a field are `key`, `sort_key`, `default`, `read_only`, \
         `min`, `max`, `length`, `pattern`, `one_of`, `custom`, `json_schema`, `expires`, `serde`, `rename`",
    );
    check_model(
        "tabel = \"x\"",
        "tabel",
        "unknown attribute `tabel`: the attributes of a model are `table`, `sort_key`, `sort_key_encoding`, \
         `exactly_once`, `stream`, `index`, `crate`",
    );
    check_model(
        "index(name = \"by_product\", key(product), unique)",
        "unique",
        "unknown attribute `unique`: the attributes of an index are `name`, `key`, `sort`, `sparse`, `project`",
    );
    check_model(
        "index(name = \"by_product\", key(product), project(some))",
        "some",
        "unknown attribute `some`: the attributes of `project` are `keys`, `all`, `include`",
    );
    check_field(
        "#[model(length(least = 1))] a: String",
        "least",
        "unknown attribute `least`: the attributes of `length` are `min`, `max`",
    );
    check_model(
        "sort_key_encoding = \"hex\"",
        "\"hex\"",
        "unknown encoding `hex`: the encodings are `ordered`, the default, and `json`",
    );
}

#[test]
fn words_are_given_once() {
    check_field(
        "#[model(min = 1, min = 2)] a: i64",
        "min",
        "`min` is given twice",
    );
    check_field(
        "#[model(read_only)] #[model(read_only)] a: i64",
        "read_only",
        "`read_only` is given twice",
    );
    check_model(
        "exactly_once, exactly_once",
        "exactly_once",
        "`exactly_once` is given twice",
    );
}

#[test]
fn models_are_structs_of_one_form() {
    let message = "a model is a struct with named fields";
    check("enum Order { A }", "enum", message);
    check("struct Order(i64);", "Order", message);
    check("struct Order;", "Order", message);
    let message = "a model cannot be generic: its items have one form; write a struct for each";
    check("struct Order<T> { id: Uuid, a: T }", "<T>", message);
    check("struct Order<'a> { id: Uuid, a: &'a str }", "<'a>", message);
}

#[test]
fn keys_are_there_and_exact() {
    let message = "the model has no key: mark one or more fields with `#[model(key)]`, or add a field `id: Uuid`";
    check("struct Order { a: i64 }", "Order", message);
    check("struct Order { id: String }", "Order", message);
    check(
        "struct Order { #[model(sort_key)] a: i64 }",
        "Order",
        message,
    );
    let message =
        "a component of the partition key cannot have a default: it is what tells items apart";
    check(
        "struct Order { #[model(key, default = 5)] a: i64 }",
        "default",
        message,
    );
    check_field(
        "#[model(sort_key, read_only)] a: i64",
        "read_only",
        "keys never change: remove `read_only`",
    );
    check_field(
        "#[model(sort_key, expires)] a: i64",
        "expires",
        "a component of the key cannot tell when the item expires",
    );
    check_field(
        "#[model(sort_key)] a: Option<i64>",
        "Option<i64>",
        "a component of the key is never absent: take the type without `Option`",
    );
    check_field(
        "#[model(sort_key)] a: f64",
        "f64",
        "a component of the key cannot be a float, which is not exact: take an integer, `Number` or text",
    );
    check_field(
        "#[model(key, sort_key)] a: i64",
        "sort_key",
        "a field is part of the partition key or of the sort key, not of both",
    );
    check_model("sort_key = \"\"", "\"\"", "the sort key cannot be empty");
    check_model(
        r#"sort_key = "a\0""#,
        r#""a\0""#,
        "text in a key cannot contain NUL",
    );
}

#[test]
fn names_are_those_that_the_store_takes() {
    check_field(
        "_sk: i64",
        "_sk",
        "attributes that begin with `_` are reserved, as `_id`, `_sk` and `_tx`: attribute=_sk; give another \
         with `#[model(rename = \"..\")]`",
    );
    check_field(
        "#[model(rename = \"_a\")] a: i64",
        "rename",
        "attributes that begin with `_` are reserved, as `_id`, `_sk` and `_tx`: attribute=_a; give another \
         with `#[model(rename = \"..\")]`",
    );
    check_field(
        "#[model(rename = \"\")] a: i64",
        "\"\"",
        "the name of an attribute has 1 to 255 bytes",
    );
    check_field(
        "a: i64, #[model(rename = \"a\")] b: i64",
        "rename",
        "the field `a` is stored under that name already: attribute=a",
    );
    let rule = "is not 3 to 255 of a-z, A-Z, 0-9, _, - and .";
    check_model(
        "table = \"my table\"",
        "\"my table\"",
        &format!("the name of the table {rule}: table=my table"),
    );
    check(
        "struct Or { id: Uuid }",
        "Or",
        &format!(
            "the name of the table {rule}: table=Or; name the table with `#[model(table = \"..\")]`"
        ),
    );
    check_model(
        "index(name = \"x\", key(product))",
        "\"x\"",
        &format!("the name of the index {rule}: index=x"),
    );
}

#[test]
fn constraints_are_on_types_that_can_have_them() {
    let length =
        "`min` bounds the value of a number; for the length take `length(min = .., max = ..)`";
    check_field("#[model(min = 1)] a: String", "min", length);
    check_field("#[model(min = 1)] a: Option<Vec<i64>>", "min", length);
    check_field(
        "#[model(max = 1)] a: bool",
        "max",
        "`max` bounds numbers and times",
    );
    check_field(
        "#[model(length(max = 1))] a: i64",
        "length",
        "`length` bounds the length of text, bytes and collections; for numbers take `min` and `max`",
    );
    check_field(
        "#[model(pattern = \"a\")] a: i64",
        "pattern",
        "`pattern` is for text",
    );
    check_field(
        "#[model(one_of(1))] a: Vec<i64>",
        "one_of",
        "`one_of` is for single values; for the elements take `custom`",
    );
    check_field(
        "#[model(json_schema = \"{}\")] a: String",
        "json_schema",
        "`json_schema` is for documents: fields of the type `Json`",
    );
    check_field(
        "#[model(expires)] a: String",
        "String",
        "a field that tells when the item expires is an `Expiry` or an `Option<Expiry>`",
    );
}

#[test]
fn constraints_can_be_met() {
    check_field(
        "#[model(min = 1, max = -1)] a: i64",
        "-1",
        "no value is within these bounds: min=1 max=-1",
    );
    check_field(
        "#[model(length(min = 3, max = 2))] a: String",
        "2",
        "no value is within these bounds: min=3 max=2",
    );
    check_field(
        "#[model(length())] a: String",
        "length",
        "`length` needs a bound: `length(min = 1)`, `length(max = 9)` or both",
    );
    check_field(
        "#[model(one_of())] a: i64",
        "one_of",
        "`one_of` needs the values that are allowed: `one_of(1, 2)`",
    );
    check_field(
        "#[model(custom = 5)] a: i64",
        "5",
        "`custom` takes the path of a function `fn(&T) -> Result<(), String>`",
    );
}

#[test]
fn an_item_expires_once() {
    check_field(
        "#[model(expires)] a: Expiry, #[model(expires)] b: Option<Expiry>",
        "expires",
        "an item expires at one time: `a` tells it already",
    );
}

#[test]
fn indexes_are_over_fields_that_can_be_in_one() {
    check_model(
        "index(name = \"by_price\", key(price))",
        "price",
        "`Order` has no field `price`: its fields are `id`, `product`, `note`, `tags`",
    );
    check_model(
        "index(name = \"by_price\", key(product), project(include(price)))",
        "price",
        "`Order` has no field `price`: its fields are `id`, `product`, `note`, `tags`",
    );
    check_model(
        "index(name = \"by_note\", key(note))",
        "note",
        "items without `note` are not in the index: say so with `sparse`, or make the field required",
    );
    check_model(
        "index(name = \"by_tags\", key(tags))",
        "tags",
        "a field in the key of an index is text, a number or bytes",
    );
    check_model(
        "index(name = \"twice\", key(product), sort(product))",
        "product",
        "`product` is twice in the key of the index",
    );
    check_model(
        "index(name = \"same\", key(product)), index(name = \"same\", key(id))",
        "\"same\"",
        "two indexes have the same name: index=same",
    );
    check_model(
        "index()",
        "index",
        "an index needs a name and a key: `index(name = \"..\", key(field))`",
    );
    let one = "`project` takes one of `keys`, `all` and `include(field, ..)`";
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
        "no field is named",
    );
    check_model(
        "index(key(product))",
        "index",
        "the index has no name: add `name = \"..\"`",
    );
    check_model(
        "index(name = \"by_none\")",
        "index",
        "the index has no key: add `key(field)`",
    );
    check_model(
        "index(name = \"by_five\", key(a, b, c, d, e))",
        "e",
        "the key of an index has too many fields: fields_max=4",
    );
}

#[test]
fn all_errors_are_told_at_once() {
    let told = errors("struct Order { #[model(colour)] a: i64, #[model(min = 1)] b: String }");
    let places: Vec<&str> = told.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["colour", "min"]);
}

#[test]
fn an_id_is_the_key_where_no_other_is() {
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
fn keys_are_made_of_the_components_that_have_no_default() {
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
fn a_value_is_made_of_a_key_where_nothing_else_is_needed() {
    let without = "struct Order { id: Uuid, note: Option<String>, tags: BTreeSet<String>, #[model(default)] a: i64 }";
    assert_contains(&code(without), "fn from_key");
    assert!(!code("struct Order { id: Uuid, a: i64 }").contains("from_key"));
}

#[test]
fn what_is_generated_is_seen_as_far_as_the_struct() {
    let code = code("pub(crate) struct Order { id: Uuid, pub a: i64 }");
    assert_contains(&code, "pub(crate) struct OrderKey");
    assert_contains(&code, "pub(crate) struct OrderRow<'tx>");
    assert_contains(&code, "pub(crate) struct OrderPatch");
    assert_contains(&code, "pub a: ::floe::model::Field<i64>");
    assert_contains(&code, "pub(crate) fn key(");
    assert_contains(&code, "pub fn a(mut self, value: i64) -> Self");
}

#[test]
fn the_path_of_the_crate_can_be_given() {
    let code =
        code("#[model(crate = \"app::data\")] struct Order { id: Uuid, #[model(min = 1)] a: i64 }");
    assert_contains(&code, "impl app::data::model::Model for Order");
    assert!(!code.contains("::floe"));
}

#[test]
fn literals_become_values_of_the_type() {
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
fn components_of_the_key_are_attributes_where_an_index_needs_them() {
    let code = code(
        "#[model(index(name = \"by_id\", key(id)))] struct Order { id: Uuid, #[model(sort_key)] a: i64 }",
    );
    assert_contains(&code, "__RULES_ID.store(&self.id, &mut item)?;");
    assert!(!code.contains("__RULES_A.store"));
}
