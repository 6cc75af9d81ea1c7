//! CreateTable.

use floe_store::op::{CreateIndex, CreateTable, KeyRole, KeySchemaElement};
use floe_store::table::{Billing, IndexKind, KeyKind, Projection, Scaling, Throughput};
use floe_store::{Name, TableDef};

use crate::{as_constraint_error, expect, simple, text};

pub(crate) fn invalid(message: &str) -> String {
    format!("One or more parameter values were invalid: {message}")
}

pub(crate) fn hash(name: &str) -> KeySchemaElement {
    KeySchemaElement {
        name: name.into(),
        role: KeyRole::Hash,
    }
}

fn range(name: &str) -> KeySchemaElement {
    KeySchemaElement {
        name: name.into(),
        role: KeyRole::Range,
    }
}

pub(crate) fn strings(names: &[&str]) -> Vec<(Name, KeyKind)> {
    names
        .iter()
        .map(|name| ((*name).into(), KeyKind::S))
        .collect()
}

fn index(name: &str, kind: IndexKind, key_schema: Vec<KeySchemaElement>) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        kind,
        key_schema,
        projection: Projection::All,
        throughput: None,
        scaling: Scaling::default(),
    }
}

pub(crate) fn global(name: &str, key_schema: Vec<KeySchemaElement>) -> CreateIndex {
    index(name, IndexKind::Global, key_schema)
}

fn local(name: &str, key_schema: Vec<KeySchemaElement>) -> CreateIndex {
    index(name, IndexKind::Local, key_schema)
}

fn including(name: &str, attribute: &str, included: &[&str]) -> CreateIndex {
    CreateIndex {
        projection: Projection::Include(included.iter().map(|n| (*n).into()).collect()),
        ..global(name, vec![hash(attribute)])
    }
}

/// A request for a table of strings with this key, these definitions and these indexes.
fn create(
    key_schema: Vec<KeySchemaElement>,
    definitions: &[&str],
    indexes: Vec<CreateIndex>,
) -> CreateTable {
    CreateTable {
        key_schema,
        attribute_definitions: strings(definitions),
        indexes,
        ..CreateTable::from(simple())
    }
}

pub(crate) const UNITS: Throughput = Throughput { read: 5, write: 5 };

#[test]
fn definition_round_trips_through_the_request() {
    let request = create(
        vec![hash("a"), range("b")],
        &["a", "b", "c"],
        vec![
            global("by_c", vec![hash("c"), range("a")]),
            local("also_c", vec![hash("a"), range("c")]),
        ],
    );
    let table = request.definition().unwrap();
    let names = |key: &floe_store::table::KeySchema| -> Vec<String> {
        key.attributes().map(|a| a.name.to_string()).collect()
    };
    assert_eq!(names(&table.key), ["a", "b"]);
    assert_eq!(names(&table.index("by_c").unwrap().key), ["c", "a"]);
    assert_eq!(names(&table.index("also_c").unwrap().key), ["a", "c"]);
    // The definition converts back to the same request.
    let mut again = CreateTable::from(table.clone());
    again.attribute_definitions.sort();
    assert_eq!(again.definition(), Ok(table));
    assert_eq!(again, request);
}

#[test]
fn table_name_is_validated() {
    let named = |name: &str| CreateTable {
        table_name: name.to_owned(),
        ..CreateTable::from(simple())
    };
    expect(named("abc").definition(), "");
    expect(named(&text(255)).definition(), "");
    expect(
        named("a!").definition(),
        "2 validation errors detected: Value 'a!' at 'tableName' failed to satisfy constraint: \
         Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a!' at 'tableName' \
         failed to satisfy constraint: Member must have length greater than or equal to 3",
    );
    expect(
        named(&text(256)).definition(),
        &as_constraint_error(&format!(
            "Value '{}' at 'tableName' failed to satisfy constraint: Member must have length less \
             than or equal to 255",
            text(256)
        )),
    );
}

#[test]
fn table_key_has_one_or_two_attributes() {
    let length = |value: &str, constraint: &str| {
        as_constraint_error(&format!(
            "Value '{value}' at 'keySchema' failed to satisfy constraint: Member must have length \
             {constraint}"
        ))
    };
    let undefined = "Invalid KeySchema: Some index key attribute have no definition";
    for (key, definitions, expected) in [
        (vec![hash("a")], &["a"][..], String::new()),
        (vec![hash("a"), range("b")], &["a", "b"], String::new()),
        (vec![], &["a"], length("[]", "greater than or equal to 1")),
        (
            vec![hash("a"), range("b"), range("c")],
            &["a", "b", "c"],
            length(
                "[KeySchemaElement(attributeName=a, keyType=HASH), \
                 KeySchemaElement(attributeName=b, keyType=RANGE), \
                 KeySchemaElement(attributeName=c, keyType=RANGE)]",
                "less than or equal to 2",
            ),
        ),
        (vec![hash("a")], &[], undefined.to_owned()),
        (vec![hash("a"), range("b")], &["a"], undefined.to_owned()),
        (
            vec![hash("a")],
            &["b"],
            invalid(
                "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], \
                 AttributeDefinitions: [b]",
            ),
        ),
        (
            vec![range("a")],
            &["a"],
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type".to_owned(),
        ),
        (
            vec![hash("a"), hash("b")],
            &["a", "b"],
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type".to_owned(),
        ),
        (vec![hash("a"), range("a")], &["a"], undefined.to_owned()),
        (
            vec![hash("a"), range("a")],
            &["a", "b"],
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
                .to_owned(),
        ),
        (
            vec![hash("a"), range("b")],
            &["a", "c"],
            invalid(
                "Some index key attributes are not defined in AttributeDefinitions. Keys: [a, b], \
                 AttributeDefinitions: [a, c]",
            ),
        ),
        (
            vec![hash("a")],
            &["a", "b"],
            invalid(
                "Number of attributes in KeySchema does not exactly match number of attributes \
                 defined in AttributeDefinitions",
            ),
        ),
        (
            vec![hash("a")],
            &["a", "a"],
            "Attribute Name is duplicated: a".to_owned(),
        ),
    ] {
        expect(create(key, definitions, vec![]).definition(), &expected);
    }
}

#[test]
fn key_attribute_names_have_1_to_255_characters() {
    let table = |name: &str| create(vec![hash(name)], &[name], vec![]).definition();
    expect(table(&text(255)), "");
    let long = text(256);
    let fault = |path: &str| {
        format!(
            "Value '{long}' at '{path}' failed to satisfy constraint: Member must have length less \
             than or equal to 255"
        )
    };
    expect(
        table(&long),
        &format!(
            "2 validation errors detected: {}; {}",
            fault("keySchema.1.member.attributeName"),
            fault("attributeDefinitions.1.member.attributeName")
        ),
    );
}

#[test]
fn local_indexes_share_the_partition_key_of_the_table() {
    let table =
        |indexes| create(vec![hash("a"), range("b")], &["a", "b", "c"], indexes).definition();
    expect(table(vec![local("by_c", vec![hash("a"), range("c")])]), "");
    expect(
        create(
            vec![hash("a")],
            &["a", "c"],
            vec![local("by_c", vec![hash("a"), range("c")])],
        )
        .definition(),
        &invalid(
            "Table KeySchema does not have a range key, which is required when specifying a \
             LocalSecondaryIndex",
        ),
    );
    expect(
        table(vec![local("by_c", vec![hash("a")])]),
        &invalid("Index KeySchema does not have a range key for index: by_c"),
    );
    expect(
        table(vec![local("by_c", vec![hash("c"), range("b")])]),
        &invalid(
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: \
             by_c. index hash key: c, table hash key: a",
        ),
    );
    expect(
        table(vec![local("by_d", vec![hash("a"), range("d")])]),
        &invalid(
            "Some index key attributes are not defined in AttributeDefinitions. Keys: [d, a], \
             AttributeDefinitions: [a, b, c]",
        ),
    );
    let provisioned = CreateIndex {
        throughput: Some(UNITS),
        ..local("by_c", vec![hash("a"), range("c")])
    };
    expect(
        table(vec![provisioned]),
        &invalid("ProvisionedThroughput should not be specified for index: by_c"),
    );
}

#[test]
fn local_indexes_are_limited_to_5() {
    let table = |count: usize| {
        let index = |n| local(&format!("index{n}"), vec![hash("a"), range("c")]);
        let indexes = (0..count).map(index).collect();
        create(vec![hash("a"), range("b")], &["a", "b", "c"], indexes).definition()
    };
    expect(table(5), "");
    expect(
        table(6),
        &invalid("Number of LocalSecondaryIndexes exceeds per-table limit of 5"),
    );
}

#[test]
fn global_indexes_are_limited_to_20() {
    let table = |count: usize| {
        let index = |n| global(&format!("index{n}"), vec![hash("a")]);
        create(vec![hash("a")], &["a"], (0..count).map(index).collect()).definition()
    };
    expect(table(20), "");
    expect(
        table(21),
        &invalid("GlobalSecondaryIndex count exceeds the per-table limit of 20"),
    );
}

#[test]
fn global_index_keys_are_limited_to_four_attributes_per_role() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let table = |key: Vec<KeySchemaElement>| {
        let used = key.iter().map(|e| e.name.as_str()).chain(["a"]);
        let mut definitions = names.to_vec();
        let used: Vec<&str> = used.collect();
        definitions.retain(|name| used.contains(name));
        create(
            vec![hash("a")],
            &definitions,
            vec![global("many", key.clone())],
        )
        .definition()
    };
    let key = |hashes: usize, ranges: usize| -> Vec<_> {
        let hashes_ = names.iter().take(hashes).map(|name| hash(name));
        hashes_
            .chain(
                names
                    .iter()
                    .skip(hashes)
                    .take(ranges)
                    .map(|name| range(name)),
            )
            .collect()
    };
    expect(table(key(4, 4)), "");
    let exceeds = |role: &str| {
        invalid(&format!(
            "The KeySchema exceeds the maximum allowed number of {role} key attributes"
        ))
    };
    expect(table(key(5, 0)), &exceeds("HASH"));
    expect(table(key(1, 5)), &exceeds("RANGE"));
    expect(
        table(vec![hash("a"), range("b"), hash("c")]),
        &invalid("All HASH key attributes must precede RANGE key attributes in the KeySchema"),
    );
    expect(
        table(vec![hash("a"), hash("b"), range("a")]),
        "The KeySchema contains multiple key attributes with the same name",
    );
    expect(
        table(vec![hash("a"), range("a")]),
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    );
    expect(
        table(vec![range("a")]),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    );
    let nine = table(key(4, 5)).unwrap_err().to_string();
    assert!(
        nine.ends_with("at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 8"),
        "{nine}"
    );
}

#[test]
fn index_names_are_unique_and_valid() {
    let table = |indexes| create(vec![hash("a"), range("b")], &["a", "b"], indexes).definition();
    let duplicate = invalid("Duplicate index name: same");
    let one = || global("same", vec![hash("b")]);
    let other = || local("same", vec![hash("a"), range("b")]);
    expect(table(vec![one(), one()]), &duplicate);
    expect(table(vec![other(), other()]), &duplicate);
    expect(table(vec![one(), other()]), &duplicate);
    let fault = |name: &str, list: &str, constraint: &str| {
        format!(
            "Value '{name}' at '{list}.1.member.indexName' failed to satisfy constraint: Member \
             must {constraint}"
        )
    };
    // Global indexes are reported first, in any order of the request.
    expect(
        table(vec![
            local("x", vec![hash("a"), range("b")]),
            global("y!z", vec![hash("b")]),
        ]),
        &format!(
            "2 validation errors detected: {}; {}",
            fault(
                "y!z",
                "globalSecondaryIndexes",
                "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            ),
            fault(
                "x",
                "localSecondaryIndexes",
                "have length greater than or equal to 3"
            )
        ),
    );
    expect(table(vec![global(&text(255), vec![hash("b")])]), "");
    expect(
        table(vec![global(&text(256), vec![hash("b")])]),
        &as_constraint_error(&fault(
            &text(256),
            "globalSecondaryIndexes",
            "have length less than or equal to 255",
        )),
    );
}

#[test]
fn projected_attributes_are_limited_to_20_per_index_and_100_in_total() {
    let named = |index: usize, count: usize| -> Vec<String> {
        (0..count).map(|n| format!("i{index}n{n}")).collect()
    };
    let table = |counts: &[usize]| {
        let index = |(at, count): (usize, &usize)| {
            let names = named(at, *count);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            including(&format!("index{at}"), "a", &names)
        };
        let indexes = counts.iter().enumerate().map(index).collect();
        create(vec![hash("a")], &["a"], indexes).definition()
    };
    expect(table(&[20; 5]), "");
    expect(
        table(&[20, 20, 20, 20, 20, 1]),
        &invalid("Number of NonKeyAttributes of all indexes exceeds per-table limit of 100"),
    );
    let list = named(0, 21).join(", ");
    let fault = |value: &str, constraint: &str| {
        as_constraint_error(&format!(
            "Value '[{value}]' at 'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' \
             failed to satisfy constraint: Member must have length {constraint}"
        ))
    };
    expect(table(&[21]), &fault(&list, "less than or equal to 20"));
    expect(table(&[0]), &fault("", "greater than or equal to 1"));
    let twice = create(
        vec![hash("a")],
        &["a"],
        vec![including("twice", "a", &["v", "v"])],
    );
    expect(
        twice.definition(),
        &invalid("Duplicate element in NonKeyAttributes: v"),
    );
}

#[test]
fn unused_attribute_definitions_are_rejected() {
    let table = |definitions: &[&str]| {
        create(
            vec![hash("a")],
            definitions,
            vec![global("by_b", vec![hash("b")])],
        )
        .definition()
    };
    expect(table(&["a", "b"]), "");
    expect(
        table(&["a", "b", "c"]),
        &invalid(
            "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c], keys used: \
             [a, b]",
        ),
    );
    expect(
        table(&["a"]),
        &invalid(
            "Some index key attributes are not defined in AttributeDefinitions. Keys: [b], \
             AttributeDefinitions: [a]",
        ),
    );
    // Names are listed in the order of Java's hash tables.
    expect(
        create(
            vec![hash("orderId")],
            &["orderId", "customerId", "createdAt", "status", "notUsed"],
            vec![
                global("by_customer", vec![hash("customerId"), range("createdAt")]),
                global("by_status", vec![hash("status")]),
            ],
        )
        .definition(),
        &invalid(
            "Some AttributeDefinitions are not used. AttributeDefinitions: [customerId, createdAt, \
             notUsed, orderId, status], keys used: [createdAt, orderId, customerId, status]",
        ),
    );
}

#[test]
fn throughput_is_required_if_and_only_if_provisioned() {
    let table = |billing: Billing, throughput: Option<Throughput>| {
        let index = CreateIndex {
            throughput,
            ..global("by_a", vec![hash("a")])
        };
        CreateTable {
            billing,
            ..create(vec![hash("a")], &["a"], vec![index])
        }
        .definition()
    };
    expect(table(Billing::OnDemand, None), "");
    expect(table(Billing::Provisioned(UNITS), Some(UNITS)), "");
    expect(
        table(Billing::OnDemand, Some(UNITS)),
        &invalid(
            "ProvisionedThroughput should not be specified for index: by_a when BillingMode is \
             PAY_PER_REQUEST",
        ),
    );
    expect(
        table(Billing::Provisioned(UNITS), None),
        &invalid("ProvisionedThroughput is not specified for index: by_a"),
    );
    let least = |what: &str| {
        format!(
            "Value '0' at '{what}' failed to satisfy constraint: Member must have value greater \
             than or equal to 1"
        )
    };
    let none = Throughput { read: 0, write: 0 };
    expect(
        table(Billing::Provisioned(none), Some(UNITS)),
        &format!(
            "2 validation errors detected: {}; {}",
            least("provisionedThroughput.writeCapacityUnits"),
            least("provisionedThroughput.readCapacityUnits")
        ),
    );
    let most = Throughput {
        read: 1_000_000_000_000,
        write: 1_000_000_000_000,
    };
    let over = Throughput {
        write: 1_000_000_000_001,
        ..most
    };
    expect(table(Billing::Provisioned(most), Some(most)), "");
    expect(
        table(Billing::Provisioned(over), Some(UNITS)),
        "Given value 1000000000001 for WriteCapacityUnits is out of bounds",
    );
    expect(
        table(Billing::Provisioned(UNITS), Some(over)),
        "Given value 1000000000001 for WriteCapacityUnits is out of bounds for index by_a",
    );
}

#[test]
fn tags_are_limited_to_50() {
    let tagged = |count: usize| CreateTable {
        tags: (0..count).map(|n| (n.to_string(), String::new())).collect(),
        ..CreateTable::from(simple())
    };
    expect(tagged(50).definition(), "");
    expect(
        tagged(51).definition(),
        "Number of Tags exceed the current limit for the provided ResourceArn",
    );
}

#[test]
fn builder_validates_like_the_request() {
    expect(
        TableDef::builder("x", "id", KeyKind::S).build(),
        &as_constraint_error(
            "Value 'x' at 'tableName' failed to satisfy constraint: Member must have length greater \
         than or equal to 3",
        ),
    );
    // An attribute cannot have two types.
    let table = TableDef::builder("Twice", "id", KeyKind::S).global_index(
        "by_id",
        [("id", KeyKind::N)],
        crate::NO_SORT,
        Projection::All,
    );
    expect(table.build(), "Attribute Name is duplicated: id");
    let table = TableDef::builder("Paid", "id", KeyKind::S)
        .global_index(
            "by_id",
            [("id", KeyKind::S)],
            crate::NO_SORT,
            Projection::All,
        )
        .billing(Billing::Provisioned(UNITS))
        .ttl("until")
        .deletion_protection()
        .build()
        .unwrap();
    assert_eq!(table.index("by_id").unwrap().throughput, Some(UNITS));
    assert!(table.deletion_protection);
    let unnamed = TableDef::builder("Ttl", "id", KeyKind::S).ttl("").build();
    expect(
        unnamed,
        &as_constraint_error(
            "Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member \
         must have length greater than or equal to 1",
        ),
    );
}
