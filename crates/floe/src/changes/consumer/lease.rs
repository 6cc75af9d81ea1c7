//! Who delivers: of all processes of a consumer's name, one.
//!
//! The process that delivers says so again and again. Another one takes its place when it has seen its count unchanged for
//! longer than a lease lasts, by its own timer: no clock is compared with another one. The process that cannot say it for so
//! long knows that it may be taken for gone, and stops. Until it does, both may deliver; what keeps the old one from doing
//! harm is the term, under which everything is stored.

use super::stored::ConsumerLease;
use crate::db::Db;
use crate::error::{Error, Result};

/// The lease as somebody else holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    holder: Option<String>,
    beats: u64,
    term: u64,
}

/// The lease as one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mine {
    pub(super) holder: String,
    pub(super) term: u64,
    /// How often somebody has asked to look at what is parked.
    pub(super) asked: u64,
}

/// A lease that nobody has held.
fn unheld(consumer: &str) -> ConsumerLease {
    ConsumerLease {
        consumer: consumer.to_owned(),
        holder: None,
        beats: 0,
        term: 0,
        asked: 0,
    }
}

/// Takes the lease, if it is free or its holder is gone: still as it was seen then.
pub(super) async fn take(
    db: &Db,
    consumer: &str,
    me: &str,
    gone: Option<&Seen>,
) -> Result<Result<Mine, Seen>> {
    db.transact(async |tx| {
        let mut lease = tx.get_or_create(unheld(consumer)).await?;
        let seen = Seen {
            holder: lease.holder.clone(),
            beats: *lease.beats,
            term: *lease.term,
        };
        let is_mine = seen.holder.as_deref().is_none_or(|holder| holder == me);
        if !is_mine && gone != Some(&seen) {
            return Ok::<_, Error>(Err(seen));
        }
        lease.holder.set(Some(me.to_owned()))?;
        lease.term += 1;
        lease.beats += 1;
        Ok(Ok(Mine {
            holder: me.to_owned(),
            term: *lease.term,
            asked: *lease.asked,
        }))
    })
    .await
}

/// Says that one is alive. Gives how often somebody has asked to look at what is parked; `None` if the lease is somebody
/// else's.
pub(super) async fn beat(db: &Db, consumer: &str, mine: &Mine) -> Result<Option<u64>> {
    db.transact(async |tx| {
        let Some(mut lease) = tx.get::<ConsumerLease>(consumer).await? else {
            return Ok::<_, Error>(None);
        };
        if lease.holder.as_ref() != Some(&mine.holder) || *lease.term != mine.term {
            return Ok(None);
        }
        lease.beats += 1;
        Ok(Some(*lease.asked.peek()))
    })
    .await
}

/// Gives the lease back, so that nobody has to wait for its end.
pub(super) async fn give_back(db: &Db, consumer: &str, mine: &Mine) -> Result<()> {
    db.transact(async |tx| {
        if let Some(mut lease) = tx.get::<ConsumerLease>(consumer).await?
            && lease.holder.as_ref() == Some(&mine.holder)
            && *lease.term == mine.term
        {
            lease.holder.set(None)?;
        }
        Ok::<_, Error>(())
    })
    .await
}

/// Asks whoever delivers to look at what is parked.
pub(super) async fn ask(db: &Db, consumer: &str) -> Result<()> {
    db.transact(async |tx| {
        let mut lease = tx.get_or_create(unheld(consumer)).await?;
        lease.asked.increment_by(1)
    })
    .await
}
