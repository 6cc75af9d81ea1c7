//! Sends envelopes to an event bus, several entries per request.
//!
//! Amazon EventBridge accepts up to 10 entries and 256 KB per request, and may reject some of them. Changes that are
//! sent concurrently share a request; rejected entries are retried by the consumer or receiver. The bus implements
//! [`EventBus`](floe_store::bus::EventBus): with the feature `eventbridge`, `floe::db::EventBridge` does.

use std::sync::Mutex;

use floe_store::BoxFuture;
use floe_store::bus::{BUS_BYTES_MAX, BUS_ENTRIES_MAX, BusEntry, EventBus};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use super::Sink;
use crate::changes::envelope::Envelope;
use crate::changes::handler::{Failure, HandlerResult};
use crate::lock::lock;

/// A sink that sends changes to an event bus.
///
/// ```
/// use floe::changes::sink::ToBus;
/// use floe::changes::{Pattern, Router};
/// # use floe_store::bus::{BusEntry, EventBus};
/// # use floe_store::BoxFuture;
/// # struct SomeBus;
/// # impl EventBus for SomeBus {
/// #     fn put_events(&self, entries: Vec<BusEntry>) -> BoxFuture<'_, floe_store::Result<Vec<Result<(), String>>>> {
/// #         Box::pin(async move { Ok(entries.iter().map(|_| Ok(())).collect()) })
/// #     }
/// # }
/// # let bus = SomeBus;
/// // With the feature `eventbridge`: let bus = floe::db::EventBridge::connect(options, "my-bus").await?;
/// let router = Router::new().source("klayers").forward(Pattern::any(), ToBus::new(bus));
/// ```
#[derive(Debug)]
pub struct ToBus<B> {
    bus: B,
    queue: Mutex<Vec<QueuedEntry>>,
    /// The lock holder sends entries for all callers.
    sending: AsyncMutex<()>,
}

/// An entry to send, and the channel for its result.
#[derive(Debug)]
struct QueuedEntry {
    entry: BusEntry,
    responder: oneshot::Sender<HandlerResult>,
}

impl<B: EventBus> ToBus<B> {
    /// Sends changes to this bus.
    pub fn new(bus: B) -> Self {
        Self {
            bus,
            queue: Mutex::default(),
            sending: AsyncMutex::default(),
        }
    }

    /// Takes the next entries that fit into one request.
    fn take(&self) -> Vec<QueuedEntry> {
        let mut waiting = lock(&self.queue);
        // Entries of cancelled callers are not sent.
        waiting.retain(|waiting| !waiting.responder.is_closed());
        let (mut count, mut bytes) = (0, 0);
        for waiting in waiting.iter().take(BUS_ENTRIES_MAX) {
            bytes += waiting.entry.bytes();
            if count > 0 && bytes > BUS_BYTES_MAX {
                break;
            }
            count += 1;
        }
        waiting.drain(..count).collect()
    }

    /// Sends one request.
    async fn send_batch(&self) {
        let batch = self.take();
        if batch.is_empty() {
            return;
        }
        let entries = batch.iter().map(|waiting| waiting.entry.clone()).collect();
        let outcomes = self.bus.put_events(entries).await;
        for (index, waiting) in batch.into_iter().enumerate() {
            let outcome = match &outcomes {
                Ok(outcomes) => match outcomes.get(index) {
                    Some(Ok(())) => Ok(()),
                    Some(Err(reason)) => Err(Failure::new(format!(
                        "the bus rejected the entry: {reason}"
                    ))),
                    None => Err(Failure::new("the bus returned no result for the entry")),
                },
                Err(error) => Err(Failure::from(error.clone())),
            };
            // A cancelled caller sends the entry again later.
            drop(waiting.responder.send(outcome));
        }
    }
}

impl<B: EventBus> Sink for ToBus<B> {
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, HandlerResult> {
        Box::pin(async move {
            let entry = entry(&envelope);
            if entry.bytes() > BUS_BYTES_MAX {
                let bytes = entry.bytes();
                return Err(Failure::permanent(format!(
                    "the change is too large for the bus: bytes={bytes} bytes_max={BUS_BYTES_MAX}"
                )));
            }
            let (responder, mut response) = oneshot::channel();
            lock(&self.queue).push(QueuedEntry { entry, responder });
            let dropped = |_| Failure::new("the request was dropped");
            loop {
                let turn = self.sending.lock().await;
                match response.try_recv() {
                    Ok(outcome) => return outcome,
                    Err(oneshot::error::TryRecvError::Closed) => return Err(dropped(())),
                    Err(oneshot::error::TryRecvError::Empty) => {}
                }
                self.send_batch().await;
                drop(turn);
            }
        })
    }
}

fn entry(envelope: &Envelope) -> BusEntry {
    let change = envelope.change();
    BusEntry {
        source: envelope.source().to_owned(),
        detail_type: change.kind().as_str().to_owned(),
        detail: envelope.detail_text(),
        resources: vec![change.table().to_owned()],
        time: change.time(),
    }
}
