//! Members of a group and their leases of partitions.
//!
//! A heartbeat proves that a member is alive, releases the leases it gave up, and acquires free ones up to a fair
//! share. All members compute the shares from the same state, so they agree.
//!
//! Clocks of different machines are never compared. A member counts as failed when another member sees its heartbeat
//! count unchanged for the duration of a lease by its own timer; a member whose heartbeats fail for as long assumes
//! that it lost its leases. A member that stalls unnoticed is fenced by the term of the lease, the fencing token: it
//! grows with each acquisition, and writes under an older term are rejected.
//!
//! This module does no I/O and never waits. The pattern stores the state.

use std::collections::{BTreeMap, BTreeSet};

/// The members of a group and their leases.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Members {
    /// The heartbeat count of each member.
    pub(crate) heartbeats: BTreeMap<String, u64>,
    /// The lease of each partition that was ever acquired.
    pub(crate) leases: BTreeMap<u32, Lease>,
}

/// The lease of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Lease {
    /// The lease holder, if any.
    pub(crate) holder: Option<String>,
    /// How often the lease was acquired.
    pub(crate) term: u64,
}

/// Proof of a lease. Valid while the stored lease has the same member and term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) member: String,
    pub(crate) term: u64,
}

/// A heartbeat of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat {
    /// The member.
    pub(crate) member: String,
    /// The partitions that it releases. It acquires those within its share again, under a higher term.
    pub(crate) released: BTreeSet<u32>,
    /// Members to remove if their heartbeat count is still this.
    pub(crate) suspects: Vec<(String, u64)>,
}

impl Members {
    /// Returns the state after a heartbeat. Leases are acquired only if the number of partitions is known.
    pub(crate) fn after_heartbeat(&self, heartbeat: &Heartbeat, partitions: Option<u32>) -> Self {
        let mut after = self.clone();
        *after
            .heartbeats
            .entry(heartbeat.member.clone())
            .or_default() += 1;
        for (member, heartbeats) in &heartbeat.suspects {
            if after.heartbeats.get(member) == Some(heartbeats) && *member != heartbeat.member {
                after.remove(member);
            }
        }
        after.release(&heartbeat.member, |number| {
            heartbeat.released.contains(&number)
        });
        after.acquire(&heartbeat.member, partitions.unwrap_or_default());
        after
    }

    /// Returns the state without a member.
    pub(crate) fn without(&self, member: &str) -> Self {
        let mut after = self.clone();
        after.remove(member);
        after
    }

    /// Returns the state with a new term of a partition, which makes its holder start over. `None` if there is no
    /// holder.
    pub(crate) fn restarted(&self, partition: u32) -> Option<Self> {
        let mut after = self.clone();
        let lease = after.leases.get_mut(&partition)?;
        lease.holder.as_ref()?;
        lease.term += 1;
        Some(after)
    }

    /// Returns the partitions that a member holds, with their terms.
    pub(crate) fn held(&self, member: &str) -> BTreeMap<u32, u64> {
        let leases = self.leases.iter();
        leases
            .filter(|(_, lease)| lease.holder.as_deref() == Some(member))
            .map(|(number, lease)| (*number, lease.term))
            .collect()
    }

    /// Returns the partitions beyond a member's share: the last ones.
    pub(super) fn surplus(&self, member: &str, partitions: u32) -> Vec<u32> {
        let held = self.held(member).into_keys();
        held.skip(self.share(member, partitions)).collect()
    }

    /// Returns the fair share of a member. Members that hold the most get the remainder, so that as few leases as
    /// possible move.
    fn share(&self, member: &str, partitions: u32) -> usize {
        let (count, members) = (partitions as usize, self.heartbeats.len().max(1));
        let names = self.heartbeats.keys();
        let mut order: Vec<(usize, &String)> = names.map(|key| (self.count(key), key)).collect();
        order.sort_by(|(one, name), (other, next)| other.cmp(one).then(name.cmp(next)));
        let rank = order.iter().position(|(_, name)| *name == member);
        let has_more = rank.is_some_and(|rank| rank < count % members);
        count / members + usize::from(has_more)
    }

    fn count(&self, member: &str) -> usize {
        let holders = self.leases.values().map(|lease| lease.holder.as_deref());
        holders.filter(|holder| *holder == Some(member)).count()
    }

    /// Acquires free leases up to the share.
    fn acquire(&mut self, member: &str, partitions: u32) {
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
        self.heartbeats.remove(member);
        self.release(member, |_| true);
    }

    /// Releases leases of a member. The term stays, so that the next holder gets a higher one.
    fn release(&mut self, member: &str, is_free: impl Fn(u32) -> bool) {
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

    fn heartbeat(member: &str) -> Heartbeat {
        Heartbeat {
            member: member.to_owned(),
            ..Heartbeat::default()
        }
    }

    fn after_heartbeat_of(members: &Members, member: &str, count: u32) -> Members {
        members.after_heartbeat(&heartbeat(member), Some(count))
    }

    /// A heartbeat that also releases the surplus, as from a member without running turns.
    fn settle(members: &Members, member: &str, count: u32) -> Members {
        let after = after_heartbeat_of(members, member, count);
        let released = after.surplus(member, count).into_iter().collect();
        let heartbeat = Heartbeat {
            released,
            ..heartbeat(member)
        };
        after.after_heartbeat(&heartbeat, Some(count))
    }

    fn counts(members: &Members) -> Vec<usize> {
        let names = members.heartbeats.keys();
        names.map(|member| members.count(member)).collect()
    }

    #[test]
    fn member_is_removed_only_without_new_heartbeats() {
        let members = after_heartbeat_of(&Members::default(), "a", 2);
        let suspects = |heartbeats| Heartbeat {
            suspects: vec![("a".to_owned(), heartbeats)],
            ..heartbeat("b")
        };
        let alive = after_heartbeat_of(&members, "a", 2);
        let alive = alive.after_heartbeat(&suspects(1), Some(2));
        assert_eq!(counts(&alive), [2, 0]);
        let dead = members.after_heartbeat(&suspects(1), Some(2));
        assert_eq!(counts(&dead), [2]);
        assert_eq!(dead.held("b"), [(0, 2), (1, 2)].into());
    }

    #[test]
    fn released_lease_within_the_share_gets_a_new_term() {
        let members = after_heartbeat_of(&Members::default(), "a", 2);
        let one = Heartbeat {
            released: [1].into(),
            ..heartbeat("a")
        };
        let after = members.after_heartbeat(&one, Some(2));
        assert_eq!(after.held("a"), [(0, 1), (1, 2)].into());
        let shared = after_heartbeat_of(&members, "b", 2).after_heartbeat(&one, Some(2));
        assert_eq!(shared.held("a"), [(0, 1)].into());
        // A member that does not know the number of partitions acquires none and keeps its own.
        let blind = members.after_heartbeat(&heartbeat("a"), None);
        assert_eq!(blind.leases, members.leases);
    }

    /// Shares become fair after a few heartbeats of all members, whatever happened before; no partition has two
    /// holders, and terms never decrease.
    #[test]
    fn shares_become_fair_and_stay_stable() {
        for seed in 0..200 {
            let random = SeededRandom::new(seed);
            let count = 1 + random.below(12) as u32;
            let mut members = Members::default();
            for _ in 0..60 {
                let member = random.below(6).to_string();
                let before = members.clone();
                members = match random.below(5) {
                    0 => members.without(&member),
                    1 => after_heartbeat_of(&members, &member, count),
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
            members = after_heartbeat_of(&members, "0", count);
            let names: Vec<String> = members.heartbeats.keys().cloned().collect();
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
