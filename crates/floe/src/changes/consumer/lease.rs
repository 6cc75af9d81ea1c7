//! Who delivers: of all processes of a consumer's name, one.
//!
//! A consumer is a group with one partition, whose lease is one item. Processes that wait for their turn only read it.

use super::stored::ConsumerLease;
use crate::db::Db;
use crate::delivery::{Beat, Lease, Members, Standing};
use crate::error::{Error, Result};

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

/// Says that a process is alive, and takes the lease if it is free.
pub(super) async fn beat(db: &Db, consumer: &str, beat: &Beat) -> Result<Standing> {
    db.transact(async |tx| {
        let mut lease = tx.get_or_create(unheld(consumer)).await?;
        let (holder, term) = (lease.holder.clone(), *lease.term);
        let beats = holder.iter().map(|holder| (holder.clone(), *lease.beats));
        let stored = Members {
            beats: beats.collect(),
            leases: [(0, Lease { holder, term })].into(),
        };
        let mut members = stored.after(beat, Some(1));
        if let Some(term) = members.held(&beat.member).get(&0) {
            lease.holder.set(Some(beat.member.clone()))?;
            lease.term.set(*term)?;
            lease.beats += 1;
        } else {
            // It is no member before it holds the lease.
            members = members.without(&beat.member);
        }
        Ok::<_, Error>(Standing {
            members,
            partitions: Some(1),
            asked: *lease.asked.peek(),
        })
    })
    .await
}

/// Gives the lease back, so that nobody has to wait for its end.
pub(super) async fn leave(db: &Db, consumer: &str, member: &str) -> Result<()> {
    db.transact(async |tx| {
        if let Some(mut lease) = tx.get::<ConsumerLease>(consumer).await?
            && lease.holder.as_deref() == Some(member)
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
    use crate::changes::consumer::parked::{ParkedChanges, Written};
    use crate::changes::consumer::{SCHEMAS, position};
    use crate::delivery::{Place, Positions, Token};

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

    async fn beaten(db: &Db, member: &str, gone: Option<(&str, u64)>) -> Standing {
        let gone = gone.map(|(member, beats)| (member.to_owned(), beats));
        let sent = Beat {
            member: member.to_owned(),
            gone: gone.into_iter().collect(),
            ..Beat::default()
        };
        beat(db, "c", &sent).await.unwrap()
    }

    fn token(standing: &Standing, member: &str) -> Option<Token> {
        let term = *standing.members.held(member).get(&0)?;
        let member = member.to_owned();
        Some(Token { member, term })
    }

    /// A process that has lost the lease stores nothing any more: no position, nothing parked, and it gives nothing back.
    #[tokio::test]
    async fn stale_lease_holder_is_fenced() {
        let db = Db::memory().unwrap();
        db.ensure_tables(&SCHEMAS).await.unwrap();
        let old = token(&beaten(&db, "old", None).await, "old").unwrap();
        let claimed = position::claim(&db, "c", "t", &old).await.unwrap();
        assert_eq!(claimed, Some(Positions::default()));
        assert!(
            position::store(&db, "c", "t", &old, &at("5"))
                .await
                .unwrap()
        );
        let seen = beaten(&db, "new", None).await;
        assert_eq!(seen.members.beats, [("old".to_owned(), 1)].into());
        let again = beaten(&db, "old", None).await;
        assert_eq!(token(&again, "old"), Some(old.clone()));
        // It has beaten since, so it is not gone.
        let seen = beaten(&db, "new", Some(("old", 1))).await;
        assert_eq!(token(&seen, "new"), None);
        assert_eq!(seen.members.beats, [("old".to_owned(), 2)].into());
        let taken = beaten(&db, "new", Some(("old", 2))).await;
        let new = token(&taken, "new").unwrap();
        assert_eq!(new.term, 2);
        let lost = beaten(&db, "old", None).await;
        assert_eq!(token(&lost, "old"), None);

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
            (Written::Fenced, 0)
        );
        let by_new = parked.park(&new, &change(), &[], 1).await.unwrap();
        assert_eq!(by_new, Written::Done);
        let again = parked.park(&new, &change(), &[], 1).await.unwrap();
        assert_eq!(again, Written::Unchanged);
        let id = parked.list().await.unwrap().remove(0).id;
        assert_eq!(
            parked.remove(&id, Some(&old)).await.unwrap(),
            Written::Fenced
        );
        leave(&db, "c", "old").await.unwrap();
        let held = beaten(&db, "new", None).await;
        assert_eq!(token(&held, "new"), Some(new));
        leave(&db, "c", "new").await.unwrap();
        let third = beaten(&db, "third", None).await;
        assert_eq!(token(&third, "third").map(|token| token.term), Some(3));
        // A process that cannot know whether it still holds the lease gives it back, and takes it anew.
        let sent = Beat {
            member: "third".to_owned(),
            given_back: [0].into(),
            ..Beat::default()
        };
        let anew = beat(&db, "c", &sent).await.unwrap();
        assert_eq!(token(&anew, "third").map(|token| token.term), Some(4));
    }
}
