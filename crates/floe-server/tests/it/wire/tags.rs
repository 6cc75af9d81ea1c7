//! TagResource, UntagResource and ListTagsOfResource.

use serde_json::{Value, json};

use super::test_service::TestService;

const ARN: &str = "arn:aws:dynamodb:local:000000000000:table/Users";

async fn tags(service: &TestService) -> Value {
    service
        .ok("ListTagsOfResource", json!({"ResourceArn": ARN}))
        .await
}

fn adding(arn: &str, tags: &[(&str, &str)]) -> Value {
    let tag = |(key, value): &(&str, &str)| json!({"Key": key, "Value": value});
    json!({"ResourceArn": arn, "Tags": tags.iter().map(tag).collect::<Value>()})
}

#[tokio::test]
async fn tags_are_added_changed_and_removed() {
    let service = TestService::new();
    service.table("Users").await;
    assert_eq!(tags(&service).await, json!({"Tags": []}));
    let response = service
        .ok("TagResource", adding(ARN, &[("team", "a"), (" ", "")]))
        .await;
    assert_eq!(response, Value::Null);
    service
        .ok("TagResource", adding(ARN, &[("team", "b")]))
        .await;
    let tag = |key: &str, value: &str| json!({"Key": key, "Value": value});
    assert_eq!(
        tags(&service).await,
        json!({"Tags": [tag(" ", ""), tag("team", "b")]})
    );
    let remove = json!({"ResourceArn": ARN, "TagKeys": ["team", "never"]});
    assert_eq!(service.ok("UntagResource", remove).await, Value::Null);
    assert_eq!(tags(&service).await, json!({"Tags": [tag(" ", "")]}));

    let many: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "")).collect();
    service
        .expect_validation_error(
            "TagResource",
            &adding(ARN, &many).to_string(),
            "Number of Tags exceed the current limit for the provided ResourceArn",
        )
        .await;
}

#[tokio::test]
async fn resources_are_tables_of_this_store() {
    let service = TestService::new();
    let invalid = "One or more parameter values were invalid: ";
    let input = "Invalid TableArn: Invalid ResourceArn provided as input ";
    let index = format!("{ARN}/index/by_x");
    let backup = ARN.replace("table/Users", "backup/1");
    let short = ARN.replace("Users", "ab");
    let elsewhere = ARN.replace("local", "eu-west-1");
    for (arn, message) in [
        (
            "not-a-valid-arn",
            format!("{invalid}ARNs must start with 'arn:': not-a-valid-arn"),
        ),
        ("", format!("{invalid}ARNs must start with 'arn:': ")),
        (
            &index,
            format!(
                "{invalid}Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {index}"
            ),
        ),
        (
            &backup,
            format!("{invalid}Provided Arn is not a DynamoDB resource arn: {backup}"),
        ),
        (&short, format!("{input}{short}")),
        (&elsewhere, format!("{input}{elsewhere}")),
    ] {
        for (operation, body) in [
            ("TagResource", adding(arn, &[("k", "v")])),
            (
                "UntagResource",
                json!({"ResourceArn": arn, "TagKeys": ["k"]}),
            ),
            ("ListTagsOfResource", json!({"ResourceArn": arn})),
        ] {
            service
                .expect_validation_error(operation, &body.to_string(), &message)
                .await;
        }
    }
    for operation in ["TagResource", "UntagResource", "ListTagsOfResource"] {
        service
            .expect_validation_error(operation, "{}", "Invalid TableArn")
            .await;
    }
    for arn in [
        "arn:aws:dynamodb:us-east-1:123456789012:table/nonexistent",
        "arn:aws:s3:::bucket",
        "arn:not/a/good/format",
    ] {
        let body = json!({"ResourceArn": arn}).to_string();
        service
            .expect_error(
                "ListTagsOfResource",
                &body,
                "AccessDeniedException",
                "Access is denied",
            )
            .await;
    }
    let missing = format!("Requested resource not found: ResourcArn: {ARN} not found");
    for (operation, body, message) in [
        ("TagResource", adding(ARN, &[("k", "v")]), missing.as_str()),
        ("ListTagsOfResource", json!({"ResourceArn": ARN}), &missing),
        (
            "UntagResource",
            json!({"ResourceArn": ARN, "TagKeys": ["k"]}),
            "Requested resource not found",
        ),
    ] {
        service
            .expect_error(
                operation,
                &body.to_string(),
                "ResourceNotFoundException",
                message,
            )
            .await;
    }
}

#[tokio::test]
async fn tags_are_checked_before_the_table() {
    let service = TestService::new();
    let null = |member: &str| {
        format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
        )
    };
    let untag = |keys: Value| json!({"ResourceArn": ARN, "TagKeys": keys});
    for (operation, body, message) in [
        ("TagResource", json!({"ResourceArn": ARN}), null("tags")),
        (
            "UntagResource",
            json!({"ResourceArn": ARN}),
            null("tagKeys"),
        ),
        (
            "TagResource",
            adding(ARN, &[]),
            "Atleast one Tag needs to be provided as Input.".to_owned(),
        ),
        (
            "UntagResource",
            untag(json!([])),
            "Atleast one Tag Key needs to be provided as Input.".to_owned(),
        ),
        (
            "TagResource",
            adding(ARN, &[("hi!", "")]),
            "The Tag Key provided is invalid, Key: hi!".to_owned(),
        ),
        (
            "TagResource",
            adding(ARN, &[("dog", "d%g")]),
            "The Tag Value provided is invalid, Value: d%g".to_owned(),
        ),
        (
            "TagResource",
            adding(ARN, &[("AWS:x", "")]),
            "Tag Key cannot be prefixed with aws:, Key: AWS:x".to_owned(),
        ),
        (
            "TagResource",
            adding(ARN, &[("k", ""), ("k", "")]),
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found k".to_owned(),
        ),
        (
            "TagResource",
            json!({"ResourceArn": ARN, "Tags": [{"Key": "k"}]}),
            "The Tag Value provided is invalid, Value: null".to_owned(),
        ),
        (
            "UntagResource",
            untag(json!([""])),
            "The Tag Key provided is invalid, Key: ".to_owned(),
        ),
    ] {
        service
            .expect_validation_error(operation, &body.to_string(), &message)
            .await;
    }
}
