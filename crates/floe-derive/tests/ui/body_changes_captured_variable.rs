//! A body may run several times, so it cannot change captured variables.

use floe::{Db, Error, Model};

#[derive(Model)]
struct Player {
    #[model(key)]
    id: String,
    level: i64,
}

async fn run(db: &Db) -> Result<(), Error> {
    let mut runs = 0;
    db.transact(async |tx| {
        runs += 1;
        tx.get::<Player>("a").await.map(drop)
    })
    .await
}

fn main() {}
