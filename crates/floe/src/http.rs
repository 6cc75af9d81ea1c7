//! A transaction for each HTTP request, for [axum](https://docs.rs/axum). Requires the feature `axum`.
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
//! # let response = app.oneshot(request.body(axum::body::Body::from("3")).unwrap()).await.unwrap();
//! # assert_eq!(axum::body::to_bytes(response.into_body(), 100).await.unwrap(), "3");
//! # Ok(())
//! # }
//! ```
//!
//! The [layer](TransactionLayer) runs the handler as the body of a transaction, and the handler receives the transaction
//! as an [argument](RequestTx):
//!
//! - It **commits** if the status is below 400. Otherwise nothing is written, and the handler's response is sent
//!   unchanged. A success response is sent only after the commit.
//! - It is **read-only** for the safe HTTP methods: GET, HEAD, OPTIONS and TRACE.
//! - It **runs again** after a conflict, with the same request: the request body is read into memory before the first
//!   attempt, up to [a limit](TransactionLayer::body_bytes_max). Side effects of a handler happen in each attempt, as in
//!   the body of any transaction: move them into a [hook](crate::Tx::on_post_commit) or the
//!   [outbox](crate::changes::outbox).
//!
//! If the commit fails, the client gets a response for the [error](crate::Error), which handlers can return too: see
//! [`respond`].
//!
//! # Limitations
//!
//! Rows borrow the [`RequestTx`] and must be dropped before the handler returns. If a task that the handler spawned still
//! holds a row, the request fails, because the row could still change. A [`RequestTx`] cannot be used after the handler
//! has returned, so a streamed response body cannot use the transaction.
//!
//! A layer that rejects requests, such as authentication, belongs outside of this one (added after it), where it avoids
//! reading the body. A timeout belongs outside too. If the client disconnects, the handler is dropped and nothing is
//! written, unless the commit was already sent; hooks do not run then, and messages in the outbox are stored if the
//! commit was applied.

mod buffered;
mod extract;
mod layer;
pub mod respond;

pub use extract::{MissingLayer, RequestTx};
pub use layer::{BODY_BYTES_MAX, TransactionLayer, TransactionService};
