//! Events as they are written and as they are read, before anybody knows what they mean.

use floe_store::Timestamp;

/// An event to be appended.
///
/// ```
/// use floe::events::EventData;
///
/// let event = EventData::new("ItemAdded", br#"{"sku":"tea"}"#).correlation("order-7");
/// assert_eq!(event.event_type, "ItemAdded");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventData {
    /// The name of its type.
    pub event_type: String,
    /// What it says; empty if its type says all.
    pub data: Vec<u8>,
    /// What is told besides; mostly nothing.
    pub meta: Vec<u8>,
    /// What it belongs to: the same for all that one request brought about.
    pub correlation_id: Option<String>,
    /// What brought it about.
    pub causation_id: Option<String>,
}

impl EventData {
    /// An event of this type.
    pub fn new(event_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self {
            event_type: event_type.into(),
            data: data.into(),
            ..Self::default()
        }
    }

    setters! {
        /// Tells something besides.
        pub fn meta(meta: impl Into<Vec<u8>>) => meta = meta.into();

        /// Says what it belongs to.
        pub fn correlation(id: impl Into<String>) => correlation_id = Some(id.into());

        /// Says what brought it about.
        pub fn causation(id: impl Into<String>) => causation_id = Some(id.into());
    }
}

/// An event that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Its place in the stream, from 0. Of an unfold: the version of the stream that it was made of.
    pub index: u64,
    /// When it was appended.
    pub time: Timestamp,
    /// What was appended.
    pub event: EventData,
    /// Whether it is no event but an unfold: a state that was kept beside the events.
    pub is_unfold: bool,
}
