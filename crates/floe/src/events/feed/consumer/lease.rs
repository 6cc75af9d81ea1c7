//! Who has which partition: `$ReaderGroup-<group>` in the index table.
//!
//! One small item for a group: its members, each with a count of its beats, and who holds which partition. A beat is one
//! conditional write that says "I am here", gives back what was given up, and takes what is free up to a fair share. All
//! see the same members, so all come to the same shares.
//!
//! No clock is compared with another one. A member is gone when somebody has seen its count unchanged for as long as a
//! lease lasts, by the own timer; and a member that could not beat for so long knows that it may be taken for gone.
//!
//! Nothing here reads, writes or waits. What keeps a member that does not know that it is gone from doing harm is the
//! term: see [`progress`](super::progress).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::partition::{Partition, Partitions};
use crate::events::{Access, Decider, Event};

/// The members of a group, and what they hold.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Members {
    /// How often each has beaten.
    beats: BTreeMap<String, u64>,
    leases: BTreeMap<u32, Lease>,
}

/// Who holds a partition.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Lease {
    holder: Option<String>,
    /// How often it was taken.
    term: u64,
}

/// What a member says with a beat.
#[derive(Clone, Debug, Default)]
pub(super) struct Beat {
    /// Who beats.
    pub(super) member: String,
    /// How many partitions there are.
    pub(super) partitions: Option<Partitions>,
    /// Members that are gone, if they have not beaten since.
    pub(super) gone: Vec<(String, u64)>,
    /// What it holds and will not hold any more.
    pub(super) given_back: Vec<Partition>,
}

impl Members {
    /// The members after a beat of one of them.
    pub(super) fn after(&self, beat: &Beat) -> Self {
        let mut after = self.clone();
        *after.beats.entry(beat.member.clone()).or_default() += 1;
        for (member, beats) in &beat.gone {
            if after.beats.get(member) == Some(beats) && *member != beat.member {
                after.remove(member);
            }
        }
        for partition in &beat.given_back {
            after.free(&beat.member, |number| number == partition.number());
        }
        after.take(beat);
        after
    }

    /// The others, without this one.
    pub(super) fn without(&self, member: &str) -> Self {
        let mut after = self.clone();
        after.remove(member);
        after
    }

    /// The same, where who holds this partition begins anew with it; `None` if nobody does.
    pub(super) fn restarted(&self, partition: Partition) -> Option<Self> {
        let mut after = self.clone();
        let lease = after.leases.get_mut(&partition.number())?;
        lease.holder.as_ref()?;
        lease.term += 1;
        Some(after)
    }

    /// How often each has beaten.
    pub(super) fn beats(&self) -> &BTreeMap<String, u64> {
        &self.beats
    }

    /// What a member holds, and the term of each.
    pub(super) fn held(&self, member: &str) -> BTreeMap<Partition, u64> {
        let leases = self.leases.iter();
        leases
            .filter(|(_, lease)| lease.holder.as_deref() == Some(member))
            .map(|(number, lease)| (Partition::new(*number), lease.term))
            .collect()
    }

    /// What a member holds beyond its share: the last ones.
    pub(super) fn surplus(&self, member: &str, partitions: Partitions) -> Vec<Partition> {
        let held = self.held(member).into_keys();
        held.skip(self.share(member, partitions)).collect()
    }

    /// How many partitions a member is to have. What does not come out even goes to those that have most, so that as
    /// little as possible changes hands.
    fn share(&self, member: &str, partitions: Partitions) -> usize {
        let (count, members) = (partitions.count() as usize, self.beats.len().max(1));
        let mut order: Vec<(usize, &String)> = self
            .beats
            .keys()
            .map(|key| (self.count(key), key))
            .collect();
        order.sort_by(|(one, name), (other, next)| other.cmp(one).then(name.cmp(next)));
        let place = order.iter().position(|(_, name)| *name == member);
        let has_more = place.is_some_and(|place| place < count % members);
        count / members + usize::from(has_more)
    }

    fn count(&self, member: &str) -> usize {
        let holders = self.leases.values().map(|lease| lease.holder.as_deref());
        holders.filter(|holder| *holder == Some(member)).count()
    }

    /// Takes what is free, up to the share.
    fn take(&mut self, beat: &Beat) {
        let Some(partitions) = beat.partitions else {
            return;
        };
        for partition in partitions.all() {
            if self.count(&beat.member) >= self.share(&beat.member, partitions) {
                return;
            }
            let lease = self.leases.entry(partition.number()).or_default();
            if lease.holder.is_none() {
                lease.holder = Some(beat.member.clone());
                lease.term += 1;
            }
        }
    }

    fn remove(&mut self, member: &str) {
        self.beats.remove(member);
        self.free(member, |_| true);
    }

    /// The term stays: who holds a partition later has a higher one.
    fn free(&mut self, member: &str, is_free: impl Fn(u32) -> bool) {
        for (number, lease) in &mut self.leases {
            if lease.holder.as_deref() == Some(member) && is_free(*number) {
                lease.holder = None;
            }
        }
    }
}

const SHARED: &str = "Shared";

impl Event for Members {
    fn event_type(&self) -> &'static str {
        SHARED
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let leases = self.leases.iter();
        let leases: Map<String, Value> = leases
            .map(|(number, lease)| {
                let json = json!({ "holder": lease.holder, "term": lease.term });
                (number.to_string(), json)
            })
            .collect();
        let json = json!({ "members": self.beats, "leases": leases });
        Ok(json.to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        if event_type != SHARED {
            return Ok(None);
        }
        let json: Option<Value> = serde_json::from_slice(data).ok();
        let read = json.as_ref().and_then(members);
        read.map(Some).ok_or_else(|| {
            let data = String::from_utf8_lossy(data);
            let message = format!("the members of a group cannot be read: data={data}");
            Error::new(ErrorKind::InvalidEvent, message)
        })
    }
}

fn members(json: &Value) -> Option<Members> {
    let beats = json.get("members")?.as_object()?.iter();
    let leases = json.get("leases")?.as_object()?.iter();
    let lease = |(number, json): (&String, &Value)| {
        let holder = match json.get("holder")? {
            Value::Null => None,
            holder => Some(holder.as_str()?.to_owned()),
        };
        let term = json.get("term")?.as_u64()?;
        Some((number.parse().ok()?, Lease { holder, term }))
    };
    Some(Members {
        beats: beats
            .map(|(member, beats)| Some((member.clone(), beats.as_u64()?)))
            .collect::<Option<_>>()?,
        leases: leases.map(lease).collect::<Option<_>>()?,
    })
}

/// The streams that members are kept in.
pub(super) enum ReaderGroup {}

impl Decider for ReaderGroup {
    const CATEGORY: &'static str = "$ReaderGroup";
    /// The name of the group.
    type Id = str;
    type Event = Members;
    type State = Members;

    fn initial() -> Members {
        Members::default()
    }

    fn evolve(_: Members, event: &Members) -> Members {
        event.clone()
    }

    fn access() -> Access<Self> {
        Access::RollingState {
            to_snapshot: Members::clone,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use floe_store::env::SeededRandom;

    use super::*;

    fn partitions(count: u32) -> Partitions {
        Partitions::new(NonZeroU32::new(count).unwrap())
    }

    fn beat(member: &str, count: u32) -> Beat {
        Beat {
            member: member.to_owned(),
            partitions: Some(partitions(count)),
            ..Beat::default()
        }
    }

    /// A beat that also gives back what is too much, as a member does that has nothing under way.
    fn settle(members: &Members, member: &str, count: u32) -> Members {
        let after = members.after(&beat(member, count));
        let given_back = after.surplus(member, partitions(count));
        after.after(&Beat {
            given_back,
            ..beat(member, count)
        })
    }

    fn counts(members: &Members) -> Vec<usize> {
        let names = members.beats.keys();
        names.map(|member| members.count(member)).collect()
    }

    #[test]
    fn members_are_read_as_they_were_written() {
        let members = Members::default().after(&beat("a", 2)).after(&beat("b", 2));
        let members = members.without("b");
        let data = members.encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"leases":{"0":{"holder":"a","term":1},"1":{"holder":"a","term":1}},"members":{"a":1}}"#
        );
        assert_eq!(Members::decode(SHARED, &data).unwrap(), Some(members));
        let free = r#"{"leases":{"0":{"holder":null,"term":7}},"members":{}}"#;
        let free = Members::decode(SHARED, free.as_bytes()).unwrap().unwrap();
        assert_eq!(
            free.after(&beat("a", 1)).held("a"),
            [(Partition::FIRST, 8)].into()
        );
        assert!(Members::decode(SHARED, b"[]").is_err());
        assert_eq!(Members::decode("Other", b"[]").unwrap(), None);
    }

    #[test]
    fn who_is_gone_is_gone_only_if_it_has_not_beaten_since() {
        let members = Members::default().after(&beat("a", 2));
        let gone = |beats| Beat {
            gone: vec![("a".to_owned(), beats)],
            ..beat("b", 2)
        };
        let alive = members.after(&beat("a", 2)).after(&gone(1));
        assert_eq!(counts(&alive), [2, 0]);
        let dead = members.after(&gone(1));
        assert_eq!(counts(&dead), [2]);
        assert_eq!(dead.held("b").into_values().collect::<Vec<_>>(), [2, 2]);
    }

    /// However members come, go and beat, the shares are fair once all have beaten a few times; no partition has two
    /// holders, and terms never go back.
    #[test]
    fn shares_become_fair_and_then_stay() {
        for seed in 0..200 {
            let random = SeededRandom::new(seed);
            let count = 1 + random.below(12) as u32;
            let mut members = Members::default();
            for _ in 0..60 {
                let member = random.below(6).to_string();
                let before = members.clone();
                members = match random.below(5) {
                    0 => members.without(&member),
                    1 => members.after(&beat(&member, count)),
                    _ => settle(&members, &member, count),
                };
                for (number, lease) in &before.leases {
                    assert!(members.leases[number].term >= lease.term);
                }
            }
            members = members.after(&beat("0", count));
            let names: Vec<String> = members.beats.keys().cloned().collect();
            for _ in 0..3 {
                for member in &names {
                    members = settle(&members, member, count);
                }
            }
            let shares = counts(&members);
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1, "{shares:?}");
            assert_eq!(shares.iter().sum::<usize>(), count as usize);
            for member in &names {
                let settled = settle(&members, member, count);
                assert_eq!(settled.leases, members.leases);
            }
        }
    }
}
