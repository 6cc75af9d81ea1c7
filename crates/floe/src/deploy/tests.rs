//! What is in a template, and what is refused.

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

/// The actions of a role, each with what it may be done to.
fn rights(template: &Value, role: &str) -> Vec<String> {
    let mut rights = Vec::new();
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
        rights.extend(actions);
    }
    rights
}

#[test]
fn a_function_may_do_what_it_is_for_and_nothing_else() {
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
    assert_eq!(rights(&template(&deployment), "AuditRole"), expected);
}

#[test]
fn a_function_comes_with_its_mappings_and_alarms() {
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
    let asked: Vec<&String> = parameters.keys().collect();
    assert_eq!(asked, ["AuditCode", "CodeBucket"]);
}

/// The router says what is followed, and whether records of the outbox are removed.
#[test]
fn a_router_says_what_its_function_follows() {
    let outbox = OutboxRecord::SCHEMA.table;
    let tables = || table_definitions(&[OutboxRecord::SCHEMA]).unwrap();
    let router = || Router::new().outbox("order.*", async |_: Message| Ok(()));
    let removes = |router: &Router| {
        let deployment = Deployment::new("Router").tables(tables());
        let deployment = deployment.function(Function::router("Router", router));
        let rights = rights(&template(&deployment), "RouterRole");
        let is_followed = rights
            .iter()
            .any(|right| right.starts_with("dynamodb:GetRecords"));
        assert!(is_followed, "{outbox}");
        rights
            .iter()
            .any(|right| right.starts_with("dynamodb:DeleteItem"))
    };
    assert!(removes(&router()));
    assert!(!removes(&router().keep_outbox()));
}

#[test]
fn the_indexer_follows_its_store_and_gives_nothing_up() {
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
    let own: Vec<_> = rights(&template, "IndexerRole")
        .into_iter()
        .filter(|right| right.contains("eventsindexTable"))
        .map(|right| right.split(' ').next().unwrap_or_default().to_owned())
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
fn what_cannot_be_deployed_is_told() {
    let check = |function: Function, expected: &str| {
        let tables = [table("log", None), followed("orders")];
        let deployment = Deployment::new("x").tables(tables).function(function);
        assert_eq!(deployment.template().unwrap_err().to_string(), expected);
    };
    let function = || Function::new("Audit").follow("orders");
    check(
        Function::new("audit-log").follow("orders"),
        "a function is called with letters and digits: function=audit-log",
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
        "no operation on items that can be granted: function=Audit operation=DeleteTable",
    );
    let twice = Deployment::new("x").tables([followed("orders")]);
    let twice = twice.function(function()).function(function());
    let error = twice.template().unwrap_err().to_string();
    assert_eq!(
        error,
        "two resources come to the same name: resource=AuditLogs"
    );
    let same = Deployment::new("x").tables([table("log", None), followed("log")]);
    let error = same.template().unwrap_err();
    assert_eq!(
        error.to_string(),
        "two tables have the same name: table=log"
    );
    assert_eq!(error.kind(), ErrorKind::Table);
}
