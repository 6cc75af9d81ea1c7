//! A ski resort counts its skiers and their rides in two items, which readers always see consistently.
//!
//! A ride of a new skier adds to both in one transaction. A reader that reads the two items one after the other can
//! still see a ride without a skier, if the ride is committed in between. Two solutions are shown: reading both
//! together with `get_many`, or checking the reads at the end with `verified`.
//!
//! `cargo run -p floe-examples --bin ski_resort`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::sync::atomic::{AtomicU32, Ordering};

use floe::{Db, Error, Model, Tx};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin ski_resort

Rides are taken while the counters of skiers and rides are read: no read sees a ride without a skier.";

const SKIERS: i64 = 20;
const RIDES_EACH: i64 = 5;

#[derive(Model)]
struct SkierStats {
    #[model(key)]
    resort: String,
    #[model(min = 0, default = 0)]
    skiers: i64,
}

#[derive(Model)]
struct LiftStats {
    #[model(key)]
    resort: String,
    #[model(min = 0, default = 0)]
    rides: i64,
}

/// Number of skiers and number of rides.
type Counts = (i64, i64);

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let db = Db::memory()?;
    db.ensure_tables(&[SkierStats::SCHEMA, LiftStats::SCHEMA])
        .await?;
    read_one_by_one(&db).await?;
    read_verified(&db).await?;
    read_during_rides(&db).await
}

/// Takes a ride. An ordinary function that runs as part of the caller's transaction.
async fn ride(tx: &Tx, resort: &str, is_new_skier: bool) -> Result<(), Error> {
    if is_new_skier {
        let mut stats = tx.get_or_create(SkierStats::from_key(resort)?).await?;
        stats.skiers.increment_by(1)?;
    }
    // An atomic increment of the stored value: concurrent rides do not conflict.
    let mut stats = tx.get_or_create(LiftStats::from_key(resort)?).await?;
    stats.rides.increment_by(1)
}

/// Another task takes the first ride of the day.
async fn first_ride(db: &Db, resort: &'static str) -> Fallible {
    let db = db.clone();
    let ride = async move { db.transact(async |tx| ride(tx, resort, true).await).await };
    Ok(tokio::spawn(ride).await??)
}

/// Reads one counter after the other, with a ride in between if `disturb` is set.
async fn one_by_one(db: &Db, tx: &Tx, resort: &'static str, disturb: bool) -> Fallible<Counts> {
    let skiers = tx.get::<SkierStats>(resort).await?;
    if disturb {
        first_ride(db, resort).await?;
    }
    let lifts = tx.get::<LiftStats>(resort).await?;
    let skiers = skiers.map_or(0, |stats| *stats.skiers);
    Ok((skiers, lifts.map_or(0, |stats| *stats.rides)))
}

async fn read_one_by_one(db: &Db) -> Fallible {
    let body = async |tx: &Tx| one_by_one(db, tx, "Alta", true).await;
    let counts = db.transact(body).await?;
    println!("Read one by one, with a ride in between: {}", shown(counts));
    claim(counts == (0, 1), "separate reads can be inconsistent")
}

async fn read_verified(db: &Db) -> Fallible {
    let runs = AtomicU32::new(0);
    let body = async |tx: &Tx| {
        let is_first = runs.fetch_add(1, Ordering::Relaxed) == 0;
        one_by_one(db, tx, "Brighton", is_first).await
    };
    let counts = db.tx().verified().run(body).await?;
    let runs = runs.into_inner();
    println!(
        "The same with verified reads: {} after {runs} runs",
        shown(counts)
    );
    claim(
        counts == (1, 1) && runs == 2,
        "verified reads are consistent",
    )
}

/// Both counters, read consistently.
async fn snapshot(db: &Db, resort: &str) -> Result<Counts, Error> {
    db.transact(async |tx| {
        let keys = (SkierStats::key(resort)?, LiftStats::key(resort)?);
        let (skiers, lifts) = tx.get_many(keys).await?;
        let skiers = skiers.map_or(0, |stats| *stats.skiers);
        Ok((skiers, lifts.map_or(0, |stats| *stats.rides)))
    })
    .await
}

/// The rides of one skier.
async fn ski(db: Db, resort: &'static str) -> Result<(), Error> {
    for number in 0..RIDES_EACH {
        // Only the first rides conflict, because each of them creates the counters.
        let options = db.tx().initial_backoff_ms(1).label("ride");
        options
            .run(async |tx| ride(tx, resort, number == 0).await)
            .await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn read_during_rides(db: &Db) -> Fallible {
    println!("\nReads with `get_many` while {SKIERS} skiers take {RIDES_EACH} rides each:");
    let skiers = (0..SKIERS).map(|_| tokio::spawn(ski(db.clone(), "Snowbird")));
    let skiers: Vec<_> = skiers.collect();
    let (mut reads, mut last_printed) = (0, -1);
    while !skiers.iter().all(|skier| skier.is_finished()) {
        let (skiers, rides) = snapshot(db, "Snowbird").await?;
        let is_consistent = skiers <= rides && rides <= skiers * RIDES_EACH;
        claim(
            is_consistent,
            &format!("the counters are consistent: {}", shown((skiers, rides))),
        )?;
        reads += 1;
        if rides / 20 > last_printed {
            last_printed = rides / 20;
            println!("  {}", shown((skiers, rides)));
        }
        tokio::task::yield_now().await;
    }
    for skier in skiers {
        skier.await??;
    }
    let counts = snapshot(db, "Snowbird").await?;
    println!(
        "  {} at the end, after {reads} consistent reads",
        shown(counts)
    );
    claim(
        counts == (SKIERS, SKIERS * RIDES_EACH),
        "every ride is counted once",
    )
}

fn shown((skiers, rides): Counts) -> String {
    format!("skiers={skiers} rides={rides}")
}
