//! CreateTable.

use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a table with two text attributes and these members; `null` removes one.
fn table(members: Value) -> Value {
    let mut body = json!({
        "TableName": "abc",
        "AttributeDefinitions": attributes(&["a", "b"]),
        "KeySchema": key(&["a", "b"]),
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    });
    if let Value::Object(members) = members {
        for (name, value) in members {
            body[name] = value;
        }
    }
    body
}

/// Returns definitions of text attributes.
pub(crate) fn attributes(names: &[&str]) -> Value {
    let definition = |name: &&str| json!({"AttributeName": name, "AttributeType": "S"});
    names.iter().map(definition).collect()
}

/// Returns a key schema: the first attribute is the partition key, the others are sort keys.
pub(crate) fn key(names: &[&str]) -> Value {
    let role = |at| if at == 0 { "HASH" } else { "RANGE" };
    let elements = names.iter().enumerate();
    elements
        .map(|(at, name)| json!({"AttributeName": name, "KeyType": role(at)}))
        .collect()
}

fn roles(elements: &[(&str, &str)]) -> Value {
    let element = |(name, role): &(&str, &str)| json!({"AttributeName": name, "KeyType": role});
    elements.iter().map(element).collect()
}

fn index(name: &str, key: Value, projection: Value) -> Value {
    let members = [
        ("IndexName", name.into()),
        ("KeySchema", key),
        ("Projection", projection),
    ];
    members.into_iter().collect()
}

fn fault(value: &str, path: &str, constraint: &str) -> String {
    format!("Value {value} at '{path}' failed to satisfy constraint: Member must {constraint}")
}

fn null(path: &str) -> String {
    fault("null", path, "not be null")
}

fn invalid(message: &str) -> String {
    format!("One or more parameter values were invalid: {message}")
}

#[tokio::test]
async fn table_is_created_described_listed_and_deleted() {
    let service = TestService::new();
    service.table("Users").await;
    let name = json!({"TableName": "Users"});
    let table = service.ok("DescribeTable", name.clone()).await["Table"].clone();
    assert_eq!(table["TableStatus"], "ACTIVE");
    let tables = service.ok("ListTables", json!({})).await;
    assert_eq!(tables, json!({"TableNames": ["Users"]}));
    service.ok("DeleteTable", name).await;
    let tables = service.ok("ListTables", json!({})).await;
    assert_eq!(tables, json!({"TableNames": []}));
}

#[tokio::test]
async fn response_describes_a_table_being_created() {
    let service = TestService::new();
    let body = table(json!({
        "AttributeDefinitions": attributes(&["b", "a"]),
        "GlobalSecondaryIndexes": [{
            "IndexName": "abc",
            "KeySchema": key(&["b"]),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
            "ProvisionedThroughput": {"ReadCapacityUnits": 2, "WriteCapacityUnits": 3},
        }],
        "LocalSecondaryIndexes": [index("abd", key(&["a", "b"]), json!({"ProjectionType": "ALL"}))],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"},
        "Tags": [{"Key": "team", "Value": ""}],
    }));
    let mut table = service.ok("CreateTable", body).await["TableDescription"].clone();
    let take = |table: &mut Value, name: &str| table[name].take();
    assert!(take(&mut table, "CreationDateTime").as_f64().unwrap() > 1.7e9);
    assert_eq!(take(&mut table, "TableId").as_str().unwrap().len(), 36);
    let label = take(&mut table, "LatestStreamLabel");
    let arn = "arn:aws:dynamodb:local:000000000000:table/abc";
    let stream = take(&mut table, "LatestStreamArn");
    assert_eq!(stream, format!("{arn}/stream/{}", label.as_str().unwrap()));
    let units = |read, write| {
        json!({
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": read,
            "WriteCapacityUnits": write,
        })
    };
    let expected = json!({
        "AttributeDefinitions": attributes(&["a", "b"]),
        "CreationDateTime": null,
        "DeletionProtectionEnabled": false,
        "GlobalSecondaryIndexes": [{
            "IndexArn": format!("{arn}/index/abc"),
            "IndexName": "abc",
            "IndexSizeBytes": 0,
            "IndexStatus": "CREATING",
            "ItemCount": 0,
            "KeySchema": key(&["b"]),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
            "ProvisionedThroughput": units(2, 3),
        }],
        "ItemCount": 0,
        "KeySchema": key(&["a", "b"]),
        "LatestStreamArn": null,
        "LatestStreamLabel": null,
        "LocalSecondaryIndexes": [{
            "IndexArn": format!("{arn}/index/abd"),
            "IndexName": "abd",
            "IndexSizeBytes": 0,
            "ItemCount": 0,
            "KeySchema": key(&["a", "b"]),
            "Projection": {"ProjectionType": "ALL"},
        }],
        "ProvisionedThroughput": units(1, 1),
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"},
        "TableArn": arn,
        "TableId": null,
        "TableName": "abc",
        "TableSizeBytes": 0,
        "TableStatus": "CREATING",
    });
    assert_eq!(table, expected);
    let body = json!({"TableName": "abc", "AttributeDefinitions": attributes(&["a"]),
        "KeySchema": key(&["a"]), "BillingMode": "PAY_PER_REQUEST"});
    let again = "Table already exists: abc";
    service
        .expect_error(
            "CreateTable",
            &body.to_string(),
            "ResourceInUseException",
            again,
        )
        .await;
}

#[tokio::test]
async fn settings_are_described() {
    let service = TestService::new();
    let create = async |members: Value| {
        let mut body = table(members);
        body["ProvisionedThroughput"] = Value::Null;
        body["BillingMode"] = "PAY_PER_REQUEST".into();
        body["KeySchema"] = key(&["a"]);
        body["AttributeDefinitions"] = attributes(&["a"]);
        let created = service.ok("CreateTable", body).await["TableDescription"].clone();
        let name = json!({"TableName": "abc"});
        let described = service.ok("DescribeTable", name.clone()).await["Table"].clone();
        let remove = service.ok(
            "UpdateTable",
            json!({"TableName": "abc", "DeletionProtectionEnabled": false}),
        );
        remove.await;
        service.ok("DeleteTable", name).await;
        (created, described)
    };
    let (created, described) = create(json!({})).await;
    assert_eq!(
        created["BillingModeSummary"],
        json!({"BillingMode": "PAY_PER_REQUEST"})
    );
    assert_eq!(
        described["BillingModeSummary"],
        json!({
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": described["CreationDateTime"],
        })
    );
    assert_eq!(created["WarmThroughput"], Value::Null);
    let warm = |read, write, status| json!({"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": status});
    assert_eq!(described["WarmThroughput"], warm(12000, 4000, "ACTIVE"));
    for absent in [
        "SSEDescription",
        "TableClassSummary",
        "OnDemandThroughput",
        "StreamSpecification",
        "Tags",
    ] {
        assert_eq!(described[absent], Value::Null, "{absent}");
    }

    let (created, described) =
        create(json!({"WarmThroughput": {"ReadUnitsPerSecond": 12240}})).await;
    assert_eq!(created["WarmThroughput"], warm(12240, 4000, "UPDATING"));
    assert_eq!(described["WarmThroughput"], warm(12240, 4000, "ACTIVE"));

    let limits = json!({"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5});
    let (_, described) = create(json!({
        "DeletionProtectionEnabled": true,
        "OnDemandThroughput": limits,
        "SSESpecification": {"Enabled": true},
        "TableClass": "STANDARD",
    }))
    .await;
    assert_eq!(described["DeletionProtectionEnabled"], true);
    assert_eq!(described["OnDemandThroughput"], limits);
    assert_eq!(
        described["TableClassSummary"],
        json!({"TableClass": "STANDARD"})
    );
    let encryption = &described["SSEDescription"];
    assert_eq!(
        (&encryption["Status"], &encryption["SSEType"]),
        (&json!("ENABLED"), &json!("KMS"))
    );
    let key = encryption["KMSMasterKeyArn"].as_str().unwrap();
    assert!(
        key.starts_with("arn:aws:kms:local:000000000000:key/"),
        "{key}"
    );

    let (_, described) = create(json!({
        "OnDemandThroughput": {},
        "SSESpecification": {"Enabled": false},
        "StreamSpecification": {"StreamEnabled": false},
        "WarmThroughput": {},
    }))
    .await;
    assert_eq!(described["SSEDescription"], Value::Null);
    assert_eq!(described["OnDemandThroughput"], Value::Null);
}

#[tokio::test]
async fn member_faults_are_reported_together() {
    let service = TestService::new();
    let check = async |body: Value, faults: Vec<String>| {
        let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
        service
            .expect_faults("CreateTable", &body.to_string(), &faults)
            .await;
    };
    let pattern = "satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    let short = "have length greater than or equal to 3";
    let long = "have length less than or equal to 255";
    let some = "have length greater than or equal to 1";
    let low = "have value greater than or equal to 1";
    let name = "a".repeat(256);

    service
        .expect_validation_error(
            "CreateTable",
            "{}",
            "The parameter 'TableName' is required but was not present in the request",
        )
        .await;
    check(
        table(json!({"TableName": "ab"})),
        vec![fault("'ab'", "tableName", short)],
    )
    .await;
    check(
        table(json!({"TableName": name})),
        vec![fault(&format!("'{name}'"), "tableName", long)],
    )
    .await;
    check(
        json!({"TableName": "", "KeySchema": [], "AttributeDefinitions": []}),
        vec![
            fault("''", "tableName", pattern),
            fault("''", "tableName", short),
            fault("'[]'", "keySchema", some),
        ],
    )
    .await;
    check(
        json!({"TableName": "abc;"}),
        vec![
            null("attributeDefinitions"),
            fault("'abc;'", "tableName", pattern),
            null("keySchema"),
        ],
    )
    .await;
    check(
        table(json!({"ProvisionedThroughput": {}, "KeySchema": null})),
        vec![
            null("provisionedThroughput.writeCapacityUnits"),
            null("provisionedThroughput.readCapacityUnits"),
            null("keySchema"),
        ],
    )
    .await;
    check(
        table(json!({
            "ProvisionedThroughput": {"ReadCapacityUnits": -1, "WriteCapacityUnits": 0},
            "BillingMode": "free",
        })),
        vec![
            fault("'0'", "provisionedThroughput.writeCapacityUnits", low),
            fault("'-1'", "provisionedThroughput.readCapacityUnits", low),
            fault(
                "'free'",
                "billingMode",
                "satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
            ),
        ],
    )
    .await;
    check(
        table(json!({
            "KeySchema": [{"KeyType": "HASH"}, {"AttributeName": "a"}, {"KeyType": "Woop", "AttributeName": "a"}],
            "AttributeDefinitions": [{}, {"AttributeName": "", "AttributeType": "SS"}],
        })),
        vec![
            null("keySchema.1.member.attributeName"),
            null("keySchema.2.member.keyType"),
            fault("'Woop'", "keySchema.3.member.keyType", "satisfy enum value set: [HASH, RANGE]"),
            null("attributeDefinitions.1.member.attributeName"),
            null("attributeDefinitions.1.member.attributeType"),
            fault("''", "attributeDefinitions.2.member.attributeName", some),
            fault(
                "'SS'",
                "attributeDefinitions.2.member.attributeType",
                "satisfy enum value set: [B, N, S]",
            ),
        ],
    )
    .await;
    check(
        table(json!({
            "GlobalSecondaryIndexes": [
                {"IndexName": "h;", "KeySchema": [], "Projection": {},
                 "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}},
                {"IndexName": name, "KeySchema": key(&["a"]), "ProvisionedThroughput": {},
                 "Projection": {"ProjectionType": "abc", "NonKeyAttributes": []}},
            ],
        })),
        vec![
            fault("'h;'", "globalSecondaryIndexes.1.member.indexName", pattern),
            fault("'h;'", "globalSecondaryIndexes.1.member.indexName", short),
            fault("'[]'", "globalSecondaryIndexes.1.member.keySchema", some),
            fault(
                "'0'",
                "globalSecondaryIndexes.1.member.provisionedThroughput.readCapacityUnits",
                low,
            ),
            fault(
                &format!("'{name}'"),
                "globalSecondaryIndexes.2.member.indexName",
                long,
            ),
            fault(
                "'abc'",
                "globalSecondaryIndexes.2.member.projection.projectionType",
                "satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
            ),
            fault(
                "'[]'",
                "globalSecondaryIndexes.2.member.projection.nonKeyAttributes",
                some,
            ),
            null("globalSecondaryIndexes.2.member.provisionedThroughput.writeCapacityUnits"),
            null("globalSecondaryIndexes.2.member.provisionedThroughput.readCapacityUnits"),
        ],
    )
    .await;
    // At most ten are reported.
    let member = |at, name| null(&format!("localSecondaryIndexes.{at}.member.{name}"));
    let mut ten: Vec<String> = (1..4)
        .flat_map(|at| ["indexName", "keySchema", "projection"].map(|name| member(at, name)))
        .collect();
    ten.push(member(4, "indexName"));
    let empty = vec![json!({}); 9];
    check(table(json!({"LocalSecondaryIndexes": empty})), ten).await;
    check(
        table(json!({
            "StreamSpecification": {"StreamViewType": ""},
            "SSESpecification": {"SSEType": "x", "KMSMasterKeyId": ""},
        })),
        vec![
            null("streamSpecification.streamEnabled"),
            fault(
                "''",
                "streamSpecification.streamViewType",
                "satisfy enum value set: [OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]",
            ),
            fault(
                "'x'",
                "sSESpecification.sSEType",
                "satisfy enum value set: [AES256, KMS]",
            ),
            fault("''", "sSESpecification.kMSMasterKeyId", some),
        ],
    )
    .await;
}

#[tokio::test]
async fn billing_and_keys_are_checked_in_order() {
    let service = TestService::new();
    let undefined = "Invalid KeySchema: Some index key attribute have no definition";
    let units =
        |read: u64, write: u64| json!({"ReadCapacityUnits": read, "WriteCapacityUnits": write});
    let high = 1_000_000_000_001;
    let elements = "[KeySchemaElement(attributeName=a, keyType=HASH), KeySchemaElement(attributeName=b, \
                    keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]";
    let (three, no_pay) = (key(&["a", "b", "c"]), Value::Null);
    let missing = invalid(
        "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    );
    for (members, message) in [
        (
            json!({"BillingMode": "PAY_PER_REQUEST"}),
            invalid(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
                 PAY_PER_REQUEST",
            ),
        ),
        (json!({"ProvisionedThroughput": no_pay}), missing.clone()),
        (
            json!({"ProvisionedThroughput": no_pay, "BillingMode": "PROVISIONED", "KeySchema": three}),
            missing,
        ),
        (
            json!({"ProvisionedThroughput": units(high, high), "AttributeDefinitions": []}),
            format!("Given value {high} for ReadCapacityUnits is out of bounds"),
        ),
        (
            json!({"ProvisionedThroughput": units(high - 1, high), "KeySchema": three}),
            format!("Given value {high} for WriteCapacityUnits is out of bounds"),
        ),
        (
            json!({"KeySchema": three}),
            format!(
                "1 validation error detected: {}",
                fault(
                    &format!("'{elements}'"),
                    "keySchema",
                    "have length less than or equal to 2"
                )
            ),
        ),
        (
            json!({"AttributeDefinitions": attributes(&["a", "a"])}),
            "Attribute Name is duplicated: a".to_owned(),
        ),
        (json!({"AttributeDefinitions": []}), undefined.to_owned()),
        (
            json!({"AttributeDefinitions": attributes(&["a"]), "KeySchema": key(&["a", "a"])}),
            undefined.to_owned(),
        ),
        (
            json!({"AttributeDefinitions": attributes(&["b"])}),
            undefined.to_owned(),
        ),
        (
            json!({"AttributeDefinitions": attributes(&["b"]), "KeySchema": key(&["a"])}),
            invalid(
                "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], \
                 AttributeDefinitions: [b]",
            ),
        ),
        (
            json!({"KeySchema": roles(&[("a", "HASH"), ("a", "HASH")])}),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
                .to_owned(),
        ),
        (
            json!({"KeySchema": roles(&[("a", "HASH"), ("b", "HASH")])}),
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type".to_owned(),
        ),
        (
            json!({"KeySchema": roles(&[("a", "RANGE"), ("b", "RANGE")])}),
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type".to_owned(),
        ),
        (
            json!({"KeySchema": key(&["a"])}),
            invalid(
                "Number of attributes in KeySchema does not exactly match number of attributes defined \
                 in AttributeDefinitions",
            ),
        ),
    ] {
        let body = table(members).to_string();
        service
            .expect_validation_error("CreateTable", &body, &message)
            .await;
    }
}

#[tokio::test]
async fn indexes_are_checked_in_order() {
    let service = TestService::new();
    let all = json!({"ProjectionType": "ALL"});
    let local = |key: Value, projection: &Value| json!({"LocalSecondaryIndexes": [index("abc", key, projection.clone())]});
    let none = json!({});
    let first = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type";
    let same = "Both the Hash Key and the Range Key element in the KeySchema have the same name";
    let undefined = |keys: &str| {
        invalid(&format!(
            "Some index key attributes are not defined in AttributeDefinitions. Keys: {keys}, \
             AttributeDefinitions: [a, b]"
        ))
    };
    for (members, message) in [
        (
            json!({"LocalSecondaryIndexes": [], "KeySchema": key(&["a"])}),
            invalid("List of LocalSecondaryIndexes is empty"),
        ),
        (
            json!({"GlobalSecondaryIndexes": [], "KeySchema": key(&["a"])}),
            invalid("List of GlobalSecondaryIndexes is empty"),
        ),
        (
            json!({"KeySchema": key(&["a"]), "LocalSecondaryIndexes": [index("abc", key(&["c"]), none.clone())]}),
            invalid(
                "Table KeySchema does not have a range key, which is required when specifying a \
                 LocalSecondaryIndex",
            ),
        ),
        (
            local(roles(&[("c", "RANGE"), ("d", "RANGE")]), &none),
            undefined("[d, c]"),
        ),
        (local(key(&["a", "c"]), &none), undefined("[a, c]")),
        (local(roles(&[("a", "RANGE")]), &none), first.to_owned()),
        (
            local(roles(&[("a", "HASH"), ("a", "HASH")]), &none),
            same.to_owned(),
        ),
        (
            local(roles(&[("a", "HASH"), ("b", "HASH")]), &none),
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type".to_owned(),
        ),
        (
            local(key(&["b"]), &none),
            invalid("Index KeySchema does not have a range key for index: abc"),
        ),
        (
            local(key(&["b", "a"]), &none),
            invalid(
                "Index KeySchema does not have the same leading hash key as table KeySchema for index: \
                 abc. index hash key: b, table hash key: a",
            ),
        ),
        (
            local(key(&["a", "b"]), &none),
            invalid("Unknown ProjectionType: null"),
        ),
        (
            local(key(&["a", "b"]), &json!({"NonKeyAttributes": ["a"]})),
            invalid("Unknown ProjectionType: null"),
        ),
        (
            local(
                key(&["a", "b"]),
                &json!({"ProjectionType": "ALL", "NonKeyAttributes": ["a"]}),
            ),
            invalid("ProjectionType is ALL, but NonKeyAttributes is specified"),
        ),
        (
            local(
                key(&["a", "b"]),
                &json!({"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["a"]}),
            ),
            invalid("ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified"),
        ),
        (
            local(key(&["a", "b"]), &json!({"ProjectionType": "INCLUDE"})),
            invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified"),
        ),
        (
            json!({"LocalSecondaryIndexes": [
                index("abc", key(&["a", "b"]), all.clone()), index("abc", key(&["a", "b"]), all.clone())]}),
            invalid("Duplicate index name: abc"),
        ),
        (
            json!({"GlobalSecondaryIndexes": [index("abc", roles(&[("a", "RANGE")]), none.clone())]}),
            first.to_owned(),
        ),
        (
            json!({"GlobalSecondaryIndexes": [index("abc", key(&["a", "a"]), none.clone())]}),
            same.to_owned(),
        ),
        (
            json!({"GlobalSecondaryIndexes": [index("abc", key(&["a", "b"]), all.clone())]}),
            invalid("ProvisionedThroughput is not specified for index: abc"),
        ),
        (
            json!({
                "BillingMode": "PAY_PER_REQUEST",
                "ProvisionedThroughput": null,
                "GlobalSecondaryIndexes": [index("abc", key(&["a", "b"]), none)],
            }),
            invalid("Unknown ProjectionType: null"),
        ),
        (
            json!({
                "BillingMode": "PAY_PER_REQUEST",
                "ProvisionedThroughput": null,
                "GlobalSecondaryIndexes": [index("abc", key(&["a", "b"]), all.clone())],
                "LocalSecondaryIndexes": [index("abc", key(&["a", "b"]), all)],
            }),
            invalid("Duplicate index name: abc"),
        ),
    ] {
        let body = table(members).to_string();
        service
            .expect_validation_error("CreateTable", &body, &message)
            .await;
    }
}

#[tokio::test]
async fn settings_are_checked() {
    let service = TestService::new();
    let sse = |members: Value| json!({"SSESpecification": members});
    for (members, message) in [
        (
            json!({"StreamSpecification": {"StreamEnabled": true}}),
            invalid("Table is being created with a stream enabled, UpdateViewType is required"),
        ),
        (
            json!({"StreamSpecification": {"StreamEnabled": false, "StreamViewType": "NEW_IMAGE"}}),
            invalid(
                "Table is being created with a stream disabled, UpdateViewType should not be specified",
            ),
        ),
        (
            json!({"TableClass": "standard"}),
            "Invalid table-class parameter provided. Please try again with a valid table-class value: \
             [STANDARD, STANDARD_INFREQUENT_ACCESS]."
                .to_owned(),
        ),
        (
            json!({"OnDemandThroughput": {"MaxWriteRequestUnits": 0}}),
            invalid(
                "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is \
                 PROVISIONED.",
            ),
        ),
        (
            json!({"WarmThroughput": {"WriteUnitsPerSecond": -1}}),
            invalid(
                "Requested WriteUnitsPerSecond for WarmThroughput for table is lower than \
                 WriteCapacityUnits of ProvisionedThroughput",
            ),
        ),
        (
            sse(json!({"Enabled": false, "SSEType": "KMS"})),
            invalid("SSEType can not be specified if Enabled is false"),
        ),
        (
            sse(json!({"KMSMasterKeyId": "k"})),
            invalid("KMSMasterKeyId can not be specified if Enabled is false"),
        ),
        (
            sse(json!({"Enabled": true, "SSEType": "AES256"})),
            invalid("SSEType AES256 is not supported"),
        ),
        (
            sse(json!({"Enabled": true, "KMSMasterKeyId": "k"})),
            invalid("SSEType KMS is required if KMSMasterKeyId is specified"),
        ),
        (json!({"Tags": [{}]}), "The Tag Key provided is invalid, Key: null".to_owned()),
        (
            json!({"Tags": [{"Key": "k"}]}),
            "The Tag Value provided is invalid, Value: null".to_owned(),
        ),
        (
            json!({"Tags": [{"Key": "k", "Value": "1"}, {"Key": "k", "Value": "2"}]}),
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found k".to_owned(),
        ),
        (
            json!({"Tags": [{"Key": "k!", "Value": "1"}]}),
            "The Tag Key provided is invalid, Key: k!".to_owned(),
        ),
        (
            json!({"VectorIndexes": []}),
            "VectorIndexes is not supported by this server".to_owned(),
        ),
    ] {
        let body = table(members).to_string();
        service.expect_validation_error("CreateTable", &body, &message).await;
    }
}
