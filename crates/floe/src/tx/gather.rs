//! Single reads that are waited for at the same time go out as one request.
//!
//! A read queues its key and lets the other futures of the task have a turn. The first that comes back
//! reads for all that have queued meanwhile.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

use floe_store::Item;
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{BatchGetItem, GetItem};
use tokio::sync::oneshot;

use super::backoff::Backoff;
use crate::db::Db;
use crate::error::Result;

/// How often a batch may be answered with nothing before the read fails.
const EMPTY_ANSWERS_MAX: u32 = 8;

/// The reads of one transaction that wait to be sent.
#[derive(Default)]
pub(crate) struct Gather {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<Ticket>,
}

/// A read that waits.
struct Ticket {
    id: u64,
    request: Request,
    answer: oneshot::Sender<Result<Option<Item>>>,
}

/// What to read.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) table: &'static str,
    pub(crate) key: Item,
    pub(crate) consistent: bool,
}

impl Gather {
    /// Reads an item, together with all that are asked for at the same time.
    pub(crate) async fn read(&self, db: &Db, request: Request) -> Result<Option<Item>> {
        loop {
            let (id, answer) = self.enqueue(request.clone());
            let mut leaves = Leave { gather: self, id };
            give_way().await;
            if let Some(batch) = self.take_batch(id) {
                send(db, batch).await;
            }
            let answered = answer.await;
            leaves.id = u64::MAX;
            // The one that read for all was dropped before it had answered: read again.
            if let Ok(item) = answered {
                return item;
            }
        }
    }

    fn enqueue(&self, request: Request) -> (u64, oneshot::Receiver<Result<Option<Item>>>) {
        let (sender, receiver) = oneshot::channel();
        let mut queue = self.lock();
        let id = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Ticket {
            id,
            request,
            answer: sender,
        });
        (id, receiver)
    }

    /// All that waits, if this one is among it: else somebody else is reading for it.
    fn take_batch(&self, id: u64) -> Option<VecDeque<Ticket>> {
        let mut queue = self.lock();
        let is_waiting = queue.waiting.iter().any(|ticket| ticket.id == id);
        is_waiting.then(|| std::mem::take(&mut queue.waiting))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the ticket of a read out of the queue when the read is dropped.
struct Leave<'a> {
    gather: &'a Gather,
    id: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut queue = self.gather.lock();
        queue.waiting.retain(|ticket| ticket.id != self.id);
    }
}

/// Lets the other futures of the task run once.
async fn give_way() {
    let mut gave = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Reads for all tickets. What is not answered because this is dropped, is told so by the dropped sender.
async fn send(db: &Db, batch: VecDeque<Ticket>) {
    let (consistent, eventual): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .partition(|ticket| ticket.request.consistent);
    for mut tickets in [consistent, eventual] {
        while !tickets.is_empty() {
            let rest = tickets.split_off(tickets.len().min(BATCH_GET_ITEMS_MAX));
            send_some(db, tickets).await;
            tickets = rest;
        }
    }
}

async fn send_some(db: &Db, mut tickets: Vec<Ticket>) {
    if tickets.len() == 1
        && let Some(ticket) = tickets.pop()
    {
        let found = get(db, ticket.request).await;
        // Nobody waits any more: then nobody misses it.
        let _gone = ticket.answer.send(found);
        return;
    }
    let requests: Vec<_> = tickets
        .iter()
        .map(|ticket| ticket.request.clone())
        .collect();
    let found = batch_get(db, &requests).await;
    for (at, ticket) in tickets.into_iter().enumerate() {
        let item = match &found {
            Ok(items) => Ok(items.get(at).cloned().flatten()),
            Err(error) => Err(error.clone()),
        };
        let _gone = ticket.answer.send(item);
    }
}

async fn get(db: &Db, request: Request) -> Result<Option<Item>> {
    let get = GetItem::new(request.table, request.key);
    let get = match request.consistent {
        true => get,
        false => get.eventual(),
    };
    Ok(db.engine().get_item(get).await?.item)
}

/// The items of up to 100 keys, in their order. What the engine leaves out is asked for again: at once if it
/// has answered something, else after a pause, and not for ever.
pub(crate) async fn batch_get(db: &Db, requests: &[Request]) -> Result<Vec<Option<Item>>> {
    let mut found: Vec<Option<Item>> = vec![None; requests.len()];
    let mut batch = BatchGetItem::new();
    for request in requests {
        let of_table = batch.requests.entry(request.table.to_owned()).or_default();
        of_table.keys.push(request.key.clone());
        of_table.consistent = request.consistent;
    }
    let (mut left, mut empty) = (requests.len(), 0);
    loop {
        let output = db.engine().batch_get_item(batch).await?;
        for (table, items) in output.items {
            for item in items {
                let wanted = requests.iter().zip(&mut found);
                let mut wanted = wanted.filter(|(request, _)| request.is_for(&table, &item));
                if let Some((_, slot)) = wanted.next() {
                    *slot = Some(item);
                }
            }
        }
        let left_before = left;
        left = output
            .unprocessed
            .values()
            .map(|keys| keys.keys.len())
            .sum();
        if left == 0 {
            return Ok(found);
        }
        batch = BatchGetItem::new();
        batch.requests = output.unprocessed;
        empty = if left < left_before { 0 } else { empty + 1 };
        if empty > EMPTY_ANSWERS_MAX {
            let message = "the store has left out all keys of a batch, again and again".to_owned();
            return Err(floe_store::Error::Throttling(message).into());
        }
        if empty > 0 {
            let pause = Backoff::default().pause(empty, db.env().next_u64());
            db.timer().sleep(pause).await;
        }
    }
}

impl Request {
    fn is_for(&self, table: &str, item: &Item) -> bool {
        let mut key = self.key.iter();
        self.table == table && key.all(|(name, value)| item.get(name) == Some(value))
    }
}
