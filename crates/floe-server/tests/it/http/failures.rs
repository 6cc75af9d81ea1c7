//! Failures inside the engine: responses do not contain files, paths or other internals.

use std::sync::Arc;

use floe_local::LocalEngine;
use floe_server::{Options, Server, Service};
use floe_store::op::{GetItem, GetItemOutput};
use floe_store::{BoxFuture, Engine, Error, Result, forward_to};

use crate::support::{Response, call, exchange};

/// An engine whose reads fail with this error.
struct FailingEngine {
    inner: LocalEngine,
    error: Error,
}

impl Engine for FailingEngine {
    fn get_item(&self, _: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        Box::pin(async { Err(self.error.clone()) })
    }

    forward_to!(self.inner; basics, tables, streams);
    forward_to!(self.inner; batch_get_item, transact_get_items, query, scan);
    forward_to!(self.inner; write_item, batch_write_item, transact_write_items);
}

async fn response_to(error: Error) -> Response {
    let engine = FailingEngine {
        inner: LocalEngine::memory().unwrap(),
        error,
    };
    let service = Service::new(Arc::new(engine));
    let server = Server::bind(Options::new(), service).await.unwrap().spawn();
    let get = r#"{"TableName":"things","Key":{"p":{"S":"x"}}}"#;
    exchange(server.local_addr(), &call("GetItem", get)).await
}

#[tokio::test]
async fn responses_hide_internals() {
    let details = || "FjallError: Io(/var/lib/floe/data/7.sst)".to_owned();
    for error in [
        Error::Storage(details()),
        Error::Internal(details()),
        Error::OutcomeUnknown(details()),
        Error::Unreachable(details()),
    ] {
        let case = format!("{error:?}");
        let response = response_to(error).await;
        assert_eq!(response.status, 500, "{case}");
        assert_eq!(
            response.body,
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}"#,
            "{case}"
        );
        super::check_headers(&response, &case);
    }
}

#[tokio::test]
async fn rejected_writes_return_503_and_a_message() {
    let message = "the disk is full: writes are refused until there is space";
    let response = response_to(Error::Unavailable(message.to_owned())).await;
    assert_eq!(response.status, 503);
    assert_eq!(
        response.body,
        format!(
            r#"{{"__type":"com.amazonaws.dynamodb.v20120810#ServiceUnavailable","message":"{message}"}}"#
        )
    );
    assert_eq!(response.header("content-type"), super::AMZ_JSON);
    super::check_headers(&response, "Unavailable");
}
