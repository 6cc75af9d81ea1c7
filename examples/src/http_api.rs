//! An HTTP API for orders, with one transaction per request.
//!
//! `cargo run -p floe-examples --bin http_api` starts it on a free port, sends it a few requests and exits;
//! `cargo run -p floe-examples --bin http_api -- --serve [ADDR]` serves until Ctrl-C, by default on 127.0.0.1:3000:
//!
//! ```text
//! curl -d '{"product":"skis","quantity":2}' -H 'content-type: application/json' 127.0.0.1:3000/orders
//! ```

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::net::SocketAddr;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use floe::changes::outbox::OutboxRecord;
use floe::http::{RequestTx, TransactionLayer};
use floe::{Db, Model};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin http_api [-- --serve [ADDR]]

Without arguments, it sends itself some requests and exits. With --serve it serves until Ctrl-C, by default on
127.0.0.1:3000, and keeps the orders in memory.";

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Clone, Serialize, Model)]
struct Order {
    id: Uuid,
    #[model(length(min = 1, max = 100))]
    product: String,
    #[model(min = 1, max = 1000)]
    quantity: u32,
}

/// Why a request is rejected.
enum Rejection {
    NoSuchOrder,
    Failed(floe::Error),
}

impl From<floe::Error> for Rejection {
    fn from(error: floe::Error) -> Self {
        Self::Failed(error)
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Self::NoSuchOrder => {
                (StatusCode::NOT_FOUND, "the order does not exist").into_response()
            }
            // Validation is 422, contention 503, and so on.
            Self::Failed(error) => error.into_response(),
        }
    }
}

#[derive(Deserialize)]
struct NewOrder {
    product: String,
    quantity: u32,
}

/// `POST /orders`: creates the order and, in the same commit, an outbox message about it.
async fn place(
    tx: RequestTx,
    Json(new): Json<NewOrder>,
) -> Result<(StatusCode, Json<Order>), Rejection> {
    let order = Order {
        id: Uuid::new_v4(),
        product: new.product,
        quantity: new.quantity,
    };
    tx.create(order.clone())?;
    tx.outbox("order.placed", &order)?;
    Ok((StatusCode::CREATED, Json(order)))
}

/// `GET /orders/{id}`: a GET is a read-only transaction.
async fn look(tx: RequestTx, Path(id): Path<Uuid>) -> Result<Json<Order>, Rejection> {
    let order = tx.get::<Order>(id).await?.ok_or(Rejection::NoSuchOrder)?;
    Ok(Json(Order {
        id,
        product: order.product.clone(),
        quantity: *order.quantity,
    }))
}

#[derive(Deserialize)]
struct More {
    quantity: u32,
}

/// `POST /orders/{id}/add`: runs again if another request has changed the quantity.
async fn add(
    tx: RequestTx,
    Path(id): Path<Uuid>,
    Json(more): Json<More>,
) -> Result<String, Rejection> {
    let mut order = tx.get::<Order>(id).await?.ok_or(Rejection::NoSuchOrder)?;
    let quantity = order.quantity.saturating_add(more.quantity);
    order.quantity.set(quantity)?;
    Ok(quantity.to_string())
}

async fn app() -> Fallible<Router> {
    let db = Db::memory()?;
    db.ensure_tables(&[Order::SCHEMA, OutboxRecord::SCHEMA])
        .await?;
    let transactions = TransactionLayer::new(db).options(|tx, request| {
        let tx = tx.retries(10).initial_backoff_ms(5).max_backoff_ms(100);
        tx.label(format!("{} {}", request.method, request.uri.path()))
    });
    Ok(Router::new()
        .route("/orders", post(place))
        .route("/orders/{id}", get(look))
        .route("/orders/{id}/add", post(add))
        .layer(transactions))
}

#[tokio::main]
async fn main() -> Fallible {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => demonstrate().await,
        ["--serve"] => serve("127.0.0.1:3000").await,
        ["--serve", address] => serve(address).await,
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => {
            println!("{USAGE}");
            Err("unknown arguments".into())
        }
    }
}

async fn serve(address: &str) -> Fallible {
    let listener = TcpListener::bind(address).await?;
    println!("Serving on http://{} until Ctrl-C.", listener.local_addr()?);
    let stop = async {
        // If the signal cannot be received, the server stops.
        let _no_signal = tokio::signal::ctrl_c().await;
    };
    let server = axum::serve(listener, app().await?);
    server.with_graceful_shutdown(stop).await?;
    Ok(())
}

/// Starts the API on a free port and sends it requests.
async fn demonstrate() -> Fallible {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = Client(listener.local_addr()?);
    println!("The API is at http://{}.\n", client.0);
    let server = tokio::spawn(axum::serve(listener, app().await?).into_future());

    let placed = client.post("/orders", r#"{"product":"skis","quantity":2}"#);
    let placed = placed.await?.expect(201)?;
    let id = text_of(&placed, "id").ok_or("an order without an id")?;
    let order = format!("/orders/{id}");
    let add = format!("{order}/add");
    client.get(&order).await?.expect(200)?;
    client.post(&add, r#"{"quantity":3}"#).await?.expect(200)?;

    println!("\nInvalid requests are rejected, and nothing is written:\n");
    let too_many = client.post(&add, r#"{"quantity":5000}"#);
    too_many.await?.expect(422)?;
    let unknown = "/orders/00000000-0000-4000-8000-000000000000";
    client.get(unknown).await?.expect(404)?;

    println!("\nEight clients concurrently add one each:\n");
    let adding: Vec<_> = (0..8)
        .map(|_| {
            let add = add.clone();
            tokio::spawn(async move { client.post(&add, r#"{"quantity":1}"#).await?.expect(200) })
        })
        .collect();
    for added in adding {
        added.await??;
    }
    let order = client.get(&order).await?.expect(200)?;
    if !order.contains(r#""quantity":13"#) {
        return Err("an addition was lost".into());
    }
    println!("\nAll additions are counted.");
    server.abort();
    Ok(())
}

/// A minimal HTTP client.
#[derive(Clone, Copy)]
struct Client(SocketAddr);

struct Reply {
    status: u16,
    body: String,
}

impl Client {
    async fn get(&self, path: &str) -> Fallible<Reply> {
        self.send("GET", path, "").await
    }

    async fn post(&self, path: &str, body: &str) -> Fallible<Reply> {
        self.send("POST", path, body).await
    }

    async fn send(&self, method: &str, path: &str, body: &str) -> Fallible<Reply> {
        let mut stream = TcpStream::connect(self.0).await?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.0,
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        let (head, response_body) = response.split_once("\r\n\r\n").ok_or("no response")?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        println!("{method} {path} {body}\n  {status} {response_body}");
        let body = response_body.to_owned();
        Ok(Reply { status, body })
    }
}

impl Reply {
    /// Returns the body if the status is the expected one.
    fn expect(self, status: u16) -> Fallible<String> {
        if self.status == status {
            Ok(self.body)
        } else {
            Err(format!(
                "unexpected status: expected={status} actual={}",
                self.status
            )
            .into())
        }
    }
}

/// Returns the text of a JSON member, for this demonstration only.
fn text_of<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    rest.split('"').next()
}
