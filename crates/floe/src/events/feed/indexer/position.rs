//! How far an indexer has come in each shard of a change stream, as it is stored.
//!
//! One small item, `$IndexerPosition-<name>`, is replaced by each step, after what was read is in the epochs. Who dies
//! between the two reads some records again, and the epochs know them.

use serde_json::{Value, json};

use crate::delivery::Positions;
use crate::events::feed::kept::State;

impl State for Positions {
    const CATEGORY: &'static str = "$IndexerPosition";
    /// The name of the indexer.
    type Id = str;
    const EVENT_TYPE: &'static str = "Moved";
    const WHAT: &'static str = "the position of an indexer";

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
    use crate::delivery::Place;
    use crate::error::ErrorKind;
    use crate::events::Event;
    use crate::events::feed::kept::Kept;

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
        let positions = Kept(of([
            ("a", Place::After("007".to_owned())),
            ("b", Place::End),
            ("c", begun),
            ("d", Place::Begun(None)),
        ]));
        let data = positions.encode().unwrap();
        let text = r#"{"shards":{"a":{"after":"007"},"b":{"end":true},"c":{"begun":"7"},"d":{"begun":null}}}"#;
        assert_eq!(data, text.as_bytes());
        assert_eq!(
            Kept::<Positions>::decode(Positions::EVENT_TYPE, &data).unwrap(),
            Some(positions)
        );
        assert_eq!(Kept::<Positions>::decode("Other", &data).unwrap(), None);
        let error = Kept::<Positions>::decode(Positions::EVENT_TYPE, b"{}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    }
}
