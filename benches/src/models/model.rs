//! The operation through models.

use std::hint::black_box;

use floe::{Db, Key};

use super::data::Player;
use super::{Failure, Operation, Subject, TaskItems, TaskResult};

pub(super) struct Models(pub(super) Db);

impl Subject for Models {
    async fn step(&self, operation: Operation, items: &TaskItems) -> TaskResult<()> {
        match operation {
            Operation::Change => self.change(items.one()).await,
            Operation::ChangeTwo => self.change_two(items.two()).await,
            Operation::Read(count) => self.read(items.some(count)).await,
        }
    }
}

impl Models {
    async fn change(&self, id: &str) -> TaskResult<()> {
        self.0
            .transact(async |tx| {
                let player = tx.get::<Player>(id).await?;
                player.ok_or("an item is missing")?.level += 1;
                Ok::<_, Failure>(())
            })
            .await
    }

    async fn change_two(&self, [first, second]: [&str; 2]) -> TaskResult<()> {
        self.0
            .transact(async |tx| {
                let keys = (Player::key(first)?, Player::key(second)?);
                let (first, second) = tx.get_many(keys).await?;
                first.ok_or("an item is missing")?.level += 1;
                second.ok_or("an item is missing")?.level += 1;
                Ok::<_, Failure>(())
            })
            .await
    }

    async fn read(&self, ids: &[String]) -> TaskResult<()> {
        let levels = self
            .0
            .transact(async |tx| {
                let keys = ids.iter().map(|id| Player::key(id.as_str()));
                let keys: Vec<Key<Player>> = keys.collect::<Result<_, _>>()?;
                let mut levels = 0;
                for player in tx.get_many(keys).await? {
                    levels += *player.ok_or("an item is missing")?.level;
                }
                Ok::<_, Failure>(levels)
            })
            .await?;
        black_box(levels);
        Ok(())
    }
}
