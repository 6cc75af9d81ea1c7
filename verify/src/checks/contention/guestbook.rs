//! A guestbook that all tasks sign: each name is in it exactly once.

use std::collections::HashMap;

use floe::model::Schema;
use floe::{Db, Model};

use super::client::{Client, Count, Fault, patient};
use super::{AuditReport, Workload};

/// Names after which the next book is started, so that books stay short.
const NAMES_MAX: u64 = 50;

#[derive(Model)]
#[model(table = "Guestbooks")]
struct Book {
    #[model(key)]
    id: u64,
    names: Vec<String>,
}

/// The number of signatures started, and the acknowledged ones of each task.
pub(super) struct Guestbook {
    begun: Count,
    signed: Vec<Count>,
}

impl Guestbook {
    pub(super) fn new(tasks: u64) -> Self {
        Self {
            begun: Count::default(),
            signed: (0..tasks).map(|_| Count::default()).collect(),
        }
    }

    fn signed(&self, task: u64) -> Option<&Count> {
        usize::try_from(task)
            .ok()
            .and_then(|task| self.signed.get(task))
    }

    /// All acknowledged names.
    fn expected(&self) -> impl Iterator<Item = String> {
        let tasks = (0..).zip(&self.signed);
        tasks.flat_map(|(task, signed)| (0..signed.get()).map(move |n| name(task, n)))
    }
}

fn name(task: u64, n: u64) -> String {
    format!("guest {task} visit {n}")
}

async fn read(db: &Db, id: u64) -> Result<Vec<String>, Fault> {
    db.transact(async |tx| {
        let book = tx.get::<Book>(id).await?;
        Ok(book.map(|book| book.names.clone()).unwrap_or_default())
    })
    .await
}

impl Workload for Guestbook {
    const NAME: &'static str = "guestbook";
    const SCHEMA: &'static Schema = Book::SCHEMA;

    /// Creates nothing: the first signature creates a book.
    async fn create(&self, _: &Db) -> Result<(), Fault> {
        Ok(())
    }

    async fn step(&self, client: &Client) {
        let Some(signed) = self.signed(client.number) else {
            return;
        };
        let id = self.begun.next() / NAMES_MAX;
        let name = name(client.number, signed.get());
        let runs = Count::default();
        let result = patient!(client)
            .run(async |tx| {
                runs.add(1);
                let empty = Book {
                    id,
                    names: Vec::new(),
                };
                let mut book = tx.get_or_create(empty).await?;
                book.names.push(name.clone());
                Ok(())
            })
            .await;
        signed.add(u64::from(client.record_result(&runs, &result)));
    }

    async fn audit(&self, db: &Db) -> Result<AuditReport, Fault> {
        let mut stored: HashMap<String, u64> = HashMap::new();
        for id in 0..=self.begun.get() / NAMES_MAX {
            for name in read(db, id).await? {
                *stored.entry(name).or_default() += 1;
            }
        }
        let mut findings = AuditReport::default();
        for name in self.expected() {
            let times = stored.remove(&name).unwrap_or_default();
            findings.compare(&name, times, 1);
        }
        for (name, times) in stored {
            findings.compare(&name, times, 0);
        }
        Ok(findings)
    }
}
