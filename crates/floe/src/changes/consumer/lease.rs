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

#[cfg(test)]
mod tests {
    use floe_store::Item;
    use floe_store::op::{ChangeKind, ChangeRecord};
    use floe_store::table::StreamView;
    use floe_store::{Timestamp, Value};

    use super::*;
    use crate::changes::Change;
    use crate::changes::consumer::parked::{ParkedChanges, Parking, Removed};
    use crate::changes::consumer::{SCHEMAS, position};
    use crate::changes::stream::{Place, Positions};

    fn at(sequence: &str) -> Positions {
        let place = Place::After(sequence.to_owned());
        Positions([("s/1".to_owned(), place)].into())
    }

    fn change() -> Change {
        let record = ChangeRecord {
            event_id: "e".to_owned(),
            kind: ChangeKind::Remove,
            keys: Item::new().with("id", Value::from("a")),
            old_image: None,
            new_image: None,
            sequence: "7".to_owned(),
            size_bytes: 0,
            view: StreamView::KeysOnly,
            created: Timestamp::from_millis(0),
            identity: None,
        };
        Change::new("t", record)
    }

    /// Who has lost the lease stores nothing any more: no position, nothing parked, and it gives nothing back.
    #[tokio::test]
    async fn who_has_lost_the_lease_stores_nothing() {
        let db = Db::memory().unwrap();
        db.ensure_tables(&SCHEMAS).await.unwrap();
        let old = take(&db, "c", "old", None).await.unwrap().unwrap();
        let claimed = position::claim(&db, "c", "t", &old).await.unwrap();
        assert_eq!(claimed, Some(Positions::default()));
        assert!(
            position::store(&db, "c", "t", &old, &at("5"))
                .await
                .unwrap()
        );
        let seen = take(&db, "c", "new", None).await.unwrap().unwrap_err();
        assert_eq!(beat(&db, "c", &old).await.unwrap(), Some(0));
        // It has beaten since, so it is not gone.
        assert!(take(&db, "c", "new", Some(&seen)).await.unwrap().is_err());
        let seen = take(&db, "c", "new", None).await.unwrap().unwrap_err();
        let new = take(&db, "c", "new", Some(&seen)).await.unwrap().unwrap();
        assert_eq!((new.term, beat(&db, "c", &old).await.unwrap()), (2, None));

        let claimed = position::claim(&db, "c", "t", &new).await.unwrap();
        assert_eq!(claimed, Some(at("5")));
        assert!(
            !position::store(&db, "c", "t", &old, &at("3"))
                .await
                .unwrap()
        );
        assert_eq!(position::claim(&db, "c", "t", &old).await.unwrap(), None);
        assert_eq!(
            position::claim(&db, "c", "t", &new).await.unwrap(),
            Some(at("5"))
        );

        let parked = ParkedChanges::of(&db, "c");
        let by_old = parked.park(&old, &change(), &[], 1).await.unwrap();
        assert_eq!(
            (by_old, parked.list().await.unwrap().len()),
            (Parking::Fenced, 0)
        );
        let by_new = parked.park(&new, &change(), &[], 1).await.unwrap();
        assert_eq!(by_new, Parking::Parked);
        let again = parked.park(&new, &change(), &[], 1).await.unwrap();
        assert_eq!(again, Parking::WasThere);
        let id = parked.list().await.unwrap().remove(0).id;
        assert_eq!(
            parked.remove(&id, Some(&old)).await.unwrap(),
            Removed::Fenced
        );
        give_back(&db, "c", &old).await.unwrap();
        assert_eq!(beat(&db, "c", &new).await.unwrap(), Some(0));
        give_back(&db, "c", &new).await.unwrap();
        assert!(take(&db, "c", "third", None).await.unwrap().is_ok());
    }
}
