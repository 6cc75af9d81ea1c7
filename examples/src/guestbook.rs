//! A guestbook that two people sign at the same moment, and no name is lost.
//!
//! Alice and Bob both read the empty book before either has signed. Both then write a list with one name,
//! and without care the later one would erase the earlier. Here nobody takes care: the body of a
//! transaction reads and writes, and because the list was read, it is written only if it is still as it was
//! read. Whoever comes second runs again, on the book as it is by then.
//!
//! `cargo run -p floe-examples --bin guestbook`

#![expect(clippy::print_stdout, reason = "a program that shows what happens")]

use std::sync::atomic::{AtomicU32, Ordering};

use floe::{Db, Error, Model};
use floe_examples::{Fallible, arguments, claim};
use tokio::sync::Barrier;

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin guestbook

Two people sign one guestbook at the same moment: whoever comes second runs again, and no name is lost.";

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
    let lost = sign_carelessly(&db).await?;
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

/// Adds a name. `others` makes sure that everybody has read before anybody writes: a race each time.
/// Returns how often the body has run.
async fn sign(db: &Db, name: &str, others: &Barrier) -> Result<u32, Error> {
    let runs = AtomicU32::new(0);
    db.transact(async |tx| {
        let run = runs.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(mut book) = tx.get::<Guestbook>("hut").await? {
            println!("  {name}, run {run}: the book holds {:?}", book.names);
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
    println!("  In the end the book holds {names:?}.");
    names.sort();
    claim(names == ["Alice", "Bob"], "both names are in the book")?;
    claim(alice + bob == 3, "one of the two ran again, once")?;
    Ok(alice + bob)
}

/// The same with a write that takes no lock, for what it costs: the last one wins.
async fn sign_carelessly(db: &Db) -> Fallible<usize> {
    println!("\nThey sign the guestbook of the lodge with `overwrite`, which takes no lock.");
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
    println!("  In the end the book holds {names:?}.");
    claim(names.len() == 1, "without a lock one name is lost")?;
    Ok(2 - names.len())
}
