//! UpdateTimeToLive and DescribeTimeToLive.

use serde_json::{Value, json};

use super::test_service::TestService;

fn switch(attribute: &str, enabled: bool) -> Value {
    let specification = json!({"AttributeName": attribute, "Enabled": enabled});
    json!({"TableName": "Users", "TimeToLiveSpecification": specification})
}

#[tokio::test]
async fn ttl_is_enabled_and_disabled() {
    let service = TestService::new();
    service.table("Users").await;
    let described = async || {
        let response = service
            .ok("DescribeTimeToLive", json!({"TableName": "Users"}))
            .await;
        response["TimeToLiveDescription"].clone()
    };
    let invalid = async |body: Value, message: &str| {
        service
            .expect_validation_error("UpdateTimeToLive", &body.to_string(), message)
            .await;
    };
    assert_eq!(described().await, json!({"TimeToLiveStatus": "DISABLED"}));
    invalid(switch("until", false), "TimeToLive is already disabled").await;

    let response = service.ok("UpdateTimeToLive", switch("until", true)).await;
    let on = json!({"AttributeName": "until", "Enabled": true});
    assert_eq!(response, json!({"TimeToLiveSpecification": on}));
    let enabled = json!({"TimeToLiveStatus": "ENABLED", "AttributeName": "until"});
    assert_eq!(described().await, enabled);
    invalid(switch("until", true), "TimeToLive is already enabled").await;
    for enabled in [true, false] {
        invalid(
            switch("other", enabled),
            "TimeToLive is active on a different AttributeName: current AttributeName is until",
        )
        .await;
    }
    service.ok("UpdateTimeToLive", switch("until", false)).await;
    assert_eq!(described().await, json!({"TimeToLiveStatus": "DISABLED"}));
}

#[tokio::test]
async fn members_are_checked_before_the_table() {
    let service = TestService::new();
    let null = "failed to satisfy constraint: Member must not be null";
    let length = "at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length";
    let long = "x".repeat(256);
    for (body, faults) in [
        (
            json!({"TableName": "abc;", "TimeToLiveSpecification": {}}),
            vec![
                "Value 'abc;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression \
                 pattern: [a-zA-Z0-9_.-]+"
                    .to_owned(),
                format!("Value null at 'timeToLiveSpecification.enabled' {null}"),
                format!("Value null at 'timeToLiveSpecification.attributeName' {null}"),
            ],
        ),
        (
            json!({"TableName": "Users"}),
            vec![format!("Value null at 'timeToLiveSpecification' {null}")],
        ),
        (switch("", true), vec![format!("Value '' {length} greater than or equal to 1")]),
        (
            switch(&long, true),
            vec![format!("Value '{long}' {length} less than or equal to 255")],
        ),
    ] {
        let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
        service.expect_faults("UpdateTimeToLive", &body.to_string(), &faults).await;
    }
    let missing = "Requested resource not found: Table: Users not found";
    service
        .expect_error(
            "UpdateTimeToLive",
            &switch("until", true).to_string(),
            "ResourceNotFoundException",
            missing,
        )
        .await;
}
