//! Telemetry: spans and metrics of everything that Floe does, with OpenTelemetry's names where they exist.
//!
//! Floe emits them through [`tracing`], to the subscriber of the program. Without a subscriber the cost is close to zero:
//! requests are forwarded to the engine unchanged. With a subscriber, the engine is also asked for the consumed capacity of
//! each request.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use floe::{Db, Error, Model, Tx};
//! use tracing::field::{Field, Visit};
//! use tracing::span::{Attributes, Id, Record};
//! use tracing::{Event, Metadata, Subscriber};
//!
//! /// Records the operations sent to the store. Programs use an existing subscriber: that of the crate
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
//! let _subscribed = tracing::subscriber::set_default(operations.clone());
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
//! With the feature `otlp`, `telemetry::otlp` exports everything to an OpenTelemetry collector.
//!
//! # What is never recorded
//!
//! Keys and values are never recorded: only the table and the model of an item, the category of a stream, the field names of a
//! conflict. A [label](crate::tx::TxOptions::label) is recorded as the program sets it.
//!
//! # Spans
//!
//! All spans have the level `DEBUG`. Fields without a value are omitted.
//!
//! | span | target | covers | fields |
//! |---|---|---|---|
//! | `request` | `floe::request` | a request to the engine, below the read cache | see below |
//! | `transaction` | `floe::transaction` | all attempts of a transaction, and the pauses between them | `floe.transaction.label`, `.read_only`, `.attempts`, `.outcome` (`committed`, `aborted`: by the body, `failed`), `.items_written`, `error.type` |
//! | `attempt` | `floe::transaction` | one run of the body and its commit | `floe.transaction.attempt` |
//! | `decide` | `floe::events` | a decision on a stream, from the load to the append | `floe.stream.category`, `db.collection.name`, `floe.stream.resyncs` |
//! | `load` | `floe::events` | a load of a state, also from the cache | `floe.stream.category`, `db.collection.name`, `error.type` |
//! | `append` | `floe::events` | an append, until its outcome is known | `floe.stream.category`, `db.collection.name`, `floe.stream.events`, `.calves`, `.outcome` (`written`, `conflict`, `failed`), `error.type` |
//! | `prune` | `floe::events` | a prune | `floe.stream.category`, `db.collection.name`, `floe.stream.deleted`, `error.type` |
//! | `index` | `floe::feed` | a step of an indexer | `db.collection.name`, `floe.feed.indexer`, `.records`, `.events`, `.lag_seconds` |
//! | `read` | `floe::feed` | a read of the feed by a subscription or a consumer | `floe.feed.partition`, `.epoch`, `.batches` |
//! | `handle` | `floe::feed` | a call of a handler of the feed | `floe.feed.group`, `.partition`, `.events`, `floe.stream.category` |
//! | `turn` | `floe::changes` | handling the changes of one item, in order | `floe.changes.consumer`, `.changes`, `db.collection.name` |
//! | `delete in steps` | `floe::graph` | a deletion that needs several transactions, or the resumption of interrupted ones | `floe.graph.entities` |
//! | `rebuild` | `floe::graph` | the rebuild of an index | `floe.graph.index`, `.entities`, `.changed` |
//!
//! Calls of the registry and all other calls of the graph are transactions.
//!
//! The fields of a request:
//!
//! | field | contents |
//! |---|---|
//! | `otel.name`, `db.operation.name` | the operation: `GetItem`, `PutItem`, `TransactWriteItems` |
//! | `otel.kind` | `client`; `server` for the requests that `floe serve` handles |
//! | `otel.status_code` | `ERROR` if it failed; conflicts are not failures |
//! | `db.system.name` | `aws.dynamodb`, for every engine |
//! | `db.collection.name` | the table, if there is only one |
//! | `aws.dynamodb.table_names` | all tables, comma-separated |
//! | `aws.dynamodb.index_name`, `.consistent_read` | of reads |
//! | `aws.dynamodb.count`, `.scanned_count` | items returned, items scanned |
//! | `floe.consumed_read_units`, `floe.consumed_write_units` | consumed capacity units |
//! | `error.type` | DynamoDB's name for the error: `ConditionalCheckFailedException` |
//!
//! # Events
//!
//! | message | target, level | when | fields |
//! |---|---|---|---|
//! | `lost a race` | `floe::transaction` `DEBUG` | another writer changed what an attempt depends on | `floe.model`, `floe.fields` (none if the item was created or deleted), `db.collection.name` (of streams, the graph, the registry), `floe.transaction.attempt` |
//! | `another transaction was under way` | `floe::transaction` `DEBUG` | the store rejected the request because of another transaction | `floe.transaction.attempt` |
//! | `throttled` | `floe::transaction` `DEBUG` | the store throttled a request; it is retried | `error.type`, `floe.transaction.attempt` |
//! | `the store was not ready` | `floe::transaction` `DEBUG` | the store was unavailable; the request is retried | `error.type`, `floe.transaction.attempt` |
//! | `a lost answer is settled` | `floe::transaction` `DEBUG` | the outcome of a commit whose response was lost is known | `floe.settled_by` (`token`, `stamp`), `floe.applied`, `floe.sent` |
//! | `a hook panicked` | `floe::transaction` `ERROR` | a post-commit hook panicked; the outcome stands, and the other hooks run | |
//! | `lost a race` | `floe::events` `DEBUG` | another writer appended to the stream | `floe.stream.category`, `db.collection.name` |
//! | `a lost answer is settled` | `floe::events` `DEBUG` | reading the stream showed the outcome of an append | `floe.stream.category`, `db.collection.name`, `floe.applied` |
//! | `a stream was parked` | `floe::feed` `WARN` | its handler failed in the last attempt | `floe.feed.group`, `.partition`, `floe.stream.category` |
//! | `the consumer failed; it retries` | `floe::feed`, `floe::changes` `WARN` | a request to the store failed; it is retried | `floe.feed.group` or `floe.changes.consumer`, `error.type` |
//! | `the indexer failed; it retries` | `floe::feed` `WARN` | a step failed; it is retried | `db.collection.name`, `error.type`, `floe.pause_seconds` |
//! | `a change became a dead letter` | `floe::changes` `WARN` | its handler failed in the last attempt | `floe.changes.consumer`, `db.collection.name` |
//! | `a handler has failed` | `floe::changes` `DEBUG` | a handler failed; it is retried | `floe.changes.consumer`, `.attempt`, `db.collection.name` |
//! | `this process delivers`, `another process delivers`, `a dead letter was replayed` | `floe::changes` `INFO` | | `floe.changes.consumer` |
//!
//! # Metrics
//!
//! Each measurement is an event of the target `floe::metrics` and the level `TRACE`: a field `monotonic_counter.NAME`,
//! `histogram.NAME` or `gauge.NAME`, with its attributes as further fields. This is the form that the metrics layer of
//! `tracing-opentelemetry` reads.
//!
//! | name | kind, unit | attributes |
//! |---|---|---|
//! | `db.client.operation.duration` | histogram, s | `db.system.name`, `db.operation.name`, `db.collection.name`, `error.type` |
//! | `floe.server.operation.duration` | the same, for the requests that `floe serve` handles | the same |
//! | `floe.consumed_read_units`, `floe.consumed_write_units` | counter, units | `db.operation.name`, `db.collection.name` |
//! | `floe.throttled_requests` | counter | `db.operation.name`, `db.collection.name` |
//! | `floe.transaction.duration` | histogram, s | `floe.transaction.label`, `floe.transaction.outcome`, `error.type` |
//! | `floe.transaction.attempts` | histogram | the same |
//! | `floe.conflicts` | counter, one for each field | `floe.model` (of a stream its category), `floe.field`, `db.collection.name` |
//! | `floe.stream.appended_events` | counter | `db.collection.name`, `floe.stream.category` |
//! | `floe.indexer.records`, `floe.indexer.events` | counter | `db.collection.name`, `floe.feed.indexer` |
//! | `floe.indexer.lag` | gauge, s: age of the last change that a step has read | the same |
//! | `floe.feed.lag_events` | gauge: events between the checkpoint and the tail | `floe.feed.group`, `floe.feed.partition` |
//! | `floe.feed.lag` | gauge, s: age of the oldest of them | the same |
//! | `floe.feed.parked_events` | gauge | the same |
//! | `floe.feed.parked_streams` | counter | the same |
//! | `floe.changes.lag` | gauge, s: age of the last processed change; 0 without backlog | `floe.changes.consumer` |
//! | `floe.changes.waiting` | gauge: changes read and not yet processed | `floe.changes.consumer` |
//! | `floe.changes.parked` | counter | `floe.changes.consumer`, `db.collection.name` |
//!
//! The workers of a group measure its lag with each heartbeat, only while a subscriber is interested in metrics: two small
//! reads for each partition. [`ConsumerGroup::lag`](crate::events::feed::ConsumerGroup::lag) returns it too.

/// A span of the level DEBUG, or none if that level is disabled. Unlike this macro, `tracing::debug_span!` evaluates all
/// fields even then, if any crate of the program enables the feature `log` of `tracing`.
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

/// Whether an error is a conflict with another writer. Conflicts are normal in optimistic locking, not failures.
fn is_conflict(error: &StoreError) -> bool {
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

/// Whether the store throttled the request.
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
