//! Items of which each task owns one field: tasks constantly write the same item and never conflict.

use floe::model::Schema;
use floe::{Db, Field, Model};

use super::client::{Client, Count, Fault, patient};
use super::{AuditReport, Workload};

#[derive(Default, Model)]
#[model(table = "Boards")]
struct Board {
    #[model(key)]
    id: u64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    h: u64,
    i: u64,
    j: u64,
    k: u64,
    l: u64,
    m: u64,
    n: u64,
    o: u64,
    p: u64,
}

const FIELDS: u64 = 16;

/// Returns the field of a task without touching the other fields.
fn field<'r>(board: &'r mut BoardRow<'_>, task: u64) -> Option<&'r mut Field<u64>> {
    let fields: [&mut Field<u64>; FIELDS as usize] = [
        &mut board.a,
        &mut board.b,
        &mut board.c,
        &mut board.d,
        &mut board.e,
        &mut board.f,
        &mut board.g,
        &mut board.h,
        &mut board.i,
        &mut board.j,
        &mut board.k,
        &mut board.l,
        &mut board.m,
        &mut board.n,
        &mut board.o,
        &mut board.p,
    ];
    let at = usize::try_from(task % FIELDS).ok()?;
    fields.into_iter().nth(at)
}

/// The acknowledged changes of each task's field.
pub(super) struct Fields(Vec<Count>);

impl Fields {
    pub(super) fn new(tasks: u64) -> Self {
        Self((0..tasks).map(|_| Count::default()).collect())
    }

    fn boards(&self) -> u64 {
        (self.0.len() as u64).div_ceil(FIELDS)
    }

    fn raised(&self, task: u64) -> Option<&Count> {
        usize::try_from(task).ok().and_then(|task| self.0.get(task))
    }
}

impl Workload for Fields {
    const NAME: &'static str = "fields";
    const SCHEMA: &'static Schema = Board::SCHEMA;

    async fn create(&self, db: &Db) -> Result<(), Fault> {
        for id in 0..self.boards() {
            db.transact(async |tx| {
                let board = Board {
                    id,
                    ..Board::default()
                };
                tx.create(board).map(drop).map_err(Fault::from)
            })
            .await?;
        }
        Ok(())
    }

    async fn step(&self, client: &Client) {
        let (task, id) = (client.number, client.number / FIELDS);
        let Some(raised) = self.raised(task) else {
            return;
        };
        // Only this task writes the field, so it knows the stored value.
        let next = raised.get() + 1;
        let runs = Count::default();
        let result = patient!(client)
            .run(async |tx| {
                runs.add(1);
                let board = tx.get::<Board>(id).await?;
                let mut board = board.ok_or_else(|| Fault::missing("Board", id))?;
                let own = field(&mut board, task).ok_or(Fault::Refused)?;
                match next % 2 {
                    0 => *own += 1,
                    _ => own.set(next)?,
                }
                Ok(())
            })
            .await;
        raised.add(u64::from(client.record_uncontended(&runs, &result)));
    }

    async fn audit(&self, db: &Db) -> Result<AuditReport, Fault> {
        let mut findings = AuditReport::default();
        for (task, raised) in (0..).zip(&self.0) {
            let id = task / FIELDS;
            let stored = db
                .transact(async |tx| {
                    let board = tx.get::<Board>(id).await?;
                    let mut board = board.ok_or_else(|| Fault::missing("Board", id))?;
                    let own = field(&mut board, task).ok_or(Fault::Refused)?;
                    Ok::<_, Fault>(*own.peek())
                })
                .await?;
            findings.compare(&format!("field of task={task}"), stored, raised.get());
        }
        Ok(findings)
    }
}
