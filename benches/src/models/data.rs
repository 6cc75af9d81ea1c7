//! The items of both sides: one model, one table, 8 fields, about 300 bytes each.

use std::collections::BTreeSet;

use floe::model::Schema;
use floe::{Db, Model};

use super::TaskResult;

/// Number of items in the table. Each side uses half of them.
pub(super) const ITEMS: u64 = 10_000;

#[derive(Model)]
#[model(table = "Players")]
pub(super) struct Player {
    #[model(key)]
    pub(super) id: String,
    #[model(length(min = 1, max = 100))]
    pub(super) name: String,
    pub(super) email: String,
    #[model(min = 0)]
    pub(super) level: i64,
    pub(super) coins: u64,
    pub(super) guild: Option<String>,
    pub(super) badges: BTreeSet<String>,
    pub(super) about: String,
}

pub(super) const SCHEMA: &Schema = Player::SCHEMA;

/// The key of the item with a number.
pub(super) fn id(n: u64) -> String {
    format!("player-{n:08}")
}

fn player(n: u64) -> Player {
    Player {
        id: id(n),
        name: format!("the player with the number {n}"),
        email: format!("player-{n}@example.com"),
        level: 1,
        coins: n * 7,
        guild: Some(format!("guild-{:04}", n % 1000)),
        badges: ["brave", "early", "kind"].map(str::to_owned).into(),
        about: "lorem ipsum dolor sit amet ".repeat(5),
    }
}

/// Creates all items.
pub(super) async fn load(db: &Db) -> TaskResult<()> {
    db.ensure_tables(&[SCHEMA]).await?;
    let numbers: Vec<u64> = (0..ITEMS).collect();
    for some in numbers.chunks(100) {
        db.transact(async |tx| {
            for &n in some {
                tx.create(player(n))?;
            }
            Ok::<_, floe::Error>(())
        })
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_size_matches_the_help() {
        let item = player(4711).to_item().unwrap();
        assert_eq!(item.len(), 8);
        let bytes = floe_store::size::item_size(&item);
        assert!((250..=350).contains(&bytes), "{bytes}");
    }
}
