//! An order in a directory: created, read, changed, rejected, queried, and read again after a restart.
//!
//! Each step is a transaction. A change that the model does not allow is never sent to the store, and every commit is
//! on disk.
//!
//! `cargo run -p floe-examples --bin orders`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::path::Path;

use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin orders

An order in a directory: created, read, changed, rejected, queried, and read again after a restart.";

#[derive(Clone, Debug, PartialEq, Model)]
#[model(
    table = "Orders",
    index(name = "by_product", key(product), sort(quantity))
)]
struct Order {
    #[model(key)]
    id: String,
    #[model(length(min = 1, max = 40))]
    product: String,
    #[model(min = 1, max = 100)]
    quantity: u32,
    #[model(min = 0)]
    cents: i64,
    /// The weight of each parcel.
    kilograms: Vec<f64>,
    note: Option<String>,
}

impl OrderRow<'_> {
    /// Computes the total. Reading the two fields makes the commit depend on them.
    fn total(&self) -> i64 {
        i64::from(*self.quantity) * *self.cents
    }
}

fn coffee() -> Order {
    Order {
        id: "o-1".to_owned(),
        product: "coffee".to_owned(),
        quantity: 2,
        cents: 450,
        kilograms: vec![0.5, 0.5],
        note: None,
    }
}

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path())?;
    db.ensure_tables(&[Order::SCHEMA]).await?;
    create(&db).await?;
    change(&db).await?;
    reject(&db).await?;
    change_unread(&db).await?;
    find(&db).await?;
    drop(db);
    read_after_restart(folder.path()).await
}

async fn create(db: &Db) -> Fallible {
    db.transact(async |tx| tx.create(coffee()).map(drop))
        .await?;
    println!("Created an order of 2 coffees.");
    // The commit reports that the order exists, so the body is not run again.
    let again = db.transact(async |tx| tx.create(coffee()).map(drop)).await;
    rejected(again, ErrorKind::AlreadyExists, "key=\"o-1\"")
}

async fn change(db: &Db) -> Fallible {
    let total = db
        .transact(async |tx| {
            let Some(mut order) = tx.get::<Order>("o-1").await? else {
                return Ok::<_, Error>(None);
            };
            // There is no `save`: changed fields are written after the body.
            if order.product == "coffee" {
                order.quantity += 1;
                order.note.set(Some("whole beans".to_owned()))?;
            }
            Ok(Some(order.total()))
        })
        .await?;
    let total = total.ok_or("the order does not exist")?;
    println!("\nAdded a coffee and a note: {total} cents in total.");
    claim(total == 1350, "three coffees cost 1350 cents")
}

/// The error of an invalid change names the field, and the position inside it.
async fn reject(db: &Db) -> Fallible {
    println!("\nChanges that the model does not allow:");
    let none = Order {
        id: "o-2".to_owned(),
        quantity: 0,
        ..coffee()
    };
    let created = db
        .transact(async |tx| tx.create(none.clone()).map(drop))
        .await;
    rejected(created, ErrorKind::InvalidField, "field=quantity")?;
    let changed = db
        .transact(async |tx| {
            if let Some(mut order) = tx.get::<Order>("o-1").await? {
                // A change inside a value is detected and validated after the body.
                order.kilograms.push(f64::NAN);
            }
            Ok(())
        })
        .await;
    rejected(changed, ErrorKind::InvalidField, "field=kilograms[2]")
}

/// A write without a read, if the stored values are known: one request instead of two.
async fn change_unread(db: &Db) -> Fallible {
    println!("\nChanges without a read:");
    let from_to = async |old: u32, new: u32| {
        let body = async |tx: &Tx| {
            let (expected, new) = (Order::patch().quantity(old), Order::patch().quantity(new));
            tx.update::<Order>("o-1", expected, new)
        };
        // A retry would expect the same values.
        db.tx().retries(0).run(body).await
    };
    from_to(3, 4).await?;
    println!("  from 3 to 4: done");
    rejected(
        from_to(3, 5).await,
        ErrorKind::TransactionFailed,
        "fields=quantity",
    )
}

/// Queries orders by an index, whose fields are typed columns.
async fn find(db: &Db) -> Fallible {
    for (id, product, quantity) in [
        ("o-2", "tea", 9),
        ("o-3", "coffee", 1),
        ("o-4", "coffee", 7),
    ] {
        let (id, product) = (id.to_owned(), product.to_owned());
        let order = Order {
            id,
            product,
            quantity,
            ..coffee()
        };
        db.transact(async |tx| tx.create(order.clone()).map(drop))
            .await?;
    }
    let large = db
        .query::<Order>(|order| order.product.eq("coffee").and(order.quantity.ge(2)))
        .index(Order::BY_PRODUCT)
        .descending();
    let ids: Vec<String> = large
        .all()
        .await?
        .into_iter()
        .map(|order| order.id)
        .collect();
    println!("\nOrders of 2 coffees or more, largest first: {ids:?}");
    claim(
        ids == ["o-4", "o-1"],
        "an index query returns them in order",
    )
}

async fn read_after_restart(folder: &Path) -> Fallible {
    let db = Db::open(folder)?;
    let found = db
        .transact(async |tx| {
            let order = tx.get::<Order>("o-1").await?;
            Ok::<_, Error>(order.map(|order| format!("{} x {}", order.quantity, order.product)))
        })
        .await?;
    println!("\nAfter a restart: {found:?}");
    let is_stored = found.as_deref() == Some("4 x coffee");
    claim(is_stored, "committed data exists after a restart")
}

/// Prints the error, and claims that it has this kind and contains this fact.
fn rejected(outcome: Result<(), Error>, kind: ErrorKind, fact: &str) -> Fallible {
    let Err(error) = outcome else {
        return claim(false, &format!("the change is rejected as {kind:?}"));
    };
    println!("  {:?}: {error}", error.kind());
    let is_expected = error.kind() == kind && error.to_string().contains(fact);
    claim(
        is_expected,
        &format!("the change is rejected as {kind:?} with {fact}"),
    )
}
