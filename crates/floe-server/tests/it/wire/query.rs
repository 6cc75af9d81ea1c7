//! Query.

use serde_json::json;

use super::pages::{
    CAPACITIES, SELECTS, START_KEY, at_least, check, detected, fault, invalid, members_table,
    no_table_name, one_of,
};
use super::test_service::TestService;

const KEY: &str =
    r#""KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}}"#;
const OLDER_KEY: &str =
    r#""KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}"#;
const GSI: &str = r#""IndexName":"gsi","KeyConditionExpression":"gk = :g","ExpressionAttributeValues":{":g":{"S":"a"}}"#;

fn cases<const N: usize>(cases: [(&str, String); N]) -> Vec<(String, String)> {
    cases
        .into_iter()
        .map(|(members, expected)| (members.to_owned(), expected))
        .collect()
}

/// Checks requests on a table with the key `pk` and global indexes.
async fn check_members(cases: &[(String, String)]) {
    let service = TestService::new();
    members_table(&service).await;
    for (members, expected) in cases {
        let members = format!("{{{members}}}");
        check(&service, "Query", "Members", &members, expected).await;
    }
}

/// Checks requests on a table with the keys `pk` (text) and `sk` (number), a local index `lsi` on `lsk` (keys only),
/// and a global index `multi` with two attributes in each key part.
async fn check_sorted(cases: &[(String, String)]) {
    let service = TestService::new();
    sorted_table(&service).await;
    for (members, expected) in cases {
        let members = format!("{{{members}}}");
        check(&service, "Query", "Sorted", &members, expected).await;
    }
}

async fn sorted_table(service: &TestService) {
    let key = |names: &[(&str, &str)]| -> Vec<serde_json::Value> {
        let elements = names.iter();
        elements
            .map(|(name, kind)| json!({"AttributeName": name, "KeyType": kind}))
            .collect()
    };
    let texts = ["pk", "lsk", "h1", "h2", "r1", "r2"]
        .map(|name| json!({"AttributeName": name, "AttributeType": "S"}));
    let mut definitions = texts.to_vec();
    definitions.push(json!({"AttributeName": "sk", "AttributeType": "N"}));
    let table = json!({
        "TableName": "Sorted",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": definitions,
        "KeySchema": key(&[("pk", "HASH"), ("sk", "RANGE")]),
        "LocalSecondaryIndexes": [{
            "IndexName": "lsi",
            "KeySchema": key(&[("pk", "HASH"), ("lsk", "RANGE")]),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "multi",
            "KeySchema": key(&[("h1", "HASH"), ("h2", "HASH"), ("r1", "RANGE"), ("r2", "RANGE")]),
            "Projection": {"ProjectionType": "ALL"},
        }],
    });
    service.ok("CreateTable", table).await;
}

#[tokio::test]
async fn members_are_checked_in_stages() {
    let one = |fault: String| detected(&[fault]);
    let select = || one_of("BOGUS", "select", SELECTS);
    let capacity = || one_of("BOGUS", "returnConsumedCapacity", CAPACITIES);
    let limit = || at_least("", "Limit", 1);
    let shown = |value: &str| at_least(value, "limit", 1);
    let with = |members: &str| format!("{KEY},{members}");
    let empty = || fault("", "TableName", "have length greater than or equal to 1");
    check_members(&cases([
        (&with(r#""Limit":0"#), one(limit())),
        (&with(r#""Limit":-1"#), one(limit())),
        (&with(r#""TableName":"""#), one(empty())),
        (
            &with(r#""Limit":0,"TableName":"""#),
            detected(&[limit(), empty()]),
        ),
        (
            &with(r#""Limit":0,"Select":"BOGUS","ReturnConsumedCapacity":"BOGUS""#),
            one(limit()),
        ),
        (
            &with(r#""TableName":"abc!","Select":"INVALID""#),
            one(fault(
                "'abc!'",
                "tableName",
                "satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            )),
        ),
        (
            &with(r#""TableName":"ab","ReturnConsumedCapacity":"BOGUS""#),
            detected(&[
                fault(
                    "'ab'",
                    "tableName",
                    "have length greater than or equal to 3",
                ),
                capacity(),
            ]),
        ),
        (
            &with(r#""ReturnConsumedCapacity":"BOGUS","Select":"BOGUS""#),
            one(capacity()),
        ),
        (&with(r#""Select":"BOGUS""#), one(select())),
        (
            &format!(r#"{OLDER_KEY},"Select":"BOGUS","AttributesToGet":["a"]"#),
            one(select()),
        ),
        // The older layer.
        (&with(r#""TableName":"-""#), one(no_table_name())),
        (
            &with(r#""TableName":"-","Limit":0,"Select":"BOGUS","ReturnConsumedCapacity":"BOGUS""#),
            detected(&[select(), capacity(), no_table_name(), shown("'0'")]),
        ),
        (
            r#""TableName":"-","Limit":0"#,
            detected(&[no_table_name(), shown("'0'")]),
        ),
        (&with(r#""Limit":-2147483649"#), one(shown("'-2147483648'"))),
        (&with(r#""Limit":0.5"#), one(shown("'0'"))),
        (
            &with(r#""Limit":0.5,"Select":"BOGUS","ReturnConsumedCapacity":"BOGUS""#),
            detected(&[select(), capacity(), shown("'0'")]),
        ),
        (&with(r#""Limit":1.5,"Select":"BOGUS""#), one(select())),
        (
            &with(r#""Limit":4294967296,"TableName":"""#),
            one(fault(
                "''",
                "tableName",
                "have length greater than or equal to 1",
            )),
        ),
        (
            r#""KeyConditions":{"pk":{"AttributeValueList":[{"S":"a"}]}}"#,
            one(fault(
                "null",
                "keyConditions.pk.member.comparisonOperator",
                "not be null",
            )),
        ),
        (
            &format!(r#"{OLDER_KEY},"QueryFilter":{{"a":{{}}}}"#),
            one(fault(
                "null",
                "queryFilter.a.member.comparisonOperator",
                "not be null",
            )),
        ),
        (
            &with(r#""Limit":"5""#),
            "STRING_VALUE cannot be converted to Integer".to_owned(),
        ),
        (&with(r#""Limit":1.5"#), String::new()),
        (&with(r#""Limit":2147483648"#), String::new()),
        (&with(r#""Limit":9223372036854776000"#), String::new()),
    ]))
    .await;
}

#[tokio::test]
async fn select_must_match_the_projection_and_the_index() {
    let one = |message: &str| format!("1 validation error detected: {message}");
    let with = |members: &str| format!("{KEY},{members}");
    let older = |members: &str| format!("{OLDER_KEY},{members}");
    let both = |member: &str, what: &str| {
        one(&format!(
            "Cannot specify the {member} when choosing to get {what}"
        ))
    };
    check_members(&cases([
        (
            &older(r#""Select":"COUNT","AttributesToGet":["a"]"#),
            both("AttributesToGet", "only the Count"),
        ),
        (
            &older(r#""Select":"ALL_ATTRIBUTES","AttributesToGet":["a"]"#),
            both("AttributesToGet", "ALL_ATTRIBUTES"),
        ),
        (
            &with(r#""Select":"COUNT","ProjectionExpression":"a""#),
            both("ProjectionExpression", "only the Count"),
        ),
        (
            &with(r#""Select":"ALL_ATTRIBUTES","ProjectionExpression":"a""#),
            both("ProjectionExpression", "ALL_ATTRIBUTES"),
        ),
        (
            &with(r#""Select":"ALL_PROJECTED_ATTRIBUTES","ProjectionExpression":"a""#),
            both("ProjectionExpression", "ALL_PROJECTED_ATTRIBUTES"),
        ),
        (
            &format!(r#"{GSI},"Select":"ALL_PROJECTED_ATTRIBUTES","ProjectionExpression":"a""#),
            both("ProjectionExpression", "ALL_PROJECTED_ATTRIBUTES"),
        ),
        (
            &with(r#""Select":"SPECIFIC_ATTRIBUTES""#),
            one("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"),
        ),
        (
            &with(r#""Select":"ALL_PROJECTED_ATTRIBUTES""#),
            one("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
        ),
        (
            &format!(r#"{GSI},"Select":"ALL_ATTRIBUTES""#),
            invalid(
                "Select type ALL_ATTRIBUTES is not supported for global secondary index gsi because its projection \
                 type is not ALL",
            ),
        ),
        (
            &format!(r#"{GSI},"Select":"ALL_ATTRIBUTES","ExclusiveStartKey":{{"bad":{{"S":"p"}}}}"#),
            START_KEY.to_owned(),
        ),
        (&older(r#""Select":"SPECIFIC_ATTRIBUTES","AttributesToGet":["a"]"#), String::new()),
        (&format!(r#"{GSI},"Select":"ALL_PROJECTED_ATTRIBUTES""#), String::new()),
        (
            &format!(r#"{GSI},"ProjectionExpression":"a""#),
            invalid("Global secondary index gsi does not project [a]"),
        ),
        // A query cannot filter by attributes that the index does not contain.
        (
            r#""IndexName":"gsi","KeyConditionExpression":"gk = :g","FilterExpression":"c = :g AND b = :g","ExpressionAttributeValues":{":g":{"S":"a"}}"#,
            invalid("Secondary index gsi does not project one or more filter attributes: [b, c]"),
        ),
        (
            r#""IndexName":"nope","KeyConditionExpression":"gk = :g","ExpressionAttributeValues":{":g":{"S":"a"}},"ConsistentRead":true"#,
            "The table does not have the specified index: nope".to_owned(),
        ),
        (
            &format!(r#"{GSI},"ConsistentRead":true"#),
            "Consistent reads are not supported on global secondary indexes".to_owned(),
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
    let owned = str::to_owned;
    const XOR: &str = r#""QueryFilter":{"b":{"ComparisonOperator":"NULL"},"c":{"ComparisonOperator":"NULL"}},"ConditionalOperator":"XOR""#;
    check_members(&cases([
        (&format!("{KEY},{OLDER_KEY}"), mixed("KeyConditions", "KeyConditionExpression")),
        (
            &format!(r#"{KEY},{XOR},"AttributesToGet":["a"],"Select":"BOGUS""#),
            mixed(
                "AttributesToGet, QueryFilter, ConditionalOperator",
                "KeyConditionExpression",
            ),
        ),
        // `KeyConditions` can be combined with other expressions.
        (
            &format!(r#"{OLDER_KEY},"QueryFilter":{{}},"ProjectionExpression":"y""#),
            mixed("QueryFilter", "ProjectionExpression"),
        ),
        (
            &format!(
                r#"{OLDER_KEY},"ProjectionExpression":"y","FilterExpression":"b = :b","ExpressionAttributeValues":{{":b":{{"S":"a"}}}}"#
            ),
            String::new(),
        ),
        (
            &format!(r#"{OLDER_KEY},{XOR},"Select":"BOGUS","TableName":"Absent""#),
            owned("Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"),
        ),
        (
            &format!(r#"{OLDER_KEY},"ConditionalOperator":"AND""#),
            owned("ConditionalOperator cannot be used without Filter or Expected"),
        ),
        (
            &format!(
                r##"{OLDER_KEY},"ExpressionAttributeNames":{{}},"ExpressionAttributeValues":{{}}"##
            ),
            owned("ExpressionAttributeNames can only be specified when using expressions"),
        ),
        (
            &format!(r##"{OLDER_KEY},"ExpressionAttributeValues":{{":b":{{}}}}"##),
            owned("ExpressionAttributeValues can only be specified when using expressions"),
        ),
        (
            r#""TableName":"Absent","FilterExpression":"","Select":"BOGUS""#,
            owned("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."),
        ),
        (
            r#""Limit":1"#,
            owned("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."),
        ),
        (
            r#""QueryFilter":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}"#,
            owned("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."),
        ),
        (
            r#""KeyConditions":{}"#,
            owned("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn key_condition_expressions_are_checked_before_the_table() {
    let expression = |message: &str| format!("Invalid KeyConditionExpression: {message}");
    let operand = |operator: &str, kind: &str| {
        format!(
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: \
             {operator}, operand type: {kind}"
        )
    };
    let undefined = || {
        expression(
            "An expression attribute value used in expression is not defined; attribute value: :missing",
        )
    };
    let condition = |text: &str, values: &str| {
        format!(
            r#""TableName":"Absent","KeyConditionExpression":"{text}","ExpressionAttributeValues":{{{values}}}"#
        )
    };
    let p = r#"":p":{"S":"a"}"#;
    let n = r#"":n":{"N":"1"}"#;
    check_sorted(&cases([
        (
            &condition("pk = :missing AND begins_with(sk, :n)", n),
            undefined(),
        ),
        (
            &condition("begins_with(sk, :n) AND pk = :missing", n),
            operand("begins_with", "N"),
        ),
        (
            &condition(
                "pk = :p AND begins_with(sk, :n) AND sk = :missing",
                &format!("{p},{n}"),
            ),
            operand("begins_with", "N"),
        ),
        (
            &condition(
                "pk = :p AND sk < :b",
                &format!(r#"{p},":b":{{"BOOL":true}}"#),
            ),
            operand("<", "BOOL"),
        ),
        (
            &condition(
                "pk = :p AND :b >= sk",
                &format!(r#"{p},":b":{{"BOOL":true}}"#),
            ),
            operand(">=", "BOOL"),
        ),
        (
            &condition(
                "pk = :p AND sk BETWEEN :b AND :b",
                &format!(r#"{p},":b":{{"NULL":true}}"#),
            ),
            operand("BETWEEN", "NULL"),
        ),
        (
            &condition("((pk = :p))", p),
            expression("The expression has redundant parentheses;"),
        ),
        (
            &condition("pk = :p OR sk = :p", p),
            expression("Invalid operator used in KeyConditionExpression: OR"),
        ),
        (
            &condition("NOT pk = :p", p),
            expression("Invalid operator used in KeyConditionExpression: NOT"),
        ),
        (
            &condition("pk = :p AND sk <> :p", p),
            expression("Invalid operator used in KeyConditionExpression: <>"),
        ),
        (
            &condition("pk = :p AND attribute_exists(sk)", p),
            expression("Invalid operator used in KeyConditionExpression: attribute_exists"),
        ),
        (
            &condition("pk = :p AND sk.foo = :p", p),
            expression("KeyConditionExpressions cannot have conditions on nested attributes"),
        ),
        (
            &condition("pk = :p AND dog(sk, :p)", p),
            expression("Invalid function name; function: dog"),
        ),
        (
            &condition("pk = :p AND pk = :p", p),
            expression("KeyConditionExpressions must only contain one condition per key"),
        ),
        (
            &condition("", p),
            expression("The expression can not be empty;"),
        ),
        (
            &condition("pk = :p", &format!("{p},{n}")),
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:n}"
                .to_owned(),
        ),
        (
            &condition("pk = :p AND sk = :n", &format!("{p},{n}")),
            "Requested resource not found".to_owned(),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn key_conditions_match_the_key() {
    let owned = str::to_owned;
    let schema = || invalid("Condition parameter type does not match schema type");
    let condition = |text: &str, values: &str| {
        format!(r#""KeyConditionExpression":"{text}","ExpressionAttributeValues":{{{values}}}"#)
    };
    let on_multi = |text: &str| {
        let values: Vec<_> = [":a", ":b", ":c", ":d"]
            .into_iter()
            .filter(|value| text.contains(value))
            .map(|value| format!(r#""{value}":{{"S":"x"}}"#))
            .collect();
        format!(
            r#""IndexName":"multi",{}"#,
            condition(text, &values.join(","))
        )
    };
    let (p, n, s) = (
        r#"":p":{"S":"a"}"#,
        r#"":n":{"N":"1"}"#,
        r#"":s":{"S":"x"}"#,
    );
    let pn = format!("{p},{n}");
    let ps = format!("{p},{s}");
    let equal = "must have equality conditions specified in the query";
    check_sorted(&cases([
        (&condition("sk = :n", n), owned("Query condition missed key schema element: pk")),
        (&condition("extra = :n", n), owned("Query condition missed key schema element: pk")),
        (&condition("pk = :p AND extra = :n", &pn), owned("Query condition missed key schema element: sk")),
        (&condition("pk < :p", p), owned("Query key condition not supported")),
        (&condition("pk = :n", n), schema()),
        (&condition("pk = :p AND sk = :s", &ps), schema()),
        (&condition("pk = :p AND begins_with(sk, :s)", &ps), schema()),
        (&condition("pk = :p AND sk = :b", &format!(r#"{p},":b":{{"BOOL":true}}"#)), schema()),
        (
            &condition("pk = :p AND sk > :n AND extra = :n", &pn),
            owned("The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)"),
        ),
        (
            &condition("pk = :p", r#"":p":{"S":""}"#),
            owned(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an \
                 empty string value. Key: pk",
            ),
        ),
        (&on_multi("h1 = :a AND r1 = :b"), format!("HASH key attributes h2 {equal}")),
        (&on_multi("h1 = :a AND h2 > :b"), format!("HASH key attributes h2 {equal}")),
        (
            &on_multi("h1 = :a AND h2 = :b AND r2 = :c"),
            format!("RANGE key attributes r1 {equal} because a condition is present on key attribute r2"),
        ),
        (
            &on_multi("h1 = :a AND h2 = :b AND r1 > :c AND r2 = :d"),
            format!("RANGE key attributes r1 {equal} because a condition is present on key attribute r2"),
        ),
        (&on_multi("r1 = :c AND h2 = :b AND h1 = :a AND r2 > :d"), String::new()),
        (
            &format!(
                r#"{},"FilterExpression":"sk > :n""#,
                condition("pk = :p", &pn)
            ),
            owned("Filter Expression can only contain non-primary key attributes: Primary key attribute: sk"),
        ),
        (
            &format!(
                r#"{},"FilterExpression":"lsk.a > :n""#,
                condition("pk = :p", &pn)
            ),
            owned(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: \
                 IndexKey: lsk",
            ),
        ),
    ]))
    .await;
}

#[tokio::test]
async fn legacy_conditions_are_validated() {
    let owned = str::to_owned;
    let schema = || invalid("Condition parameter type does not match schema type");
    let key = |name: &str, operator: &str, values: &str| {
        format!(r#""{name}":{{"ComparisonOperator":"{operator}","AttributeValueList":[{values}]}}"#)
    };
    let on_sk = |operator: &str, values: &str| {
        format!(
            r#""KeyConditions":{{{},{}}}"#,
            key("pk", "EQ", r#"{"S":"a"}"#),
            key("sk", operator, values)
        )
    };
    let on_pk = |operator: &str, values: &str| {
        format!(r#""KeyConditions":{{{}}}"#, key("pk", operator, values))
    };
    let filter = |name: &str, operator: &str, values: &str| {
        format!(
            r#"{OLDER_KEY},"QueryFilter":{{{}}}"#,
            key(name, operator, values)
        )
    };
    let count = |operator: &str| {
        invalid(&format!(
            "Invalid number of argument(s) for the {operator} ComparisonOperator"
        ))
    };
    let kind = |operator: &str, kind: &str| {
        invalid(&format!(
            "ComparisonOperator {operator} is not valid for {kind} AttributeValue type"
        ))
    };
    let one_type = || invalid("AttributeValues inside AttributeValueList must be of same type");
    const BOUNDS: &str = "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound";
    const NOT_INDEXABLE: &str = "Attempted conditional constraint is not an indexable operation";
    let unknown = || invalid("Invalid comparison operator");
    check_sorted(&cases([
        (&on_pk("eq", r#"{"S":"a"}"#), unknown()),
        (&on_pk("EQ", ""), count("EQ")),
        (&on_pk("EQ", r#"{"S":"a"},{"S":"a"}"#), count("EQ")),
        (&on_pk("LT", r#"{"S":"a"}"#), owned("Query key condition not supported")),
        (&on_pk("BETWEEN", r#"{"S":"a"},{"S":"b"}"#), owned("Query key condition not supported")),
        (&on_pk("NE", r#"{"S":"a"}"#), owned(NOT_INDEXABLE)),
        (&on_pk("NULL", ""), owned(NOT_INDEXABLE)),
        (&on_sk("IN", r#"{"N":"1"}"#), owned(NOT_INDEXABLE)),
        (&on_pk("EQ", r#"{"N":"1"}"#), schema()),
        (&on_pk("EQ", r#"{"M":{}}"#), schema()),
        (&on_sk("EQ", r#"{"S":"x"}"#), schema()),
        (&on_sk("BEGINS_WITH", r#"{"N":"3"}"#), kind("BEGINS_WITH", "N")),
        (&on_sk("BETWEEN", r#"{"M":{}},{"M":{}}"#), kind("BETWEEN", "M")),
        (&on_sk("BETWEEN", r#"{"N":"1"},{"S":"x"}"#), one_type()),
        (&on_sk("BETWEEN", r#"{"N":"2"},{"N":"1"}"#), owned(BOUNDS)),
        (
            &format!(
                r#""KeyConditions":{{{},{},{}}}"#,
                key("pk", "EQ", r#"{"S":"a"}"#),
                key("sk", "EQ", r#"{"N":"1"}"#),
                key("a", "EQ", r#"{"N":"1"}"#)
            ),
            owned("The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)"),
        ),
        (
            &format!(r#""KeyConditions":{{{}}}"#, key("sk", "EQ", r#"{"N":"1"}"#)),
            owned("Query condition missed key schema element: pk"),
        ),
        (&on_pk("EQ", r#"{"NULL":false}"#), invalid("Null attribute value types must have the value of true")),
        (&filter("a", "DOG", r#"{"N":"1"}"#), unknown()),
        (&filter("a", "IN", ""), count("IN")),
        (&filter("a", "BETWEEN", r#"{"N":"1"}"#), count("BETWEEN")),
        (&filter("a", "NULL", r#"{"N":"1"}"#), count("NULL")),
        (&filter("a", "LT", r#"{"BOOL":true}"#), kind("LT", "BOOL")),
        (&filter("a", "IN", r#"{"S":"a"},{"L":[]}"#), kind("IN", "L")),
        (&filter("a", "IN", r#"{"S":"a"},{"N":"3"}"#), one_type()),
        (&filter("a", "CONTAINS", r#"{"SS":["a"]}"#), kind("CONTAINS", "SS")),
        (&filter("a", "BETWEEN", r#"{"S":"b"},{"S":"a"}"#), owned(BOUNDS)),
        (
            &filter("sk", "EQ", r#"{"N":"3"}"#),
            owned("QueryFilter can only contain non-primary key attributes: Primary key attribute: sk"),
        ),
        (&filter("a", "EQ", r#"{"M":{"":{"S":"x"}}}"#), owned("Empty attribute name")),
        (&filter("a", "EQ", r#"{"N":"abc"}"#), owned("The parameter cannot be converted to a numeric value: abc")),
        (&format!(r#"{OLDER_KEY},"QueryFilter":{{}}"#), String::new()),
    ]))
    .await;
}

#[tokio::test]
async fn start_key_must_be_a_possible_last_key() {
    let owned = str::to_owned;
    let start = |key: &str| {
        format!(
            r#""KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{{":p":{{"S":"a"}}}},"ExclusiveStartKey":{key}"#
        )
    };
    let ranged = |condition: &str, key: &str| {
        format!(
            r#""KeyConditionExpression":"pk = :p AND sk {condition} :n","ExpressionAttributeValues":{{":p":{{"S":"a"}},":n":{{"N":"2"}}}},"ExclusiveStartKey":{key}"#
        )
    };
    let on_lsi = |key: &str| format!(r#""IndexName":"lsi",{}"#, start(key));
    const OUTSIDE: &str =
        "The provided starting key is outside query boundaries based on provided conditions";
    const PREDICATE: &str = "The provided starting key does not match the range key predicate";
    const ONE_ROW: &str = "The query can return at most one row and cannot be restarted";
    let bare = |members: &str| start(members);
    check_sorted(&cases([
        (&bare("{}"), owned(START_KEY)),
        (&bare(r#"{"pk":{"S":"a"}}"#), owned(START_KEY)),
        (&bare(r#"{"pk":{"N":"1"},"sk":{"N":"1"}}"#), owned(START_KEY)),
        (&bare(r#"{"pk":{"S":"a"},"sk":{"S":"x"}}"#), owned(START_KEY)),
        (&bare(r#"{"pk":{"M":{}},"sk":{"N":"1"}}"#), owned(START_KEY)),
        (&bare(r#"{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"S":"x"}}"#), owned(START_KEY)),
        (&on_lsi(r#"{"pk":{"S":"a"},"sk":{"N":"1"}}"#), owned(START_KEY)),
        (&on_lsi(r#"{"pk":{"S":"a"},"lsk":{"S":"1"}}"#), owned(START_KEY)),
        (
            &bare(r#"{"pk":{"NULL":false},"sk":{"N":"1"}}"#),
            invalid("Null attribute value types must have the value of true"),
        ),
        (&bare(r#"{"pk":{"SS":[]}}"#), invalid("An string set  may not be empty")),
        (
            &bare(r#"{"pk":{"S":"a"},"sk":{"N":"abc"}}"#),
            owned("The parameter cannot be converted to a numeric value: abc"),
        ),
        (
            &bare(r#"{"pk":{}}"#),
            format!("{START_KEY}: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
        ),
        (
            &bare(r#"{"pk":{"S":"a","N":"1"}}"#),
            format!(
                "{START_KEY}: Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
                 supported datatypes"
            ),
        ),
        (
            &bare(r#"{"pk":{"S":""},"sk":{"N":"1"}}"#),
            owned(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an \
                 empty string value. Key: pk",
            ),
        ),
        (&bare(r#"{"pk":{"S":"b"},"sk":{"N":"1"}}"#), owned(OUTSIDE)),
        (&ranged("<", r#"{"pk":{"S":"a"},"sk":{"N":"5"}}"#), owned(PREDICATE)),
        (&ranged("<", r#"{"pk":{"S":"b"},"sk":{"N":"5"}}"#), owned(PREDICATE)),
        (&ranged("<", r#"{"pk":{"S":"b"},"sk":{"N":"1"}}"#), owned(ONE_ROW)),
        (&ranged("=", r#"{"pk":{"S":"b"},"sk":{"N":"2"}}"#), owned(ONE_ROW)),
        (&ranged("=", r#"{"pk":{"S":"a"},"sk":{"N":"2"}}"#), String::new()),
        (&bare(r#"{"pk":{"S":"a"},"sk":{"N":"1"}}"#), String::new()),
    ]))
    .await;
    check_members(&cases([
        (
            &format!(r#"{KEY},"ExclusiveStartKey":{{"pk":{{"S":"b"}}}}"#),
            owned("The provided exclusive start key is invalid"),
        ),
        (
            &format!(r#"{KEY},"ExclusiveStartKey":{{"gk":{{"N":"1"}}}}"#),
            owned(START_KEY),
        ),
        (
            &format!(r#"{GSI},"ExclusiveStartKey":{{"pk":{{"S":"a"}},"gk":{{"N":"1"}}}}"#),
            owned(START_KEY),
        ),
        (
            &format!(r#"{GSI},"ExclusiveStartKey":{{"pk":{{"N":"1"}},"gk":{{"S":"a"}}}}"#),
            owned(START_KEY),
        ),
    ]))
    .await;
}
