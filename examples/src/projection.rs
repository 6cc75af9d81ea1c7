//! An exact view: the pieces sold of each product, computed from the events of all orders.
//!
//! The feed may deliver the same events again, for example after a crash. A view that only adds would count them twice.
//! Here the sums and the checkpoint in the feed are stored in one commit, so each event counts once, although the
//! program fails twice in the middle and starts again.
//!
//! `cargo run -p floe-examples --bin projection`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::sync::atomic::{AtomicU32, Ordering};

use floe::events::feed::{IndexerOptions, ViewTransaction};
use floe::events::{Decider, EventStore};
use floe::{Db, Error, Event, Model};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin projection

Sums over the events of all orders, committed together with the checkpoint in the feed: exact in spite of crashes.";

#[derive(Clone, Debug, PartialEq, Event)]
enum OrderEvent {
    Sold { product: String, pieces: u32 },
    Cancelled { product: String, pieces: u32 },
}

enum Order {}

impl Decider for Order {
    const CATEGORY: &'static str = "Order";
    type Id = u32;
    type Event = OrderEvent;
    type State = ();

    fn initial() {}

    fn evolve((): (), _: &OrderEvent) {}
}

/// The view of a product.
#[derive(Model)]
struct Sales {
    #[model(key)]
    product: String,
    pieces: i64,
}

const ORDERS: u32 = 40;

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let db = Db::memory()?;
    db.ensure_tables(&[Sales::SCHEMA]).await?;
    let store = db.events();
    store.ensure_table().await?;
    store.ensure_feed().await?;
    sell(&store).await?;

    let indexed = store
        .indexer(IndexerOptions::new())?
        .run_until_caught_up()
        .await?;
    println!("in the feed: {} events", indexed.events);
    let crashes = project(&store).await?;
    println!(
        "the view was completed in {} runs, of which {crashes} failed",
        crashes + 1
    );

    for (product, expected) in [("tea", 60), ("jam", 20)] {
        let sold = sold(&db, product).await?;
        println!("{product}: {sold} pieces");
        claim(sold == expected, "each event counts once")?;
    }
    Ok(())
}

/// Appends forty orders. Every second order is partly cancelled.
async fn sell(store: &EventStore) -> Result<(), Error> {
    let sold = |product: &str, pieces| OrderEvent::Sold {
        product: product.to_owned(),
        pieces,
    };
    for number in 0..ORDERS {
        let order = store.stream::<Order>(&number);
        order
            .transact(|()| Ok::<_, Error>([sold("tea", 2), sold("jam", 1)]))
            .await?;
        if number % 2 == 0 {
            let cancelled = |product: &str| OrderEvent::Cancelled {
                product: product.to_owned(),
                pieces: 1,
            };
            order
                .transact(|()| Ok::<_, Error>([cancelled("tea"), cancelled("jam")]))
                .await?;
        }
    }
    Ok(())
}

/// Updates the view until it has caught up with the feed. Returns the number of failed runs.
async fn project(store: &EventStore) -> Fallible<u32> {
    // Workers with this name share the feed, in all processes.
    let view = store.consumers("sales").attempts_max(1);
    let calls = AtomicU32::new(0);
    let mut crashes = 0;
    loop {
        let run = view.run_exactly_once_until_caught_up(async |delivery: ViewTransaction<'_>| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            add(&delivery).await?;
            // The changes are made, but not committed.
            match call {
                7 | 23 => Err(Error::from(floe_store::Error::Unreachable(
                    "simulated crash".to_owned(),
                ))),
                _ => Ok(()),
            }
        });
        match run.await {
            Ok(summary) => {
                for (partition, checkpoint) in summary.checkpoints {
                    println!("partition {partition} is up to date at {checkpoint}");
                }
                claim(view.lag().await?.events == 0, "no event is missing")?;
                return Ok(crashes);
            }
            Err(error) => {
                println!("failed: {error}");
                crashes += 1;
                claim(crashes < 10, "runs make progress")?;
            }
        }
    }
}

/// Adds the events of one order to the sums.
async fn add(delivery: &ViewTransaction<'_>) -> Result<(), Error> {
    let (mut tea, mut jam) = (0, 0);
    for recorded in delivery.events {
        let event = OrderEvent::decode(&recorded.event.event_type, &recorded.event.data)?;
        let (product, pieces) = match event {
            Some(OrderEvent::Sold { product, pieces }) => (product, i64::from(pieces)),
            Some(OrderEvent::Cancelled { product, pieces }) => (product, -i64::from(pieces)),
            None => continue,
        };
        match product.as_str() {
            "tea" => tea += pieces,
            _ => jam += pieces,
        }
    }
    for (product, pieces) in [("tea", tea), ("jam", jam)] {
        let empty = Sales {
            product: product.to_owned(),
            pieces: 0,
        };
        let mut sales = delivery.tx.get_or_create(empty).await?;
        sales.pieces += pieces;
    }
    Ok(())
}

async fn sold(db: &Db, product: &str) -> Result<i64, Error> {
    db.transact(async |tx| {
        let sales = tx.get::<Sales>(product).await?;
        Ok(sales.map_or(0, |sales| *sales.pieces))
    })
    .await
}
