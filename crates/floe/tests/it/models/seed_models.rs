//! Every example of the two documents on which models are based, as a program. The tests are named after the sections
//! of the later one; those of the earlier are in `earlier`.

mod earlier;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::model::key::IntoKey;
use floe::{Db, Error, ErrorKind, Model, Outcome, Tx};
use floe_store::Value;
use uuid::Uuid;

use super::stage;

type Result<T, E = Error> = std::result::Result<T, E>;

async fn db(models: &[&'static floe::model::Schema]) -> Db {
    let db = stage::db();
    db.ensure_tables(models).await.unwrap();
    db
}

fn uuid(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Order {
    id: Uuid,
    product: String,
    quantity: i64,
    #[model(default)]
    unit_price: i64,
}

impl OrderRow<'_> {
    fn total_price(&self, sales_tax: f64) -> f64 {
        let sub_total = *self.quantity * *self.unit_price;
        sub_total as f64 * (1.0 + sales_tax)
    }
}

fn coffee(id: Uuid) -> Order {
    Order {
        id,
        product: "coffee".to_owned(),
        quantity: 1,
        unit_price: 200,
    }
}

#[derive(Clone, Debug, PartialEq, Model)]
struct RaceResult {
    #[model(key)]
    race_id: i64,
    #[model(key)]
    runner_name: String,
}

fn result(race_id: i64, runner_name: &str) -> RaceResult {
    RaceResult {
        race_id,
        runner_name: runner_name.to_owned(),
    }
}

#[tokio::test]
async fn minimal_example() {
    let db = db(&[Order::SCHEMA]).await;
    let id = uuid(1);
    db.transact(async |tx| tx.create(coffee(id)).map(drop))
        .await
        .unwrap();
    let body = async |tx: &Tx| {
        let mut order = tx.get::<Order>(id).await?.unwrap();
        assert_eq!(order.id, id);
        assert_eq!(order.product, "coffee");
        assert_eq!(order.quantity, 1);
        order.quantity.set(2)?;
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
    let quantity = async |tx: &Tx| Ok::<_, Error>(*tx.get::<Order>(id).await?.unwrap().quantity);
    assert_eq!(db.transact(quantity).await.unwrap(), 2);
}

#[tokio::test]
async fn keys() {
    let db = db(&[RaceResult::SCHEMA]).await;
    db.transact(async |tx| tx.create(result(99, "Bo")).map(drop))
        .await
        .unwrap();
    let body = async |tx: &Tx| {
        let row = tx.get::<RaceResult>((99, "Bo")).await?.unwrap();
        assert_eq!(row.race_id, 99);
        assert_eq!(row.runner_name, "Bo");
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
}

#[derive(Clone, Debug, PartialEq, Default, serde::Serialize, serde::Deserialize)]
struct SomeObject {
    arr: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Model)]
struct ModelWithFields {
    id: Uuid,
    #[model(min = 0)]
    some_number: i64,
    some_bool: bool,
    #[model(serde, custom = short_names)]
    some_obj: SomeObject,
}

fn short_names(object: &SomeObject) -> std::result::Result<(), String> {
    match object.arr.iter().find(|name| name.len() > 5) {
        Some(name) => Err(format!("the name is too long: name={name}")),
        None => Ok(()),
    }
}

#[derive(Clone, Debug, PartialEq, Model)]
struct ModelWithComplexFields {
    id: Uuid,
    #[model(min = 0)]
    a_non_neg_int: i64,
    an_opt_bool: Option<bool>,
    #[model(read_only, default = 5)]
    immutable_int: i64,
}

#[tokio::test]
async fn fields() {
    let db = db(&[ModelWithComplexFields::SCHEMA]).await;
    let create = async |tx: &Tx| {
        let value = ModelWithComplexFields {
            id: uuid(1),
            a_non_neg_int: 0,
            an_opt_bool: None,
            immutable_int: 5,
        };
        tx.create(value).map(drop)
    };
    db.transact(create).await.unwrap();
    let change = async |tx: &Tx| {
        let mut row = tx.get::<ModelWithComplexFields>(uuid(1)).await?.unwrap();
        assert_eq!(row.an_opt_bool, None);
        row.immutable_int.set(6)
    };
    let error = db.transact(change).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert!(error.to_string().contains("field=immutable_int"), "{error}");
}

#[tokio::test]
async fn schema_enforcement() {
    let db = db(&[ModelWithFields::SCHEMA, RaceResult::SCHEMA]).await;
    let value = ModelWithFields {
        id: uuid(1),
        some_number: 1,
        some_bool: true,
        some_obj: SomeObject::default(),
    };
    // When an item is created, immediately.
    let negative = ModelWithFields {
        some_number: -1,
        ..value.clone()
    };
    let refused = db
        .transact(async |tx| tx.create(negative.clone()).map(drop))
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidField);
    db.transact(async |tx| tx.create(value.clone()).map(drop))
        .await
        .unwrap();
    let long = || SomeObject {
        arr: vec!["too long".to_owned()],
    };
    // When a field is set; the old value stays.
    let set = async |tx: &Tx| {
        let mut row = tx.get::<ModelWithFields>(uuid(1)).await?.unwrap();
        assert!(row.some_obj.set(long()).is_err());
        assert_eq!(row.some_obj, SomeObject::default());
        row.some_obj.set(SomeObject {
            arr: vec!["ok".to_owned()],
        })
    };
    db.transact(set).await.unwrap();
    // A change inside a value is found when the transaction commits, or on demand.
    let push = async |tx: &Tx| {
        let mut row = tx.get::<ModelWithFields>(uuid(1)).await?.unwrap();
        row.some_obj.arr.push("too long".to_owned());
        assert!(row.some_obj.validate().is_err());
        Ok::<_, Error>(())
    };
    let error = db.transact(push).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert!(error.to_string().contains("field=some_obj"), "{error}");
    // Keys are checked when they are created, and when items are created and read.
    assert!(RaceResult::key((1, "Alice")).is_ok());
    assert!(RaceResult::key((1, "A\0lice")).is_err());
    let create = async |tx: &Tx| tx.create(result(1, "A\0lice")).map(drop);
    assert_eq!(
        db.transact(create).await.unwrap_err().kind(),
        ErrorKind::InvalidField
    );
    let get = async |tx: &Tx| tx.get::<RaceResult>((1, "A\0lice")).await.map(drop);
    assert_eq!(
        db.transact(get).await.unwrap_err().kind(),
        ErrorKind::InvalidField
    );
}

#[tokio::test]
async fn custom_methods() {
    let db = db(&[Order::SCHEMA]).await;
    let body = async |tx: &Tx| {
        let order = tx.create(Order {
            quantity: 2,
            ..coffee(uuid(1))
        })?;
        Ok::<_, Error>(order.total_price(0.1))
    };
    let price = db.transact(body).await.unwrap();
    assert!((price - 440.0).abs() < 1e-9);
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Guestbook {
    id: Uuid,
    names: Vec<String>,
}

#[tokio::test]
async fn automatic_optimistic_locking() {
    let db = db(&[Guestbook::SCHEMA]).await;
    let create = async |tx: &Tx| {
        let names = Vec::new();
        tx.create(Guestbook { id: uuid(1), names }).map(drop)
    };
    db.transact(create).await.unwrap();
    // Alice and Bob have both read the empty book before either writes.
    let (runs, both) = (AtomicU32::new(0), tokio::sync::Barrier::new(2));
    let sign = async |name: &str| {
        let first = AtomicU32::new(0);
        let body = async |tx: &Tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            let mut book = tx.get::<Guestbook>(uuid(1)).await?.unwrap();
            if first.fetch_add(1, Ordering::Relaxed) == 0 {
                both.wait().await;
            }
            book.names.push(name.to_owned());
            Ok::<_, Error>(())
        };
        db.tx().initial_backoff_ms(1).run(body).await
    };
    let (alice, bob) = tokio::join!(sign("Alice"), sign("Bob"));
    alice.unwrap();
    bob.unwrap();
    assert_eq!(runs.into_inner(), 3);
    let names = async |tx: &Tx| {
        let book = tx.get::<Guestbook>(uuid(1)).await?.unwrap();
        Ok::<_, Error>(book.names.clone())
    };
    let mut names = db.transact(names).await.unwrap();
    names.sort();
    assert_eq!(names, ["Alice", "Bob"]);
}

#[tokio::test(start_paused = true)]
async fn retries() {
    let db = db(&[]).await;
    let runs = AtomicU32::new(0);
    let begun = tokio::time::Instant::now();
    let body = async |tx: &Tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(tx.retry(std::io::Error::other("not yet")))
    };
    let body = async |tx: &Tx| body(tx).await.map_err(AppError::Io);
    let options = db
        .tx()
        .retries(4)
        .initial_backoff_ms(100)
        .max_backoff_ms(500);
    let error = options.run(body).await.unwrap_err();
    assert!(matches!(error, AppError::Io(_)));
    assert_eq!(runs.into_inner(), 5);
    // 100 + 200 + 400 + 500, each within a tenth.
    let took = begun.elapsed().as_millis();
    assert!((1080..=1330).contains(&took), "{took}");
}

#[derive(Debug)]
enum AppError {
    Io(#[expect(dead_code, reason = "shown by Debug alone")] std::io::Error),
    Floe(#[expect(dead_code, reason = "shown by Debug alone")] Error),
}

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        Self::Floe(error)
    }
}

#[tokio::test]
async fn events() {
    let db = db(&[Order::SCHEMA]).await;
    let outcomes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let create = async |tx: &Tx| {
        let outcomes = outcomes.clone();
        tx.on_post_commit(async move |outcome| outcomes.lock().unwrap().push(outcome));
        tx.create(coffee(uuid(1))).map(drop)
    };
    db.transact(create).await.unwrap();
    assert_eq!(
        db.transact(create).await.unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    let outcomes = outcomes.lock().unwrap();
    assert!(matches!(
        outcomes.as_slice(),
        [Outcome::Committed, Outcome::Failed(error)] if error.kind() == ErrorKind::AlreadyExists
    ));
}

#[derive(Clone, Debug, PartialEq, Model)]
struct SkierStats {
    #[model(key)]
    resort: String,
    #[model(min = 0, default = 0)]
    num_skiers: i64,
}

#[derive(Clone, Debug, PartialEq, Model)]
struct LiftStats {
    #[model(key)]
    resort: String,
    #[model(min = 0, default = 0)]
    num_lift_rides: i64,
}

async fn lift_ride_taken(db: &Db, resort: &str, is_new_skier: bool) -> Result<()> {
    db.transact(async |tx| {
        let lifts = tx.get_or_create(LiftStats::from_key(resort)?);
        if is_new_skier {
            let skiers = tx.get_or_create(SkierStats::from_key(resort)?);
            let (mut skiers, mut lifts) = tokio::try_join!(skiers, lifts)?;
            skiers.num_skiers += 1;
            lifts.num_lift_rides += 1;
        } else {
            lifts.await?.num_lift_rides += 1;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn warning_race_conditions() {
    let db = db(&[SkierStats::SCHEMA, LiftStats::SCHEMA]).await;
    lift_ride_taken(&db, "Alta", true).await.unwrap();
    lift_ride_taken(&db, "Alta", false).await.unwrap();
    let body = async |tx: &Tx| {
        let keys = (SkierStats::key("Alta")?, LiftStats::key("Alta")?);
        let (skiers, lifts) = tx.get_many(keys).await?;
        let (skiers, lifts) = (skiers.unwrap(), lifts.unwrap());
        Ok::<_, Error>((*skiers.num_skiers, *lifts.num_lift_rides))
    };
    assert_eq!(db.transact(body).await.unwrap(), (1, 2));
}

#[tokio::test]
async fn warning_side_effects() {
    let db = db(&[Order::SCHEMA]).await;
    db.transact(async |tx| tx.create(coffee(uuid(1))).map(drop))
        .await
        .unwrap();
    let (runs, calls) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    let body = async |tx: &Tx| {
        let mut order = tx.get::<Order>(uuid(1)).await?.unwrap();
        order.quantity += 10;
        if order.quantity > 10 {
            let calls = calls.clone();
            tx.on_post_commit(async move |_| _ = calls.fetch_add(1, Ordering::Relaxed));
        }
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(tx.retry(Error::from(floe_store::Error::Throttling(String::new()))));
        }
        Ok(())
    };
    db.tx().initial_backoff_ms(0).run(body).await.unwrap();
    assert_eq!((runs.into_inner(), calls.load(Ordering::Relaxed)), (2, 1));
}

#[tokio::test]
async fn addressing_items() {
    let id = uuid(1);
    let by_name = OrderKey { id }.into_key().unwrap();
    assert_eq!(Order::key(id).unwrap(), by_name);
    let by_name = RaceResultKey {
        race_id: 1,
        runner_name: "Dave".to_owned(),
    };
    assert_eq!(
        RaceResult::key((1, "Dave")).unwrap(),
        RaceResult::key(by_name).unwrap()
    );
    let db = db(&[Order::SCHEMA]).await;
    let get = async |tx: &Tx| Ok::<_, Error>(tx.get(Order::key(id)?).await?.is_none());
    assert!(db.transact(get).await.unwrap());
}

#[tokio::test]
async fn create() {
    let db = db(&[Order::SCHEMA]).await;
    let create = async |tx: &Tx| {
        let order = tx.create(coffee(uuid(1)))?;
        assert!(order.is_new());
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    assert_eq!(
        db.transact(create).await.unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
}

#[tokio::test]
async fn read() {
    let db = db(&[Order::SCHEMA, RaceResult::SCHEMA]).await;
    let body = async |tx: &Tx| {
        let mut order = tx.get_or_create(coffee(uuid(1))).await?;
        if order.is_new() {
            order.quantity.set(7)?;
        }
        tx.create(result(1, "Bo")).map(drop)
    };
    db.transact(body).await.unwrap();
    let many = async |tx: &Tx| {
        let keys = (
            Order::key(uuid(1))?,
            Order::key(uuid(2))?,
            RaceResult::key((1, "Bo"))?,
        );
        let (first, second, race) = tx.get_many(keys).await?;
        assert_eq!(first.unwrap().quantity, 7);
        assert!(second.is_none());
        assert_eq!(race.unwrap().race_id, 1);
        let twice = tx.get::<Order>(uuid(1)).await.map(drop);
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::FetchedTwice);
        Ok::<_, Error>(())
    };
    db.transact(many).await.unwrap();
}

#[tokio::test]
async fn read_consistency() {
    let db = db(&[Order::SCHEMA]).await;
    db.transact(async |tx| tx.create(coffee(uuid(1))).map(drop))
        .await
        .unwrap();
    let body = async |tx: &Tx| {
        let order = tx.eventual().get::<Order>(uuid(1)).await?.unwrap();
        let others = (2..250)
            .map(|n| Order::key(uuid(n)))
            .collect::<Result<Vec<_>>>()?;
        let others = tx.eventual().get_many(others).await?;
        assert!(others.iter().all(Option::is_none));
        Ok::<_, Error>(order.product.clone())
    };
    assert_eq!(db.transact(body).await.unwrap(), "coffee");
}

#[derive(Clone, Debug, PartialEq, Model)]
struct LastUsedFeature {
    #[model(key)]
    user: String,
    #[model(key)]
    feature: String,
    epoch: i64,
    note: Option<String>,
}

#[tokio::test]
async fn blind_writes() {
    let db = db(&[Order::SCHEMA, LastUsedFeature::SCHEMA]).await;
    db.transact(async |tx| tx.create(coffee(uuid(1))).map(drop))
        .await
        .unwrap();
    let update = async |tx: &Tx| {
        let expected = Order::patch().quantity(1).product("coffee");
        tx.update::<Order>(uuid(1), expected, Order::patch().quantity(2))
    };
    db.transact(update).await.unwrap();
    // The second time the quantity is 2, and stays so.
    let error = db.tx().retries(0).run(update).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    assert!(error.to_string().contains("fields=quantity"), "{error}");
    let put = async |tx: &Tx, epoch: i64| {
        let key = LastUsedFeature::key(("Bob", "refer a friend"))?;
        let new = LastUsedFeature::patch().epoch(epoch).note(None);
        tx.create_or_put(key, LastUsedFeature::patch(), new)
    };
    db.transact(async |tx| put(tx, 1).await).await.unwrap();
    db.transact(async |tx| put(tx, 2).await).await.unwrap();
    let read = async |tx: &Tx| {
        let row = tx
            .get::<LastUsedFeature>(("Bob", "refer a friend"))
            .await?
            .unwrap();
        Ok::<_, Error>((*row.epoch, row.note.clone()))
    };
    assert_eq!(db.transact(read).await.unwrap(), (2, None));
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Player {
    #[model(key)]
    id: String,
    level: i64,
    guild: Option<String>,
}

#[tokio::test]
async fn updating_item_without_aol() {
    let db = db(&[Player::SCHEMA]).await;
    let create = async |tx: &Tx| {
        let (id, guild) = ("id".to_owned(), None);
        tx.create(Player {
            id,
            level: 11,
            guild,
        })
        .map(drop)
    };
    db.transact(create).await.unwrap();
    // Between read and commit, another writer adds one too. Neither runs again.
    let runs = AtomicU32::new(0);
    let outer = async |tx: &Tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        let mut player = tx.get::<Player>("id").await?.unwrap();
        if player.level > 10 {
            player.level.increment_by(1)?;
        }
        let inner = async |tx: &Tx| {
            let mut player = tx.get::<Player>("id").await?.unwrap();
            player.level.increment_by(1)
        };
        db.tx().detached().run(inner).await
    };
    db.transact(outer).await.unwrap();
    let level = async |tx: &Tx| Ok::<_, Error>(*tx.get::<Player>("id").await?.unwrap().level);
    assert_eq!(db.transact(level).await.unwrap(), 13);
    assert_eq!(runs.into_inner(), 1);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
struct RawText {
    raw: String,
}

#[derive(Clone, Debug, PartialEq, Model)]
struct StringKeyWithNullBytes {
    #[model(key, serde)]
    id: RawText,
}

#[tokio::test]
async fn key_encoding() {
    let key = RaceResult::key((123, "Mel")).unwrap();
    assert_eq!(key.encoded().id(), &Value::from("123\0Mel"));
    let db = db(&[StringKeyWithNullBytes::SCHEMA]).await;
    let raw = || RawText {
        raw: "I can contain \0, no pr\0blem!".to_owned(),
    };
    let create = async |tx: &Tx| tx.create(StringKeyWithNullBytes { id: raw() }).map(drop);
    db.transact(create).await.unwrap();
    let get = async |tx: &Tx| {
        let row = tx.get::<StringKeyWithNullBytes>(raw()).await?.unwrap();
        Ok::<_, Error>(row.id == raw())
    };
    assert!(db.transact(get).await.unwrap());
}

#[tokio::test]
async fn nested_transactions_are_not_nested() {
    let db = db(&[Order::SCHEMA]).await;
    let inner_runs = AtomicU32::new(0);
    let nested = async |_: &Tx| db.transact(async |_: &Tx| Ok::<_, Error>(())).await;
    assert_eq!(
        db.transact(nested).await.unwrap_err().kind(),
        ErrorKind::InvalidUse
    );
    // A detached inner transaction commits first, and runs again with the outer one.
    let outer = async |tx: &Tx| {
        let inner = async |tx: &Tx| {
            let id = uuid(u128::from(inner_runs.fetch_add(1, Ordering::Relaxed)));
            tx.create(coffee(id)).map(drop)
        };
        db.tx().detached().run(inner).await?;
        match inner_runs.load(Ordering::Relaxed) {
            1 => Err(tx.retry(Error::from(floe_store::Error::Throttling(String::new())))),
            _ => Ok(()),
        }
    };
    db.tx().initial_backoff_ms(0).run(outer).await.unwrap();
    assert_eq!(inner_runs.into_inner(), 2);
}

#[derive(Clone, Debug, PartialEq, Model)]
struct CustomerData {
    #[model(key)]
    store: String,
    #[model(sort_key)]
    customer: String,
}

#[tokio::test]
async fn sort_keys() {
    let db = db(&[CustomerData::SCHEMA]).await;
    let create = async |tx: &Tx| {
        for customer in ["Alice", "Bob"] {
            let (store, customer) = ("Wallymart".to_owned(), customer.to_owned());
            tx.create(CustomerData { store, customer })?;
        }
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let get = async |tx: &Tx| {
        let row = tx.get::<CustomerData>(("Wallymart", "Bob")).await?;
        Ok::<_, Error>(row.is_some())
    };
    assert!(db.transact(get).await.unwrap());
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(table = "Inventory", sort_key = "money")]
struct Currency {
    #[model(key)]
    user_id: String,
    #[model(default)]
    items: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(table = "Inventory", sort_key = "weapon")]
struct Weapon {
    #[model(key)]
    user_id: String,
    #[model(default)]
    items: BTreeMap<String, i64>,
    #[model(default)]
    weapon_skill_level: BTreeMap<String, i64>,
}

#[tokio::test]
async fn overlapping_models() {
    let db = db(&[Currency::SCHEMA, Weapon::SCHEMA]).await;
    let create = async |tx: &Tx| {
        tx.create(Currency {
            user_id: "p1".to_owned(),
            items: [("usd".to_owned(), 123), ("rmb".to_owned(), 456)].into(),
        })?;
        tx.create(Weapon {
            user_id: "p1".to_owned(),
            items: [("ax".to_owned(), 1)].into(),
            weapon_skill_level: [("ax".to_owned(), 13)].into(),
        })
        .map(drop)
    };
    db.transact(create).await.unwrap();
    let read = async |tx: &Tx| {
        let keys = (Currency::key("p1")?, Weapon::key("p1")?);
        let (currency, weapon) = tx.get_many(keys).await?;
        let (currency, weapon) = (currency.unwrap(), weapon.unwrap());
        Ok::<_, Error>((currency.items["usd"], weapon.weapon_skill_level["ax"]))
    };
    assert_eq!(db.transact(read).await.unwrap(), (123, 13));
}

#[tokio::test]
async fn composite_ids() {
    let db = db(&[Currency::SCHEMA, Weapon::SCHEMA]).await;
    let create = async |tx: &Tx| {
        tx.create(Weapon::from_key("p1")?)?;
        let mut money = tx.create(Currency::from_key("p1")?)?;
        money.items.insert("diamonds".to_owned(), 2);
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    // Neither conflicts with the other: they are different items.
    let runs = AtomicU32::new(0);
    let add_weapon = async |tx: &Tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        let mut weapons = tx.get::<Weapon>("p1").await?.unwrap();
        *weapons.items.entry("uzi".to_owned()).or_default() += 1;
        Ok::<_, Error>(())
    };
    let buy_coins = async |tx: &Tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        let mut money = tx.get::<Currency>("p1").await?.unwrap();
        if money.items["diamonds"] > 1 {
            *money.items.entry("diamonds".to_owned()).or_default() -= 1;
            *money.items.entry("coins".to_owned()).or_default() += 100;
        }
        Ok::<_, Error>(())
    };
    let (one, other) = tokio::join!(db.transact(add_weapon), db.transact(buy_coins));
    one.unwrap();
    other.unwrap();
    assert_eq!(runs.into_inner(), 2);
}

async fn rename(tx: &Tx, id: &str, guild: &str) -> Result<()> {
    let mut player = tx.get::<Player>(id).await?.unwrap();
    player.guild.set(Some(guild.to_owned()))
}

#[tokio::test]
async fn helpers_in_transactions() {
    let db = db(&[Player::SCHEMA]).await;
    let create = async |tx: &Tx| {
        for id in ["a", "b"] {
            let (id, level, guild) = (id.to_owned(), 1, None);
            tx.create(Player { id, level, guild })?;
        }
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    // As a body, and called by another body.
    db.transact(async |tx| rename(tx, "a", "bears").await)
        .await
        .unwrap();
    let both = async |tx: &Tx| {
        rename(tx, "a", "wolves").await?;
        rename(tx, "b", "wolves").await
    };
    db.transact(both).await.unwrap();
}

#[tokio::test]
async fn check_item_existence() {
    let db = db(&[Player::SCHEMA]).await;
    let body = async |tx: &Tx| {
        assert!(tx.get::<Player>("a new id").await?.is_none());
        let (id, level, guild) = ("another".to_owned(), 0, None);
        assert!(
            tx.get_or_create(Player { id, level, guild })
                .await?
                .is_new()
        );
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
}

/// A commit applies all writes or none, also if one of many is rejected, and survives a restart.
#[tokio::test]
async fn acid_properties() {
    let directory = tempfile::tempdir().unwrap();
    let open = async || {
        let db = Db::open(directory.path()).unwrap();
        db.ensure_tables(&[Order::SCHEMA]).await.unwrap();
        db
    };
    let count = async |db: &Db| db.scan::<Order>().all().await.unwrap().len();
    {
        let db = open().await;
        let two = async |tx: &Tx| {
            tx.create(coffee(uuid(1)))?;
            tx.create(coffee(uuid(2))).map(drop)
        };
        db.transact(two).await.unwrap();
        let half = async |tx: &Tx| {
            tx.create(coffee(uuid(3)))?;
            tx.create(coffee(uuid(1))).map(drop)
        };
        let error = db.transact(half).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        // Uncommitted changes cannot be read by other transactions.
        let unseen = async |tx: &Tx| {
            tx.create(coffee(uuid(4)))?;
            assert_eq!(count(&db).await, 2);
            Err::<(), _>(Error::from(floe_store::Error::validation(
                "changed my mind",
            )))
        };
        db.transact(unseen).await.unwrap_err();
    }
    assert_eq!(count(&open().await).await, 2);
}

#[tokio::test]
async fn write() {
    let db = db(&[Order::SCHEMA]).await;
    let create = async |tx: &Tx| {
        let mut order = tx.create(coffee(uuid(1)))?;
        order.quantity += 1;
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let change = async |tx: &Tx| {
        let mut order = tx.get::<Order>(uuid(1)).await?.unwrap();
        order.product.set("tea".to_owned())
    };
    db.transact(change).await.unwrap();
    let [order] = db.scan::<Order>().all().await.unwrap().try_into().unwrap();
    assert_eq!((order.product.as_str(), order.quantity), ("tea", 2));
}

/// The features that the document lists as missing: consistent reads of several items, queries, scans and indexes.
#[tokio::test]
async fn unsupported_dynamodb_features() {
    #[derive(Clone, Debug, PartialEq, Model)]
    #[model(index(name = "by_team", key(team), sort(seconds)))]
    struct Runner {
        #[model(key)]
        race: i64,
        #[model(sort_key)]
        name: String,
        team: String,
        seconds: i64,
    }
    let db = db(&[Runner::SCHEMA]).await;
    let create = async |tx: &Tx| {
        for (name, team, seconds) in [("Ann", "red", 61), ("Bo", "blue", 70), ("Cy", "red", 59)] {
            let (name, team) = (name.to_owned(), team.to_owned());
            tx.create(Runner {
                race: 1,
                name,
                team,
                seconds,
            })?;
        }
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let body = async |tx: &Tx| {
        let keys = [Runner::key((1, "Ann"))?, Runner::key((1, "Cy"))?];
        let [ann, cy] = tx.get_many(keys).await?;
        Ok::<_, Error>(*ann.unwrap().seconds + *cy.unwrap().seconds)
    };
    assert_eq!(db.transact(body).await.unwrap(), 120);
    let names = |runners: Vec<Runner>| runners.into_iter().map(|r| r.name).collect::<Vec<_>>();
    let later = db.query::<Runner>(|r| r.race.eq(1).and(r.name.gt("Ann")));
    assert_eq!(names(later.all().await.unwrap()), ["Bo", "Cy"]);
    let red = db
        .query::<Runner>(|r| r.team.eq("red"))
        .index(Runner::BY_TEAM);
    assert_eq!(names(red.all().await.unwrap()), ["Cy", "Ann"]);
    assert_eq!(db.scan::<Runner>().all().await.unwrap().len(), 3);
}

#[tokio::test]
async fn table_creation_and_persistence() {
    use floe::model::tables::{InfrastructureFormat, infrastructure};

    let schemas = [Order::SCHEMA, RaceResult::SCHEMA];
    let template = infrastructure(&schemas, InfrastructureFormat::CloudFormation).unwrap();
    assert!(template.contains("AWS::DynamoDB::Table") && template.contains("Retain"));
    // An existing table and its items stay unchanged, also if its model is no longer given.
    let db = db(&[Order::SCHEMA]).await;
    db.transact(async |tx| tx.create(coffee(uuid(1))).map(drop))
        .await
        .unwrap();
    db.ensure_tables(&[RaceResult::SCHEMA]).await.unwrap();
    assert_eq!(db.scan::<Order>().all().await.unwrap().len(), 1);
    // A changed key of a model is an error.
    #[derive(Clone, Debug, PartialEq, Model)]
    #[model(table = "Order")]
    struct OtherOrder {
        #[model(key)]
        number: i64,
    }
    let error = db.ensure_tables(&[OtherOrder::SCHEMA]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
}

#[tokio::test]
async fn dax() {
    let db = db(&[Order::SCHEMA]).await;
    let db = db.with_read_cache(floe::cache::CacheOptions::new());
    db.transact(async |tx| tx.create(coffee(uuid(1))).map(drop))
        .await
        .unwrap();
    let read = async |tx: &Tx| {
        let order = tx.eventual().get::<Order>(uuid(1)).await?.unwrap();
        Ok::<_, Error>(*order.quantity)
    };
    assert_eq!(db.transact(read).await.unwrap(), 1);
    assert_eq!(db.transact(read).await.unwrap(), 1);
    assert_eq!(db.read_cache().unwrap().hits, 2);
    // This process sees its own writes.
    let change = async |tx: &Tx| {
        tx.get::<Order>(uuid(1)).await?.unwrap().quantity += 1;
        Ok::<_, Error>(())
    };
    db.transact(change).await.unwrap();
    assert_eq!(db.transact(read).await.unwrap(), 2);
}
