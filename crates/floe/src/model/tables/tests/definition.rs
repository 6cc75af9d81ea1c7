//! The table definitions of models, and models that cannot share a table.

use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection, StreamView};

use super::super::{InfrastructureFormat, infrastructure, table_definitions};
use super::*;
use crate::error::ErrorKind;

#[track_caller]
fn check_rejected(schemas: &[&Schema], message: &str) {
    let error = table_definitions(schemas).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert_eq!(error.to_string(), message);
    let format = InfrastructureFormat::Json;
    assert_eq!(infrastructure(schemas, format), Err(error));
}

#[test]
fn models_define_keys_indexes_and_expiry() {
    const NUMBER: FieldSchema = field("number", Role::Partition, FieldKind::Number);
    const RUNNER: FieldSchema = field("runner", Role::Partition, FieldKind::Text);
    const LAP: FieldSchema = field("lap", Role::Sort, FieldKind::Number);
    let numbered = Schema {
        table: "Counter",
        ..model("Counter", &[NUMBER])
    };
    let race = Schema {
        table: "Race",
        ..model("Race", &[NUMBER, RUNNER, LAP])
    };
    let definitions = table_definitions(&[&race, &FULL, &numbered, &FULL]).unwrap();
    let order = TableDef::builder("Order", "_id", KeyKind::S)
        .global_index(
            "by_product",
            [("product", KeyKind::S)],
            [("price", KeyKind::N)],
            Projection::All,
        )
        .global_index(
            "by_price",
            [("price", KeyKind::N), ("product", KeyKind::S)],
            [("", KeyKind::S); 0],
            Projection::Include(vec!["until".into()]),
        )
        .ttl("until");
    assert_eq!(
        definitions,
        [
            TableDef::builder("Counter", "_id", KeyKind::N)
                .build()
                .unwrap(),
            order.build().unwrap(),
            TableDef::builder("Race", "_id", KeyKind::S)
                .sort_key("_sk", KeyKind::S)
                .build()
                .unwrap(),
        ]
    );
    assert_eq!(table_definitions(&[]).unwrap(), []);
}

#[test]
fn indexes_use_stored_names_and_project_keys_once() {
    const RENAMED: FieldSchema = FieldSchema {
        attribute: "p",
        ..PRODUCT
    };
    const BY_PRODUCT: IndexSchema = index(
        "by_product",
        &["product"],
        &["id"],
        IndexProjection::Include(&["until", "product", "price", "until"]),
    );
    const BY_PRICE: IndexSchema = index(
        "by_price",
        &["price"],
        &[],
        IndexProjection::Include(&["id"]),
    );
    let order = Schema {
        indexes: &[BY_PRODUCT],
        ..model("Order", &[ID, RENAMED, PRICE, UNTIL])
    };
    let event = Schema {
        table: "Event",
        indexes: &[BY_PRICE],
        ..model("Event", &[ID, PRICE])
    };
    let definitions = table_definitions(&[&order, &event]).unwrap();
    // `id` is not stored as an attribute here; `_id` is always projected.
    assert_eq!(definitions[0].indexes[0].projection, Projection::KeysOnly);
    let index = &definitions[1].indexes[0];
    assert_eq!(index.key.partition[0].name, "p");
    assert_eq!(index.key.sort[0].name, "id");
    let copied = ["price", "until"].map(Into::into).to_vec();
    assert_eq!(index.projection, Projection::Include(copied));
}

#[test]
fn models_that_share_a_table_combine_their_indexes() {
    let weapon = Schema {
        indexes: &[BY_PRICE],
        ..model("Weapon", &[ID, PRODUCT, PRICE])
    };
    let armour = Schema {
        indexes: &[BY_PRODUCT, BY_PRICE],
        ..model("Armour", &[ID, PRODUCT, PRICE])
    };
    let definitions = table_definitions(&[&weapon, &armour]).unwrap();
    let names: Vec<_> = definitions[0]
        .indexes
        .iter()
        .map(|index| &index.name)
        .collect();
    assert_eq!(names, ["by_product", "by_price"]);
    assert_eq!(definitions, table_definitions(&[&armour, &weapon]).unwrap());
}

#[test]
fn model_with_a_stream_enables_it_for_the_table() {
    let silent = model("Silent", &[ID]);
    let definitions = table_definitions(&[&silent, &STREAMED]).unwrap();
    assert_eq!(definitions[0].stream, Some(StreamView::NewAndOldImages));
    assert_eq!(table_definitions(&[&silent]).unwrap()[0].stream, None);
}

#[test]
fn different_keys_are_rejected() {
    let sorted = Schema {
        sort_constant: Some("money"),
        ..model("Money", &[ID])
    };
    const NUMBER: FieldSchema = field("n", Role::Partition, FieldKind::Number);
    let numbered = model("Number", &[NUMBER]);
    check_rejected(
        &[&PLAIN, &sorted],
        "models of one table have different keys: table=Order Money=(_id:S, _sk:S) Order=(_id:S)",
    );
    check_rejected(
        &[&sorted, &numbered, &PLAIN],
        "models of one table have different keys: table=Order Money=(_id:S, _sk:S) Number=(_id:N) \
         Order=(_id:S)",
    );
}

#[test]
fn different_indexes_are_rejected() {
    const OTHER: IndexSchema = index(
        "by_product",
        &["product"],
        &[],
        IndexProjection::Include(&["until", "price"]),
    );
    let other = Schema {
        indexes: &[OTHER],
        ..model("Other", ORDER_FIELDS)
    };
    let order = Schema {
        expires: None,
        ..FULL
    };
    check_rejected(
        &[&other, &order],
        "models of one table define an index differently: table=Order index=by_product \
         Order=(key(product:S) sort(price:N) project(all)) \
         Other=(key(product:S) project(include(price, until)))",
    );
}

#[test]
fn different_types_of_an_indexed_attribute_are_rejected() {
    const PRICE_TEXT: FieldSchema = field("price", Role::Plain, FieldKind::Text);
    let other = model("Other", &[ID, PRICE_TEXT]);
    let order = Schema {
        indexes: &[BY_PRODUCT],
        ..PLAIN
    };
    check_rejected(
        &[&order, &other],
        "models of one table declare different types for an index attribute: table=Order \
         attribute=price Order=(N) Other=(S)",
    );
    assert!(
        table_definitions(&[&PLAIN, &other]).is_ok(),
        "without the index there is no conflict"
    );
}

#[test]
fn different_expiry_attributes_are_rejected() {
    let other = Schema {
        expires: Some("expires"),
        ..model("Other", &[ID])
    };
    check_rejected(
        &[&FULL, &other],
        "models of one table have different expiry attributes: table=Order Order=(until) Other=(expires)",
    );
    let silent = model("Silent", &[ID, UNTIL]);
    check_rejected(
        &[&FULL, &silent],
        "items of a model would expire by a field that another model of the table declares as expiry: \
         table=Order attribute=until declared_by=Order model=Silent",
    );
    const UNTIL_TEXT: FieldSchema = field("until", Role::Plain, FieldKind::Text);
    let text = model("Text", &[ID, UNTIL_TEXT]);
    assert!(
        table_definitions(&[&FULL, &text]).is_ok(),
        "text never expires"
    );
}

#[test]
fn invalid_indexes_are_rejected() {
    const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];
    const FLAG: FieldSchema = field("flag", Role::Plain, FieldKind::Other);
    const CASES: [(&[IndexSchema], &str); 5] = [
        (
            &[index("by_colour", &["colour"], &[], IndexProjection::All)],
            "an index names a field that its model does not have: model=Order index=by_colour field=colour",
        ),
        (
            &[index(
                "by_flag",
                &["product"],
                &["flag"],
                IndexProjection::All,
            )],
            "a field that is neither text, number nor bytes cannot be in the key of an index: \
             model=Order index=by_flag field=flag",
        ),
        (
            &[index("by_all", &["product"], &FIVE, IndexProjection::All)],
            "an index has too many fields in its key: model=Order index=by_all fields=a,b,c,d,e \
             fields_max=4",
        ),
        (
            &[index("by_none", &[], &["price"], IndexProjection::All)],
            "an index has no field in its key: model=Order index=by_none",
        ),
        (
            &[index(
                "by_x",
                &["price"],
                &[],
                IndexProjection::Include(&["x"]),
            )],
            "an index names a field that its model does not have: model=Order index=by_x field=x",
        ),
    ];
    for (indexes, message) in CASES {
        let order = Schema {
            indexes,
            ..model("Order", &[ID, PRODUCT, PRICE, FLAG])
        };
        check_rejected(&[&order], message);
    }
}

#[test]
fn error_for_an_invalid_table_names_its_models() {
    let short = Schema {
        table: "no",
        ..PLAIN
    };
    let error = table_definitions(&[&short]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert!(
        error.to_string().ends_with(": table=no models=Order"),
        "{error}"
    );
    assert!(matches!(
        error.store_error(),
        Some(floe_store::Error::Validation(_))
    ));
}
