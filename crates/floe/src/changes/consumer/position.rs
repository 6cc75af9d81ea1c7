//! The stored positions of a consumer in the change streams of a table, fenced by the term of the lease.

use super::stored::ConsumerPosition;
use crate::attribute::document::Json;
use crate::db::Db;
use crate::delivery::{ShardPositions, Token};
use crate::error::{Error, ErrorKind, Result};

/// Stores the term in the position and returns the position. `None` if another process has a newer term.
pub(super) async fn claim(
    db: &Db,
    consumer: &str,
    table: &str,
    token: &Token,
) -> Result<Option<ShardPositions>> {
    let claimed = db
        .transact(async |tx| {
            let mut position = tx
                .get_or_create(ConsumerPosition {
                    consumer: consumer.to_owned(),
                    table: table.to_owned(),
                    term: token.term,
                    shards: Json::Object(serde_json::Map::new()),
                })
                .await?;
            if *position.term > token.term {
                return Ok::<_, Error>(None);
            }
            position.term.set(token.term)?;
            Ok(Some(position.shards.clone()))
        })
        .await?;
    let read = |shards| {
        ShardPositions::from_json(&shards).ok_or_else(|| {
            let message = format!(
                "cannot read the position of a consumer: consumer={consumer} table={table} shards={shards}"
            );
            Error::new(ErrorKind::InvalidField, message)
        })
    };
    claimed.map(read).transpose()
}

/// Stores a position. Returns `false` if another process has a newer term.
pub(super) async fn store(
    db: &Db,
    consumer: &str,
    table: &str,
    token: &Token,
    positions: &ShardPositions,
) -> Result<bool> {
    let shards = positions.to_json();
    db.transact(async |tx| {
        let key = (consumer.to_owned(), table.to_owned());
        let position = tx.get::<ConsumerPosition>(key).await?;
        let Some(mut position) = position.filter(|position| *position.term == token.term) else {
            return Ok::<_, Error>(false);
        };
        position.shards.overwrite(shards.clone())?;
        Ok(true)
    })
    .await
}
