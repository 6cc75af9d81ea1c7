//! The resources of a function: role, log group, queue of given-up changes, code, and a mapping for each stream.

use std::collections::BTreeSet;

use floe_store::TableDef;

use super::Tables;
use super::function::Function;
use crate::tables::cloudformation::of_type;
use crate::tables::node::Node;
use crate::tables::resource_name::logical_id;

/// The actions needed to read a stream.
const STREAM_ACTIONS: [&str; 3] = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
];

const LOG_ACTIONS: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

/// The suffix of the queue of given-up changes.
pub(super) const FAILURES: &str = "Failures";

/// The deletion policy of resources that are deleted with the stack.
const DELETE_WITH_STACK: Option<&str> = Some("Delete");

/// Retention of logs.
const LOG_DAYS: i64 = 30;

/// Retention of the queue: the maximum of SQS.
const QUEUE_SECONDS: i64 = 14 * 86_400;

/// The parameters of the template: the location of the code.
pub(super) fn parameters(functions: &[Function]) -> Node {
    let text = |description: &str, default: Option<String>| {
        let mut parameter = vec![
            ("Type", Node::text("String")),
            ("Description", Node::text(description)),
        ];
        parameter.extend(default.map(|default| ("Default", Node::text(default))));
        Node::map(parameter)
    };
    let mut parameters = vec![(
        "CodeBucket".to_owned(),
        text("The bucket with the code of the functions.", None),
    )];
    for function in functions {
        let default = format!("{}.zip", function.name.to_lowercase());
        let about = format!("The S3 key of the code of {}.", function.name);
        parameters.push((function.id("Code"), text(&about, Some(default))));
    }
    Node::map(parameters)
}

/// The resources of a function, without its alarms.
pub(super) fn of(function: &Function, tables: &Tables<'_>) -> Vec<(String, Node)> {
    let mut resources = vec![
        (function.id("Logs"), log_group()),
        (function.id(FAILURES), queue()),
        (function.id("Role"), role(function, tables)),
        (function.name.clone(), code(function)),
    ];
    for table in &function.follows {
        let table = logical_id(table);
        let id = function.id(&format!("On{table}"));
        resources.push((id, mapping(function, &table)));
    }
    resources
}

/// A resource of this type.
pub(super) fn resource<'a>(
    kind: &str,
    properties: impl IntoIterator<Item = (&'a str, Node)>,
) -> Node {
    of_type(kind, None, properties)
}

/// A reference to another resource.
pub(super) fn reference(id: impl Into<String>) -> Node {
    Node::map([("Ref", Node::text(id))])
}

/// A reference to an attribute of another resource.
pub(super) fn attribute(id: &str, attribute: &str) -> Node {
    Node::map([("Fn::GetAtt", Node::texts([id, attribute]))])
}

/// The ARN of something below a table.
fn below_table(table: &str, rest: &str) -> Node {
    let table = logical_id(table);
    Node::map([("Fn::Sub", Node::text(format!("${{{table}.Arn}}{rest}")))])
}

fn log_group() -> Node {
    let retention = ("RetentionInDays", Node::Number(LOG_DAYS));
    of_type("AWS::Logs::LogGroup", DELETE_WITH_STACK, [retention])
}

fn queue() -> Node {
    of_type(
        "AWS::SQS::Queue",
        DELETE_WITH_STACK,
        [
            ("MessageRetentionPeriod", Node::Number(QUEUE_SECONDS)),
            ("SqsManagedSseEnabled", Node::Flag(true)),
        ],
    )
}

fn role(function: &Function, tables: &Tables<'_>) -> Node {
    let lambda = Node::map([("Service", Node::text("lambda.amazonaws.com"))]);
    let assume = Node::map([
        ("Effect", Node::text("Allow")),
        ("Principal", lambda),
        ("Action", Node::text("sts:AssumeRole")),
    ]);
    let policy = Node::map([
        ("PolicyName", Node::text("floe")),
        ("PolicyDocument", document(statements(function, tables))),
    ]);
    resource(
        "AWS::IAM::Role",
        [
            ("AssumeRolePolicyDocument", document(vec![assume])),
            ("Policies", Node::List(vec![policy])),
        ],
    )
}

fn document(statements: Vec<Node>) -> Node {
    Node::map([
        ("Version", Node::text("2012-10-17")),
        ("Statement", Node::List(statements)),
    ])
}

/// The policy statements of a function.
fn statements(function: &Function, tables: &Tables<'_>) -> Vec<Node> {
    let arn = |suffix: &str| attribute(&function.id(suffix), "Arn");
    let mut statements = vec![
        allow(LOG_ACTIONS, arn("Logs")),
        allow(["sqs:SendMessage"], arn(FAILURES)),
    ];
    for table in &function.follows {
        let stream = attribute(&logical_id(table), "StreamArn");
        statements.push(allow(STREAM_ACTIONS, stream));
        let streams = below_table(table, "/stream/*");
        statements.push(allow(["dynamodb:ListStreams"], streams));
    }
    for (table, operations) in &function.granted {
        let table = tables.get(table.as_str());
        statements.extend(table.map(|table| granted(table, operations)));
    }
    statements
}

fn granted(table: &TableDef, operations: &BTreeSet<String>) -> Node {
    let mut resource = attribute(&logical_id(&table.name), "Arn");
    let reads_indexes = operations.contains("Query") || operations.contains("Scan");
    if reads_indexes && !table.indexes.is_empty() {
        resource = Node::List(vec![resource, below_table(&table.name, "/index/*")]);
    }
    let actions = operations.iter().map(|name| format!("dynamodb:{name}"));
    allow(actions, resource)
}

/// A statement that allows these actions. A single action is not a list, as in the output of AWS tools.
fn allow<T: Into<String>>(actions: impl IntoIterator<Item = T>, resource: Node) -> Node {
    let actions: Vec<Node> = actions.into_iter().map(Node::text).collect();
    let action = match actions.as_slice() {
        [single] => single.clone(),
        _ => Node::List(actions),
    };
    Node::map([
        ("Effect", Node::text("Allow")),
        ("Action", action),
        ("Resource", resource),
    ])
}

fn code(function: &Function) -> Node {
    let code = Node::map([
        ("S3Bucket", reference("CodeBucket")),
        ("S3Key", reference(function.id("Code"))),
    ]);
    let role = attribute(&function.id("Role"), "Arn");
    let logs = reference(function.id("Logs"));
    let mut properties = vec![
        ("Runtime", Node::text("provided.al2023")),
        ("Architectures", Node::texts(["arm64"])),
        ("Handler", Node::text("bootstrap")),
        ("MemorySize", Node::Number(function.memory_mb)),
        ("Timeout", Node::Number(function.timeout_seconds)),
        ("Role", role),
        ("Code", code),
        ("LoggingConfig", Node::map([("LogGroup", logs)])),
    ];
    if !function.environment.is_empty() {
        let variables = function.environment.iter();
        let variables = Node::map(variables.map(|(k, v)| (k.as_str(), Node::text(v))));
        properties.push(("Environment", Node::map([("Variables", variables)])));
    }
    resource("AWS::Lambda::Function", properties)
}

/// The event source mapping from the stream of a table to a function.
fn mapping(function: &Function, table: &str) -> Node {
    let failures = attribute(&function.id(FAILURES), "Arn");
    let destination = Node::map([("OnFailure", Node::map([("Destination", failures)]))]);
    let response = Node::texts(["ReportBatchItemFailures"]);
    resource(
        "AWS::Lambda::EventSourceMapping",
        [
            ("FunctionName", reference(&function.name)),
            ("EventSourceArn", attribute(table, "StreamArn")),
            ("StartingPosition", Node::text("TRIM_HORIZON")),
            ("BatchSize", Node::Number(function.batch_max)),
            ("MaximumBatchingWindowInSeconds", Node::Number(1)),
            ("ParallelizationFactor", Node::Number(1)),
            ("BisectBatchOnFunctionError", Node::Flag(true)),
            ("MaximumRetryAttempts", Node::Number(function.retries)),
            ("MaximumRecordAgeInSeconds", Node::Number(-1)),
            ("FunctionResponseTypes", response),
            ("DestinationConfig", destination),
        ],
    )
}
