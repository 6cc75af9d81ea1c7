//! A transaction for each HTTP request, for [axum](https://docs.rs/axum). Needs the feature `axum`.
//!
//! ```
//! use axum::extract::Path;
//! use axum::routing::post;
//! use axum::{Json, Router};
//! use floe::http::{RequestTx, TransactionLayer};
//! use floe::{Db, Error, Model};
//!
//! #[derive(Model)]
//! struct Counter { #[model(key)] name: String, count: u64 }
//!
//! async fn add(tx: RequestTx, Path(name): Path<String>, Json(n): Json<u64>) -> Result<String, Error> {
//!     let mut counter = tx.get_or_create(Counter { name, count: 0 }).await?;
//!     counter.count += n;
//!     Ok(counter.count.to_string())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_tables(&[Counter::SCHEMA]).await?;
//! let app: Router = Router::new()
//!     .route("/counters/{name}/add", post(add))
//!     .layer(TransactionLayer::new(db));
//! # use tower::ServiceExt;
//! # let request = axum::http::Request::post("/counters/a/add").header("content-type", "application/json");
//! # let answer = app.oneshot(request.body(axum::body::Body::from("3")).unwrap()).await.unwrap();
//! # assert_eq!(axum::body::to_bytes(answer.into_body(), 100).await.unwrap(), "3");
//! # Ok(())
//! # }
//! ```
//!
//! The [layer](TransactionLayer) runs the handler as the body of a transaction, and the handler takes the
//! transaction as an [argument](RequestTx):
//!
//! - **Committed** when the status is below 400. Otherwise nothing is written, and the handler's response goes
//!   out as it is. What is sent to the client as success has been committed.
//! - **Read-only** for the methods that are safe by HTTP: GET, HEAD, OPTIONS and TRACE.
//! - **Run again** when somebody else was faster, with the same request: the body of the request is read into
//!   memory before the first run, up to [a limit](TransactionLayer::body_bytes_max). What a handler does beside
//!   the transaction happens in each run, as in the body of any transaction: do it in a
//!   [hook](crate::Tx::on_post_commit) or through the [outbox](crate::changes::outbox).
//!
//! If the commit cannot be made, the client gets a response made from the [error](crate::Error), which handlers
//! can return as well: see [`respond`].
//!
//! # What to know
//!
//! Rows borrow the [`RequestTx`] and go before the handler returns. One that is kept, in a task that the handler
//! has started, makes the request fail: nobody knows what will be done with it. A [`RequestTx`] that is kept can
//! do nothing once the handler has returned; so the body of a response that is made while it is sent comes too
//! late for the transaction.
//!
//! A layer that refuses requests, as for a missing login, belongs outside of this one (added after it), where it
//! spares reading the body. A time limit belongs outside too. When the client goes away, the handler is
//! dropped and nothing is written, unless the commit was under way; hooks do not run then, and messages in the
//! outbox are there if the commit was made.

mod extract;
mod layer;
mod replay;
pub mod respond;

pub use extract::{MissingLayer, RequestTx};
pub use layer::{BODY_BYTES_MAX, TransactionLayer, TransactionService};
