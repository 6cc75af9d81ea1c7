//! Values: their faults, the error messages by context, and irregular forms that are accepted.

use serde_json::{Value, json};

use super::test_service::{TestService, one};

const INVALID: &str = "One or more parameter values were invalid: ";
const EMPTY: &str =
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
const SEVERAL: &str = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
                       supported datatypes";
const NOT_NUMERIC: &str = "The parameter cannot be converted to a numeric value";
const OVERFLOW: &str =
    "Number overflow. Attempting to store a number with magnitude larger than supported range";
const UNDERFLOW: &str =
    "Number underflow. Attempting to store a number with magnitude smaller than supported range";
const DIGITS: &str = "Attempting to store more than 38 significant digits in a Number";
const TOO_DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels \
                        beyond supported limit";

/// Returns a request that puts a value, given as JSON.
fn put(value: &str) -> String {
    format!(r#"{{"TableName":"Values","Item":{{"pk":{{"S":"a"}},"v":{value}}}}}"#)
}

/// Returns a request whose update sets a value, given as JSON.
fn update(value: &str) -> String {
    format!(
        r#"{{"TableName":"Values","Key":{{"pk":{{"S":"a"}}}},"UpdateExpression":"SET v = :v",
            "ExpressionAttributeValues":{{":v":{value}}}}}"#
    )
}

/// Returns a request whose condition on the deleted item compares a value, given as JSON.
fn delete(value: &str) -> String {
    format!(
        r#"{{"TableName":"Values","Key":{{"pk":{{"S":"a"}}}},"ConditionExpression":"v = :v",
            "ExpressionAttributeValues":{{":v":{value}}}}}"#
    )
}

fn get(value: &str) -> String {
    format!(r#"{{"TableName":"Values","Key":{{"pk":{value}}}}}"#)
}

fn for_key(message: &str) -> String {
    format!("ExpressionAttributeValues contains invalid value: {message} for key :v")
}

/// The expected error messages by the context of a value.
struct ExpectedErrors {
    /// In an item that is put.
    item: String,
    /// In an expression value.
    placeholder: String,
    /// In a key that is read.
    key: String,
}

async fn check(value: &str, expected: ExpectedErrors) {
    let service = TestService::new();
    service
        .expect_validation_error("PutItem", &put(value), &expected.item)
        .await;
    service
        .expect_validation_error("UpdateItem", &update(value), &expected.placeholder)
        .await;
    service
        .expect_validation_error("DeleteItem", &delete(value), &expected.placeholder)
        .await;
    service
        .expect_validation_error("GetItem", &get(value), &expected.key)
        .await;
}

#[tokio::test]
async fn number_faults_omit_the_placeholder() {
    for (number, message) in [
        ("", format!("{NOT_NUMERIC}: ")),
        ("b", format!("{NOT_NUMERIC}: b")),
        (" 1", format!("{NOT_NUMERIC}:  1")),
        ("NaN", format!("{NOT_NUMERIC}: NaN")),
        ("1e", format!("{NOT_NUMERIC}: 1e")),
        ("123456789012345678901234567890123456789", DIGITS.to_owned()),
        (
            "-1.23456789012345678901234567890123456789",
            DIGITS.to_owned(),
        ),
        ("1e126", OVERFLOW.to_owned()),
        ("-1e126", OVERFLOW.to_owned()),
        ("1e2147483647", OVERFLOW.to_owned()),
        ("1e-131", UNDERFLOW.to_owned()),
        ("-1e-131", UNDERFLOW.to_owned()),
    ] {
        for value in [
            json!({"N": number}),
            json!({"NS": ["1", number]}),
            json!({"L": [{"N": number}]}),
        ] {
            let expected = ExpectedErrors {
                item: one(&message),
                placeholder: one(&message),
                key: message.clone(),
            };
            check(&value.to_string(), expected).await;
        }
    }
}

#[tokio::test]
async fn sets_must_not_be_empty_or_contain_duplicates() {
    for (value, message) in [
        (r#"{"SS":[]}"#, "An string set  may not be empty"),
        (r#"{"NS":[]}"#, "An number set  may not be empty"),
        (r#"{"BS":[]}"#, "Binary sets should not be empty"),
    ] {
        let message = format!("{INVALID}{message}");
        let expected = ExpectedErrors {
            item: one(&message),
            placeholder: one(&for_key(&message)),
            key: message,
        };
        check(value, expected).await;
    }
    for (value, message) in [
        (
            r#"{"SS":["a",null]}"#,
            "An string set may not have a null string as a member",
        ),
        (
            r#"{"NS":[null]}"#,
            "An number set may not have a null number as a member",
        ),
        (
            r#"{"L":[{"BS":[null,"AA=="]}]}"#,
            "Binary sets may not contain null or empty values",
        ),
        (
            r#"{"SS":["b","a","b","C"]}"#,
            r#"Input collection ["a", "b", "b", "C"] contains duplicates."#,
        ),
        (
            r#"{"SS":["q\"q","q\"q"]}"#,
            r#"Input collection ["q\"q", "q\"q"] contains duplicates."#,
        ),
        (
            r#"{"SS":["",""]}"#,
            r#"Input collection ["", ""] contains duplicates."#,
        ),
        (
            r#"{"NS":["1","1.0"]}"#,
            "Input collection contains duplicates.",
        ),
        (
            r#"{"BS":["fw==","AA==","fw=="]}"#,
            r#"Input collection ["AA==","fw==","fw=="]of type BS contains duplicates."#,
        ),
    ] {
        let message = format!("{INVALID}{message}");
        let expected = ExpectedErrors {
            item: one(&message),
            placeholder: one(&message),
            key: message,
        };
        check(value, expected).await;
    }
}

#[tokio::test]
async fn value_has_exactly_one_type() {
    for value in [
        "{}",
        r#"{"a":""}"#,
        r#"{"S":null}"#,
        r#"{"M":{"a":{}}}"#,
        r#"{"L":[{"a":{}}]}"#,
        r#"{"L":[null]}"#,
    ] {
        let expected = ExpectedErrors {
            item: EMPTY.to_owned(),
            placeholder: for_key(EMPTY),
            key: EMPTY.to_owned(),
        };
        check(value, expected).await;
    }
    let null_false = format!("{INVALID}Null attribute value types must have the value of true");
    let empty_set = format!("{INVALID}An string set  may not be empty");
    let numeric = format!("{NOT_NUMERIC}: b");
    // The fault of one of several types is reported before the fault that there are several, and a request with such a
    // value is handled by the older layer.
    for (value, message) in [
        (r#"{"S":"a","N":"1"}"#, SEVERAL),
        (r#"{"S":"a","BOOL":"yes"}"#, SEVERAL),
        (r#"{"S":"a","N":""}"#, NOT_NUMERIC),
        (r#"{"N":"b","S":"a"}"#, &numeric),
        (r#"{"NULL":false,"S":"a"}"#, &null_false),
        (r#"{"NULL":false,"N":"b"}"#, &numeric),
        (r#"{"N":"b","SS":[]}"#, &empty_set),
        (r#"{"NULL":"no"}"#, &null_false),
        (r#"{"L":[{"NULL":"false"}]}"#, &null_false),
    ] {
        let expected = ExpectedErrors {
            item: message.to_owned(),
            placeholder: for_key(message),
            key: message.to_owned(),
        };
        check(value, expected).await;
    }
    let expected = ExpectedErrors {
        item: one(&null_false),
        placeholder: one(&null_false),
        key: null_false,
    };
    check(r#"{"NULL":false}"#, expected).await;
}

/// Returns a number nested in this many lists.
fn lists(levels: usize) -> String {
    format!(
        r#"{}{{"N":"1"}}{}"#,
        r#"{"L":["#.repeat(levels),
        "]}".repeat(levels)
    )
}

#[tokio::test]
async fn values_are_nested_at_most_31_levels() {
    let service = TestService::new();
    service.hash_table("Values").await;
    assert_eq!(service.call("PutItem", &put(&lists(31))).await.0, 200);
    for levels in [32, 62] {
        let expected = ExpectedErrors {
            item: one(TOO_DEEP),
            placeholder: one(TOO_DEEP),
            key: TOO_DEEP.to_owned(),
        };
        check(&lists(levels), expected).await;
    }
    for levels in [63, 2000] {
        let expected = ExpectedErrors {
            item: TOO_DEEP.to_owned(),
            placeholder: for_key(TOO_DEEP),
            key: TOO_DEEP.to_owned(),
        };
        check(&lists(levels), expected).await;
    }
    let (status, response) = service.call("PutItem", &put(&lists(2001))).await;
    let bare = json!({"__type": "com.amazon.coral.service#SerializationException"});
    assert_eq!((status, response), (400, bare));
}

#[tokio::test]
async fn attribute_names_have_length_limits() {
    let expected = || ExpectedErrors {
        item: one("Empty attribute name"),
        placeholder: one("Empty attribute name"),
        key: "Empty attribute name".to_owned(),
    };
    check(r#"{"M":{"":{"S":"x"}}}"#, expected()).await;
    check(r#"{"L":[{"M":{"a":{"M":{"":{"SS":[]}}}}}]}"#, expected()).await;
    let service = TestService::new();
    let body = r#"{"TableName":"Values","Item":{"":{"S":"a"}}}"#;
    service
        .expect_validation_error("PutItem", body, &one("Empty attribute name"))
        .await;
    let long = format!(r#"{{"M":{{"{}":{{"S":"x"}}}}}}"#, "x".repeat(65_536));
    let message = format!("{INVALID}Attribute name is too large, must be less than 65536 bytes");
    service
        .expect_validation_error("PutItem", &put(&long), &one(&message))
        .await;
}

#[tokio::test]
async fn booleans_are_accepted_as_text() {
    let service = TestService::new();
    service.hash_table("Values").await;
    let read = async |value: Value| -> Value {
        service.call("PutItem", &put(&value.to_string())).await;
        let response = service.call("GetItem", &get(r#"{"S":"a"}"#)).await.1;
        response["Item"]["v"].clone()
    };
    for word in ["t", "T", "y", "YES", "yEs", "true", "TRUE", "1"] {
        assert_eq!(
            read(json!({"BOOL": word})).await,
            json!({"BOOL": true}),
            "word={word}"
        );
        assert_eq!(
            read(json!({"NULL": word})).await,
            json!({"NULL": true}),
            "word={word}"
        );
    }
    for word in ["false", "fAlSe", "f", "n", "No", "0"] {
        assert_eq!(
            read(json!({"BOOL": word})).await,
            json!({"BOOL": false}),
            "word={word}"
        );
    }
    assert_eq!(read(json!({"S": "a", "N": null})).await, json!({"S": "a"}));
    for word in ["off", "", " no", "2", "1.0"] {
        let body = put(&json!({"BOOL": word}).to_string());
        let message = "Unexpected token received from parser";
        service
            .expect_error("PutItem", &body, "SerializationException", message)
            .await;
    }
}

#[tokio::test]
async fn wrong_types_are_rejected() {
    let service = TestService::new();
    let object = "Start of structure or map found where not expected";
    let class = "com.amazonaws.dynamodb.v20120810.AttributeValue";
    for (value, message) in [
        (r#""a""#, "Unexpected value type in payload".to_owned()),
        ("1", "Unexpected value type in payload".to_owned()),
        ("[]", format!("Unrecognized collection type class {class}")),
        (
            r#"{"S":1}"#,
            "NUMBER_VALUE cannot be converted to String".to_owned(),
        ),
        (
            r#"{"S":1.5}"#,
            "DECIMAL_VALUE cannot be converted to String".to_owned(),
        ),
        (
            r#"{"S":true}"#,
            "TRUE_VALUE cannot be converted to String".to_owned(),
        ),
        (
            r#"{"N":123}"#,
            "NUMBER_VALUE cannot be converted to String".to_owned(),
        ),
        (r#"{"S":{}}"#, object.to_owned()),
        (
            r#"{"S":[]}"#,
            "Unrecognized collection type class java.lang.String".to_owned(),
        ),
        (
            r#"{"B":1}"#,
            "only base-64-encoded strings are convertible to bytes".to_owned(),
        ),
        (r#"{"B":{}}"#, object.to_owned()),
        (
            r#"{"B":[]}"#,
            "Unrecognized collection type class java.nio.ByteBuffer".to_owned(),
        ),
        (
            r#"{"B":"abc"}"#,
            "Base64 encoded length is expected a multiple of 4 bytes but found: 3".to_owned(),
        ),
        (
            r#"{"B":"=+/="}"#,
            "Invalid last non-pad Base64 character dectected".to_owned(),
        ),
        (
            r#"{"B":"+f=="}"#,
            "Invalid last non-pad Base64 character dectected".to_owned(),
        ),
        (
            r#"{"BOOL":1}"#,
            "NUMBER_VALUE cannot be converted to Boolean".to_owned(),
        ),
        (
            r#"{"BOOL":-0}"#,
            "NUMBER_VALUE cannot be converted to Boolean".to_owned(),
        ),
        (
            r#"{"NULL":1e3}"#,
            "DECIMAL_VALUE cannot be converted to Boolean".to_owned(),
        ),
        (r#"{"BOOL":{}}"#, object.to_owned()),
        (r#"{"BOOL":[]}"#, String::new()),
        (r#"{"NULL":[],"S":"a"}"#, String::new()),
        (r#"{"SS":"a"}"#, "Unexpected field type".to_owned()),
        (r#"{"SS":{}}"#, object.to_owned()),
        (
            r#"{"SS":[1]}"#,
            "NUMBER_VALUE cannot be converted to String".to_owned(),
        ),
        (r#"{"NS":[{}]}"#, object.to_owned()),
        (
            r#"{"BS":[true]}"#,
            "only base-64-encoded strings are convertible to bytes".to_owned(),
        ),
        (r#"{"L":{}}"#, object.to_owned()),
        (r#"{"L":"a"}"#, "Unexpected field type".to_owned()),
        (
            r#"{"L":["a"]}"#,
            "Unexpected value type in payload".to_owned(),
        ),
        (r#"{"M":"a"}"#, "Unexpected field type".to_owned()),
        (
            r#"{"M":[]}"#,
            format!("Unrecognized collection type java.util.Map<java.lang.String, {class}>"),
        ),
        (
            r#"{"M":{"a":1}}"#,
            "Unexpected value type in payload".to_owned(),
        ),
    ] {
        service
            .expect_error("PutItem", &put(value), "SerializationException", &message)
            .await;
    }
}

#[tokio::test]
async fn values_are_returned_in_canonical_form() {
    let service = TestService::new();
    service.hash_table("Values").await;
    for (sent, returned) in [
        (json!({"N": "+0012.50"}), json!({"N": "12.5"})),
        (json!({"N": "-0"}), json!({"N": "0"})),
        (json!({"N": "1e3"}), json!({"N": "1000"})),
        (json!({"N": ".5E-3"}), json!({"N": "0.0005"})),
        (
            json!({"SS": ["b", "a", "B"]}),
            json!({"SS": ["B", "a", "b"]}),
        ),
        (
            json!({"NS": ["10", "9", "-1.50"]}),
            json!({"NS": ["-1.5", "9", "10"]}),
        ),
        (
            json!({"BS": ["/w==", "AA=="]}),
            json!({"BS": ["AA==", "/w=="]}),
        ),
        (json!({"SS": ["a", ""]}), json!({"SS": ["", "a"]})),
        (json!({"BS": [""]}), json!({"BS": [""]})),
        (json!({"S": ""}), json!({"S": ""})),
        (json!({"B": ""}), json!({"B": ""})),
        (json!({"L": []}), json!({"L": []})),
        (json!({"M": {}}), json!({"M": {}})),
        (
            json!({"S": "a\u{0}\"\\\n\u{1f600}"}),
            json!({"S": "a\u{0}\"\\\n\u{1f600}"}),
        ),
    ] {
        service.call("PutItem", &put(&sent.to_string())).await;
        let response = service.call("GetItem", &get(r#"{"S":"a"}"#)).await.1;
        assert_eq!(response["Item"]["v"], returned, "sent={sent}");
    }
}
