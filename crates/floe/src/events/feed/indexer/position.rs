//! The stored position of an indexer in each shard of a change stream.
//!
//! One small item, `$IndexerPosition-<name>`, is replaced by each step after its records are in the epochs. After a
//! crash between the two, some records are read again, and the epochs drop the duplicates.

use serde_json::{Value, json};

use crate::delivery::ShardPositions;
use crate::events::feed::stored_state::StoredState;

impl StoredState for ShardPositions {
    const CATEGORY: &'static str = "$IndexerPosition";
    /// The name of the indexer.
    type Id = str;
    const EVENT_TYPE: &'static str = "Moved";
    const DESCRIPTION: &'static str = "the position of an indexer";

    fn write(&self) -> Value {
        json!({ "shards": self.to_json() })
    }

    fn read(json: &Value) -> Option<Self> {
        Self::from_json(json.get("shards")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::ShardPosition;
    use crate::error::ErrorKind;
    use crate::events::Event;
    use crate::events::feed::stored_state::StateEvent;

    fn of<const N: usize>(positions: [(&str, ShardPosition); N]) -> ShardPositions {
        ShardPositions(
            positions
                .map(|(shard, position)| (shard.to_owned(), position))
                .into(),
        )
    }

    #[test]
    fn positions_round_trip() {
        let begun = ShardPosition::Begun(Some("7".to_owned()));
        let positions = StateEvent(of([
            ("a", ShardPosition::After("007".to_owned())),
            ("b", ShardPosition::End),
            ("c", begun),
            ("d", ShardPosition::Begun(None)),
        ]));
        let data = positions.encode().unwrap();
        let text = r#"{"shards":{"a":{"after":"007"},"b":{"end":true},"c":{"begun":"7"},"d":{"begun":null}}}"#;
        assert_eq!(data, text.as_bytes());
        assert_eq!(
            StateEvent::<ShardPositions>::decode(ShardPositions::EVENT_TYPE, &data).unwrap(),
            Some(positions)
        );
        assert_eq!(
            StateEvent::<ShardPositions>::decode("Other", &data).unwrap(),
            None
        );
        let error =
            StateEvent::<ShardPositions>::decode(ShardPositions::EVENT_TYPE, b"{}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    }
}
