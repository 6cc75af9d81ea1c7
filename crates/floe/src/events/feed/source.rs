//! Converts a change record of an events table into the span of events that the change appended.
//!
//! Every event enters its stream through the Tip, so the records of Tips contain everything. A record has the number
//! of appended events (`a`): the last `a` types in its list (`c`), up to the version of the stream (`n`).
//!
//! Records without new events are skipped:
//!
//! - an item that was removed for any reason;
//! - an item that is not a Tip: its events were moved there from the Tip;
//! - a Tip without appended events: unfolds were replaced, or old events pruned;
//! - an internal stream, whose name starts with `$`: the feed does not contain itself.

use floe_store::op::{ChangeKind, ChangeRecord};
use floe_store::{Item, Name, Text, Value};

use super::span::Span;
use crate::error::{Error, ErrorKind, Result};
use crate::events::keys::StreamName;
use crate::events::stored::{APPENDED, EVENT_TYPES, INDEX, NEXT, STREAM, TIP_INDEX};

/// Returns the events that a change appended; `None` if it appended none that belong into the feed.
///
/// # Errors
///
/// [`Table`](ErrorKind::Table) if the table's records have no new images, and
/// [`InvalidEvent`](ErrorKind::InvalidEvent) if the image is not an item of a stream.
pub fn span_of_change(record: &ChangeRecord) -> Result<Option<Span>> {
    if record.kind == ChangeKind::Remove {
        return Ok(None);
    }
    let Some(image) = &record.new_image else {
        let message = format!(
            "the change stream of the events table must contain new images: view={:?} sequence={}",
            record.view, record.sequence
        );
        return Err(Error::new(ErrorKind::Table, message));
    };
    span_of_image(image).map_err(|reason| {
        let facts: String = [STREAM, INDEX, NEXT, APPENDED]
            .iter()
            .filter_map(|name| Some(format!(" {name}={:?}", image.get(name)?)))
            .collect();
        let message = format!(
            "invalid change record of an events table, {reason}: sequence={}{facts}",
            record.sequence
        );
        Error::new(ErrorKind::InvalidEvent, message)
    })
}

/// As [`span_of_change`], for an item. Returns only the reason of a failure.
fn span_of_image(image: &Item) -> Result<Option<Span>, String> {
    let name = image.get(&STREAM).and_then(Value::as_s);
    let name = name.ok_or("no stream name")?;
    if number(image, &INDEX)? != Some(TIP_INDEX) || name.starts_with('$') {
        return Ok(None);
    }
    let appended = number(image, &APPENDED)?.unwrap_or_default();
    if appended == 0 {
        return Ok(None);
    }
    let next = number(image, &NEXT)?.ok_or("no version")?;
    let types = image
        .get(&EVENT_TYPES)
        .and_then(Value::as_l)
        .unwrap_or_default();
    let skipped = usize::try_from(appended)
        .ok()
        .and_then(|appended| types.len().checked_sub(appended));
    let (Some(skipped), Some(start)) = (skipped, next.checked_sub(appended)) else {
        return Err("fewer events than were appended".to_owned());
    };
    let types: Option<Vec<Text>> = types
        .iter()
        .skip(skipped)
        .map(|event_type| event_type.as_s().map(Text::from))
        .collect();
    let types = types.ok_or("an event type is not text")?;
    let stream = StreamName::parse(name).map_err(|_| "the stream name has no category")?;
    Ok(Some(Span::new(stream, start, types)))
}

fn number(image: &Item, name: &Name) -> Result<Option<u64>, String> {
    match image.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_n().and_then(|number| number.to_u64()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name} is not a whole number")),
        },
    }
}

#[cfg(test)]
mod tests {
    use floe_store::Number;
    use floe_store::Timestamp;
    use floe_store::env::SeededRandom;
    use floe_store::op::ServiceIdentity;
    use floe_store::table::StreamView;

    use super::*;
    use crate::events::EventData;
    use crate::events::changes::{Change, Guard};
    use crate::events::codec::Compression;
    use crate::events::compile::StreamAppend;
    use crate::events::limits::TipLimits;
    use crate::events::position::StreamPosition;
    use crate::events::stored::{Batch, StoredEvent};

    fn tip(stream: &str, types: &[&str], next: u64, appended: u64) -> Item {
        let events = types.iter().map(|event_type| {
            let event = EventData::new(*event_type, []);
            StoredEvent::new(event, Timestamp::default(), Compression::None)
        });
        let batch = Batch {
            stream: StreamName::parse(stream).unwrap(),
            index: TIP_INDEX,
            next,
            events: events.collect(),
            unfolds: Vec::new(),
            appended,
            calved_bytes: 0,
            etag: None,
        };
        batch.into_item()
    }

    fn record(kind: ChangeKind, new_image: Option<Item>) -> ChangeRecord {
        ChangeRecord {
            event_id: "e".to_owned(),
            kind,
            keys: Item::new(),
            old_image: None,
            new_image,
            sequence: "7".to_owned(),
            size_bytes: 0,
            view: StreamView::NewImage,
            created: Timestamp::default(),
            identity: None,
        }
    }

    fn modified(image: Item) -> Result<Option<Span>> {
        span_of_change(&record(ChangeKind::Modify, Some(image)))
    }

    fn span(stream: &str, start: u64, types: &[&str]) -> Span {
        let stream = StreamName::parse(stream).unwrap();
        Span::new(stream, start, types.iter().copied())
    }

    #[test]
    fn span_has_the_last_types_of_the_tip() {
        let image = tip("Cart-1", &["A", "B", "C"], 9, 2);
        let expected = span("Cart-1", 7, &["B", "C"]);
        assert_eq!(modified(image).unwrap(), Some(expected));
        let image = tip("Cart-1", &["A"], 1, 1);
        let inserted = span_of_change(&record(ChangeKind::Insert, Some(image))).unwrap();
        assert_eq!(inserted, Some(span("Cart-1", 0, &["A"])));
    }

    #[test]
    fn records_without_new_events_are_skipped() {
        let calf = {
            let mut calf = tip("Cart-1", &["A"], 1, 1);
            calf.insert(INDEX, Number::from(0_u64));
            calf
        };
        let without_count = {
            let mut tip = tip("Cart-1", &["A"], 1, 1);
            tip.remove(&APPENDED);
            tip
        };
        for image in [
            calf,
            without_count,
            tip("Cart-1", &["A"], 1, 0),
            tip("$AppendsEpoch-0_1", &["Ingested"], 1, 1),
        ] {
            assert_eq!(modified(image).unwrap(), None);
        }
        let expired = ChangeRecord {
            identity: Some(ServiceIdentity::Expiry),
            ..record(ChangeKind::Remove, None)
        };
        assert_eq!(span_of_change(&expired).unwrap(), None);
    }

    #[test]
    fn invalid_records_are_rejected_with_the_reason() {
        let prefix = "invalid change record of an events table";
        let check = |image: Item, reason: &str| {
            let error = modified(image).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidEvent);
            let message = error.to_string();
            let expected = format!("{prefix}, {reason}: sequence=7");
            assert!(message.starts_with(&expected), "{message}");
        };
        check(Item::new(), "no stream name");
        let fewer = "fewer events than were appended";
        check(tip("Cart-1", &["A"], 2, 2), fewer);
        check(tip("Cart-1", &["A", "B"], 1, 2), fewer);
        let nameless = tip("Cart-1", &["A"], 1, 1).with(STREAM, "Cart");
        check(nameless, "the stream name has no category");
        let untyped = tip("Cart-1", &["A"], 1, 1).with(EVENT_TYPES, Value::L(vec![Value::Null]));
        check(untyped, "an event type is not text");
        let uncounted = tip("Cart-1", &["A"], 1, 1).with(APPENDED, "1");
        check(uncounted, "a is not a whole number");
        let error = span_of_change(&record(ChangeKind::Insert, None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Table);
        assert_eq!(
            error.to_string(),
            "the change stream of the events table must contain new images: view=NewImage sequence=7"
        );
    }

    /// Appends of any size, with Tips that calve at any time: the spans of the images reassemble the stream.
    #[test]
    fn spans_of_all_writes_reassemble_the_stream() {
        for seed in 0..100 {
            let random = SeededRandom::new(seed);
            let stream = StreamName::parse("Cart-1").unwrap();
            let limits = TipLimits {
                events_max: Some(1 + random.below(6) as usize),
                ..TipLimits::default()
            };
            let (mut position, mut types): (Option<StreamPosition>, Vec<String>) =
                (None, Vec::new());
            let mut read: Vec<Text> = Vec::new();
            for write in 0..20 {
                let new: Vec<String> = (0..random.below(5))
                    .map(|number| format!("t{write}-{number}"))
                    .collect();
                let events = new.iter().map(|event_type| {
                    let event = EventData::new(event_type.as_str(), []);
                    StoredEvent::new(event, Timestamp::default(), Compression::None)
                });
                let change = Change {
                    events: events.collect(),
                    unfolds: Vec::new(),
                    guard: Guard::Version,
                };
                let etag = Text::from("e");
                let append =
                    StreamAppend::new("t", &stream, position.as_ref(), &change, &limits, etag);
                let after = append.unwrap().after;
                let image = Batch {
                    stream: stream.clone(),
                    index: TIP_INDEX,
                    next: after.version,
                    events: after.tip.clone(),
                    unfolds: Vec::new(),
                    appended: new.len() as u64,
                    calved_bytes: after.calved_bytes,
                    etag: None,
                };
                if let Some(span) = modified(image.into_item()).unwrap() {
                    assert_eq!(span.start, read.len() as u64);
                    read.extend(span.types);
                }
                types.extend(new);
                position = Some(after);
            }
            assert_eq!(read.iter().map(Text::as_str).collect::<Vec<_>>(), types);
        }
    }
}
