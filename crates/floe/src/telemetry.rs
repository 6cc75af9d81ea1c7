//! Telemetry: spans and measurements of everything that Floe does, by OpenTelemetry's names where it has some.
//!
//! Floe tells them through [`tracing`], to whatever subscriber the program has. While nobody listens that costs next to
//! nothing: a request goes straight to the engine, and nothing is asked of it besides. While somebody listens, the engine is
//! also asked what each request consumes.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use floe::{Db, Error, Model, Tx};
//! use tracing::field::{Field, Visit};
//! use tracing::span::{Attributes, Id, Record};
//! use tracing::{Event, Metadata, Subscriber};
//!
//! /// Notes the operations that are asked of the store. A program takes a subscriber that is made: that of the crate
//! /// `tracing-subscriber`, or the export of the feature `otlp`.
//! #[derive(Clone, Default)]
//! struct Operations(Arc<Mutex<Vec<String>>>);
//!
//! impl Visit for Operations {
//!     fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
//!
//!     fn record_str(&mut self, field: &Field, value: &str) {
//!         if field.name() == "db.operation.name" {
//!             self.0.lock().unwrap().push(value.to_owned());
//!         }
//!     }
//! }
//!
//! impl Subscriber for Operations {
//!     fn enabled(&self, metadata: &Metadata<'_>) -> bool {
//!         metadata.target() == "floe::request"
//!     }
//!     fn new_span(&self, span: &Attributes<'_>) -> Id {
//!         span.record(&mut self.clone());
//!         Id::from_u64(1)
//!     }
//!     fn record(&self, _: &Id, _: &Record<'_>) {}
//!     fn record_follows_from(&self, _: &Id, _: &Id) {}
//!     fn event(&self, _: &Event<'_>) {}
//!     fn enter(&self, _: &Id) {}
//!     fn exit(&self, _: &Id) {}
//! }
//!
//! #[derive(Model)]
//! struct Product {
//!     #[model(key)]
//!     name: String,
//!     price: u32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_tables(&[Product::SCHEMA]).await?;
//! let create = async |tx: &Tx| tx.create(Product { name: "tea".to_owned(), price: 3 }).map(drop);
//! db.transact(create).await?;
//!
//! let operations = Operations::default();
//! let _listens = tracing::subscriber::set_default(operations.clone());
//! let raise = async |tx: &Tx| {
//!     let mut tea = tx.get::<Product>("tea").await?.expect("it was created");
//!     tea.price += 1;
//!     Ok::<_, Error>(())
//! };
//! db.transact(raise).await?;
//! assert_eq!(*operations.0.lock().unwrap(), ["GetItem", "UpdateItem"]);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `otlp`, `telemetry::otlp` sends all of it to a collector of OpenTelemetry.
//!
//! # What is never told
//!
//! No key and no value: of an item the table and the model, of a stream its category, of a conflict the names of the fields.
//! What a program puts into a [label](crate::tx::TxOptions::label) is told as it is.
//!
//! # Spans
//!
//! All are of the level `DEBUG`. A field without a value is left out.
//!
//! | span | target | around | its fields |
//! |---|---|---|---|
//! | `request` | `floe::request` | a request to the engine, below the read cache | see below |
//! | `transaction` | `floe::transaction` | all runs of a body, and the pauses between | `floe.transaction.label`, `.read_only`, `.attempts`, `.outcome` (`committed`, `aborted`: by the body, `failed`), `.items_written`, `error.type` |
//! | `attempt` | `floe::transaction` | one run and its commit | `floe.transaction.attempt` |
//! | `decide` | `floe::events` | a decision on a stream, from the load to the append | `floe.stream.category`, `db.collection.name`, `floe.stream.resyncs` |
//! | `load` | `floe::events` | a load of a state, also where it comes from the cache | `floe.stream.category`, `db.collection.name`, `error.type` |
//! | `append` | `floe::events` | an append, until its outcome is known | `floe.stream.category`, `db.collection.name`, `floe.stream.events`, `.calves`, `.outcome` (`written`, `conflict`, `failed`), `error.type` |
//! | `prune` | `floe::events` | a prune | `floe.stream.category`, `db.collection.name`, `floe.stream.deleted`, `error.type` |
//! | `index` | `floe::feed` | a step of an indexer | `db.collection.name`, `floe.feed.indexer`, `.records`, `.events`, `.lag_seconds` |
//! | `read` | `floe::feed` | a read of the feed by a subscription or a consumer | `floe.feed.partition`, `.epoch`, `.batches` |
//! | `handle` | `floe::feed` | a call of a handler of the feed | `floe.feed.group`, `.partition`, `.events`, `floe.stream.category` |
//! | `turn` | `floe::changes` | the turn of an item: its changes, handled one after the other | `floe.changes.consumer`, `.changes`, `db.collection.name` |
//! | `delete in steps` | `floe::graph` | a deletion that takes more than one transaction, or what was left of some | `floe.graph.entities` |
//! | `rebuild` | `floe::graph` | the rebuild of an index | `floe.graph.index`, `.entities`, `.changed` |
//!
//! The registry and the other calls of the graph are transactions.
//!
//! The fields of a request:
//!
//! | field | what it holds |
//! |---|---|
//! | `otel.name`, `db.operation.name` | the operation: `GetItem`, `PutItem`, `TransactWriteItems` |
//! | `otel.kind` | `client`; `server` for the requests that `floe serve` answers |
//! | `otel.status_code` | `ERROR` if it failed; not where somebody else was faster, which is how optimistic locking works |
//! | `db.system.name` | `aws.dynamodb`, whichever engine it is |
//! | `db.collection.name` | the table, if there is one |
//! | `aws.dynamodb.table_names` | all tables, with commas between |
//! | `aws.dynamodb.index_name`, `.consistent_read` | of reads |
//! | `aws.dynamodb.count`, `.scanned_count` | how many items came back, and how many were looked at |
//! | `floe.consumed_read_units`, `floe.consumed_write_units` | what it has consumed |
//! | `error.type` | DynamoDB's name of the error: `ConditionalCheckFailedException` |
//!
//! # Events
//!
//! | message | target, level | when | its fields |
//! |---|---|---|---|
//! | `lost a race` | `floe::transaction` `DEBUG` | somebody else has changed what a run depends on | `floe.model`, `floe.fields` (none if the item came or went), `db.collection.name` (of streams, the graph, the registry), `floe.transaction.attempt` |
//! | `another transaction was under way` | `floe::transaction` `DEBUG` | the store has refused for that | `floe.transaction.attempt` |
//! | `throttled` | `floe::transaction` `DEBUG` | the store was asked for more than it gives | `error.type`, `floe.transaction.attempt` |
//! | `the store was not ready` | `floe::transaction` `DEBUG` | it is tried again | `error.type`, `floe.transaction.attempt` |
//! | `a lost answer is settled` | `floe::transaction` `DEBUG` | what became of a commit is known by now | `floe.settled_by` (`token`, `stamp`), `floe.applied`, `floe.sent` |
//! | `lost a race` | `floe::events` `DEBUG` | somebody else has appended to the stream | `floe.stream.category`, `db.collection.name` |
//! | `a lost answer is settled` | `floe::events` `DEBUG` | the stream has told what became of an append | `floe.stream.category`, `db.collection.name`, `floe.applied` |
//! | `a stream was parked` | `floe::feed` `WARN` | its handler does not get on | `floe.feed.group`, `.partition`, `floe.stream.category` |
//! | `the consumer could not go on` | `floe::feed`, `floe::changes` `WARN` | the store could not answer; it is tried again | `floe.feed.group` or `floe.changes.consumer`, `error.type` |
//! | `the indexer could not go on` | `floe::feed` `WARN` | a step has failed; it is tried again | `db.collection.name`, `error.type`, `floe.pause_seconds` |
//! | `a change was parked` | `floe::changes` `WARN` | its handler does not get on | `floe.changes.consumer`, `db.collection.name` |
//! | `a handler has failed` | `floe::changes` `DEBUG` | it is tried again | `floe.changes.consumer`, `.attempt`, `db.collection.name` |
//! | `this process delivers`, `another process delivers`, `parked changes of an item are done` | `floe::changes` `INFO` | | `floe.changes.consumer` |
//!
//! # Measurements
//!
//! They are events of the target `floe::metrics` and the level `TRACE`, one for each measurement: a field
//! `monotonic_counter.NAME`, `histogram.NAME` or `gauge.NAME`, and its attributes beside it. The metrics layer of
//! `tracing-opentelemetry` reads them so; whoever wants to may read them otherwise.
//!
//! | name | kind, unit | attributes |
//! |---|---|---|
//! | `db.client.operation.duration` | histogram, s | `db.system.name`, `db.operation.name`, `db.collection.name`, `error.type` |
//! | `floe.server.operation.duration` | the same, of the requests that `floe serve` answers | the same |
//! | `floe.consumed_read_units`, `floe.consumed_write_units` | counter, units | `db.operation.name`, `db.collection.name` |
//! | `floe.throttled_requests` | counter | `db.operation.name`, `db.collection.name` |
//! | `floe.transaction.duration` | histogram, s | `floe.transaction.label`, `floe.transaction.outcome`, `error.type` |
//! | `floe.transaction.attempts` | histogram | the same |
//! | `floe.conflicts` | counter, one for each field | `floe.model` (of a stream its category), `floe.field`, `db.collection.name` |
//! | `floe.stream.appended_events` | counter | `db.collection.name`, `floe.stream.category` |
//! | `floe.indexer.records`, `floe.indexer.events` | counter | `db.collection.name`, `floe.feed.indexer` |
//! | `floe.indexer.lag` | gauge, s: how old the last change is that a step has read | the same |
//! | `floe.feed.lag_events` | gauge: events between what is done and the tail | `floe.feed.group`, `floe.feed.partition` |
//! | `floe.feed.lag` | gauge, s: how long the oldest of them has waited | the same |
//! | `floe.feed.parked_events` | gauge | the same |
//! | `floe.feed.parked_streams` | counter | the same |
//! | `floe.changes.lag` | gauge, s: how old the last change is that is done; 0 if nothing waits | `floe.changes.consumer` |
//! | `floe.changes.waiting` | gauge: changes that are read and not done | `floe.changes.consumer` |
//! | `floe.changes.parked` | counter | `floe.changes.consumer`, `db.collection.name` |
//!
//! The lag of a group is measured by its workers while they run, with each of their beats and only while somebody listens to
//! measurements: two small reads for each partition. [`ConsumerGroup::lag`](crate::events::feed::ConsumerGroup::lag) tells it too.

/// A span of the level DEBUG; none while nobody listens to such. That is not the same as `tracing::debug_span!`: with the
/// feature `log` of `tracing`, which any crate of the program may ask for, that one makes all its fields for nobody.
macro_rules! debug_span {
    ($($span:tt)*) => {
        if tracing::level_filters::LevelFilter::current() >= tracing::Level::DEBUG {
            tracing::debug_span!($($span)*)
        } else {
            tracing::Span::none()
        }
    };
}
pub(crate) use debug_span;

mod engine;
pub(crate) mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
mod request;
pub(crate) mod transaction;

pub(crate) use metrics::measure;

use floe_store::Error as StoreError;
use floe_store::error::CancellationCode;

pub use engine::TracedEngine;

/// Whether somebody else was faster, which is how optimistic locking works, and no failure.
fn is_lost_race(error: &StoreError) -> bool {
    match error {
        StoreError::ConditionalCheckFailed { .. } | StoreError::TransactionConflict => true,
        StoreError::TransactionCanceled { reasons } => reasons.iter().all(|reason| {
            matches!(
                reason.code,
                CancellationCode::None
                    | CancellationCode::ConditionalCheckFailed
                    | CancellationCode::TransactionConflict
            )
        }),
        _ => false,
    }
}

/// Whether the store was asked for more than it gives.
fn is_throttled(error: &StoreError) -> bool {
    match error {
        StoreError::ProvisionedThroughputExceeded(_) | StoreError::Throttling(_) => true,
        StoreError::TransactionCanceled { reasons } => reasons.iter().any(|reason| {
            matches!(
                reason.code,
                CancellationCode::ProvisionedThroughputExceeded | CancellationCode::ThrottlingError
            )
        }),
        _ => false,
    }
}
