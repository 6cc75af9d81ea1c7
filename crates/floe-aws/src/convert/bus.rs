//! Events of an event bus.

use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use floe_store::Result;
use floe_store::bus::BusEntry;

use super::client::load;
use super::error;
use crate::names::Names;
use crate::options::ConnectOptions;
use crate::retry::AttemptResult;

/// A client of an event bus. Each call sends one request.
#[derive(Clone, Debug)]
pub(crate) struct BusClient {
    client: aws_sdk_eventbridge::Client,
    bus: String,
}

impl BusClient {
    /// Returns a client for the bus with this name.
    pub(crate) async fn new(options: &ConnectOptions, bus: String) -> Result<Self> {
        let client = aws_sdk_eventbridge::Client::new(&load(options).await?);
        Ok(Self { client, bus })
    }

    /// Puts entries on the bus. Returns for each whether it was accepted.
    pub(crate) async fn put(&self, entries: &[BusEntry]) -> AttemptResult<Vec<Result<(), String>>> {
        let entries = entries.iter().map(|entry| self.entry(entry)).collect();
        let response = self.client.put_events().set_entries(Some(entries)).send();
        let response = response.await.map_err(|error| {
            error::failure::<aws_sdk_eventbridge::Error, _>(error, &Names::default(), &[])
        })?;
        Ok(response.entries().iter().map(outcome).collect())
    }

    fn entry(&self, entry: &BusEntry) -> PutEventsRequestEntry {
        let millis = i64::try_from(entry.time.as_millis()).unwrap_or(i64::MAX);
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(&entry.source)
            .detail_type(&entry.detail_type)
            .detail(&entry.detail)
            .set_resources(Some(entry.resources.clone()))
            .time(DateTime::from_millis(millis))
            .build()
    }
}

fn outcome(entry: &PutEventsResultEntry) -> Result<(), String> {
    match entry.error_code() {
        None => Ok(()),
        Some(code) => {
            let message = entry.error_message().unwrap_or_default();
            Err(format!("{message}: code={code}"))
        }
    }
}
