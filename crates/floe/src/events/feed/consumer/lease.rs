//! How the members of a group are stored: `$ReaderGroup-<group>` in the index table.
//!
//! One small item for a group, which each heartbeat replaces under the condition that it is as it was read.

use serde_json::{Map, Value, json};

use crate::delivery::{Lease, Members};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{Access, Decider, Event};

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
    use super::*;
    use crate::delivery::Beat;

    fn beaten(members: &Members, member: &str, partitions: u32) -> Members {
        let beat = Beat {
            member: member.to_owned(),
            ..Beat::default()
        };
        members.after(&beat, Some(partitions))
    }

    #[test]
    fn members_are_read_as_they_were_written() {
        let members = beaten(&Members::default(), "a", 2);
        let members = beaten(&members, "b", 2).without("b");
        let data = members.encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"leases":{"0":{"holder":"a","term":1},"1":{"holder":"a","term":1}},"members":{"a":1}}"#
        );
        assert_eq!(Members::decode(SHARED, &data).unwrap(), Some(members));
        let free = r#"{"leases":{"0":{"holder":null,"term":7}},"members":{}}"#;
        let free = Members::decode(SHARED, free.as_bytes()).unwrap().unwrap();
        assert_eq!(beaten(&free, "a", 1).held("a"), [(0, 8)].into());
        assert!(Members::decode(SHARED, b"[]").is_err());
        assert_eq!(Members::decode("Other", b"[]").unwrap(), None);
    }
}
