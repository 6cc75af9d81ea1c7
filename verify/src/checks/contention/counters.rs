//! A few counters that all tasks raise: by reading and writing, by adding where they are stored, and both.

use floe::model::Schema;
use floe::{Db, Model};

use super::client::{Client, Count, Fault, patient};
use super::{Findings, Workload};

const COUNTERS: u64 = 4;

#[derive(Model)]
#[model(table = "Counters")]
struct Counter {
    #[model(key)]
    id: u64,
    /// Raised by `+= 1`.
    read: u64,
    /// Raised by `increment_by`.
    added: u64,
    /// Raised by either.
    mixed: u64,
}

/// What was acknowledged of each counter: each of its fields on its own.
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
        let (id, way) = (client.random.below(COUNTERS), client.random.below(4));
        let runs = Count::default();
        let ended = patient!(client)
            .run(async |tx| {
                runs.add(1);
                let counter = tx.get::<Counter>(id).await?;
                let mut counter = counter.ok_or_else(|| Fault::missing("Counter", id))?;
                match way {
                    0 => counter.read += 1,
                    1 => counter.added.increment_by(1)?,
                    2 => counter.mixed += 1,
                    _ => counter.mixed.increment_by(1)?,
                }
                Ok(())
            })
            .await;
        let is_committed = match way {
            // Whoever adds where it is stored takes no lock, whatever others do with the item.
            1 | 3 => client.ended_unhindered(&runs, &ended),
            _ => client.ended(&runs, &ended),
        };
        let field = usize::try_from(way.min(2)).unwrap_or_default();
        let counter = self.0.get(usize::try_from(id).unwrap_or_default());
        if let Some(count) = counter.and_then(|fields| fields.get(field)) {
            count.add(u64::from(is_committed));
        }
    }

    async fn audit(&self, db: &Db) -> Result<Findings, Fault> {
        let mut findings = Findings::default();
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
