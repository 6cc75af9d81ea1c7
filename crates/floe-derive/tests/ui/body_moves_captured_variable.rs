//! A body may run several times, so it borrows captured variables and cannot move them.

use floe::{Db, Error, Model};

#[derive(Clone, Model)]
struct Player {
    #[model(key)]
    id: String,
    level: i64,
}

async fn run(db: &Db, player: Player) -> Result<(), Error> {
    db.transact(async move |tx| tx.create(player.clone()).map(drop))
        .await
}

async fn run_once(db: &Db, player: Player) -> Result<(), Error> {
    db.transact(async |tx| tx.create(player).map(drop)).await
}

fn main() {}
