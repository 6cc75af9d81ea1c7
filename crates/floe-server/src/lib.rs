//! The wire: DynamoDB's JSON protocol on any [`Engine`](floe_store::Engine), so that the AWS SDKs, the AWS
//! CLI and everything built on them work with Floe unchanged.
//!
//! A request goes down this table, and its answer up:
//!
//! | module | what it does |
//! |---|---|
//! | `accept` | listens, and stops without losing what is under way: [`Server`] |
//! | `connection` | serves a connection, and notes what moves on it |
//! | `registry` | who is connected, what each is doing, and who must go |
//! | `memory` [`limits`] `files` | what keeps one client from taking the server away from the others |
//! | `http` | one request: the checks in DynamoDB's order, the headers of its answers |
//! | `guard` | keeps web pages out |
//! | `sigv4` | who calls, and whether what came is what was sent: [`Keys`] |
//! | [`service`] | answers one call: the name of an operation and a body of JSON |
//! | `answer` | what a call is answered |
//! | `metrics` | figures for Prometheus, if they are asked for |
//! | `failure_log` | details of failures, for the operator |
//! | `wire` | JSON to operations of `floe-store`, and answers to JSON |
//! | [`json`] | the same JSON, for programs beside the server |
//!
//! What is not here: what an operation means (`floe-store`), how it is done (`floe-local`), and the program `floe`
//! (`floe-cli`).

mod accept;
mod answer;
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
mod registry;
mod serve_error;
pub mod service;
mod sigv4;
mod wire;

pub use accept::{Running, Server};
pub use answer::Answer;
pub use files::raise_limit as raise_file_limit;
pub use http::Handler;
pub use limits::Limits;
pub use metrics::text::head as metrics_head;
pub use options::Options;
pub use serve_error::ServeError;
pub use service::Service;
pub use sigv4::Keys;
