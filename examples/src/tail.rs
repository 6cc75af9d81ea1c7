//! Follows all appended events: the stored ones first, then new ones as they arrive.
//!
//! A writer appends to several streams. An indexer records in the feed which events were appended to which stream, and
//! the subscription reads the feed and the events. A reader that stores the checkpoint can continue there later.
//!
//! `cargo run -p floe-examples --bin tail`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::time::Duration;

use floe::events::feed::{EventBatch, Filter, IndexerOptions};
use floe::events::{EventData, EventStore, Expected, StreamName};
use floe::{Db, Error};
use floe_examples::{Fallible, arguments, claim};
use tokio::sync::oneshot;

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin tail

Follows the feed of an event store while a writer appends to its streams.";

const SENSORS: u32 = 3;
const READINGS: u32 = 5;

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let store = Db::memory()?.events();
    store.ensure_table().await?;
    store.ensure_feed().await?;
    write(&store, 0).await?;

    // Usually a separate process; here a task that runs until it is stopped.
    let (stop, stopped) = oneshot::channel::<()>();
    let mut indexer = store.indexer(IndexerOptions::new().poll(Duration::from_millis(5)))?;
    let indexing = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        indexer.run(stopped).await
    });
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for reading in 1..READINGS {
                write(&store, reading).await?;
            }
            Ok::<_, Error>(())
        }
    });

    let sensors = Filter::default().category("Sensor");
    let mut feed = store
        .feed()
        .filter(sensors)
        .poll(Duration::from_millis(5))
        .from_start();
    let mut seen = 0;
    while seen < SENSORS * READINGS {
        let batch = feed.wait_next().await?;
        seen += show(&batch);
    }
    writing.await??;
    drop(stop);
    indexing.await??;
    println!(
        "all {seen} readings were received, up to {}",
        feed.checkpoint()
    );
    claim(seen == SENSORS * READINGS, "each reading is delivered once")?;
    claim(feed.lag().await?.events == 0, "no events remain")
}

/// Appends a reading of each sensor.
async fn write(store: &EventStore, reading: u32) -> Result<(), Error> {
    for sensor in 0..SENSORS {
        let name = StreamName::new("Sensor", &sensor)?;
        let degrees = 20 + sensor + reading;
        let measured = EventData::new("Measured", format!(r#"{{"degrees":{degrees}}}"#));
        store
            .append(&name, Expected::Exact(u64::from(reading)), [measured])
            .await?;
    }
    Ok(())
}

/// Prints a batch. Returns its number of events.
fn show(batch: &EventBatch) -> u32 {
    let mut count = 0;
    for (stream, events) in &batch.streams {
        for read in events {
            let body = String::from_utf8_lossy(&read.event.data);
            println!(
                "{:>6}  {stream} {} {body}",
                batch.checkpoint.to_string(),
                read.index
            );
            count += 1;
        }
    }
    count
}
