//! Tests of templates and of the validation of deployments.

use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection, StreamView};
use serde_json::{Value, json};

use super::*;
use crate::changes::outbox::OutboxRecord;
use crate::changes::{Message, Router};
use crate::db::Db;
use crate::model::Model;
use crate::model::tables::table_definitions;

fn table(name: &str, stream: Option<StreamView>) -> TableDef {
    let mut table = TableDef::builder(name, "id", KeyKind::S).build().unwrap();
    table.stream = stream;
    table
}

fn indexed(name: &str) -> TableDef {
    let table = TableDef::builder(name, "id", KeyKind::S);
    let (key, sort) = ([("mail", KeyKind::S)], [("since", KeyKind::N)]);
    let table = table.global_index("by_mail", key, sort, Projection::All);
    table.build().unwrap()
}

fn followed(name: &str) -> TableDef {
    table(name, Some(StreamView::NewImage))
}

fn template(deployment: &Deployment) -> Value {
    serde_json::from_str(&deployment.template().unwrap()).unwrap()
}

fn statements<'a>(template: &'a Value, role: &str) -> &'a Vec<Value> {
    let policies = &template["Resources"][role]["Properties"]["Policies"];
    let statements = &policies[0]["PolicyDocument"]["Statement"];
    statements.as_array().unwrap()
}

/// The allowed actions of a role, each with its resource.
fn permissions(template: &Value, role: &str) -> Vec<String> {
    let mut permissions = Vec::new();
    for statement in statements(template, role) {
        assert_eq!(statement["Effect"], "Allow");
        let actions = match &statement["Action"] {
            Value::Array(actions) => actions.clone(),
            action => vec![action.clone()],
        };
        let resource = statement["Resource"].to_string();
        assert_ne!(resource, "\"*\"");
        let actions = actions
            .iter()
            .map(|a| format!("{} {resource}", a.as_str().unwrap()));
        permissions.extend(actions);
    }
    permissions
}

#[test]
fn function_has_only_the_permissions_it_needs() {
    let function = Function::new("Audit")
        .follow("orders")
        .grant("log", ["PutItem", "Query"])
        .grant("users", ["Query", "GetItem"]);
    let deployment = Deployment::new("Audit")
        .tables([table("log", None), indexed("users"), followed("orders")])
        .function(function);
    let expected = [
        r#"logs:CreateLogStream {"Fn::GetAtt":["AuditLogs","Arn"]}"#,
        r#"logs:PutLogEvents {"Fn::GetAtt":["AuditLogs","Arn"]}"#,
        r#"sqs:SendMessage {"Fn::GetAtt":["AuditFailures","Arn"]}"#,
        r#"dynamodb:DescribeStream {"Fn::GetAtt":["ordersTable","StreamArn"]}"#,
        r#"dynamodb:GetRecords {"Fn::GetAtt":["ordersTable","StreamArn"]}"#,
        r#"dynamodb:GetShardIterator {"Fn::GetAtt":["ordersTable","StreamArn"]}"#,
        r#"dynamodb:ListStreams {"Fn::Sub":"${ordersTable.Arn}/stream/*"}"#,
        r#"dynamodb:PutItem {"Fn::GetAtt":["logTable","Arn"]}"#,
        r#"dynamodb:Query {"Fn::GetAtt":["logTable","Arn"]}"#,
        r#"dynamodb:GetItem [{"Fn::GetAtt":["usersTable","Arn"]},{"Fn::Sub":"${usersTable.Arn}/index/*"}]"#,
        r#"dynamodb:Query [{"Fn::GetAtt":["usersTable","Arn"]},{"Fn::Sub":"${usersTable.Arn}/index/*"}]"#,
    ];
    assert_eq!(permissions(&template(&deployment), "AuditRole"), expected);
}

#[test]
fn function_has_mappings_and_alarms() {
    let function = Function::new("Audit").follow("users").follow("orders");
    let deployment = Deployment::new("Audit")
        .tables([followed("users"), followed("orders")])
        .function(function.retries(3).batch_max(7));
    let template = template(&deployment);
    let resources = template["Resources"].as_object().unwrap();
    let ids: Vec<&String> = resources.keys().collect();
    let mut expected = vec![
        "Alarms",
        "Audit",
        "AuditBehind",
        "AuditErrors",
        "AuditFailures",
        "AuditGivenUp",
        "AuditLogs",
        "AuditOnordersTable",
        "AuditOnusersTable",
        "AuditRole",
        "ordersTable",
        "usersTable",
    ];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    let mapping = &resources["AuditOnusersTable"]["Properties"];
    assert_eq!(mapping["MaximumRetryAttempts"], 3);
    assert_eq!(mapping["BatchSize"], 7);
    assert_eq!(
        mapping["FunctionResponseTypes"],
        json!(["ReportBatchItemFailures"])
    );
    let queue = json!({"OnFailure": {"Destination": {"Fn::GetAtt": ["AuditFailures", "Arn"]}}});
    assert_eq!(mapping["DestinationConfig"], queue);
    let behind = &resources["AuditBehind"]["Properties"];
    assert_eq!(behind["MetricName"], "IteratorAge");
    let parameters = template["Parameters"].as_object().unwrap();
    let names: Vec<&String> = parameters.keys().collect();
    assert_eq!(names, ["AuditCode", "CodeBucket"]);
}

/// The router determines the followed tables, and whether outbox records are deleted.
#[test]
fn router_function_follows_tables_of_its_handlers() {
    let outbox = OutboxRecord::SCHEMA.table;
    let tables = || table_definitions(&[OutboxRecord::SCHEMA]).unwrap();
    let router = || Router::new().outbox("order.*", async |_: Message| Ok(()));
    let removes = |router: &Router| {
        let deployment = Deployment::new("Router").tables(tables());
        let deployment = deployment.function(Function::router("Router", router));
        let permissions = permissions(&template(&deployment), "RouterRole");
        let is_followed = permissions
            .iter()
            .any(|permission| permission.starts_with("dynamodb:GetRecords"));
        assert!(is_followed, "{outbox}");
        permissions
            .iter()
            .any(|permission| permission.starts_with("dynamodb:DeleteItem"))
    };
    assert!(removes(&router()));
    assert!(!removes(&router().keep_outbox()));
}

#[test]
fn indexer_follows_its_store_and_retries_forever() {
    let store = Db::memory().unwrap().events();
    let deployment = Deployment::new("Feed")
        .tables([store.table().unwrap(), store.feed_table().unwrap()])
        .function(Function::indexer(&store));
    let template = template(&deployment);
    let mapping = &template["Resources"]["IndexerOneventsTable"]["Properties"];
    assert_eq!(mapping["MaximumRetryAttempts"], -1);
    let variables = &template["Resources"]["Indexer"]["Properties"]["Environment"]["Variables"];
    let expected = json!({
        "FLOE_TABLE": "events", "FLOE_PARTITIONS": "1", "FLOE_REPORT_BATCH_ITEM_FAILURES": "true",
    });
    assert_eq!(*variables, expected);
    let own: Vec<_> = permissions(&template, "IndexerRole")
        .into_iter()
        .filter(|permission| permission.contains("eventsindexTable"))
        .map(|permission| permission.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    let expected = [
        "ConditionCheckItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ];
    assert_eq!(own, expected.map(|name| format!("dynamodb:{name}")));
}

#[test]
fn invalid_deployments_are_rejected() {
    let check = |function: Function, expected: &str| {
        let tables = [table("log", None), followed("orders")];
        let deployment = Deployment::new("x").tables(tables).function(function);
        assert_eq!(deployment.template().unwrap_err().to_string(), expected);
    };
    let function = || Function::new("Audit").follow("orders");
    check(
        Function::new("audit-log").follow("orders"),
        "the name of a function must consist of letters and digits: function=audit-log",
    );
    check(
        Function::new("Audit"),
        "a function follows no table: function=Audit",
    );
    check(
        function().follow("log"),
        "a function follows a table that has no stream: function=Audit table=log",
    );
    check(
        function().follow("other"),
        "a function needs a table that is not deployed: function=Audit table=other",
    );
    check(
        function().grant("other", ["GetItem"]),
        "a function needs a table that is not deployed: function=Audit table=other",
    );
    check(
        function().grant("log", ["DeleteTable"]),
        "a function can only be granted operations on items: function=Audit operation=DeleteTable",
    );
    let twice = Deployment::new("x").tables([followed("orders")]);
    let twice = twice.function(function()).function(function());
    let error = twice.template().unwrap_err().to_string();
    assert_eq!(
        error,
        "two resources have the same name: resource=AuditLogs"
    );
    let same = Deployment::new("x").tables([table("log", None), followed("log")]);
    let error = same.template().unwrap_err();
    assert_eq!(
        error.to_string(),
        "two tables have the same name: table=log"
    );
    assert_eq!(error.kind(), ErrorKind::Table);
}
