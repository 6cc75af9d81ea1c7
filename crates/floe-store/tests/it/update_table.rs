//! UpdateTable.

use floe_store::Item;
use floe_store::op::{CreateIndex, CreateTable, IndexUpdate, UpdateTable};
use floe_store::table::{Billing, KeyKind, StreamView, TableClass, Throughput};

use crate::create_table::{UNITS, global, hash, invalid, strings};
use crate::{as_constraint_error, expect, expect_code, orders, simple};

fn update() -> UpdateTable {
    UpdateTable::new("Orders")
}

fn updating(indexes: Vec<IndexUpdate>, definitions: &[&str]) -> UpdateTable {
    UpdateTable {
        indexes,
        attribute_definitions: strings(definitions),
        ..update()
    }
}

fn by_color() -> CreateIndex {
    global("by_color", vec![hash("color")])
}

#[test]
fn empty_update_is_rejected() {
    expect(
        update().validate(),
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, \
         GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, \
         ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, \
         OnDemandThroughput, WarmThroughput or TableClass is required",
    );
    for request in [
        UpdateTable {
            deletion_protection: Some(true),
            ..update()
        },
        UpdateTable {
            class: Some(TableClass::Standard),
            ..update()
        },
        UpdateTable {
            stream: Some(None),
            ..update()
        },
        UpdateTable {
            billing: Some(Billing::OnDemand),
            ..update()
        },
        updating(vec![IndexUpdate::Delete("by_product".to_owned())], &[]),
    ] {
        expect(request.validate(), "");
    }
    expect(
        UpdateTable::new("x").validate(),
        &as_constraint_error(
            "Value 'x' at 'tableName' failed to satisfy constraint: Member must have length greater \
             than or equal to 3",
        ),
    );
}

#[test]
fn incompatible_changes_are_rejected() {
    let stream = Some(Some(StreamView::KeysOnly));
    let billing = Some(Billing::Provisioned(UNITS));
    let online = || vec![IndexUpdate::Delete("by_product".to_owned())];
    for (request, expected) in [
        (
            UpdateTable {
                stream,
                billing,
                ..update()
            },
            "You cannot modify stream status while updating table IOPS",
        ),
        (
            UpdateTable {
                indexes: online(),
                billing,
                ..update()
            },
            "You cannot create or delete index while updating table IOPS",
        ),
        (
            UpdateTable {
                indexes: online(),
                stream,
                ..update()
            },
            "You cannot create or delete index while changing stream status",
        ),
        (
            UpdateTable {
                deletion_protection: Some(true),
                stream,
                ..update()
            },
            "DeletionProtection modification must be the only operation in the request",
        ),
        (
            UpdateTable {
                class: Some(TableClass::Standard),
                stream,
                ..update()
            },
            "TableClass modification must be the only operation in the request",
        ),
    ] {
        expect(request.validate(), &invalid(expected));
    }
    let twice = vec![
        IndexUpdate::Delete("by_product".to_owned()),
        IndexUpdate::Update("by_product".to_owned(), UNITS),
    ];
    expect(
        updating(twice, &[]).validate(),
        &invalid(
            "Only one global secondary index update per index is allowed simultaneously. Index: \
             by_product",
        ),
    );
}

#[test]
fn faults_contain_the_paths_of_members() {
    let none = Throughput { read: 0, write: 1 };
    let request = updating(
        vec![
            IndexUpdate::Create(global("x", vec![hash("a")])),
            IndexUpdate::Update("by_product".to_owned(), none),
            IndexUpdate::Delete("y!".to_owned()),
        ],
        &["a"],
    );
    let fault = |value: &str, path: &str, constraint: &str| {
        format!(
            "Value '{value}' at 'globalSecondaryIndexUpdates.{path}' failed to satisfy constraint: \
             Member must {constraint}"
        )
    };
    expect(
        request.validate(),
        &format!(
            "4 validation errors detected: {}; {}; {}; {}",
            fault(
                "x",
                "1.member.create.indexName",
                "have length greater than or equal to 3"
            ),
            fault(
                "0",
                "2.member.update.provisionedThroughput.readCapacityUnits",
                "have value greater than or equal to 1"
            ),
            fault(
                "y!",
                "3.member.delete.indexName",
                "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            ),
            fault(
                "y!",
                "3.member.delete.indexName",
                "have length greater than or equal to 3"
            ),
        ),
    );
}

#[test]
fn index_changes_are_limited_to_one_at_a_time() {
    let create = |index| IndexUpdate::Create(index);
    let delete = |name: &str| IndexUpdate::Delete(name.to_owned());
    let table = updating(vec![create(by_color())], &["color"])
        .apply(&orders())
        .unwrap();
    let added = table.index("by_color").unwrap();
    let colored = |color: &str| Item::new().with("color", color);
    assert!(added.holds(&colored("red")));
    // Items older than the index may have values that are invalid in its key.
    assert!(added.holds(&colored(&"x".repeat(2048))));
    assert!(!added.holds(&colored(&"x".repeat(2049))));
    assert!(!added.holds(&colored("")));
    assert!(!added.holds(&Item::new().with("color", 1)));
    assert_eq!(table.indexes.len(), orders().indexes.len() + 1);
    let table = updating(vec![delete("by_color")], &[])
        .apply(&table)
        .unwrap();
    assert_eq!(table, orders());

    let apply = |indexes, definitions: &[&str]| updating(indexes, definitions).apply(&orders());
    expect_code(
        apply(vec![create(by_color()), delete("by_city")], &["color"]),
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously \
         per table",
    );
    expect_code(
        apply(vec![delete("nowhere")], &[]),
        "ResourceNotFoundException",
        "Requested resource not found",
    );
    expect(
        apply(vec![delete("by_state")], &[]),
        "Cannot delete an index that is not a GlobalSecondaryIndex: by_state",
    );
    for taken in ["by_city", "by_state"] {
        expect(
            apply(vec![create(global(taken, vec![hash("color")]))], &["color"]),
            "Attempting to create an index which already exists",
        );
    }
    expect(
        apply(vec![create(by_color())], &[]),
        &invalid("AttributeDefinitions is not specified for index: by_color"),
    );
    expect(
        apply(vec![create(by_color())], &["other"]),
        &invalid(
            "Some index key attributes are not defined in AttributeDefinitions. Keys: [color], \
             AttributeDefinitions: [other]",
        ),
    );
    let paid = CreateIndex {
        throughput: Some(UNITS),
        ..by_color()
    };
    expect(
        apply(vec![create(paid)], &["color"]),
        &invalid(
            "ProvisionedThroughput should not be specified for index: by_color when BillingMode is \
             PAY_PER_REQUEST",
        ),
    );
}

#[test]
fn attribute_types_cannot_be_redefined() {
    // The sort key of the table is a number.
    let by_placed = || IndexUpdate::Create(global("by_placed", vec![hash("placed")]));
    expect(
        updating(vec![by_placed()], &["placed"]).apply(&orders()),
        &invalid(
            "Attributes cannot be redefined. Please check that your attribute has the same type as \
             previously defined. Existing schema: Schema:[SchemaElement: key{customer:S:HASH}, \
             SchemaElement: key{placed:N:RANGE}] New schema: Schema:[SchemaElement: \
             key{placed:S:HASH}]",
        ),
    );
    let numbered = UpdateTable {
        attribute_definitions: vec![("placed".into(), KeyKind::N)],
        ..updating(vec![by_placed()], &[])
    };
    expect(numbered.apply(&orders()), "");
    // Definitions that the new index does not use are not compared.
    expect(
        updating(vec![IndexUpdate::Create(by_color())], &["color", "placed"]).apply(&orders()),
        "",
    );
}

#[test]
fn table_limits_apply_to_updates() {
    let with = |count: usize| {
        let index = |n| global(&format!("index{n}"), vec![hash("id")]);
        CreateTable {
            indexes: (0..count).map(index).collect(),
            ..CreateTable::from(simple())
        }
        .definition()
        .unwrap()
    };
    let add = |index| UpdateTable {
        table_name: "Simple".to_owned(),
        ..updating(vec![IndexUpdate::Create(index)], &["color"])
    };
    expect(add(by_color()).apply(&with(19)), "");
    expect_code(
        add(by_color()).apply(&with(20)),
        "LimitExceededException",
        "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20",
    );
}

#[test]
fn billing_and_throughput_must_match() {
    let provisioned = |units| UpdateTable {
        billing: Some(Billing::Provisioned(units)),
        ..update()
    };
    let plain = simple();
    let paid = provisioned(UNITS).apply(&plain).unwrap();
    assert_eq!(paid.billing, Billing::Provisioned(UNITS));
    expect(
        provisioned(UNITS).apply(&paid),
        "The provisioned throughput for the table will not change. The requested value equals the \
         current value. Current ReadCapacityUnits provisioned for the table: 5. Requested \
         ReadCapacityUnits: 5. Current WriteCapacityUnits provisioned for the table: 5. Requested \
         WriteCapacityUnits: 5. Refer to the Amazon DynamoDB Developer Guide for current limits and \
         how to request higher limits.",
    );
    expect(
        provisioned(Throughput { read: 6, write: 5 }).apply(&paid),
        "",
    );
    expect(
        provisioned(Throughput {
            read: 2_000_000_000_000,
            write: 5,
        })
        .validate(),
        "Given value 2000000000000 for ReadCapacityUnits is out of bounds",
    );
    // Indexes need throughput if the table gets some.
    expect(
        provisioned(UNITS).apply(&orders()),
        &invalid("ProvisionedThroughput must be specified for index: by_product"),
    );
    let global_names = ["by_product", "by_city", "by_hash"];
    let all = UpdateTable {
        indexes: global_names
            .iter()
            .map(|name| IndexUpdate::Update((*name).to_owned(), UNITS))
            .collect(),
        ..provisioned(UNITS)
    };
    let paid = all.apply(&orders()).unwrap();
    assert!(
        paid.global_indexes()
            .all(|index| index.throughput == Some(UNITS))
    );
    let back = UpdateTable {
        billing: Some(Billing::OnDemand),
        ..update()
    };
    assert_eq!(back.apply(&paid), Ok(orders()));
    let unknown = updating(vec![IndexUpdate::Update("nowhere".to_owned(), UNITS)], &[]);
    expect(
        unknown.apply(&paid),
        "This operation cannot be performed with given input values. Please contact DynamoDB \
         service team for more info: Action Blocked: IndexUpdate",
    );
    // An on-demand index has no throughput.
    let needless = updating(vec![IndexUpdate::Update("by_city".to_owned(), UNITS)], &[]);
    expect(
        needless.apply(&orders()),
        &invalid(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: by_city \
             when BillingMode is PAY_PER_REQUEST",
        ),
    );
    // A new index of a provisioned table needs throughput.
    let add = updating(vec![IndexUpdate::Create(by_color())], &["color"]);
    expect(
        add.apply(&paid),
        &invalid("ProvisionedThroughput is not specified for index: by_color"),
    );
}

#[test]
fn stream_is_enabled_and_disabled() {
    let switch = |stream| UpdateTable {
        stream: Some(stream),
        ..update()
    };
    let on = switch(Some(StreamView::KeysOnly)).apply(&orders()).unwrap();
    assert_eq!(on.stream, Some(StreamView::KeysOnly));
    expect(
        switch(Some(StreamView::NewImage)).apply(&on),
        "Table already has an enabled stream: TableName: Orders",
    );
    assert_eq!(switch(None).apply(&on), Ok(orders()));
    expect(
        switch(None).apply(&orders()),
        "Table has no stream to disable: TableName: Orders",
    );
}

#[test]
fn deletion_protection_is_changed() {
    let protect = UpdateTable {
        deletion_protection: Some(true),
        ..update()
    };
    assert!(protect.apply(&orders()).unwrap().deletion_protection);
}
