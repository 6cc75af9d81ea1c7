//! Events are parsed as documented by AWS, and invalid ones are rejected with the reason.

use floe_store::json::{RecordForm, Writer, write_record};
use floe_store::op::{ChangeKind, ServiceIdentity};
use floe_store::table::StreamView;
use floe_store::{Timestamp, Value};

use super::*;

/// The documented example, extended with all documented value types.
const EVENT: &str = r#"{"Records":[
    {"eventID":"1","eventName":"INSERT","eventVersion":"1.0","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
     "dynamodb":{"Keys":{"Id":{"N":"101"}},
        "NewImage":{"Message":{"S":"New item!"},"Id":{"N":"101"},"L":{"L":[{"B":"AAE="},{"NULL":true}]},
            "Exact":{"N":"12345678901234567890123456789012345678"},"Tags":{"SS":["b","a"]},"M":{"M":{"x":{"BOOL":true}}},
            "Sizes":{"NS":["2","10"]},"Parts":{"BS":["AQ==","Ag=="]}},
        "ApproximateCreationDateTime":1479499740,
        "SequenceNumber":"111","SizeBytes":26,"StreamViewType":"NEW_AND_OLD_IMAGES"},
     "eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/t/stream/2015-06-27T00:48:05.899"},
    {"eventID":"2","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
     "dynamodb":{"Keys":{"Id":{"N":"101"}},"OldImage":{"Id":{"N":"101"}},
        "ApproximateCreationDateTime":1.47949974025E9,
        "SequenceNumber":"4421584500000000017450439091","SizeBytes":38,"StreamViewType":"NEW_AND_OLD_IMAGES"},
     "userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"}}]}"#;

#[test]
fn documented_event_is_parsed() {
    let changes = read_changes(EVENT.as_bytes()).unwrap();
    let [made, expired] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!((made.kind(), made.sequence()), (ChangeKind::Insert, "111"));
    assert_eq!((made.table(), expired.table()), ("t", ""));
    assert_eq!(made.time(), Timestamp::from_millis(1_479_499_740_000));
    let image = made.new_image().unwrap();
    assert_eq!(image.get("Message").unwrap().as_s(), Some("New item!"));
    let list = image.get("L").unwrap().as_l().unwrap();
    assert_eq!(list, [Value::B(vec![0, 1]), Value::Null]);
    let exact = image.get("Exact").unwrap().as_n().unwrap();
    assert_eq!(exact.to_string(), "12345678901234567890123456789012345678");
    assert_eq!(made.record().identity, None);
    assert_eq!(made.record().view, StreamView::NewAndOldImages);
    assert_eq!(expired.record().identity, Some(ServiceIdentity::Expiry));
    assert_eq!(expired.kind(), ChangeKind::Remove);
    assert_eq!(expired.time(), Timestamp::from_millis(1_479_499_740_250));
    assert!(expired.new_image().is_none() && expired.old_image().is_some());
    assert_eq!(read_changes(br#"{"Records":[]}"#).unwrap(), []);
}

/// Written records parse to the same change.
#[test]
fn records_round_trip() {
    for change in read_changes(EVENT.as_bytes()).unwrap() {
        let mut written = Writer::default();
        write_record(&mut written, change.record(), &RecordForm::LAMBDA);
        let read = read_record(&mut Reader::new(&written.into_text()));
        assert_eq!(read.as_ref().map(|sent| &sent.record), Ok(change.record()));
    }
}

#[test]
fn invalid_events_are_rejected_with_the_path() {
    let record = |text: &str| format!(r#"{{"Records":[{{"eventSource":"aws:dynamodb"{text}}}]}}"#);
    let change = |text: &str| {
        let tail = r#""SequenceNumber":"1","StreamViewType":"NEW_IMAGE""#;
        record(&format!(
            r#","eventName":"INSERT","dynamodb":{{{text}{tail}}}"#
        ))
    };
    let image = |text: &str| change(&format!(r#""NewImage":{{"a":{text}}},"#));
    for (body, expected) in [
        (String::new(), "the event is not JSON: at=0"),
        ("[]".to_owned(), "the event has no Records"),
        ("{}".to_owned(), "the event has no Records"),
        (r#"{"Records":7}"#.to_owned(), "the event has no Records"),
        (
            r#"{"Records":[{"eventSource":"aws:sqs"}]}"#.to_owned(),
            "a record cannot be read, the record is not from DynamoDB: eventSource=aws:sqs at=Records[0]",
        ),
        (
            record(""),
            "a record cannot be read, the record has no member dynamodb: at=Records[0]",
        ),
        (
            record(r#","eventName":"MERGE","dynamodb":{}"#),
            "a record cannot be read, unknown event name: eventName=MERGE at=Records[0]",
        ),
        (
            record(r#","eventName":"INSERT","dynamodb":{}"#),
            "a record cannot be read, the record has no SequenceNumber: at=Records[0]",
        ),
        (
            record(r#","eventName":"INSERT","dynamodb":{"SequenceNumber":"1"}"#),
            "a record cannot be read, unknown stream view: StreamViewType= at=Records[0]",
        ),
        (
            change(r#""ApproximateCreationDateTime":"x","#),
            "a record cannot be read, expected a number of seconds: at=Records[0].dynamodb.ApproximateCreationDateTime",
        ),
        (
            image("{}"),
            "a record cannot be read, Supplied AttributeValue is empty, must contain exactly one of the supported datatypes: at=Records[0].dynamodb.NewImage.a",
        ),
        (
            image(r#"{"S":7}"#),
            "a record cannot be read, expected a string, found a number: at=Records[0].dynamodb.NewImage.a.S",
        ),
        (
            image(r#"{"X":"7"}"#),
            "a record cannot be read, Supplied AttributeValue is empty, must contain exactly one of the supported datatypes: at=Records[0].dynamodb.NewImage.a",
        ),
        (
            image(r#"{"N":"ten"}"#),
            "a record cannot be read, The parameter cannot be converted to a numeric value: ten at=Records[0].dynamodb.NewImage.a.N",
        ),
        (
            image(r#"{"SS":["a","a"]}"#),
            "a record cannot be read, One or more parameter values were invalid: Input collection [\"a\", \"a\"] contains duplicates. at=Records[0].dynamodb.NewImage.a.SS",
        ),
        (
            image(r#"{"B":"?"}"#),
            "a record cannot be read, the text is not base64: at=Records[0].dynamodb.NewImage.a.B",
        ),
    ] {
        let error = read_changes(body.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(read_changes(&[0xff]).is_err());
}
