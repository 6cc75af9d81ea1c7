//! What is wrong with a call before it matters who calls: DynamoDB parses the body first, then looks for the
//! operation, and only then at the signature.

use floe_store::json::Reader;

use super::refusal::Refusal;

const OPERATIONS: [&str; 24] = [
    "BatchGetItem",
    "BatchWriteItem",
    "CreateTable",
    "DeleteItem",
    "DeleteTable",
    "DescribeContinuousBackups",
    "DescribeEndpoints",
    "DescribeLimits",
    "DescribeTable",
    "DescribeTimeToLive",
    "GetItem",
    "ListTables",
    "ListTagsOfResource",
    "PutItem",
    "Query",
    "Scan",
    "TagResource",
    "TransactGetItems",
    "TransactWriteItems",
    "UntagResource",
    "UpdateContinuousBackups",
    "UpdateItem",
    "UpdateTable",
    "UpdateTimeToLive",
];

const STREAM_OPERATIONS: [&str; 4] = [
    "DescribeStream",
    "GetRecords",
    "GetShardIterator",
    "ListStreams",
];

/// What is wrong with a call, if it is that.
pub(super) fn refuse(target: &str, body: &[u8]) -> Option<Refusal> {
    // Nothing at all is no broken JSON.
    if !body.is_empty() && !is_json(body) {
        return Some(Refusal::Serialization(None));
    }
    (!is_known(target)).then_some(Refusal::UnknownOperation)
}

fn is_json(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else {
        return false;
    };
    let mut reader = Reader::new(text);
    reader.skip().and_then(|()| reader.finish()).is_ok()
}

fn is_known(target: &str) -> bool {
    match target.split_once('.') {
        Some(("DynamoDB_20120810", operation)) => OPERATIONS.contains(&operation),
        Some(("DynamoDBStreams_20120810", operation)) => STREAM_OPERATIONS.contains(&operation),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_comes_before_the_operation() {
        let unknown = Some(Refusal::UnknownOperation);
        let broken = Some(Refusal::Serialization(None));
        for (target, body, expected) in [
            ("", "", &unknown),
            ("", "{}", &unknown),
            ("", "hi", &broken),
            ("whatever", "{}", &unknown),
            ("DynamoDB_20120810.ListTable", "{}", &unknown),
            ("DynamoDB_20120810.ListTable", "{}}", &broken),
            ("DynamoDB_20120810.ListTables", "{", &broken),
            ("DynamoDB_20120810.ListTables", "", &None),
            ("DynamoDB_20120810.ListTables", "{}", &None),
            ("DynamoDB_20120810.ListStreams", "{}", &unknown),
            ("DynamoDBStreams_20120810.ListStreams", "{}", &None),
        ] {
            assert_eq!(
                refuse(target, body.as_bytes()),
                *expected,
                "{target} {body}"
            );
        }
    }

    #[test]
    fn the_operations_are_those_that_are_answered() {
        let dispatch = include_str!("mod.rs");
        let known = OPERATIONS.iter().chain(&STREAM_OPERATIONS);
        for operation in known.clone() {
            assert!(dispatch.contains(&format!("\"{operation}\" => op::")));
        }
        assert_eq!(dispatch.matches("\" => op::").count(), known.count());
    }
}
