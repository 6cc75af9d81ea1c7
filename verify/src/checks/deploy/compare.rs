//! Whether two templates of CloudFormation make the same.
//!
//! Left aside are the order of names and statements, and what says nothing that would not hold without it: what a resource
//! depends on beside what it refers to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What is left aside.
const ASIDE: [&str; 2] = ["DependsOn", "Metadata"];

/// What one template has and the other has not, a line each.
pub(super) fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for section in ["Parameters", "Resources"] {
        let (one, other) = (canonical(&one[section]), canonical(&other[section]));
        differ(section, &one, &other, &mut found);
    }
    found
}

/// The resources of a type; of every type if it is empty.
pub(super) fn of_type<'a>(
    template: &'a Value,
    kind: &'a str,
) -> impl Iterator<Item = &'a Value> + 'a {
    let resources = template["Resources"].as_object().into_iter();
    let resources = resources.flat_map(Map::values);
    resources.filter(move |resource| kind.is_empty() || resource["Type"] == kind)
}

/// How many tables have a stream.
pub(super) fn streams(template: &Value) -> usize {
    let tables = of_type(template, "AWS::DynamoDB::Table");
    tables
        .filter(|table| table.pointer("/Properties/StreamSpecification").is_some())
        .count()
}

/// How many actions the roles may do.
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
        _ => found.push(format!("they differ: at={at} one={one} other={other}")),
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

/// The value of a key, in an order of its own where the order means nothing.
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
    fn what_means_the_same_is_the_same() {
        let one = json!({"Type": "T", "Statement": [{"a": 1}, {"b": 2}]});
        let other = json!({"Type": "T", "Statement": [{"b": 2}, {"a": 1}], "DependsOn": ["B"]});
        assert_eq!(differences(&template(&one), &template(&other)), [""; 0]);
    }

    #[test]
    fn what_differs_is_told_with_its_place() {
        let one = json!({"Keys": ["a", "b"], "DeletionPolicy": "Retain"});
        let other = json!({"Keys": ["b", "a"]});
        let expected = [
            r#"they differ: at=Resources.A.DeletionPolicy one="Retain" other=null"#,
            r#"they differ: at=Resources.A.Keys one=["a","b"] other=["b","a"]"#,
        ];
        assert_eq!(differences(&template(&one), &template(&other)), expected);
        let none = json!({"Resources": {}});
        assert_eq!(differences(&template(&one), &none).len(), 1);
        assert_eq!(differences(&none, &template(&one)).len(), 1);
    }

    #[test]
    fn rights_are_counted() {
        let document = json!({"Statement": [{"Action": "a"}, {"Action": ["b", "c"]}]});
        let role = json!({
            "Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": document}]},
        });
        assert_eq!(rights(&template(&role)), 3);
        assert_eq!(of_type(&template(&role), "").count(), 1);
        assert_eq!(streams(&template(&role)), 0);
    }
}
