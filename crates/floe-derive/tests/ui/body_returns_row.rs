//! A row cannot leave the body.

use floe::{Db, Error, Model};

#[derive(Model)]
struct Player {
    #[model(key)]
    id: String,
    level: i64,
}

async fn run(db: &Db) -> Result<(), Error> {
    let row = db.transact(async |tx| tx.get::<Player>("a").await).await?;
    drop(row);
    Ok(())
}

fn main() {}
