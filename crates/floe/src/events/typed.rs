//! Events as types of a program: the variants of an enum, each with the name of its event type.
//!
//! [`Event`] is derived. Stored events are distinguished by the name of their type, so an enum may grow: programs that
//! do not know a type skip it or reject it, as [`Unknown`] determines. For events independent of their types see
//! [`event`](super::event).

use super::event::EventData;
use crate::error::{Error, ErrorKind, Result};

/// The events of a category of streams: an enum with a variant for each event type.
///
/// `#[derive(Event)]` implements it; its attributes are documented [there](macro@crate::Event).
///
/// ```
/// use floe::Event;
///
/// #[derive(Debug, PartialEq, Event)]
/// enum CartEvent {
///     ItemAdded { sku: String, quantity: u32 },
///     CheckedOut,
/// }
///
/// # fn main() -> Result<(), floe::Error> {
/// let event = CartEvent::ItemAdded { sku: "tea".to_owned(), quantity: 2 };
/// assert_eq!(event.event_type(), "ItemAdded");
/// assert_eq!(event.encode()?, br#"{"sku":"tea","quantity":2}"#);
///
/// let data = br#"{"sku":"tea","quantity":2}"#;
/// assert_eq!(CartEvent::decode("ItemAdded", data)?, Some(event));
/// assert_eq!(CartEvent::decode("CheckedOut", b"")?, Some(CartEvent::CheckedOut));
/// assert_eq!(CartEvent::decode("GiftWrapped", b"{}")?, None);
/// # Ok(())
/// # }
/// ```
///
/// Enums change, but stored events do not. Aliases, defaults and upcasters decode old events as new ones:
///
/// ```
/// use floe::Event;
/// use floe::model::Json;
///
/// #[derive(Debug, PartialEq, Event)]
/// #[event(rename_all = "camelCase")]
/// enum CartEvent {
///     #[event(alias = "Added", version = 2, upcast(1 = with_quantity))]
///     ItemAdded {
///         #[event(rename = "sku")]
///         product: String,
///         quantity: u32,
///         #[event(default)]
///         gift_wrapped: bool,
///     },
///     ItemRemoved { sku: String },
///     #[event(name = "CheckedOut")]
///     Done,
/// }
///
/// /// Version 1 had no quantity, which was always one.
/// fn with_quantity(mut body: Json) -> Result<Json, String> {
///     let fields = body.as_object_mut().ok_or("not an object")?;
///     fields.insert("quantity".to_owned(), 1.into());
///     Ok(body)
/// }
///
/// # fn main() -> Result<(), floe::Error> {
/// let event = CartEvent::ItemAdded { product: "tea".to_owned(), quantity: 1, gift_wrapped: false };
/// assert_eq!(event.event_type(), "ItemAdded.v2");
/// assert_eq!(event.encode()?, br#"{"sku":"tea","quantity":1,"giftWrapped":false}"#);
/// assert_eq!(CartEvent::decode("Added", br#"{"sku":"tea"}"#)?, Some(event));
/// assert_eq!(CartEvent::Done.event_type(), "CheckedOut");
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an enum of events",
    note = "derive it: `#[derive(floe::Event)]`"
)]
pub trait Event: Sized + Send + Sync + 'static {
    /// Returns the stored name of its type.
    fn event_type(&self) -> &'static str;

    /// Encodes the body as JSON; empty for a type without content.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if a field cannot be represented in JSON.
    fn encode(&self) -> Result<Vec<u8>>;

    /// Decodes an event from its stored type and body; `None` if the enum has no such type.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if the body does not match the type. The message contains the field.
    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>>;
}

/// The handling of stored events of unknown types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Unknown {
    /// Skips them.
    #[default]
    Skip,
    /// Returns the error [`InvalidEvent`](ErrorKind::InvalidEvent).
    Refuse,
}

/// Metadata of events besides their bodies, for all events of an append.
///
/// ```
/// use floe::events::Metadata;
///
/// let metadata = Metadata::new().correlation("request-7").causation("message-12");
/// assert_eq!(metadata.correlation_id.as_deref(), Some("request-7"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metadata {
    /// The metadata, usually JSON.
    pub meta: Vec<u8>,
    /// The correlation id, shared by all consequences of one request.
    pub correlation_id: Option<String>,
    /// The causation id: the cause of the events.
    pub causation_id: Option<String>,
}

impl Metadata {
    /// Creates empty metadata.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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

/// Encodes an event with its metadata.
pub(crate) fn to_data<E: Event>(event: &E, metadata: &Metadata) -> Result<EventData> {
    Ok(EventData {
        event_type: event.event_type().to_owned(),
        data: event.encode()?,
        meta: metadata.meta.clone(),
        correlation_id: metadata.correlation_id.clone(),
        causation_id: metadata.causation_id.clone(),
    })
}

/// Decodes a stored event; `None` to skip it.
pub(crate) fn of_data<E: Event>(stored: &EventData, unknown: Unknown) -> Result<Option<E>> {
    let event = E::decode(&stored.event_type, &stored.data)?;
    if event.is_none() && unknown == Unknown::Refuse {
        let message = format!(
            "the program does not know this event type: type={}",
            stored.event_type
        );
        return Err(Error::new(ErrorKind::InvalidEvent, message));
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Ping;

    impl Event for Ping {
        fn event_type(&self) -> &'static str {
            "Ping"
        }

        fn encode(&self) -> Result<Vec<u8>> {
            Ok(b"{}".to_vec())
        }

        fn decode(event_type: &str, _: &[u8]) -> Result<Option<Self>> {
            Ok((event_type == "Ping").then_some(Self))
        }
    }

    #[test]
    fn events_are_appended_with_metadata() {
        let metadata = Metadata::new()
            .meta("m")
            .correlation("request-7")
            .causation("message-12");
        let expected = EventData::new("Ping", "{}")
            .meta("m")
            .correlation("request-7")
            .causation("message-12");
        assert_eq!(to_data(&Ping, &metadata), Ok(expected));
        let plain = to_data(&Ping, &Metadata::new());
        assert_eq!(plain, Ok(EventData::new("Ping", "{}")));
    }

    #[test]
    fn unknown_types_are_skipped_or_rejected() {
        let read = |event_type: &str, unknown| {
            of_data::<Ping>(&EventData::new(event_type, ""), unknown).map_err(|e| e.to_string())
        };
        assert_eq!(read("Ping", Unknown::Refuse), Ok(Some(Ping)));
        assert_eq!(read("Pong", Unknown::default()), Ok(None));
        let error = "the program does not know this event type: type=Pong";
        assert_eq!(read("Pong", Unknown::Refuse), Err(error.to_owned()));
    }
}
