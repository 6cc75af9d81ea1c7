//! Batches single reads that are awaited at the same time into one request.
//!
//! A read enqueues its key and yields once to the other futures of the task. The first read that is polled again becomes
//! the leader and sends a batch for all queued reads. A read that finds itself alone is sent as a plain read.
//!
//! Every read of a batch polls its request: no read depends on another one being polled. When the leader is dropped, its
//! batch is abandoned, and the other reads are queued again.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::{BoxFuture, Item, Result as StoreResult};
use futures_util::FutureExt;
use futures_util::future::{Either, Shared, select};
use tokio::sync::Notify;

use super::body_task;
use crate::db::Db;
use crate::error::Result;
use crate::request::{ItemRequest, batch_get, get};

/// The pending reads of one transaction.
pub(crate) struct Gather {
    /// Whether reads can be joined by others of the same item.
    is_joined: bool,
    queue: Mutex<Queue>,
    /// Notified when a batch is abandoned.
    abandoned: Notify,
}

#[derive(Default)]
struct Queue {
    next: u64,
    pending: Vec<PendingRead>,
    batches: Vec<Batch>,
    /// Reads of batches whose leader was dropped.
    abandoned: Vec<PendingRead>,
}

/// A read that was not sent yet, or whose batch was abandoned.
struct PendingRead {
    id: u64,
    request: ItemRequest<'static>,
}

/// The results of a batch, in the order of its reads.
type BatchResults = Arc<Vec<StoreResult<Option<Item>>>>;

/// The requests of a batch. Each read polls its own handle.
type SharedRequest = Shared<BoxFuture<'static, BatchResults>>;

/// A batch that was sent.
struct Batch {
    leader: u64,
    /// The reads of the batch; `None` for those that have ended.
    reads: Vec<Option<PendingRead>>,
    request: SharedRequest,
}

/// The role of a read in sending.
enum Role {
    /// It is the only pending read.
    Single(ItemRequest<'static>),
    /// It is in a batch, at this position.
    Batched(usize, SharedRequest),
    /// The leader of its batch was dropped.
    Abandoned(ItemRequest<'static>),
}

impl Gather {
    pub(crate) fn new(is_joined: bool) -> Self {
        Self {
            is_joined,
            queue: Mutex::default(),
            abandoned: Notify::new(),
        }
    }

    /// Reads an item, in one request with the other reads awaited at the same time.
    pub(crate) async fn read(
        &self,
        db: &Db,
        mut request: ItemRequest<'static>,
    ) -> Result<Option<Item>> {
        loop {
            let queued = self.enqueue(request);
            body_task::yield_to_siblings().await;
            request = match self.role(db, queued.id) {
                Role::Single(request) => return Ok(get(db, request).await?),
                Role::Abandoned(unsent) => unsent,
                Role::Batched(at, batch) => {
                    let abandoned = pin!(self.abandoned(queued.id));
                    match select(batch, abandoned).await {
                        Either::Left((results, _)) => return result_at(&results, at),
                        Either::Right((unsent, _)) => unsent,
                    }
                }
            };
        }
    }

    /// Reads an item along with a read of it that has begun before, which may not be polled any more. Returns `None` if
    /// there is no such read, or it cannot be joined.
    pub(crate) async fn join(
        &self,
        db: &Db,
        request: &ItemRequest<'static>,
    ) -> Option<Result<Option<Item>>> {
        // The other read may have been queued just before, with others that follow.
        body_task::yield_to_siblings().await;
        let (at, batch) = self.lock().batch_of(db, request)?;
        Some(result_at(&batch.await, at))
    }

    fn enqueue(&self, request: ItemRequest<'static>) -> QueuedRead<'_> {
        let mut queue = self.lock();
        let id = queue.next;
        queue.next += 1;
        queue.pending.push(PendingRead { id, request });
        QueuedRead { gather: self, id }
    }

    /// Takes all pending reads, if this one is still among them; otherwise a leader has taken it.
    fn role(&self, db: &Db, id: u64) -> Role {
        let mut queue = self.lock();
        if let Some(request) = queue.take_abandoned(id) {
            return Role::Abandoned(request);
        }
        if !queue.batches.is_empty()
            && let Some((at, request)) = queue.batches.iter().find_map(|batch| batch.find(id))
        {
            return Role::Batched(at, request);
        }
        // Another read of the item could not join a plain read.
        let is_single = queue.pending.len() == 1 && !self.is_joined;
        if let Some(read) = queue.pending.pop_if(|_| is_single) {
            return Role::Single(read.request);
        }
        let reads = std::mem::take(&mut queue.pending);
        let at = reads.iter().position(|read| read.id == id).unwrap_or(0);
        let batch = Batch::new(db, id, reads);
        let request = batch.request.clone();
        queue.batches.push(batch);
        Role::Batched(at, request)
    }

    /// Waits until the batch of a read is abandoned.
    async fn abandoned(&self, id: u64) -> ItemRequest<'static> {
        loop {
            let mut notified = pin!(self.abandoned.notified());
            // Register before checking, so that no notification is missed.
            notified.as_mut().enable();
            if let Some(request) = self.lock().take_abandoned(id) {
                return request;
            }
            notified.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The batch that reads an item, and the position of the item in it. A read that is still queued is sent now.
    fn batch_of(
        &mut self,
        db: &Db,
        request: &ItemRequest<'static>,
    ) -> Option<(usize, SharedRequest)> {
        let is_it = |read: &PendingRead| read.request.is_same_item(request);
        let mut pending = self.pending.iter();
        if let Some(leader) = pending.find(|read| is_it(read)).map(|read| read.id) {
            let reads = std::mem::take(&mut self.pending);
            self.batches.push(Batch::new(db, leader, reads));
        }
        self.batches.iter().find_map(|batch| {
            let mut reads = batch.reads.iter();
            let at = reads.position(|read| read.as_ref().is_some_and(is_it))?;
            Some((at, batch.request.clone()))
        })
    }

    fn take_abandoned(&mut self, id: u64) -> Option<ItemRequest<'static>> {
        let at = self.abandoned.iter().position(|read| read.id == id)?;
        Some(self.abandoned.swap_remove(at).request)
    }

    /// Removes a read that has ended. Returns whether that abandons other reads.
    fn remove(&mut self, id: u64) -> bool {
        self.pending.retain(|read| read.id != id);
        self.abandoned.retain(|read| read.id != id);
        let Some(at) = (self.batches.iter()).position(|batch| batch.find(id).is_some()) else {
            return false;
        };
        let Some(batch) = self.batches.get_mut(at) else {
            return false;
        };
        batch.end(id);
        let is_abandoned = batch.leader == id && batch.request.peek().is_none();
        if !is_abandoned && !batch.has_ended() {
            return false;
        }
        let batch = self.batches.swap_remove(at);
        self.abandoned.extend(batch.reads.into_iter().flatten());
        is_abandoned
    }
}

/// The entry of a read in the queue. Dropping it removes the entry.
struct QueuedRead<'g> {
    gather: &'g Gather,
    id: u64,
}

impl Drop for QueuedRead<'_> {
    fn drop(&mut self) {
        if self.gather.lock().remove(self.id) {
            self.gather.abandoned.notify_waiters();
        }
    }
}

impl Batch {
    fn new(db: &Db, leader: u64, reads: Vec<PendingRead>) -> Self {
        let requests = reads.iter().map(|read| read.request.clone()).collect();
        let sent: BoxFuture<'static, BatchResults> = Box::pin(send(db.clone(), requests));
        Self {
            leader,
            reads: reads.into_iter().map(Some).collect(),
            request: sent.shared(),
        }
    }

    /// The position of a read, and its handle of the request.
    fn find(&self, id: u64) -> Option<(usize, SharedRequest)> {
        let is_it = |read: &Option<PendingRead>| read.as_ref().is_some_and(|read| read.id == id);
        let at = self.reads.iter().position(is_it)?;
        Some((at, self.request.clone()))
    }

    fn end(&mut self, id: u64) {
        for read in &mut self.reads {
            read.take_if(|read| read.id == id);
        }
    }

    fn has_ended(&self) -> bool {
        self.reads.iter().all(Option::is_none)
    }
}

fn result_at(results: &BatchResults, at: usize) -> Result<Option<Item>> {
    let result = results.get(at).cloned();
    Ok(result.transpose()?.flatten())
}

/// Reads all items, in one request for those of one consistency, up to its maximum.
async fn send(db: Db, requests: Vec<ItemRequest<'static>>) -> BatchResults {
    let mut results = vec![Ok(None); requests.len()];
    let mut unsent: Vec<usize> = (0..requests.len()).collect();
    let consistency = |at: &usize| requests.get(*at).map(|request| request.consistent);
    while let Some(first) = unsent.first() {
        let consistent = consistency(first);
        let alike = unsent.iter().copied();
        let alike = alike.filter(|at| consistency(at) == consistent);
        let some: Vec<usize> = alike.take(BATCH_GET_ITEMS_MAX).collect();
        let batch = some.iter().filter_map(|at| requests.get(*at).cloned());
        let mut batch: Vec<_> = batch.collect();
        let found = match batch.pop() {
            Some(only) if batch.is_empty() => get(&db, only).await.map(|item| vec![item]),
            last => {
                batch.extend(last);
                batch_get(&db, &batch).await
            }
        };
        unsent.retain(|at| !some.contains(at));
        for (nth, at) in some.into_iter().enumerate() {
            let item = match &found {
                Ok(items) => Ok(items.get(nth).cloned().flatten()),
                Err(error) => Err(error.clone()),
            };
            if let Some(result) = results.get_mut(at) {
                *result = item;
            }
        }
    }
    Arc::new(results)
}
