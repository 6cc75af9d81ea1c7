//! The protocol server: DynamoDB's JSON protocol on any [`Engine`](floe_store::Engine), so that the AWS SDKs, the AWS
//! CLI and everything built on them work with Floe unchanged.
//!
//! A request passes through these modules from top to bottom, its response in reverse order:
//!
//! | module | purpose |
//! |---|---|
//! | `accept` | accepts connections, and shuts down gracefully: [`Server`] |
//! | `connection` | serves a connection and records its reads and writes |
//! | `registry` | the state of all connections, and when they are closed |
//! | `memory` [`limits`] `files` | limits that keep one client from starving other clients |
//! | `http` | one HTTP request: the checks in DynamoDB's order, response headers |
//! | `guard` | rejects requests from web pages |
//! | `sigv4` | verifies signatures: [`Keys`] |
//! | [`service`] | executes one API call: an operation name and a JSON body |
//! | `api_response` | the response to an API call |
//! | `metrics` | optional Prometheus metrics |
//! | `failure_log` | logs details of failures for the operator |
//! | `wire` | converts JSON to operations of `floe-store`, and their results to JSON |
//! | [`json`] | the same JSON, for other programs |
//!
//! Not part of this crate: the meaning of operations (`floe-store`), their execution (`floe-local`), and the program
//! `floe` (`floe-cli`).

mod accept;
mod api_response;
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

pub use accept::{Server, ServerHandle};
pub use api_response::ApiResponse;
pub use files::raise_limit as raise_file_limit;
pub use http::Handler;
pub use limits::Limits;
pub use metrics::text::head as metrics_head;
pub use options::Options;
pub use serve_error::ServeError;
pub use service::Service;
pub use sigv4::Keys;
