//! Single reads that are waited for at the same time go out as one request.
//!
//! A read queues its key and lets the other futures of the task have a turn. The first that comes back
//! reads for all that have queued meanwhile. Most reads come back alone and are sent as they are.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use floe_store::Item;
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use tokio::sync::Notify;

use crate::db::Db;
use crate::error::Result;
use crate::request::{ItemRequest, batch_get, get};

/// The reads of one transaction that wait to be sent, or for somebody else who has sent them.
#[derive(Default)]
pub(crate) struct Gather {
    queue: Mutex<Queue>,
    /// Told whenever there are answers.
    answered: Notify,
}

#[derive(Default)]
struct Queue {
    next: u64,
    waiting: Vec<Ticket>,
    answers: Vec<(u64, Answer)>,
}

/// A read that waits.
struct Ticket {
    id: u64,
    request: ItemRequest<'static>,
}

/// What one who read for others has to say.
enum Answer {
    Read(Result<Option<Item>>),
    /// It was given up before it had read.
    GivenUp(ItemRequest<'static>),
}

/// Who sends a read.
enum Sender<'g> {
    /// The one who asked, and for nobody else.
    Alone(ItemRequest<'static>),
    /// The one who asked, and for others too.
    ForAll(Batch<'g>),
    Another,
}

impl Gather {
    /// Reads an item, together with all that are asked for at the same time.
    pub(crate) async fn read(
        &self,
        db: &Db,
        mut request: ItemRequest<'static>,
    ) -> Result<Option<Item>> {
        loop {
            let place = self.enqueue(request);
            give_way().await;
            match self.sender(place.id) {
                Sender::Alone(request) => return Ok(get(db, request).await?),
                Sender::ForAll(batch) => return batch.send(db, place.id).await,
                Sender::Another => match self.answer(place.id).await {
                    Answer::Read(item) => return item,
                    Answer::GivenUp(again) => request = again,
                },
            }
        }
    }

    fn enqueue(&self, request: ItemRequest<'static>) -> Place<'_> {
        let mut queue = self.lock();
        let id = queue.next;
        queue.next += 1;
        queue.waiting.push(Ticket { id, request });
        Place { gather: self, id }
    }

    /// Takes all that waits, if this one is among it: else somebody else is reading for it.
    fn sender(&self, id: u64) -> Sender<'_> {
        let mut queue = self.lock();
        if !queue.waiting.iter().any(|ticket| ticket.id == id) {
            return Sender::Another;
        }
        let is_alone = queue.waiting.len() == 1;
        if let Some(ticket) = queue.waiting.pop_if(|_| is_alone) {
            return Sender::Alone(ticket.request);
        }
        Sender::ForAll(Batch {
            gather: self,
            tickets: std::mem::take(&mut queue.waiting),
        })
    }

    async fn answer(&self, id: u64) -> Answer {
        loop {
            // Waiting begins before looking, so that no answer is missed.
            let answered = self.answered.notified();
            if let Some(answer) = self.lock().take_answer(id) {
                return answer;
            }
            answered.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn take_answer(&mut self, id: u64) -> Option<Answer> {
        let at = self.answers.iter().position(|(other, _)| *other == id)?;
        Some(self.answers.swap_remove(at).1)
    }
}

/// The place of a read in the queue, which is free again when the read is dropped.
struct Place<'g> {
    gather: &'g Gather,
    id: u64,
}

impl Drop for Place<'_> {
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

/// Reads that one sends for all. Those that it has not answered when it is dropped are given up.
struct Batch<'g> {
    gather: &'g Gather,
    tickets: Vec<Ticket>,
}

impl Batch<'_> {
    /// Reads for all tickets. Gives the answer to the one who sends.
    async fn send(mut self, db: &Db, own: u64) -> Result<Option<Item>> {
        let mut own_answer = None;
        while let Some(first) = self.tickets.first() {
            let consistent = first.request.consistent;
            let alike = |ticket: &&Ticket| ticket.request.consistent == consistent;
            let some = self.tickets.iter().filter(alike).take(BATCH_GET_ITEMS_MAX);
            let some = some.map(|ticket| (ticket.id, ticket.request.clone()));
            let (ids, requests): (Vec<_>, Vec<_>) = some.unzip();
            let found = batch_get(db, &requests).await;
            self.tickets.retain(|ticket| !ids.contains(&ticket.id));
            let mut queue = self.gather.lock();
            for (at, id) in ids.into_iter().enumerate() {
                let item = match &found {
                    Ok(items) => Ok(items.get(at).cloned().flatten()),
                    Err(error) => Err(error.clone().into()),
                };
                if id == own {
                    own_answer = Some(item);
                } else {
                    queue.answers.push((id, Answer::Read(item)));
                }
            }
            drop(queue);
            self.gather.answered.notify_waiters();
        }
        own_answer.unwrap_or(Ok(None))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.tickets.is_empty() {
            return;
        }
        let tickets = self.tickets.drain(..);
        let given_up = tickets.map(|ticket| (ticket.id, Answer::GivenUp(ticket.request)));
        self.gather.lock().answers.extend(given_up);
        self.gather.answered.notify_waiters();
    }
}
