//! Events as a program knows them: the variants of an enum, each with the name of its type.
//!
//! [`Event`] is derived. What is stored is told apart by the name of the type, so an enum may grow: programs that do
//! not know a type skip it or refuse it, as [`Unknown`] says. Events before anybody knows what they mean are in
//! [`event`](super::event).

use super::event::EventData;
use crate::error::{Error, ErrorKind, Result};

/// What happened in the streams of a category: an enum with a variant for each type of event.
///
/// `#[derive(Event)]` implements it; the attributes are told [there](macro@crate::Event).
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
/// Enums change while the events stay. Names, defaults and upcasters make old events readable as the new ones:
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
/// /// The first version had no quantity: it was always one.
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
    /// The name of its type, as it is stored.
    fn event_type(&self) -> &'static str;

    /// What it says, as JSON; empty for a type that says nothing but its name.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when a part of it has no form in JSON.
    fn encode(&self) -> Result<Vec<u8>>;

    /// The event of a stored type and body; `None` if the type is not one of this enum.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when the body is not one of that type. The message tells where.
    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>>;
}

/// What becomes of stored events of a type that the program does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Unknown {
    /// They are passed over, as if they were not there.
    #[default]
    Skip,
    /// They are an error, [`InvalidEvent`](ErrorKind::InvalidEvent).
    Refuse,
}

/// What is told of events besides what they say, for all that are appended together.
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
    /// What is told besides, mostly as JSON.
    pub meta: Vec<u8>,
    /// What they belong to: the same for all that one request brought about.
    pub correlation_id: Option<String>,
    /// What brought them about.
    pub causation_id: Option<String>,
}

impl Metadata {
    /// Nothing besides.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Tells something besides.
        pub fn meta(meta: impl Into<Vec<u8>>) => meta = meta.into();

        /// Says what they belong to.
        pub fn correlation(id: impl Into<String>) => correlation_id = Some(id.into());

        /// Says what brought them about.
        pub fn causation(id: impl Into<String>) => causation_id = Some(id.into());
    }
}

/// The event as it is appended.
pub(crate) fn to_data<E: Event>(event: &E, metadata: &Metadata) -> Result<EventData> {
    Ok(EventData {
        event_type: event.event_type().to_owned(),
        data: event.encode()?,
        meta: metadata.meta.clone(),
        correlation_id: metadata.correlation_id.clone(),
        causation_id: metadata.causation_id.clone(),
    })
}

/// The event that was appended; `None` if it is one to skip.
pub(crate) fn of_data<E: Event>(stored: &EventData, unknown: Unknown) -> Result<Option<E>> {
    let event = E::decode(&stored.event_type, &stored.data)?;
    if event.is_none() && unknown == Unknown::Refuse {
        let message = format!(
            "the program does not know this type of event: type={}",
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
    fn events_are_appended_with_what_is_told_besides() {
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
    fn types_that_are_not_known_are_skipped_or_refused() {
        let read = |event_type: &str, unknown| {
            of_data::<Ping>(&EventData::new(event_type, ""), unknown).map_err(|e| e.to_string())
        };
        assert_eq!(read("Ping", Unknown::Refuse), Ok(Some(Ping)));
        assert_eq!(read("Pong", Unknown::default()), Ok(None));
        let error = "the program does not know this type of event: type=Pong";
        assert_eq!(read("Pong", Unknown::Refuse), Err(error.to_owned()));
    }
}
