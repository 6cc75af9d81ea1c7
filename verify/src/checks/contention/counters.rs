//! A few counters that all tasks increment: by reading and writing, by increments in the store, and by both.

use floe::model::Schema;
use floe::{Db, Model};

use super::client::{Client, Count, Fault, patient};
use super::{AuditReport, Workload};

const COUNTERS: u64 = 4;

#[derive(Model)]
#[model(table = "Counters")]
struct Counter {
    #[model(key)]
    id: u64,
    /// Incremented by `+= 1`.
    read: u64,
    /// Incremented by `increment_by`.
    added: u64,
    /// Incremented by either.
    mixed: u64,
}

/// The acknowledged increments of each field of each counter.
#[derive(Default)]
pub(super) struct Counters([[Count; 3]; COUNTERS as usize]);

impl Workload for Counters {
    const NAME: &'static str = "counters";
    const SCHEMA: &'static Schema = Counter::SCHEMA;

    async fn create(&self, db: &Db) -> Result<(), Fault> {
        db.transact(async |tx| {
            for id in 0..COUNTERS {
                tx.create(Counter {
                    id,
                    read: 0,
                    added: 0,
                    mixed: 0,
                })?;
            }
            Ok(())
        })
        .await
    }

    async fn step(&self, client: &Client) {
        let (id, mode) = (client.random.below(COUNTERS), client.random.below(4));
        let runs = Count::default();
        let result = patient!(client)
            .run(async |tx| {
                runs.add(1);
                let counter = tx.get::<Counter>(id).await?;
                let mut counter = counter.ok_or_else(|| Fault::missing("Counter", id))?;
                match mode {
                    0 => counter.read += 1,
                    1 => counter.added.increment_by(1)?,
                    2 => counter.mixed += 1,
                    _ => counter.mixed.increment_by(1)?,
                }
                Ok(())
            })
            .await;
        let is_committed = match mode {
            // Increments in the store never conflict.
            1 | 3 => client.record_uncontended(&runs, &result),
            _ => client.record_result(&runs, &result),
        };
        let field = usize::try_from(mode.min(2)).unwrap_or_default();
        let counter = self.0.get(usize::try_from(id).unwrap_or_default());
        if let Some(count) = counter.and_then(|fields| fields.get(field)) {
            count.add(u64::from(is_committed));
        }
    }

    async fn audit(&self, db: &Db) -> Result<AuditReport, Fault> {
        let mut findings = AuditReport::default();
        for (id, acknowledged) in (0..).zip(&self.0) {
            let stored = db
                .transact(async |tx| {
                    let counter = tx.get::<Counter>(id).await?;
                    let counter = counter.ok_or_else(|| Fault::missing("Counter", id))?;
                    Ok::<_, Fault>([*counter.read, *counter.added, *counter.mixed])
                })
                .await?;
            let names = ["read", "added", "mixed"];
            for ((name, stored), acknowledged) in names.iter().zip(stored).zip(acknowledged) {
                let what = format!("counter id={id} field={name}");
                findings.compare(&what, stored, acknowledged.get());
            }
        }
        Ok(findings)
    }
}
