//! A guestbook that two people sign at the same moment, without losing a name.
//!
//! Alice and Bob both read the empty book before either has signed. Then both write a list with one name, and without
//! locking the later write would replace the earlier one. Here the body of a transaction reads and writes, and because
//! it read the list, the list is written only if it has not changed since. The second writer gets a conflict, and its
//! body runs again on the changed book.
//!
//! `cargo run -p floe-examples --bin guestbook`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::sync::atomic::{AtomicU32, Ordering};

use floe::{Db, Error, Model};
use floe_examples::{Fallible, arguments, claim};
use tokio::sync::Barrier;

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin guestbook

Two people sign one guestbook at the same moment: the second one runs again after a conflict, and no name is lost.";

#[derive(Model)]
struct Guestbook {
    #[model(key)]
    place: String,
    names: Vec<String>,
}

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let db = Db::memory()?;
    db.ensure_tables(&[Guestbook::SCHEMA]).await?;
    for place in ["hut", "lodge"] {
        open_book(&db, place).await?;
    }
    let runs = sign_together(&db).await?;
    let lost = sign_without_lock(&db).await?;
    println!("\nThe lock took {runs} runs for 2 names. Without it, {lost} of 2 names was lost.");
    Ok(())
}

async fn open_book(db: &Db, place: &str) -> Result<(), Error> {
    db.transact(async |tx| {
        let (place, names) = (place.to_owned(), Vec::new());
        tx.create(Guestbook { place, names })?;
        Ok(())
    })
    .await
}

/// The names in a book.
async fn names(db: &Db, place: &str) -> Result<Vec<String>, Error> {
    db.transact(async |tx| {
        let book = tx.get::<Guestbook>(place).await?;
        Ok(book.map(|book| book.names.clone()).unwrap_or_default())
    })
    .await
}

/// Adds a name. `others` makes all signers read before any of them writes, so that there is always a race. Returns the
/// number of runs of the body.
async fn sign(db: &Db, name: &str, others: &Barrier) -> Result<u32, Error> {
    let runs = AtomicU32::new(0);
    db.transact(async |tx| {
        let run = runs.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(mut book) = tx.get::<Guestbook>("hut").await? {
            println!("  {name}, run {run}: the book contains {:?}", book.names);
            if run == 1 {
                others.wait().await;
            }
            book.names.push(name.to_owned());
        }
        Ok::<_, Error>(())
    })
    .await?;
    Ok(runs.into_inner())
}

async fn sign_together(db: &Db) -> Fallible<u32> {
    println!("Alice and Bob sign the guestbook of the hut at the same moment.");
    let both = Barrier::new(2);
    let (alice, bob) = tokio::try_join!(sign(db, "Alice", &both), sign(db, "Bob", &both))?;
    let mut names = names(db, "hut").await?;
    println!("  In the end the book contains {names:?}.");
    names.sort();
    claim(names == ["Alice", "Bob"], "both names are in the book")?;
    claim(alice + bob == 3, "one of the two bodies ran again")?;
    Ok(alice + bob)
}

/// The same with a write without a lock: the last write wins.
async fn sign_without_lock(db: &Db) -> Fallible<usize> {
    println!("\nThey sign the guestbook of the lodge with `overwrite`, which does not lock.");
    let both = Barrier::new(2);
    let sign = async |name: &str| {
        db.transact(async |tx| {
            if let Some(mut book) = tx.get::<Guestbook>("lodge").await? {
                let mut names = book.names.clone();
                both.wait().await;
                names.push(name.to_owned());
                book.names.overwrite(names)?;
            }
            Ok::<_, Error>(())
        })
        .await
    };
    tokio::try_join!(sign("Alice"), sign("Bob"))?;
    let names = names(db, "lodge").await?;
    println!("  In the end the book contains {names:?}.");
    claim(names.len() == 1, "without a lock one name is lost")?;
    Ok(2 - names.len())
}
