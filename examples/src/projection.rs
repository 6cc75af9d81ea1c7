//! A view that is exact: how much of each product was sold, counted from the events of all orders.
//!
//! The feed may hand out the same events again, for instance after a crash. A view that only adds up would count them
//! twice. Here the sums and the place in the feed are one commit, so each event counts once: the program dies in the
//! middle, twice, and begins again.
//!
//! `cargo run -p floe-examples --bin projection`

#![expect(clippy::print_stdout, reason = "a program that shows what happens")]

use std::sync::atomic::{AtomicU32, Ordering};

use floe::events::feed::{Delivery, IndexerOptions};
use floe::events::{Decider, EventStore};
use floe::{Db, Error, Event, Model};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin projection

Sums over the events of all orders, kept in the same commit as the place in the feed: exact, whoever dies.";

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

/// What the view holds of a product.
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
    let deaths = project(&store).await?;
    println!(
        "the view was made in {} runs, of which {deaths} died",
        deaths + 1
    );

    for (product, expected) in [("tea", 60), ("jam", 20)] {
        let sold = sold(&db, product).await?;
        println!("{product}: {sold} pieces");
        claim(sold == expected, "each event counts once")?;
    }
    Ok(())
}

/// Forty orders, of which every second one is cancelled in part.
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

/// Brings the view up to date, however often that is interrupted. Tells how often it was.
async fn project(store: &EventStore) -> Fallible<u32> {
    // Workers of this name share the feed, here and elsewhere.
    let view = store.consumers("sales").tries_max(1);
    let calls = AtomicU32::new(0);
    let mut deaths = 0;
    loop {
        let run = view.run_exactly_once_until_caught_up(async |delivery: Delivery<'_>| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            add(&delivery).await?;
            // All of it is written by now, and nothing is committed.
            match call {
                7 | 23 => Err(Error::from(floe_store::Error::Unreachable(
                    "the power is gone".to_owned(),
                ))),
                _ => Ok(()),
            }
        });
        match run.await {
            Ok(worked) => {
                for (partition, checkpoint) in worked.checkpoints {
                    println!("partition {partition} is up to date at {checkpoint}");
                }
                claim(view.lag().await?.events == 0, "nothing is missing")?;
                return Ok(deaths);
            }
            Err(error) => {
                println!("died: {error}");
                deaths += 1;
                claim(deaths < 10, "it gets on")?;
            }
        }
    }
}

/// Adds the events of one order to the sums.
async fn add(delivery: &Delivery<'_>) -> Result<(), Error> {
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
