//! Which member of a group holds the lease of which partition.
//!
//! A heartbeat says that a member is alive, gives back what it gave up, and takes what is free up to a fair share. All
//! members see the same state, so all come to the same shares.
//!
//! No clock is compared with another one. A member is gone when another has seen its count of heartbeats unchanged for as
//! long as a lease lasts, by its own timer; and a member whose heartbeats failed for so long knows that it may be taken for
//! gone. What keeps a member from doing harm that does not know it is the term of the lease, the fencing token: it grows
//! each time that the lease is taken, and everything that a member stores is refused under an older one.
//!
//! Nothing here reads, writes or waits. The pattern stores the state, and says under which names.

use std::collections::{BTreeMap, BTreeSet};

/// The members of a group, and the leases that they hold.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Members {
    /// The count of heartbeats of each.
    pub(crate) beats: BTreeMap<String, u64>,
    /// The lease of each partition that was ever taken.
    pub(crate) leases: BTreeMap<u32, Lease>,
}

/// The lease of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Lease {
    /// The member that holds it, if one does.
    pub(crate) holder: Option<String>,
    /// How often it was taken.
    pub(crate) term: u64,
}

/// A lease as its holder presents it: it is valid as long as the stored lease has the same member and term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) member: String,
    pub(crate) term: u64,
}

/// What a member says with a heartbeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beat {
    /// The member.
    pub(crate) member: String,
    /// The partitions that it gives back. Those within its share it takes anew, under a higher term.
    pub(crate) given_back: BTreeSet<u32>,
    /// Members that are gone if their count of heartbeats is still this.
    pub(crate) gone: Vec<(String, u64)>,
}

impl Members {
    /// The state after a heartbeat; of so many partitions, if their number is known.
    pub(crate) fn after(&self, beat: &Beat, partitions: Option<u32>) -> Self {
        let mut after = self.clone();
        *after.beats.entry(beat.member.clone()).or_default() += 1;
        for (member, beats) in &beat.gone {
            if after.beats.get(member) == Some(beats) && *member != beat.member {
                after.remove(member);
            }
        }
        after.free(&beat.member, |number| beat.given_back.contains(&number));
        after.take(&beat.member, partitions.unwrap_or_default());
        after
    }

    /// The state without a member.
    pub(crate) fn without(&self, member: &str) -> Self {
        let mut after = self.clone();
        after.remove(member);
        after
    }

    /// The state in which the holder of a partition must start over; `None` if there is no holder.
    pub(crate) fn restarted(&self, partition: u32) -> Option<Self> {
        let mut after = self.clone();
        let lease = after.leases.get_mut(&partition)?;
        lease.holder.as_ref()?;
        lease.term += 1;
        Some(after)
    }

    /// The partitions that a member holds, and the term of each.
    pub(crate) fn held(&self, member: &str) -> BTreeMap<u32, u64> {
        let leases = self.leases.iter();
        leases
            .filter(|(_, lease)| lease.holder.as_deref() == Some(member))
            .map(|(number, lease)| (*number, lease.term))
            .collect()
    }

    /// The partitions that a member holds beyond its share: the last ones.
    pub(super) fn surplus(&self, member: &str, partitions: u32) -> Vec<u32> {
        let held = self.held(member).into_keys();
        held.skip(self.share(member, partitions)).collect()
    }

    /// How many partitions a member is to hold. What does not divide evenly goes to those that hold most, so that as little
    /// as possible changes hands.
    fn share(&self, member: &str, partitions: u32) -> usize {
        let (count, members) = (partitions as usize, self.beats.len().max(1));
        let names = self.beats.keys();
        let mut order: Vec<(usize, &String)> = names.map(|key| (self.count(key), key)).collect();
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
    fn take(&mut self, member: &str, partitions: u32) {
        for number in 0..partitions {
            if self.count(member) >= self.share(member, partitions) {
                return;
            }
            let lease = self.leases.entry(number).or_default();
            if lease.holder.is_none() {
                lease.holder = Some(member.to_owned());
                lease.term += 1;
            }
        }
    }

    fn remove(&mut self, member: &str) {
        self.beats.remove(member);
        self.free(member, |_| true);
    }

    /// The term stays: the next holder has a higher one.
    fn free(&mut self, member: &str, is_free: impl Fn(u32) -> bool) {
        for (number, lease) in &mut self.leases {
            if lease.holder.as_deref() == Some(member) && is_free(*number) {
                lease.holder = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_store::env::SeededRandom;

    use super::*;

    fn beat(member: &str) -> Beat {
        Beat {
            member: member.to_owned(),
            ..Beat::default()
        }
    }

    fn beaten(members: &Members, member: &str, count: u32) -> Members {
        members.after(&beat(member), Some(count))
    }

    /// A heartbeat that also gives back what is too much, as a member does that has nothing under way.
    fn settle(members: &Members, member: &str, count: u32) -> Members {
        let after = beaten(members, member, count);
        let given_back = after.surplus(member, count).into_iter().collect();
        let beat = Beat {
            given_back,
            ..beat(member)
        };
        after.after(&beat, Some(count))
    }

    fn counts(members: &Members) -> Vec<usize> {
        let names = members.beats.keys();
        names.map(|member| members.count(member)).collect()
    }

    #[test]
    fn member_is_gone_only_if_it_has_not_beaten_since() {
        let members = beaten(&Members::default(), "a", 2);
        let gone = |beats| Beat {
            gone: vec![("a".to_owned(), beats)],
            ..beat("b")
        };
        let alive = beaten(&members, "a", 2);
        let alive = alive.after(&gone(1), Some(2));
        assert_eq!(counts(&alive), [2, 0]);
        let dead = members.after(&gone(1), Some(2));
        assert_eq!(counts(&dead), [2]);
        assert_eq!(dead.held("b"), [(0, 2), (1, 2)].into());
    }

    #[test]
    fn lease_that_is_given_back_within_the_share_is_taken_anew() {
        let members = beaten(&Members::default(), "a", 2);
        let one = Beat {
            given_back: [1].into(),
            ..beat("a")
        };
        let after = members.after(&one, Some(2));
        assert_eq!(after.held("a"), [(0, 1), (1, 2)].into());
        let shared = beaten(&members, "b", 2).after(&one, Some(2));
        assert_eq!(shared.held("a"), [(0, 1)].into());
        // A member that does not know the number of partitions takes none, and keeps what it has.
        let blind = members.after(&beat("a"), None);
        assert_eq!(blind.leases, members.leases);
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
                    1 => beaten(&members, &member, count),
                    _ => settle(&members, &member, count),
                };
                for (number, lease) in &before.leases {
                    let after = &members.leases[number];
                    assert!(after.term >= lease.term);
                    // A new holder has a new term.
                    let is_new = after.holder.is_some() && after.holder != lease.holder;
                    assert_eq!(is_new, after.term > lease.term);
                }
            }
            members = beaten(&members, "0", count);
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
