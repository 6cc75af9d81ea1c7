//! How far an indexer has come in each shard of a change stream, as it is stored.
//!
//! One small item, `$IndexerPosition-<name>`, is replaced by each step, after what was read is in the epochs. Who dies
//! between the two reads some records again, and the epochs know them.

use serde_json::{Value, json};

use crate::delivery::Positions;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{Access, Decider, Event};

const MOVED: &str = "Moved";

impl Event for Positions {
    fn event_type(&self) -> &'static str {
        MOVED
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let json = json!({ "shards": self.to_json() });
        Ok(json.to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        if event_type != MOVED {
            return Ok(None);
        }
        let json: Option<Value> = serde_json::from_slice(data).ok();
        let shards = json.as_ref().and_then(|json| json.get("shards"));
        let read = shards.and_then(Self::from_json);
        read.map(Some).ok_or_else(|| {
            let data = String::from_utf8_lossy(data);
            let message = format!("the position of an indexer cannot be read: data={data}");
            Error::new(ErrorKind::InvalidEvent, message)
        })
    }
}

/// The streams that positions are kept in.
pub(super) enum IndexerPosition {}

impl Decider for IndexerPosition {
    const CATEGORY: &'static str = "$IndexerPosition";
    type Id = str;
    type Event = Positions;
    type State = Positions;

    fn initial() -> Positions {
        Positions::default()
    }

    fn evolve(_: Positions, event: &Positions) -> Positions {
        event.clone()
    }

    fn access() -> Access<Self> {
        Access::RollingState {
            to_snapshot: Positions::clone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Place;

    fn of<const N: usize>(places: [(&str, Place); N]) -> Positions {
        Positions(
            places
                .map(|(shard, place)| (shard.to_owned(), place))
                .into(),
        )
    }

    #[test]
    fn positions_are_read_as_they_were_written() {
        let begun = Place::Begun(Some("7".to_owned()));
        let positions = of([
            ("a", Place::After("007".to_owned())),
            ("b", Place::End),
            ("c", begun),
            ("d", Place::Begun(None)),
        ]);
        let data = positions.encode().unwrap();
        let text = r#"{"shards":{"a":{"after":"007"},"b":{"end":true},"c":{"begun":"7"},"d":{"begun":null}}}"#;
        assert_eq!(data, text.as_bytes());
        assert_eq!(Positions::decode(MOVED, &data).unwrap(), Some(positions));
        assert_eq!(Positions::decode("Other", &data).unwrap(), None);
        let error = Positions::decode(MOVED, b"{}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    }
}
