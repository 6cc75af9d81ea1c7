//! The work through models.

use std::hint::black_box;

use floe::{Db, Key};

use super::data::Player;
use super::{Failure, Own, Sent, Subject, Work};

pub(super) struct Models(pub(super) Db);

impl Subject for Models {
    async fn step(&self, work: Work, own: &Own) -> Sent<()> {
        match work {
            Work::Change => self.change(own.one()).await,
            Work::ChangeTwo => self.change_two(own.two()).await,
            Work::Read(count) => self.read(own.some(count)).await,
        }
    }
}

impl Models {
    async fn change(&self, id: &str) -> Sent<()> {
        self.0
            .transact(async |tx| {
                let player = tx.get::<Player>(id).await?;
                player.ok_or("an item is missing")?.level += 1;
                Ok::<_, Failure>(())
            })
            .await
    }

    async fn change_two(&self, [first, second]: [&str; 2]) -> Sent<()> {
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

    async fn read(&self, ids: &[String]) -> Sent<()> {
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
