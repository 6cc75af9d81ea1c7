//! Scan.

use super::pages::{
    CAPACITIES, SELECTS, START_KEY, at_least, at_most, check, detected, fault, invalid,
    members_table, no_table_name, one_of,
};
use super::test_service::TestService;

const ORDER: &str =
    "The Segment parameter is zero-based and must be less than parameter TotalSegments";
const NO_TOTAL: &str = "The TotalSegments parameter is required but was not present in the request when Segment \
                        parameter is present";
const NO_SEGMENT: &str = "The Segment parameter is required but was not present in the request when parameter \
                          TotalSegments is present";
const NO_FILTER: &str = "ConditionalOperator cannot be used without Filter or Expected";
const ONE_FILTER: &str =
    "ConditionalOperator can only be used when Filter or Expected has two or more elements";
const BAD_JOIN: &str =
    "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]";
/// Filters: one without an operator, one with an unknown operator, one with one condition, one with two.
const NO_OP: &str = r#""ScanFilter":{"a":{"AttributeValueList":[{"S":"x"}]}}"#;
const BAD_OP: &str =
    r#""ScanFilter":{"a":{"ComparisonOperator":"BOGUS","AttributeValueList":[{"S":"x"}]}}"#;
const ONE: &str =
    r#""ScanFilter":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}}"#;
const TWO: &str = r#""ScanFilter":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]},"b":{"ComparisonOperator":"NE","AttributeValueList":[{"S":"y"}]}}"#;
const FILTER: &str = r#""FilterExpression":"a = :v","ExpressionAttributeValues":{":v":{"S":"x"}}"#;

async fn check_all(cases: &[(String, String)]) {
    let service = TestService::new();
    members_table(&service).await;
    for (members, expected) in cases {
        check(
            &service,
            "Scan",
            "Members",
            &format!("{{{members}}}"),
            expected,
        )
        .await;
    }
}

fn cases<const N: usize>(cases: [(&str, String); N]) -> Vec<(String, String)> {
    cases
        .into_iter()
        .map(|(members, expected)| (members.to_owned(), expected))
        .collect()
}

/// Returns the fault of an invalid `Select`.
fn select() -> String {
    one_of("BOGUS", "select", SELECTS)
}

/// Returns the fault of an invalid `ReturnConsumedCapacity`.
fn capacity() -> String {
    one_of("BOGUS", "returnConsumedCapacity", CAPACITIES)
}

fn short(name: &str) -> String {
    fault(
        &format!("'{name}'"),
        "tableName",
        "have length greater than or equal to 3",
    )
}

fn empty_name() -> String {
    fault("", "TableName", "have length greater than or equal to 1")
}

fn no_operator() -> String {
    fault(
        "null",
        "scanFilter.a.member.comparisonOperator",
        "not be null",
    )
}

#[tokio::test]
async fn numbers_and_empty_names_are_reported_first() {
    let limit = || at_least("", "Limit", 1);
    let segment = || at_least("", "Segment", 0);
    let total = || at_least("", "TotalSegments", 1);
    let too_many = || at_most("", "TotalSegments", 1_000_000);
    let one = |fault: String| detected(&[fault]);
    check_all(&cases([
        (r#""Limit":0"#, one(limit())),
        (r#""Limit":-1"#, one(limit())),
        (r#""Segment":-1,"TotalSegments":4"#, one(segment())),
        (r#""Segment":-1"#, one(segment())),
        (r#""TotalSegments":0"#, one(total())),
        (r#""Segment":0,"TotalSegments":-1"#, one(total())),
        (r#""Segment":0,"TotalSegments":1000001"#, one(too_many())),
        (
            r#""Segment":1000000,"TotalSegments":1000000"#,
            one(at_most("", "Segment", 999_999)),
        ),
        (
            r#""Segment":2147483647,"TotalSegments":5"#,
            one(at_most("", "Segment", 999_999)),
        ),
        (
            r#""Limit":0,"Segment":-1,"TotalSegments":4"#,
            detected(&[limit(), segment()]),
        ),
        (
            r#""Segment":-1,"TotalSegments":0"#,
            detected(&[segment(), total()]),
        ),
        (
            r#""Limit":0,"Segment":0,"TotalSegments":0"#,
            detected(&[limit(), total()]),
        ),
        (
            r#""Limit":0,"Segment":0,"TotalSegments":1000001"#,
            detected(&[limit(), too_many()]),
        ),
        (r#""TableName":"""#, one(empty_name())),
        (
            r#""Limit":0,"TableName":"""#,
            detected(&[limit(), empty_name()]),
        ),
        (
            r#""Segment":-1,"TotalSegments":4,"TableName":"""#,
            detected(&[segment(), empty_name()]),
        ),
        (
            r#""Segment":5,"TotalSegments":5,"TableName":"""#,
            one(empty_name()),
        ),
        // Other faults are reported later.
        (
            r#""Limit":0,"Segment":-1,"TotalSegments":4,"Select":"BOGUS","ReturnConsumedCapacity":"BOGUS","ConditionalOperator":"BOGUS""#,
            detected(&[limit(), segment()]),
        ),
        (r#""Limit":0,"TableName":"ab""#, one(limit())),
        (r#""Limit":0,"Select":"SPECIFIC_ATTRIBUTES""#, one(limit())),
        (
            r#""Limit":0,"ExclusiveStartKey":{"bad":{"S":"p"}}"#,
            one(limit()),
        ),
        (r#""Select":"BOGUS","TableName":"""#, one(empty_name())),
        (r#""Segment":0,"TotalSegments":1"#, String::new()),
        (r#""Segment":999999,"TotalSegments":1000000"#, String::new()),
        (r#""Limit":2147483647"#, String::new()),
    ]))
    .await;
}

#[tokio::test]
async fn table_name_and_capacity_are_reported_next() {
    let long = "a".repeat(256);
    let one = |fault: String| detected(&[fault]);
    check_all(&cases([
        (r#""TableName":"ab""#, one(short("ab"))),
        (r#""TableName":"a!""#, one(short("a!"))),
        (
            r#""TableName":"abc!""#,
            one(fault(
                "'abc!'",
                "tableName",
                "satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            )),
        ),
        (
            &format!(r#""TableName":"{long}""#),
            one(fault(
                &format!("'{long}'"),
                "tableName",
                "have length less than or equal to 255",
            )),
        ),
        (r#""ReturnConsumedCapacity":"BOGUS""#, one(capacity())),
        (
            r#""ReturnConsumedCapacity":"BOGUS","TableName":"ab""#,
            detected(&[short("ab"), capacity()]),
        ),
        (
            r#""ReturnConsumedCapacity":"BOGUS","Select":"BOGUS""#,
            one(capacity()),
        ),
        (
            r#""ConditionalOperator":"BOGUS","TableName":"ab""#,
            one(short("ab")),
        ),
        (
            &format!(r#"{BAD_OP},"ReturnConsumedCapacity":"BOGUS""#),
            one(capacity()),
        ),
        (&format!(r#"{BAD_OP},"TableName":"ab""#), one(short("ab"))),
        (
            &format!(r#"{ONE},"ConditionalOperator":"BOGUS","ReturnConsumedCapacity":"BOGUS""#),
            one(capacity()),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn missing_members_and_large_numbers_are_reported_by_the_older_layer() {
    let one = |fault: String| detected(&[fault]);
    let join = || one_of("BOGUS", "conditionalOperator", "[OR, AND]");
    let empty = || fault("''", "tableName", "have length greater than or equal to 1");
    let bogus = r#""Select":"BOGUS","ReturnConsumedCapacity":"BOGUS","ConditionalOperator":"BOGUS","Segment":-1,"TotalSegments":0,"Limit":0"#;
    check_all(&cases([
        (r#""TableName":"-""#, one(no_table_name())),
        (
            &format!(r#""TableName":"-",{bogus}"#),
            detected(&[
                select(),
                at_least("'0'", "totalSegments", 1),
                capacity(),
                no_table_name(),
                join(),
                at_least("'-1'", "segment", 0),
                at_least("'0'", "limit", 1),
            ]),
        ),
        (
            r#""TableName":"-","Segment":0,"TotalSegments":1000001"#,
            detected(&[
                at_most("'1000001'", "totalSegments", 1_000_000),
                no_table_name(),
            ]),
        ),
        (
            r#""TableName":"-","Select":"SPECIFIC_ATTRIBUTES""#,
            one(no_table_name()),
        ),
        (NO_OP, one(no_operator())),
        (
            &format!(r#""TableName":"-",{NO_OP}"#),
            detected(&[no_table_name(), no_operator()]),
        ),
        (
            &format!("{NO_OP},{bogus}"),
            detected(&[
                select(),
                at_least("'0'", "totalSegments", 1),
                capacity(),
                join(),
                no_operator(),
                at_least("'-1'", "segment", 0),
                at_least("'0'", "limit", 1),
            ]),
        ),
        (
            &format!(r#"{NO_OP},"TableName":"""#),
            detected(&[empty(), no_operator()]),
        ),
        (&format!(r#"{NO_OP},"TableName":"a!""#), one(no_operator())),
        (
            r#""ScanFilter":{"a":{"ComparisonOperator":null}}"#,
            one(no_operator()),
        ),
        (
            r#""Segment":4294967296,"TotalSegments":1"#,
            one(at_most("'2147483647'", "segment", 999_999)),
        ),
        (
            r#""Segment":-2147483649,"TotalSegments":5"#,
            one(at_least("'-2147483648'", "segment", 0)),
        ),
        (
            r#""TotalSegments":4294967296"#,
            one(at_most("'2147483647'", "totalSegments", 1_000_000)),
        ),
        (
            r#""Limit":0,"Segment":0,"TotalSegments":2147483648"#,
            detected(&[
                at_most("'2147483647'", "totalSegments", 1_000_000),
                at_least("'0'", "limit", 1),
            ]),
        ),
        (r#""Limit":4294967296,"Select":"BOGUS""#, one(select())),
        (r#""Limit":4294967296,"TableName":"""#, one(empty())),
        (r#""Limit":0.5"#, one(at_least("'0'", "limit", 1))),
        (r#""Segment":1.5,"TotalSegments":5"#, String::new()),
        (r#""Segment":-0.5,"TotalSegments":5"#, String::new()),
        (r#""Segment":0,"TotalSegments":1.5"#, String::new()),
        (r#""Limit":9223372036854776000"#, String::new()),
        (r#""Limit":1.5"#, String::new()),
        (
            r#""Limit":"5""#,
            "STRING_VALUE cannot be converted to Integer".to_owned(),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn conditional_operator_needs_two_legacy_conditions() {
    let owned = str::to_owned;
    check_all(&cases([
        (r#""ConditionalOperator":"AND""#, owned(NO_FILTER)),
        (r#""ConditionalOperator":"BOGUS""#, owned(NO_FILTER)),
        (
            r#""ConditionalOperator":"AND","Select":"BOGUS""#,
            owned(NO_FILTER),
        ),
        (
            r#""ConditionalOperator":"AND","Segment":5,"TotalSegments":5"#,
            owned(NO_FILTER),
        ),
        (
            &format!(r#"{ONE},"ConditionalOperator":"BOGUS","Select":"BOGUS""#),
            owned(ONE_FILTER),
        ),
        (
            &format!(r#"{BAD_OP},"ConditionalOperator":"AND""#),
            owned(ONE_FILTER),
        ),
        (
            &format!(r#"{TWO},"ConditionalOperator":"BOGUS","Select":"BOGUS""#),
            owned(BAD_JOIN),
        ),
        (
            &format!(r#"{TWO},"ConditionalOperator":"AND""#),
            String::new(),
        ),
        (
            &format!(r#"{TWO},"ConditionalOperator":"OR""#),
            String::new(),
        ),
        (
            &format!(r#"{BAD_OP},"Select":"BOGUS""#),
            invalid("Invalid comparison operator"),
        ),
        (
            &format!(r#"{BAD_OP},"Segment":5,"TotalSegments":5"#),
            invalid("Invalid comparison operator"),
        ),
        (
            r#""ScanFilter":{"a":{"ComparisonOperator":"eq","AttributeValueList":[{"S":"x"}]}}"#,
            invalid("Invalid comparison operator"),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn expressions_and_legacy_parameters_cannot_be_combined() {
    let mixed = |replaced: &str, expressions: &str| {
        format!(
            "Can not use both expression and non-expression parameters in the same request: Non-expression \
             parameters: {{{replaced}}} Expression parameters: {{{expressions}}}"
        )
    };
    check_all(&cases([
        (
            &format!(r#"{FILTER},"ConditionalOperator":"BOGUS""#),
            mixed("ConditionalOperator", "FilterExpression"),
        ),
        (
            &format!(r#"{FILTER},{ONE},"Select":"BOGUS""#),
            mixed("ScanFilter", "FilterExpression"),
        ),
        (
            r#""AttributesToGet":["a"],"ProjectionExpression":"a","Select":"SPECIFIC_ATTRIBUTES""#,
            mixed("AttributesToGet", "ProjectionExpression"),
        ),
        (
            &format!(
                r#"{FILTER},{TWO},"ConditionalOperator":"AND","AttributesToGet":["a"],"ProjectionExpression":"a""#
            ),
            mixed(
                "AttributesToGet, ScanFilter, ConditionalOperator",
                "ProjectionExpression, FilterExpression",
            ),
        ),
        (
            r##""ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{}"##,
            "ExpressionAttributeNames can only be specified when using expressions".to_owned(),
        ),
        (
            r#""ProjectionExpression":"a","ExpressionAttributeValues":{":a":{}}"#,
            "ExpressionAttributeValues can only be specified when using expressions".to_owned(),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn attribute_names_and_values_are_validated() {
    let owned = str::to_owned;
    let value = |value: &str| {
        format!(r#""FilterExpression":"a = :v","ExpressionAttributeValues":{{":v":{value}}}"#)
    };
    let older = |value: &str| {
        format!(
            r#""ScanFilter":{{"a":{{"ComparisonOperator":"EQ","AttributeValueList":[{value}]}}}}"#
        )
    };
    const NUMBER: &str = "The parameter cannot be converted to a numeric value: ";
    let duplicates = || invalid(r#"Input collection ["a", "a"] contains duplicates."#);
    check_all(&cases([
        (r#""AttributesToGet":[""]"#, owned("Empty attribute name")),
        (
            &format!(r#"{TWO},"AttributesToGet":[""],"ConditionalOperator":"BOGUS""#),
            owned("Empty attribute name"),
        ),
        (
            r#""ExclusiveStartKey":{"":{"S":"a"}}"#,
            owned("Empty attribute name"),
        ),
        (
            r#""ExclusiveStartKey":{"pk":{"M":{"":{"S":"a"}}}}"#,
            owned("Empty attribute name"),
        ),
        (
            &value(r#"{"M":{"":{"S":"x"}}}"#),
            owned("Empty attribute name"),
        ),
        (
            &older(r#"{"L":[{"M":{"":{"S":"x"}}}]}"#),
            owned("Empty attribute name"),
        ),
        (&value(r#"{"N":""}"#), owned(NUMBER)),
        (&value(r#"{"N":"abc"}"#), format!("{NUMBER}abc")),
        (&value(r#"{"SS":["a","a"]}"#), duplicates()),
        (
            &value(r#"{"NS":["1","1"]}"#),
            invalid("Input collection contains duplicates."),
        ),
        (
            &value("{}"),
            owned(
                "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must contain \
                 exactly one of the supported datatypes for key :v",
            ),
        ),
        (
            &value(r#"{"NULL":"no"}"#),
            format!(
                "ExpressionAttributeValues contains invalid value: {} for key :v",
                invalid("Null attribute value types must have the value of true")
            ),
        ),
        (
            r#""FilterExpression":"a = :v","ExpressionAttributeValues":{"v":{"N":"abc"}}"#,
            owned(
                r#"ExpressionAttributeValues contains invalid key: Syntax error; key: "v""#,
            ),
        ),
        (&older(r#"{"N":""}"#), owned(NUMBER)),
        (&older(r#"{"SS":["a","a"]}"#), duplicates()),
        (
            &older(r#"{"NULL":false}"#),
            invalid("Null attribute value types must have the value of true"),
        ),
        (
            r#""AttributesToGet":["a","a"],"Select":"BOGUS""#,
            invalid("Duplicate value in attribute name: a"),
        ),
        (
            r#""AttributesToGet":["a","a"],"Segment":5,"TotalSegments":5"#,
            invalid("Duplicate value in attribute name: a"),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn expressions_are_checked_before_select_and_segments() {
    let owned = str::to_owned;
    let one = |message: &str| format!("1 validation error detected: {message}");
    let bad = r#""FilterExpression":"a = = :v","ExpressionAttributeValues":{":v":{"S":"x"}}"#;
    let syntax = r#"Invalid FilterExpression: Syntax error; token: "=", near: "= = :v""#;
    let five = r#""Segment":5,"TotalSegments":5"#;
    check_all(&cases([
        (bad, owned(syntax)),
        (&format!(r#"{bad},"Select":"BOGUS""#), owned(syntax)),
        (&format!("{bad},{five}"), owned(syntax)),
        (
            &format!(r#""ProjectionExpression":"",{five}"#),
            owned("Invalid ProjectionExpression: The expression can not be empty;"),
        ),
        (
            r#""FilterExpression":"","Select":"BOGUS""#,
            owned("Invalid FilterExpression: The expression can not be empty;"),
        ),
        (
            r##""FilterExpression":"#n = :v","ExpressionAttributeValues":{":v":{"S":"x"}},"Select":"BOGUS""##,
            owned(
                "Invalid FilterExpression: An expression attribute name used in the document path is not defined; \
                 attribute name: #n",
            ),
        ),
        (r#""Select":"BOGUS""#, one(&select())),
        (&format!(r#""Select":"BOGUS",{five}"#), one(&select())),
        (r#""Segment":0,"Select":"BOGUS""#, one(&select())),
        (
            r#""Select":"BOGUS","ExclusiveStartKey":{"bad":{"S":"p"}}"#,
            one(&select()),
        ),
        (
            r#""Select":"SPECIFIC_ATTRIBUTES","Segment":0"#,
            one("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"),
        ),
        (
            r#""Select":"COUNT","ProjectionExpression":"a""#,
            one("Cannot specify the ProjectionExpression when choosing to get only the Count"),
        ),
        (
            r#""Select":"COUNT","AttributesToGet":["a"]"#,
            one("Cannot specify the AttributesToGet when choosing to get only the Count"),
        ),
        (
            r#""Select":"ALL_ATTRIBUTES","AttributesToGet":["a"]"#,
            one("Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES"),
        ),
        (
            r#""Select":"ALL_PROJECTED_ATTRIBUTES","ProjectionExpression":"a""#,
            one("Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES"),
        ),
        (
            &format!(r#""Select":"ALL_PROJECTED_ATTRIBUTES",{five}"#),
            one("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
        ),
        (
            r#""Select":"SPECIFIC_ATTRIBUTES","AttributesToGet":["a"]"#,
            String::new(),
        ),
        (
            r#""Select":"SPECIFIC_ATTRIBUTES","ProjectionExpression":"a""#,
            String::new(),
        ),
        (r#""Select":"COUNT""#, String::new()),
        (
            r#""IndexName":"gsi","Select":"ALL_PROJECTED_ATTRIBUTES""#,
            String::new(),
        ),
        // A scan treats attributes that the index does not contain as missing.
        (&format!(r#"{FILTER},"IndexName":"gsi""#), String::new()),
        (
            r#""IndexName":"gsi","ProjectionExpression":"a""#,
            invalid("Global secondary index gsi does not project [a]"),
        ),
        (five, owned(ORDER)),
        (&format!(r#""IndexName":"gsi",{five}"#), owned(ORDER)),
        (
            &format!(r#"{five},"ExclusiveStartKey":{{"bad":{{"S":"p"}}}}"#),
            owned(ORDER),
        ),
        (
            r#""Segment":0,"ExclusiveStartKey":{"bad":{"S":"p"}}"#,
            owned(NO_TOTAL),
        ),
        (r#""TotalSegments":4"#, owned(NO_SEGMENT)),
    ]))
    .await;
}

#[tokio::test]
async fn start_key_must_match_the_scanned_index() {
    let owned = str::to_owned;
    let mismatch = |key: &str, index: &str| {
        invalid(&format!(
            "Type mismatch for Index Key {key} Expected: S Actual: N IndexName: {index}"
        ))
    };
    let not_all = || {
        invalid(
            "Select type ALL_ATTRIBUTES is not supported for global secondary index gsi because its projection type \
             is not ALL",
        )
    };
    let start = |key: &str| format!(r#""ExclusiveStartKey":{key}"#);
    let on = |index: &str, key: &str| format!(r#""IndexName":"{index}",{}"#, start(key));
    let lists = format!(
        "{}{{\"S\":\"x\"}}{}",
        "{\"L\":[".repeat(32),
        "]}".repeat(32)
    );
    check_all(&cases([
        (&start("{}"), owned(START_KEY)),
        (&start(r#"{"bad":{"S":"p"}}"#), owned(START_KEY)),
        (&start(r#"{"pk":{"S":"a"},"extra":{"S":"b"}}"#), owned(START_KEY)),
        (&start(r#"{"pk":{"N":"1"}}"#), mismatch("pk", "gsi")),
        (&start(r#"{"pk":{"N":"1"},"gk":{"S":"a"}}"#), mismatch("pk", "gsi")),
        (&start(r#"{"gk":{"N":"1"}}"#), mismatch("gk", "gsi")),
        (&on("gsi", r#"{"bad":{"S":"p"}}"#), owned(START_KEY)),
        (&on("gsi", r#"{"pk":{"S":"a"}}"#), owned(START_KEY)),
        (&on("gsi", r#"{"gk":{"S":"a"}}"#), owned(START_KEY)),
        (
            &on("gsi", r#"{"pk":{"S":"a"},"gk":{"S":"b"},"extra":{"S":"c"}}"#),
            owned(START_KEY),
        ),
        (&on("gsi", r#"{"pk":{"S":"a"},"gk":{"N":"1"}}"#), mismatch("gk", "gsi")),
        (&on("gsi", r#"{"pk":{"N":"1"},"gk":{"S":"a"}}"#), mismatch("pk", "gsi")),
        (&on("gsi2", r#"{"pk":{"N":"1"},"gk2":{"S":"a"}}"#), mismatch("pk", "gsi2")),
        (&on("gsi2", r#"{"pk":{"S":"a"},"gk2":{"N":"1"}}"#), mismatch("gk2", "gsi2")),
        (
            &format!(r#"{},"Select":"ALL_ATTRIBUTES""#, on("gsi", r#"{"bad":{"S":"p"}}"#)),
            not_all(),
        ),
        (
            r#""IndexName":"gsi","Select":"ALL_ATTRIBUTES""#,
            not_all(),
        ),
        (
            r#""IndexName":"nope""#,
            owned("The table does not have the specified index: nope"),
        ),
        (
            r#""IndexName":"gsi","ConsistentRead":true"#,
            owned("Consistent reads are not supported on global secondary indexes"),
        ),
        (
            &start(r#"{"pk":{}}"#),
            format!(
                "{START_KEY}: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
            ),
        ),
        (
            &start(&format!(r#"{{"pk":{lists}}}"#)),
            owned(
                "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond \
                 supported limit",
            ),
        ),
    ]))
    .await;
}
