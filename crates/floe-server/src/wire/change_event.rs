//! The event that AWS Lambda makes of change records of a table: JSON of the wire in another wrapping.

use floe_store::Timestamp;
use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::table::StreamView;

use super::json::{Reader, Token};
use super::read::{Place, Read, Str, members, request};
use super::refusal::{Refusal, Result};
use super::value::Attributes;

members! {
    /// What Lambda sends.
    Event<'a> as "Event" {
        "Records" => records: Vec<Record<'a>>,
    }
}

members! {
    /// A change, and who tells of it.
    Record<'a> as "Record" {
        "eventID" => event_id: Str<'a>,
        "eventName" => event_name: Str<'a>,
        "eventSource" => event_source: Str<'a>,
        "dynamodb" => change: Change<'a>,
        "userIdentity" => identity: Identity<'a>,
    }
}

members! {
    /// A change.
    Change<'a> as "StreamRecord" {
        "ApproximateCreationDateTime" => created: Moment,
        "Keys" => keys: Attributes,
        "NewImage" => new_image: Attributes,
        "OldImage" => old_image: Attributes,
        "SequenceNumber" => sequence: Str<'a>,
        "SizeBytes" => size_bytes: i64,
        "StreamViewType" => view: Str<'a>,
    }
}

members! {
    /// Who made a change.
    Identity<'a> as "Identity" {
        "PrincipalId" => principal: Str<'a>,
        // Lambda writes these names small, DynamoDB large.
        "principalId" => principal_small: Str<'a>,
    }
}

/// Seconds since the epoch, with or without a part behind the point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Timestamp);

impl<'a> Read<'a> for Moment {
    fn class() -> String {
        "class java.util.Date".to_owned()
    }

    fn read(reader: &mut Reader<'a>, _: Place) -> Result<Self> {
        if reader.peek()? != Token::Number {
            return Err(Refusal::shape("a moment is no number"));
        }
        let seconds = reader.number()?.parse::<f64>().unwrap_or_default();
        // Converting saturates: no moment lies before the first.
        Ok(Self(Timestamp::from_millis((seconds * 1_000.0) as u64)))
    }
}

/// The change records of an event.
///
/// # Errors
///
/// Says what is wrong with it: it is no JSON, or none of a table's changes.
pub(crate) fn read_change_event(body: &[u8]) -> std::result::Result<Vec<ChangeRecord>, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the event is not UTF-8".to_owned())?;
    let event: Event<'_> = request(text).map_err(|refusal| match refusal {
        Refusal::Serialization(Some(reason)) => format!("the event cannot be read: {reason}"),
        _ => "the event is not JSON".to_owned(),
    })?;
    let records = event
        .records
        .ok_or("the event tells of no changes: it has no Records")?;
    let records = records.into_iter().zip(0..);
    records
        .map(|(record, place)| {
            let number: usize = place;
            change_record(record)
                .map_err(|reason| format!("a record cannot be read: {reason}: record={number}"))
        })
        .collect()
}

fn change_record(record: Record<'_>) -> std::result::Result<ChangeRecord, String> {
    if record.event_source.as_deref() != Some("aws:dynamodb") {
        let source = record.event_source.unwrap_or_default();
        return Err(format!("it is none of DynamoDB: eventSource={source}"));
    }
    let change = record.change.ok_or("it has no change")?;
    let identity = record.identity.unwrap_or_default();
    let principal = identity.principal.or(identity.principal_small);
    Ok(ChangeRecord {
        event_id: record.event_id.unwrap_or_default().into_owned(),
        kind: kind(&record.event_name.unwrap_or_default())?,
        keys: image(change.keys)?.unwrap_or_default(),
        old_image: image(change.old_image)?,
        new_image: image(change.new_image)?,
        sequence: change
            .sequence
            .ok_or("it has no SequenceNumber")?
            .into_owned(),
        size_bytes: usize::try_from(change.size_bytes.unwrap_or_default()).unwrap_or_default(),
        view: view(&change.view.unwrap_or_default())?,
        // Without it nothing is known, and as long ago as can be is what asks for most care.
        created: change
            .created
            .map_or(Timestamp::default(), |Moment(created)| created),
        identity: (principal.as_deref() == Some("dynamodb.amazonaws.com"))
            .then_some(ServiceIdentity::Expiry),
    })
}

fn image(read: Option<Attributes>) -> std::result::Result<Option<floe_store::Item>, String> {
    match read {
        Some(Attributes {
            fault: Some(fault), ..
        }) => Err(format!("an image holds what no item can: {fault:?}")),
        read => Ok(read.map(|attributes| attributes.item)),
    }
}

fn kind(name: &str) -> std::result::Result<ChangeKind, String> {
    let kinds = [ChangeKind::Insert, ChangeKind::Modify, ChangeKind::Remove];
    let found = kinds.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| format!("nothing that happens to an item: eventName={name}"))
}

fn view(name: &str) -> std::result::Result<StreamView, String> {
    let views = [
        StreamView::KeysOnly,
        StreamView::NewImage,
        StreamView::OldImage,
        StreamView::NewAndOldImages,
    ];
    let found = views.into_iter().find(|view| view.as_str() == name);
    found.ok_or_else(|| format!("no view of a stream: StreamViewType={name}"))
}

#[cfg(test)]
mod tests {
    use floe_store::Value;

    use super::*;

    /// As AWS documents it, and with what it documents elsewhere.
    const EVENT: &str = r#"{"Records":[
        {"eventID":"1","eventName":"INSERT","eventVersion":"1.0","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
         "dynamodb":{"Keys":{"Id":{"N":"101"}},
            "NewImage":{"Message":{"S":"New item!"},"Id":{"N":"101"},"L":{"L":[{"B":"AAE="},{"NULL":true}]}},
            "ApproximateCreationDateTime":1479499740,
            "SequenceNumber":"111","SizeBytes":26,"StreamViewType":"NEW_AND_OLD_IMAGES"},
         "eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/t/stream/2015-06-27T00:48:05.899"},
        {"eventID":"2","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
         "dynamodb":{"Keys":{"Id":{"N":"101"}},"OldImage":{"Id":{"N":"101"}},
            "ApproximateCreationDateTime":1.47949974025E9,
            "SequenceNumber":"4421584500000000017450439091","SizeBytes":38,"StreamViewType":"NEW_AND_OLD_IMAGES"},
         "userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"}}]}"#;

    #[test]
    fn an_event_is_read() {
        let records = read_change_event(EVENT.as_bytes()).unwrap();
        let [made, expired] = &records[..] else {
            panic!("{records:?}");
        };
        assert_eq!(
            (made.kind, made.sequence.as_str()),
            (ChangeKind::Insert, "111")
        );
        assert_eq!(made.created, Timestamp::from_millis(1_479_499_740_000));
        let image = made.new_image.as_ref().unwrap();
        assert_eq!(image.get("Message").unwrap().as_s(), Some("New item!"));
        let list = image.get("L").unwrap().as_l().unwrap();
        assert_eq!(list, [Value::B(vec![0, 1]), Value::Null]);
        assert_eq!(
            (made.identity, made.view),
            (None, StreamView::NewAndOldImages)
        );
        assert_eq!(expired.identity, Some(ServiceIdentity::Expiry));
        assert_eq!(expired.kind, ChangeKind::Remove);
        assert_eq!(expired.created, Timestamp::from_millis(1_479_499_740_250));
        assert!(expired.new_image.is_none() && expired.old_image.is_some());
        assert_eq!(read_change_event(br#"{"Records":[]}"#).unwrap(), []);
    }

    #[test]
    fn what_is_no_event_is_told() {
        let record =
            |text: &str| format!(r#"{{"Records":[{{"eventSource":"aws:dynamodb"{text}}}]}}"#);
        let change =
            |text: &str| record(&format!(r#","eventName":"INSERT","dynamodb":{{{text}}}"#));
        for (body, expected) in [
            (String::new(), "the event is not JSON"),
            ("{\"Records\":[".to_owned(), "the event is not JSON"),
            ("[]".to_owned(), "the event is not JSON"),
            (
                "{}".to_owned(),
                "the event tells of no changes: it has no Records",
            ),
            (
                r#"{"Records":7}"#.to_owned(),
                "the event cannot be read: Unexpected field type",
            ),
            (
                r#"{"Records":[{"eventSource":"aws:sqs"}]}"#.to_owned(),
                "a record cannot be read: it is none of DynamoDB: eventSource=aws:sqs: record=0",
            ),
            (
                record(""),
                "a record cannot be read: it has no change: record=0",
            ),
            (
                record(r#","eventName":"MERGE","dynamodb":{}"#),
                "a record cannot be read: nothing that happens to an item: eventName=MERGE: record=0",
            ),
            (
                change(""),
                "a record cannot be read: it has no SequenceNumber: record=0",
            ),
            (
                change(r#""SequenceNumber":"1""#),
                "a record cannot be read: no view of a stream: StreamViewType=: record=0",
            ),
            (
                change(r#""NewImage":{"a":{}}"#),
                "a record cannot be read: an image holds what no item can: Empty: record=0",
            ),
        ] {
            assert_eq!(read_change_event(body.as_bytes()).unwrap_err(), expected);
        }
        let not_text = read_change_event(&[0xff]).unwrap_err();
        assert_eq!(not_text, "the event is not UTF-8");
    }
}
