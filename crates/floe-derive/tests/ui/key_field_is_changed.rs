//! Keys never change, neither through a row nor through a patch.

use floe::{Db, Error, Model};

#[derive(Model)]
struct Player {
    #[model(key)]
    number: i64,
    level: i64,
}

async fn run(db: &Db) -> Result<(), Error> {
    db.transact(async |tx| {
        if let Some(mut player) = tx.get::<Player>(1).await? {
            player.number.set(2)?;
        }
        tx.update::<Player>(1, Player::patch().number(1), Player::patch().level(2))
    })
    .await
}

fn main() {}
