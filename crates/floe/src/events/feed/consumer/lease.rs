//! How the members of a group are stored: `$ReaderGroup-<group>` in the index table.
//!
//! One small item for a group, which each heartbeat replaces under the condition that it is as it was read.

use serde_json::{Map, Value, json};

use crate::delivery::{Lease, Members};
use crate::events::feed::kept::State;

impl State for Members {
    const CATEGORY: &'static str = "$ReaderGroup";
    /// The name of the group.
    type Id = str;
    const EVENT_TYPE: &'static str = "Shared";
    const WHAT: &'static str = "the members of a group";

    fn write(&self) -> Value {
        let leases = self.leases.iter();
        let leases: Map<String, Value> = leases
            .map(|(number, lease)| {
                let json = json!({ "holder": lease.holder, "term": lease.term });
                (number.to_string(), json)
            })
            .collect();
        json!({ "members": self.heartbeats, "leases": leases })
    }

    fn read(json: &Value) -> Option<Self> {
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
        Some(Self {
            heartbeats: beats
                .map(|(member, beats)| Some((member.clone(), beats.as_u64()?)))
                .collect::<Option<_>>()?,
            leases: leases.map(lease).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Heartbeat;
    use crate::events::Event;
    use crate::events::feed::kept::Kept;

    const SHARED: &str = Members::EVENT_TYPE;

    fn beaten(members: &Members, member: &str, partitions: u32) -> Members {
        let beat = Heartbeat {
            member: member.to_owned(),
            ..Heartbeat::default()
        };
        members.after_heartbeat(&beat, Some(partitions))
    }

    #[test]
    fn members_are_read_as_they_were_written() {
        let members = beaten(&Members::default(), "a", 2);
        let members = beaten(&members, "b", 2).without("b");
        let data = Kept(members.clone()).encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"leases":{"0":{"holder":"a","term":1},"1":{"holder":"a","term":1}},"members":{"a":1}}"#
        );
        assert_eq!(Kept::decode(SHARED, &data).unwrap(), Some(Kept(members)));
        let free = r#"{"leases":{"0":{"holder":null,"term":7}},"members":{}}"#;
        let Kept(free) = Kept::<Members>::decode(SHARED, free.as_bytes())
            .unwrap()
            .unwrap();
        assert_eq!(beaten(&free, "a", 1).held("a"), [(0, 8)].into());
        assert!(Kept::<Members>::decode(SHARED, b"[]").is_err());
        assert_eq!(Kept::<Members>::decode("Other", b"[]").unwrap(), None);
    }
}
