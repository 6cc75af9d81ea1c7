//! Compares two CloudFormation templates.
//!
//! Ignored are the order of names and statements, and redundant entries: dependencies that references already imply.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Ignored keys.
const ASIDE: [&str; 2] = ["DependsOn", "Metadata"];

/// Returns the differences between two templates, one line each.
pub(super) fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for section in ["Parameters", "Resources"] {
        let (one, other) = (canonical(&one[section]), canonical(&other[section]));
        differ(section, &one, &other, &mut found);
    }
    found
}

/// The resources of a type, or of every type if `kind` is empty.
pub(super) fn of_type<'a>(
    template: &'a Value,
    kind: &'a str,
) -> impl Iterator<Item = &'a Value> + 'a {
    let resources = template["Resources"].as_object().into_iter();
    let resources = resources.flat_map(Map::values);
    resources.filter(move |resource| kind.is_empty() || resource["Type"] == kind)
}

/// The number of tables with a stream.
pub(super) fn streams(template: &Value) -> usize {
    let tables = of_type(template, "AWS::DynamoDB::Table");
    tables
        .filter(|table| table.pointer("/Properties/StreamSpecification").is_some())
        .count()
}

/// The number of actions that the roles allow.
pub(super) fn rights(template: &Value) -> usize {
    let policies = of_type(template, "AWS::IAM::Role")
        .filter_map(|role| role.pointer("/Properties/Policies")?.as_array())
        .flatten();
    let statements = policies
        .filter_map(|policy| policy.pointer("/PolicyDocument/Statement")?.as_array())
        .flatten();
    statements
        .map(|statement| statement["Action"].as_array().map_or(1, Vec::len))
        .sum()
}

fn differ(at: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let value = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differ(&format!("{at}.{key}"), &value(one), &value(other), found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("templates differ: at={at} one={one} other={other}")),
    }
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !ASIDE.contains(&key.as_str()));
            Value::Object(kept.map(|(k, v)| (k.clone(), entry(k, v))).collect())
        }
        Value::Array(list) => list.iter().map(canonical).collect(),
        plain => plain.clone(),
    }
}

/// The value of a key, sorted where the order has no meaning.
fn entry(key: &str, value: &Value) -> Value {
    let mut value = canonical(value);
    if [
        "AttributeDefinitions",
        "GlobalSecondaryIndexes",
        "Statement",
    ]
    .contains(&key)
        && let Value::Array(list) = &mut value
    {
        list.sort_by_key(Value::to_string);
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(resource: &Value) -> Value {
        json!({"Resources": {"A": resource}})
    }

    #[test]
    fn order_and_redundant_dependencies_are_ignored() {
        let one = json!({"Type": "T", "Statement": [{"a": 1}, {"b": 2}]});
        let other = json!({"Type": "T", "Statement": [{"b": 2}, {"a": 1}], "DependsOn": ["B"]});
        assert_eq!(differences(&template(&one), &template(&other)), [""; 0]);
    }

    #[test]
    fn differences_are_reported_with_their_path() {
        let one = json!({"Keys": ["a", "b"], "DeletionPolicy": "Retain"});
        let other = json!({"Keys": ["b", "a"]});
        let expected = [
            r#"templates differ: at=Resources.A.DeletionPolicy one="Retain" other=null"#,
            r#"templates differ: at=Resources.A.Keys one=["a","b"] other=["b","a"]"#,
        ];
        assert_eq!(differences(&template(&one), &template(&other)), expected);
        let none = json!({"Resources": {}});
        assert_eq!(differences(&template(&one), &none).len(), 1);
        assert_eq!(differences(&none, &template(&one)).len(), 1);
    }

    #[test]
    fn allowed_actions_are_counted() {
        let document = json!({"Statement": [{"Action": "a"}, {"Action": ["b", "c"]}]});
        let role = json!({
            "Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": document}]},
        });
        assert_eq!(rights(&template(&role)), 3);
        assert_eq!(of_type(&template(&role), "").count(), 1);
        assert_eq!(streams(&template(&role)), 0);
    }
}
