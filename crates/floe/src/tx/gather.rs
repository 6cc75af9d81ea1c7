//! Batches single reads that are awaited at the same time into one request.
//!
//! A read enqueues its key and yields once to the other futures of the task. The first read that is polled again becomes
//! the leader and sends a batch for all queued reads. A read that finds itself alone is sent as a plain read.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use floe_store::Item;
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use tokio::sync::Notify;

use crate::db::Db;
use crate::error::Result;
use crate::request::{ItemRequest, batch_get, get};

/// The pending reads of one transaction.
#[derive(Default)]
pub(crate) struct Gather {
    queue: Mutex<Queue>,
    /// Notified when results are available.
    completed: Notify,
}

#[derive(Default)]
struct Queue {
    next: u64,
    pending: Vec<PendingRead>,
    results: Vec<(u64, BatchedResult)>,
}

/// A read that was not sent yet.
struct PendingRead {
    id: u64,
    request: ItemRequest<'static>,
}

/// What the leader of a batch leaves for another read of the batch.
enum BatchedResult {
    Read(Result<Option<Item>>),
    /// The leader was dropped before it read this item.
    Abandoned(ItemRequest<'static>),
}

/// The role of a read in sending.
enum Role<'g> {
    /// It is the only pending read.
    Single(ItemRequest<'static>),
    /// It sends all pending reads.
    Leader(Batch<'g>),
    /// Another read sends it.
    Follower,
}

impl Gather {
    /// Reads an item, in one request with the other reads awaited at the same time.
    pub(crate) async fn read(
        &self,
        db: &Db,
        mut request: ItemRequest<'static>,
    ) -> Result<Option<Item>> {
        loop {
            let queued = self.enqueue(request);
            yield_once().await;
            match self.role(queued.id) {
                Role::Single(request) => return Ok(get(db, request).await?),
                Role::Leader(batch) => return batch.send(db, queued.id).await,
                Role::Follower => match self.result(queued.id).await {
                    BatchedResult::Read(item) => return item,
                    BatchedResult::Abandoned(unsent) => request = unsent,
                },
            }
        }
    }

    fn enqueue(&self, request: ItemRequest<'static>) -> QueuedRead<'_> {
        let mut queue = self.lock();
        let id = queue.next;
        queue.next += 1;
        queue.pending.push(PendingRead { id, request });
        QueuedRead { gather: self, id }
    }

    /// Takes all pending reads, if this one is still among them; otherwise a leader has taken it.
    fn role(&self, id: u64) -> Role<'_> {
        let mut queue = self.lock();
        if !queue.pending.iter().any(|read| read.id == id) {
            return Role::Follower;
        }
        let is_single = queue.pending.len() == 1;
        if let Some(read) = queue.pending.pop_if(|_| is_single) {
            return Role::Single(read.request);
        }
        Role::Leader(Batch {
            gather: self,
            reads: std::mem::take(&mut queue.pending),
        })
    }

    async fn result(&self, id: u64) -> BatchedResult {
        loop {
            // Register before checking, so that no notification is missed.
            let completed = self.completed.notified();
            if let Some(result) = self.lock().take_result(id) {
                return result;
            }
            completed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn take_result(&mut self, id: u64) -> Option<BatchedResult> {
        let at = self.results.iter().position(|(other, _)| *other == id)?;
        Some(self.results.swap_remove(at).1)
    }
}

/// The entry of a read in the queue. Dropping it removes the entry.
struct QueuedRead<'g> {
    gather: &'g Gather,
    id: u64,
}

impl Drop for QueuedRead<'_> {
    fn drop(&mut self) {
        let mut queue = self.gather.lock();
        queue.pending.retain(|read| read.id != self.id);
    }
}

/// Yields once, so that the other futures of the task run.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Reads that the leader sends. When it is dropped, the reads without a result are abandoned.
struct Batch<'g> {
    gather: &'g Gather,
    reads: Vec<PendingRead>,
}

impl Batch<'_> {
    /// Sends all reads. Returns the result of the leader's own read.
    async fn send(mut self, db: &Db, own: u64) -> Result<Option<Item>> {
        let mut own_result = None;
        while let Some(first) = self.reads.first() {
            let consistent = first.request.consistent;
            let alike = |read: &&PendingRead| read.request.consistent == consistent;
            let some = self.reads.iter().filter(alike).take(BATCH_GET_ITEMS_MAX);
            let some = some.map(|read| (read.id, read.request.clone()));
            let (ids, requests): (Vec<_>, Vec<_>) = some.unzip();
            let found = batch_get(db, &requests).await;
            self.reads.retain(|read| !ids.contains(&read.id));
            let mut queue = self.gather.lock();
            for (at, id) in ids.into_iter().enumerate() {
                let item = match &found {
                    Ok(items) => Ok(items.get(at).cloned().flatten()),
                    Err(error) => Err(error.clone().into()),
                };
                if id == own {
                    own_result = Some(item);
                } else {
                    queue.results.push((id, BatchedResult::Read(item)));
                }
            }
            drop(queue);
            self.gather.completed.notify_waiters();
        }
        own_result.unwrap_or(Ok(None))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let reads = self.reads.drain(..);
        let abandoned = reads.map(|read| (read.id, BatchedResult::Abandoned(read.request)));
        self.gather.lock().results.extend(abandoned);
        self.gather.completed.notify_waiters();
    }
}
