//! The stored members of a group: `$ReaderGroup-<group>` in the index table.
//!
//! One small item for each group. A heartbeat replaces it, on the condition that it is unchanged since it was read.

use serde_json::{Map, Value, json};

use crate::delivery::{Lease, Members};
use crate::events::feed::stored_state::StoredState;

impl StoredState for Members {
    const CATEGORY: &'static str = "$ReaderGroup";
    /// The name of the group.
    type Id = str;
    const EVENT_TYPE: &'static str = "Shared";
    const DESCRIPTION: &'static str = "the members of a group";

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
        let heartbeats = json.get("members")?.as_object()?.iter();
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
            heartbeats: heartbeats
                .map(|(member, count)| Some((member.clone(), count.as_u64()?)))
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
    use crate::events::feed::stored_state::StateEvent;

    const EVENT_TYPE: &str = Members::EVENT_TYPE;

    fn after_heartbeat(members: &Members, member: &str, partitions: u32) -> Members {
        let heartbeat = Heartbeat {
            member: member.to_owned(),
            ..Heartbeat::default()
        };
        members.after_heartbeat(&heartbeat, Some(partitions))
    }

    #[test]
    fn members_round_trip() {
        let members = after_heartbeat(&Members::default(), "a", 2);
        let members = after_heartbeat(&members, "b", 2).without("b");
        let data = StateEvent(members.clone()).encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"leases":{"0":{"holder":"a","term":1},"1":{"holder":"a","term":1}},"members":{"a":1}}"#
        );
        assert_eq!(
            StateEvent::decode(EVENT_TYPE, &data).unwrap(),
            Some(StateEvent(members))
        );
        let free = r#"{"leases":{"0":{"holder":null,"term":7}},"members":{}}"#;
        let StateEvent(free) = StateEvent::<Members>::decode(EVENT_TYPE, free.as_bytes())
            .unwrap()
            .unwrap();
        assert_eq!(after_heartbeat(&free, "a", 1).held("a"), [(0, 8)].into());
        assert!(StateEvent::<Members>::decode(EVENT_TYPE, b"[]").is_err());
        assert_eq!(StateEvent::<Members>::decode("Other", b"[]").unwrap(), None);
    }
}
