//! How far the changes of a table are done, under the term of the lease.

use super::stored::ConsumerPosition;
use crate::attribute::document::Json;
use crate::db::Db;
use crate::delivery::{Positions, Token};
use crate::error::{Error, ErrorKind, Result};

/// Makes the position one's own, and reads it. `None` if somebody has taken the lease since.
pub(super) async fn claim(
    db: &Db,
    consumer: &str,
    table: &str,
    token: &Token,
) -> Result<Option<Positions>> {
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
        Positions::from_json(&shards).ok_or_else(|| {
            let message = format!(
                "the position of a consumer cannot be read: consumer={consumer} table={table} shards={shards}"
            );
            Error::new(ErrorKind::InvalidField, message)
        })
    };
    claimed.map(read).transpose()
}

/// Stores how far everything is done. `false` if somebody has taken the lease since.
pub(super) async fn store(
    db: &Db,
    consumer: &str,
    table: &str,
    token: &Token,
    positions: &Positions,
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
