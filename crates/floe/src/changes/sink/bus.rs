//! An event bus: envelopes as entries, several with one request.
//!
//! Amazon EventBridge takes up to 10 entries and 256 KB with a request, and may refuse some of them. Changes that are sent at
//! the same time share a request; what was refused is sent again, alone or with others, by whoever runs the router. The
//! bus itself is behind [`EventBus`](floe_store::bus::EventBus): with the feature `eventbridge`, `floe::db::EventBridge` is one.

use std::sync::Mutex;

use floe_store::BoxFuture;
use floe_store::bus::{BUS_BYTES_MAX, BUS_ENTRIES_MAX, BusEntry, EventBus};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use super::Sink;
use crate::changes::envelope::Envelope;
use crate::changes::handler::{Failure, Handled};
use crate::lock::lock;

/// A sink that puts changes on an event bus.
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
    waiting: Mutex<Vec<Waiting>>,
    /// Who has it sends, for the others as well.
    sending: AsyncMutex<()>,
}

/// An entry that is to be sent, and who is told what became of it.
#[derive(Debug)]
struct Waiting {
    entry: BusEntry,
    tell: oneshot::Sender<Handled>,
}

impl<B: EventBus> ToBus<B> {
    /// Puts changes on this bus.
    pub fn new(bus: B) -> Self {
        Self {
            bus,
            waiting: Mutex::default(),
            sending: AsyncMutex::default(),
        }
    }

    /// The next entries that fit into one request.
    fn take(&self) -> Vec<Waiting> {
        let mut waiting = lock(&self.waiting);
        // Who does not wait any more is not sent for.
        waiting.retain(|waiting| !waiting.tell.is_closed());
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

    /// Sends what fits into one request.
    async fn send_some(&self) {
        let batch = self.take();
        if batch.is_empty() {
            return;
        }
        let entries = batch.iter().map(|waiting| waiting.entry.clone()).collect();
        let outcomes = self.bus.put_events(entries).await;
        for (place, waiting) in batch.into_iter().enumerate() {
            let outcome = match &outcomes {
                Ok(outcomes) => match outcomes.get(place) {
                    Some(Ok(())) => Ok(()),
                    Some(Err(reason)) => Err(Failure::new(format!("the bus refuses: {reason}"))),
                    None => Err(Failure::new(
                        "the bus does not tell what became of the entry",
                    )),
                },
                Err(error) => Err(Failure::from(error.clone())),
            };
            // Who does not wait any more sends it again.
            drop(waiting.tell.send(outcome));
        }
    }
}

impl<B: EventBus> Sink for ToBus<B> {
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, Handled> {
        Box::pin(async move {
            let entry = entry(&envelope);
            if entry.bytes() > BUS_BYTES_MAX {
                let bytes = entry.bytes();
                return Err(Failure::permanent(format!(
                    "the change is too large for the bus: bytes={bytes} bytes_max={BUS_BYTES_MAX}"
                )));
            }
            let (tell, mut told) = oneshot::channel();
            lock(&self.waiting).push(Waiting { entry, tell });
            let dropped = |_| Failure::new("whoever sent it has gone away");
            loop {
                let turn = self.sending.lock().await;
                match told.try_recv() {
                    Ok(outcome) => return outcome,
                    Err(oneshot::error::TryRecvError::Closed) => return Err(dropped(())),
                    Err(oneshot::error::TryRecvError::Empty) => {}
                }
                self.send_some().await;
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
