//! Events as they are written and read, independent of their meaning.

use floe_store::Timestamp;

/// An event to append.
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
    /// The event type.
    pub event_type: String,
    /// The body; may be empty.
    pub data: Vec<u8>,
    /// Metadata; usually empty.
    pub meta: Vec<u8>,
    /// The correlation id, shared by all consequences of one request.
    pub correlation_id: Option<String>,
    /// The causation id: the cause of the event.
    pub causation_id: Option<String>,
}

impl EventData {
    /// Creates an event of this type.
    pub fn new(event_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self {
            event_type: event_type.into(),
            data: data.into(),
            ..Self::default()
        }
    }

    setters! {
        /// Sets the metadata.
        pub fn meta(meta: impl Into<Vec<u8>>) => meta = meta.into();

        /// Sets the correlation id.
        pub fn correlation(id: impl Into<String>) => correlation_id = Some(id.into());

        /// Sets the causation id.
        pub fn causation(id: impl Into<String>) => causation_id = Some(id.into());
    }
}

/// An event that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The index in the stream, starting at 0. For an unfold: the version of the stream it was created from.
    pub index: u64,
    /// When it was appended.
    pub time: Timestamp,
    /// What was appended.
    pub event: EventData,
    /// Whether it is an unfold instead of an event.
    pub is_unfold: bool,
}
