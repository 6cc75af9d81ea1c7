//! The wire: DynamoDB's JSON protocol on any [`Engine`](floe_store::Engine), so that the AWS SDKs, the AWS
//! CLI and everything built on them work with Floe unchanged.
//!
//! A request goes down this table, and its answer up:
//!
//! | module | what it does |
//! |---|---|
//! | `accept` | listens, and stops without losing what is under way: [`Server`] |
//! | `connection` | who is connected, what each is doing, and who must go |
//! | `memory` [`limits`] `files` | what keeps one client from taking the server away from the others |
//! | `http` | one request: the checks in DynamoDB's order, the headers of its answers |
//! | `guard` | keeps web pages out |
//! | `sigv4` | who calls, and whether what came is what was sent: [`Keys`] |
//! | [`service`] | answers one call: the name of an operation and a body of JSON |
//! | `metrics` | figures for Prometheus, if they are asked for |
//! | `failure_log` | details of failures, for the operator |
//! | `wire` | JSON to operations of `floe-store`, and answers to JSON |
//! | [`json`] | the same JSON, for programs beside the server |
//!
//! What is not here: what an operation means (`floe-store`), how it is done (`floe-local`), and the program `floe`
//! (`floe-cli`).

mod accept;
mod connection;
mod failure_log;
mod files;
mod guard;
mod http;
pub mod json;
pub mod limits;
mod memory;
mod metrics;
mod options;
pub mod service;
mod sigv4;
mod wire;

pub use accept::{Running, ServeError, Server};
pub use files::raise_limit as raise_file_limit;
pub use http::Handler;
pub use limits::Limits;
pub use metrics::text::head as metrics_head;
pub use options::Options;
pub use service::{Answer, Service};
pub use sigv4::Keys;
