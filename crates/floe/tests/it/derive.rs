//! Derived models: keys, items, constraints, schemas and rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use floe::model::schema::{FieldKind, IndexProjection, Role, SortKeyEncoding};
use floe::model::{Expiry, IntoKey};
use floe::{Db, Error, Model};
use floe_local::LocalEngine;
use floe_store::op::{CreateTable, GetItem};
use floe_store::table::KeyKind;
use floe_store::{Engine, Number, TableDef, Timestamp, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

#[derive(Model, Clone, Debug, PartialEq)]
#[model(table = "Orders", exactly_once, stream)]
#[model(index(
    name = "by_product",
    key(product),
    sort(quantity, id),
    project(include(note))
))]
#[model(index(name = "by_note", key(note), sparse, project(keys)))]
struct Order {
    id: Uuid,
    #[model(length(min = 1, max = 9), pattern = "^[a-z]*$")]
    product: String,
    #[model(min = 1, max = 100, rename = "qty")]
    quantity: u32,
    #[model(read_only, default = 5)]
    batch: i64,
    note: Option<String>,
    #[model(min = 0)]
    price: Option<f64>,
    #[model(max = 10)]
    weight: Number,
    #[model(one_of("red", "blue"), default = "red")]
    colour: String,
    #[model(one_of(1, 2, 3), custom = odd)]
    size: Option<u8>,
    #[model(expires)]
    expires: Option<Expiry>,
    #[model(serde)]
    address: Address,
    #[model(length(max = TAGS_MAX))]
    tags: BTreeSet<String>,
    r#type: Option<bool>,
}

const TAGS_MAX: usize = 2;

fn odd(size: &u8) -> Result<(), String> {
    match size % 2 {
        1 => Ok(()),
        _ => Err(format!("the size is even: size={size}")),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Address {
    street: String,
}

fn order() -> Order {
    Order {
        id: Uuid::from_u128(7),
        product: "tea".to_owned(),
        quantity: 2,
        batch: 1,
        note: None,
        price: None,
        weight: Number::from(3),
        colour: "blue".to_owned(),
        size: Some(3),
        expires: None,
        address: Address {
            street: "Main".to_owned(),
        },
        tags: BTreeSet::new(),
        r#type: None,
    }
}

#[derive(Model, Debug, PartialEq)]
struct RaceResult {
    #[model(key)]
    runner_name: String,
    #[model(key, min = 1)]
    race_id: i64,
    #[model(default)]
    seconds: u32,
}

#[derive(Model, Debug, PartialEq)]
#[model(table = "Inventory", sort_key = "money")]
struct Currency {
    #[model(key)]
    user_id: String,
    #[model(default)]
    items: BTreeMap<String, i64>,
    tags: BTreeSet<String>,
}

#[derive(Model, Debug, PartialEq)]
#[model(sort_key_encoding = "json")]
struct Visit {
    #[model(key)]
    number: u64,
    #[model(sort_key, default = "home")]
    place: String,
    #[model(sort_key, default = -7)]
    hour: i32,
    #[model(default = 3)]
    stars: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Name(String);

#[derive(Model)]
#[model(crate = "floe")]
struct Named {
    #[model(key, serde)]
    name: Name,
    #[model(sort_key)]
    at: Timestamp,
    #[model(sort_key)]
    flag: bool,
    /// Names of variables in generated code, and a type without traits.
    core: Option<bool>,
    item: Option<bool>,
    value: Option<bool>,
    #[model(serde, default = Silent)]
    silent: Silent,
}

#[derive(Serialize, Deserialize)]
struct Silent;

#[test]
fn item_contains_its_key_and_present_fields() {
    let item = order().to_item().unwrap();
    let id = Value::from(Uuid::from_u128(7).to_string());
    assert_eq!(item.get("_id"), Some(&id));
    assert_eq!(item.get("id"), Some(&id), "the index needs the attribute");
    assert_eq!(item.get("qty"), Some(&Value::from(2)));
    for absent in ["_sk", "quantity", "note", "price", "tags", "type"] {
        assert!(!item.contains(absent), "{absent}");
    }
    assert_eq!(Order::from_item(&item).unwrap(), order());
}

#[test]
fn missing_attributes_are_read_as_defaults() {
    let mut item = order().to_item().unwrap();
    for name in ["batch", "colour", "id"] {
        item.remove(name);
    }
    let read = Order::from_item(&item).unwrap();
    assert_eq!((read.batch, read.colour.as_str()), (5, "red"));
    assert_eq!(read.id, order().id);
    item.remove("qty");
    assert_eq!(
        Order::from_item(&item).unwrap_err().to_string(),
        "the attribute is missing: model=Order field=quantity"
    );
}

#[test]
fn default_does_not_replace_none() {
    let visit = Visit {
        stars: None,
        ..Visit::from_key(1).unwrap()
    };
    let item = visit.to_item().unwrap();
    assert_eq!(Visit::from_item(&item).unwrap().stars, None);
}

#[track_caller]
fn check_rejected(change: impl FnOnce(&mut Order), field: &str) {
    let mut order = order();
    change(&mut order);
    let error = order.to_item().unwrap_err().to_string();
    assert!(
        error.ends_with(&format!(" model=Order field={field}")),
        "{error}"
    );
}

#[test]
fn constraints_reject_invalid_values() {
    check_rejected(|order| order.quantity = 0, "quantity");
    check_rejected(|order| order.quantity = 101, "quantity");
    check_rejected(|order| order.product = String::new(), "product");
    check_rejected(|order| order.product = "Tea".to_owned(), "product");
    check_rejected(|order| order.price = Some(-0.5), "price");
    check_rejected(|order| order.weight = Number::from(11), "weight");
    check_rejected(|order| order.colour = "green".to_owned(), "colour");
    check_rejected(|order| order.size = Some(2), "size");
    check_rejected(|order| order.size = Some(5), "size");
    check_rejected(
        |order| order.tags = ["a", "b", "c"].map(String::from).into(),
        "tags",
    );
}

#[test]
fn compound_keys_take_components_in_order_or_by_name() {
    let key = RaceResult::key(("Bo", 99)).unwrap();
    assert_eq!(key.encoded().id(), &Value::from("99\0Bo"));
    assert_eq!(RaceResult::key((String::from("Bo"), 99)).unwrap(), key);
    let named = RaceResultKey {
        race_id: 99,
        runner_name: "Bo".to_owned(),
    };
    assert_eq!(RaceResult::key(named.clone()).unwrap(), key);
    assert_eq!(RaceResult::key(&key).unwrap(), key);
    assert_eq!(named, named.clone());
    let result = RaceResult::from_key(key).unwrap();
    assert_eq!(
        (result.runner_name.as_str(), result.race_id, result.seconds),
        ("Bo", 99, 0)
    );
    assert!(RaceResult::key(("Bo", 0)).is_err());
    assert!(RaceResult::key(("B\0o", 1)).is_err());
}

#[test]
fn single_component_is_a_key_by_value_or_reference() {
    let id = Uuid::from_u128(7);
    assert_eq!(Order::key(id).unwrap(), order().key_of().unwrap());
    assert_eq!((&id).into_key(), Order::key(id));
    let name = "joe".to_owned();
    let key = Currency::key("joe").unwrap();
    assert_eq!((&name).into_key(), Ok(key.clone()));
    assert_eq!(Currency::key(name).unwrap(), key);
    assert_eq!(key.encoded().sort(), Some(&Value::from("money")));
}

#[test]
fn trailing_components_with_defaults_can_be_omitted() {
    let key = Visit::key((5, "home", -7)).unwrap();
    assert_eq!(Visit::key((5, "home")).unwrap(), key);
    assert_eq!(Visit::key(5).unwrap(), key);
    assert_ne!(Visit::key((5, "home", 7)).unwrap(), key);
    let visit = Visit::from_key((5, "work")).unwrap();
    let expected = Visit {
        number: 5,
        place: "work".to_owned(),
        hour: -7,
        stars: Some(3),
    };
    assert_eq!(visit, expected);
    assert_eq!(
        Visit::from_item(&visit.to_item().unwrap()).unwrap(),
        expected
    );
}

#[test]
fn value_is_created_from_its_key() {
    let currency = Currency::from_key("joe").unwrap();
    let expected = Currency {
        user_id: "joe".to_owned(),
        items: BTreeMap::new(),
        tags: BTreeSet::new(),
    };
    assert_eq!(currency, expected);
}

#[test]
fn keys_of_every_type_round_trip() {
    for text in ["a", "1", "true", "\"a\"", "{}"] {
        let key = (Name(text.to_owned()), Timestamp::from_millis(5), true);
        let item = Named::from_key(key).unwrap().to_item().unwrap();
        let read = Named::from_item(&item).unwrap();
        assert_eq!(read.name, Name(text.to_owned()));
        assert_eq!((read.at, read.flag), (Timestamp::from_millis(5), true));
    }
}

#[test]
fn schema_describes_the_model() {
    let schema = Order::SCHEMA;
    assert_eq!((schema.model, schema.table), ("Order", "Orders"));
    assert_eq!(
        (schema.expires, schema.exactly_once),
        (Some("expires"), true)
    );
    let field = |name| schema.field(name).unwrap();
    assert_eq!(
        (field("id").role, field("id").kind),
        (Role::Partition, FieldKind::Text)
    );
    assert_eq!(
        (field("quantity").attribute, field("quantity").kind),
        ("qty", FieldKind::Number)
    );
    assert_eq!(field("address").kind, FieldKind::Other);
    assert!(field("note").optional && !field("product").optional);
    assert!(field("batch").read_only && field("batch").has_default);
    let [by_product, by_note] = schema.indexes else {
        panic!("{:?}", schema.indexes);
    };
    assert_eq!(
        (by_product.key, by_product.sort),
        (&["product"][..], &["quantity", "id"][..])
    );
    assert_eq!(by_product.projection, IndexProjection::Include(&["note"]));
    assert_eq!(
        (by_note.sparse, by_note.projection),
        (true, IndexProjection::Keys)
    );
    assert!(schema.stream && !Currency::SCHEMA.stream);
    assert_eq!(Currency::SCHEMA.sort_constant, Some("money"));
    assert_eq!(Visit::SCHEMA.sort_key_encoding, SortKeyEncoding::Json);
    assert_eq!(Order::SCHEMA.sort_key_encoding, SortKeyEncoding::Ordered);
}

#[test]
fn json_schema_contains_the_constraints() {
    let schema = Order::json_schema();
    let check = |attribute: &str, keyword: &str, expected: serde_json::Value| {
        assert_eq!(
            schema["properties"][attribute][keyword], expected,
            "{attribute} {keyword}"
        );
    };
    check("qty", "minimum", json!(1));
    check("qty", "maximum", json!(100));
    check("product", "minLength", json!(1));
    check("product", "maxLength", json!(9));
    check("product", "pattern", json!("^[a-z]*$"));
    check("colour", "enum", json!(["red", "blue"]));
    check("colour", "default", json!("red"));
    check("tags", "maxItems", json!(2));
    check("batch", "default", json!(5));
    check("batch", "readOnly", json!(true));
}

async fn db() -> (Db, Arc<dyn Engine>) {
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let table = TableDef::builder("Orders", "_id", KeyKind::S)
        .build()
        .unwrap();
    engine.create_table(CreateTable::from(table)).await.unwrap();
    (Db::with_engine(engine.clone()), engine)
}

impl OrderRow<'_> {
    fn total(&self, tax: f64) -> f64 {
        f64::from(*self.quantity) * self.price.unwrap_or(1.0) * (1.0 + tax)
    }
}

#[tokio::test]
async fn dropped_row_is_committed() {
    let (db, engine) = db().await;
    let id = order().id;
    db.transact(async |tx| {
        let mut row = tx.create(order())?;
        assert!(row.is_new());
        row.quantity += 1;
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    let shown = db
        .transact(async |tx| {
            let mut row = tx.get::<Order>(id).await?.unwrap();
            assert!(!row.is_new());
            assert_eq!(row.key()?, Order::key(id)?);
            assert_eq!(row.total(0.5), 4.5);
            row.note.set(Some("hot".to_owned()))?;
            Ok::<_, Error>(format!("{row:?}"))
        })
        .await
        .unwrap();
    assert!(shown.starts_with("OrderRow { id: 00000000-"), "{shown}");
    let key = Order::key(id).unwrap().encoded().to_item();
    let stored = engine.get_item(GetItem::new("Orders", key)).await.unwrap();
    let stored = Order::from_item(&stored.item.unwrap()).unwrap();
    let expected = Order {
        quantity: 3,
        note: Some("hot".to_owned()),
        ..order()
    };
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn new_item_contains_the_attributes_of_its_indexes() {
    let (db, engine) = db().await;
    db.transact(async |tx| tx.create(order()).map(drop))
        .await
        .unwrap();
    let key = order().key_of().unwrap().encoded().to_item();
    let stored = engine.get_item(GetItem::new("Orders", key)).await.unwrap();
    let id = stored.item.unwrap().get("id").cloned();
    assert_eq!(id, Some(Value::from(order().id.to_string())));
}

#[tokio::test]
async fn patch_writes_without_reading() {
    let (db, _) = db().await;
    let id = order().id;
    db.transact(async |tx| tx.create(order()).map(drop))
        .await
        .unwrap();
    db.transact(async |tx| {
        let expected = Order::patch().quantity(2).product("tea");
        tx.update::<Order>(id, expected, Order::patch().quantity(4).product("milk"))
    })
    .await
    .unwrap();
    db.transact(async |tx| {
        let row = tx.get::<Order>(id).await?.unwrap();
        assert_eq!((*row.quantity, row.product.as_str()), (4, "milk"));
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    let wrong = db.transact(async |tx| {
        tx.update::<Order>(id, Order::patch().quantity(4), Order::patch().quantity(0))
    });
    assert!(wrong.await.is_err());
}
