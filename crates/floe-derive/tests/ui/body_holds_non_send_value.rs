//! A body can move between threads at every await, so the values that it holds there must be `Send`.

use std::rc::Rc;

use floe::{Db, Error, Model};

#[derive(Model)]
struct Player {
    #[model(key)]
    id: String,
    level: i64,
}

async fn run(db: &Db) -> Result<i64, Error> {
    db.transact(async |tx| {
        let step = Rc::new(1);
        if let Some(mut player) = tx.get::<Player>("a").await? {
            player.level += *step;
        }
        Ok(1)
    })
    .await
}

fn main() {}
