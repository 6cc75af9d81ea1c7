//! The lease of a consumer: one process of its name is active.
//!
//! A consumer is a group with one partition, whose lease is one item. Waiting processes only read it.

use super::stored::ConsumerLease;
use crate::db::Db;
use crate::delivery::{GroupState, Heartbeat, Lease, Members};
use crate::error::{Error, Result};

/// A lease that was never held.
fn unheld(consumer: &str) -> ConsumerLease {
    ConsumerLease {
        consumer: consumer.to_owned(),
        holder: None,
        beats: 0,
        term: 0,
        asked: 0,
    }
}

/// Stores a heartbeat, and acquires the lease if it is free.
pub(super) async fn beat(db: &Db, consumer: &str, beat: &Heartbeat) -> Result<GroupState> {
    db.transact(async |tx| {
        let mut lease = tx.get_or_create(unheld(consumer)).await?;
        let (holder, term) = (lease.holder.clone(), *lease.term);
        let beats = holder.iter().map(|holder| (holder.clone(), *lease.beats));
        let stored = Members {
            heartbeats: beats.collect(),
            leases: [(0, Lease { holder, term })].into(),
        };
        let mut members = stored.after_heartbeat(beat, Some(1));
        if let Some(term) = members.held(&beat.member).get(&0) {
            lease.holder.set(Some(beat.member.clone()))?;
            lease.term.set(*term)?;
            lease.beats += 1;
        } else {
            // Only the lease holder is stored as a member.
            members = members.without(&beat.member);
        }
        Ok::<_, Error>(GroupState {
            members,
            partitions: Some(1),
            replay_requests: *lease.asked.peek(),
        })
    })
    .await
}

/// Releases the lease, so that the next process need not wait for it to expire.
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

/// Asks the active process to read the dead letters.
pub(super) async fn request_replay(db: &Db, consumer: &str) -> Result<()> {
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
    use crate::changes::consumer::dead_letters::{DeadLetters, WriteOutcome};
    use crate::changes::consumer::{SCHEMAS, position};
    use crate::delivery::{ShardPosition, ShardPositions, Token};

    fn at(sequence: &str) -> ShardPositions {
        let place = ShardPosition::After(sequence.to_owned());
        ShardPositions([("s/1".to_owned(), place)].into())
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

    async fn beaten(db: &Db, member: &str, gone: Option<(&str, u64)>) -> GroupState {
        let gone = gone.map(|(member, beats)| (member.to_owned(), beats));
        let sent = Heartbeat {
            member: member.to_owned(),
            suspects: gone.into_iter().collect(),
            ..Heartbeat::default()
        };
        beat(db, "c", &sent).await.unwrap()
    }

    fn token(state: &GroupState, member: &str) -> Option<Token> {
        let term = *state.members.held(member).get(&0)?;
        let member = member.to_owned();
        Some(Token { member, term })
    }

    /// A process that lost the lease can store neither positions nor dead letters, and cannot release the lease.
    #[tokio::test]
    async fn stale_lease_holder_is_fenced() {
        let db = Db::memory().unwrap();
        db.ensure_tables(&SCHEMAS).await.unwrap();
        let old = token(&beaten(&db, "old", None).await, "old").unwrap();
        let claimed = position::claim(&db, "c", "t", &old).await.unwrap();
        assert_eq!(claimed, Some(ShardPositions::default()));
        assert!(
            position::store(&db, "c", "t", &old, &at("5"))
                .await
                .unwrap()
        );
        let seen = beaten(&db, "new", None).await;
        assert_eq!(seen.members.heartbeats, [("old".to_owned(), 1)].into());
        let again = beaten(&db, "old", None).await;
        assert_eq!(token(&again, "old"), Some(old.clone()));
        // Its heartbeat count has changed since, so it keeps the lease.
        let seen = beaten(&db, "new", Some(("old", 1))).await;
        assert_eq!(token(&seen, "new"), None);
        assert_eq!(seen.members.heartbeats, [("old".to_owned(), 2)].into());
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

        let dead_letters = DeadLetters::of(&db, "c");
        let by_old = dead_letters.add(&old, &change(), &[], 1).await.unwrap();
        assert_eq!(
            (by_old, dead_letters.list().await.unwrap().len()),
            (WriteOutcome::Fenced, 0)
        );
        let by_new = dead_letters.add(&new, &change(), &[], 1).await.unwrap();
        assert_eq!(by_new, WriteOutcome::Applied);
        let again = dead_letters.add(&new, &change(), &[], 1).await.unwrap();
        assert_eq!(again, WriteOutcome::Unchanged);
        let id = dead_letters.list().await.unwrap().remove(0).id;
        assert_eq!(
            dead_letters.remove(&id, Some(&old)).await.unwrap(),
            WriteOutcome::Fenced
        );
        leave(&db, "c", "old").await.unwrap();
        let held = beaten(&db, "new", None).await;
        assert_eq!(token(&held, "new"), Some(new));
        leave(&db, "c", "new").await.unwrap();
        let third = beaten(&db, "third", None).await;
        assert_eq!(token(&third, "third").map(|token| token.term), Some(3));
        // A process that cannot know whether it still holds the lease releases it, and acquires it again.
        let sent = Heartbeat {
            member: "third".to_owned(),
            released: [0].into(),
            ..Heartbeat::default()
        };
        let renewed = beat(&db, "c", &sent).await.unwrap();
        assert_eq!(token(&renewed, "third").map(|token| token.term), Some(4));
    }
}
