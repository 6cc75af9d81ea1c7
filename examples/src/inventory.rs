//! A player's inventory: money and weapons are separate models in one table, with the same partition key.
//!
//! In one item, every change would conflict with every other one. In two tables, the items could not be in one
//! partition. Two models that share the table and have different constant sort keys avoid both: they change
//! independently, and are read and changed together cheaply.
//!
//! `cargo run -p floe-examples --bin inventory`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::{Db, Error, Model, Tx};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin inventory

Money and weapons of a player, two models in one table: changes of one do not conflict with the other.";

const CHANGES: u32 = 50;
const SWORD_COINS: i64 = 30;

#[derive(Model)]
#[model(table = "Inventory", sort_key = "money")]
struct Money {
    #[model(key)]
    player: String,
    #[model(default, min = 0)]
    coins: i64,
}

#[derive(Model)]
#[model(table = "Inventory", sort_key = "weapon")]
struct Weapons {
    #[model(key)]
    player: String,
    /// The number of weapons of each kind.
    #[model(default)]
    owned: BTreeMap<String, u32>,
}

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let db = Db::memory()?;
    let tables = db.ensure_tables(&[Money::SCHEMA, Weapons::SCHEMA]).await?;
    println!("Two models, {} table.", tables.len());
    db.transact(async |tx| {
        tx.create(Money::from_key("joe")?)?;
        tx.create(Weapons::from_key("joe")?)?;
        Ok::<_, Error>(())
    })
    .await?;
    change_both_concurrently(&db).await?;
    buy_swords(&db).await
}

/// One task earns coins, the other one finds daggers, both with optimistic locking.
async fn change_both_concurrently(db: &Db) -> Fallible {
    let earn = async |tx: &Tx| {
        if let Some(mut money) = tx.get::<Money>("joe").await? {
            money.coins += 2;
        }
        Ok::<_, Error>(())
    };
    let find = async |tx: &Tx| {
        if let Some(mut weapons) = tx.get::<Weapons>("joe").await? {
            *weapons.owned.entry("dagger".to_owned()).or_default() += 1;
        }
        Ok::<_, Error>(())
    };
    let runs = AtomicU32::new(0);
    let earning = async {
        for _ in 0..CHANGES {
            db.transact(async |tx| counted(&runs, earn(tx)).await)
                .await?;
        }
        Ok::<_, Error>(())
    };
    let finding = async {
        for _ in 0..CHANGES {
            db.transact(async |tx| counted(&runs, find(tx)).await)
                .await?;
        }
        Ok::<_, Error>(())
    };
    tokio::try_join!(earning, finding)?;
    let (transactions, runs) = (2 * CHANGES, runs.into_inner());
    println!(
        "{transactions} concurrent changes of money and weapons: {runs} runs, so no conflicts."
    );
    claim(
        runs == transactions,
        "changes of different items do not conflict",
    )
}

async fn counted<T>(runs: &AtomicU32, body: impl Future<Output = T>) -> T {
    runs.fetch_add(1, Ordering::Relaxed);
    body.await
}

/// Exchanges coins for a sword in one commit, if there are enough coins.
async fn buy_sword(db: &Db) -> Result<bool, Error> {
    db.transact(async |tx| {
        let keys = (Money::key("joe")?, Weapons::key("joe")?);
        let (Some(mut money), Some(mut weapons)) = tx.get_many(keys).await? else {
            return Ok(false);
        };
        if money.coins < SWORD_COINS {
            return Ok(false);
        }
        money.coins -= SWORD_COINS;
        *weapons.owned.entry("sword".to_owned()).or_default() += 1;
        Ok(true)
    })
    .await
}

async fn buy_swords(db: &Db) -> Fallible {
    let mut bought = 0;
    while buy_sword(db).await? {
        bought += 1;
    }
    let (coins, owned) = db
        .transact(async |tx| {
            let keys = (Money::key("joe")?, Weapons::key("joe")?);
            let (money, weapons) = tx.get_many(keys).await?;
            let coins = money.map_or(0, |money| *money.coins);
            let owned = weapons.map(|weapons| weapons.owned.clone());
            Ok::<_, Error>((coins, owned.unwrap_or_default()))
        })
        .await?;
    println!("After buying swords for {SWORD_COINS} coins each: {coins} coins, {owned:?}");
    let expected = [("dagger".to_owned(), CHANGES), ("sword".to_owned(), bought)];
    claim(owned == expected.into(), "every weapon is stored")?;
    let spent = i64::from(bought) * SWORD_COINS;
    claim(
        coins + spent == 2 * i64::from(CHANGES),
        "every coin is accounted for",
    )
}
