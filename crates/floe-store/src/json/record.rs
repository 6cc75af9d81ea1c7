//! Change records, in the form of the DynamoDB Streams API and of AWS Lambda events.

use super::decode::{DecodeError, decode_item, read_members};
use super::reader::{Malformed, Reader, Token};
use super::write::write_item;
use super::writer::Writer;
use crate::env::Timestamp;
use crate::error::ensure;
use crate::item::Item;
use crate::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use crate::table::StreamView;

/// The event source of the records.
const SOURCE: &str = "aws:dynamodb";

/// The principal that deletes expired items.
const EXPIRY: &str = "dynamodb.amazonaws.com";

/// The differences between the DynamoDB Streams API and AWS Lambda.
#[derive(Clone, Copy, Debug)]
pub struct RecordForm<'a> {
    /// The region, if records include it.
    pub region: Option<&'a str>,
    /// The member names for the id and the type of the service that made the change.
    pub identity: [&'static str; 2],
    /// Writes an image of the item.
    pub write_image: fn(&mut Writer, &Item),
}

impl RecordForm<'_> {
    /// The form that AWS Lambda passes to functions.
    pub const LAMBDA: RecordForm<'static> = RecordForm {
        region: None,
        identity: ["principalId", "type"],
        write_image: write_item,
    };
}

/// Writes a record as an object.
pub fn write_record(w: &mut Writer, record: &ChangeRecord, form: &RecordForm<'_>) {
    w.object(|w| {
        w.name("eventID").string(&record.event_id);
        w.name("eventName").string(record.kind.as_str());
        w.name("eventVersion").string("1.1");
        w.name("eventSource").string(SOURCE);
        if let Some(region) = form.region {
            w.name("awsRegion").string(region);
        }
        w.name("dynamodb")
            .object(|w| write_change(w, record, form.write_image));
        if let Some(ServiceIdentity::Expiry) = record.identity {
            let [id, kind] = form.identity;
            w.name("userIdentity").object(|w| {
                w.name(id).string(EXPIRY);
                w.name(kind).string("Service");
            });
        }
    });
}

fn write_change(w: &mut Writer, record: &ChangeRecord, write_image: fn(&mut Writer, &Item)) {
    write_timestamp(w.name("ApproximateCreationDateTime"), record.created);
    write_item(w.name("Keys"), &record.keys);
    for (name, image) in [
        ("NewImage", &record.new_image),
        ("OldImage", &record.old_image),
    ] {
        if let Some(item) = image {
            write_image(w.name(name), item);
        }
    }
    w.name("SequenceNumber").string(&record.sequence);
    w.name("SizeBytes").number(record.size_bytes);
    w.name("StreamViewType").string(record.view.as_str());
}

/// Writes a time in seconds since 1970, with decimals if there are any.
pub fn write_timestamp(w: &mut Writer, time: Timestamp) {
    let (secs, millis) = (time.as_secs(), time.as_millis() % 1000);
    if millis == 0 {
        w.number(secs);
    } else {
        w.number(format_args!("{secs}.{millis:03}"));
    }
}

/// A record and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRecord {
    /// The record.
    pub record: ChangeRecord,
    /// The ARN of the stream, which Lambda includes.
    pub source_arn: Option<String>,
}

/// Reads a record.
///
/// # Errors
///
/// Returns an error if the text is not a change record of DynamoDB.
pub fn read_record(reader: &mut Reader<'_>) -> Result<ReceivedRecord, DecodeError> {
    let mut members = Members::default();
    read_members(reader, |name, reader| {
        match name {
            "eventID" => members.event_id = text(reader)?,
            "eventName" => members.kind = text(reader)?,
            "eventSource" => members.source = text(reader)?,
            "eventSourceARN" => members.source_arn = text(reader)?,
            "dynamodb" => members.change = Some(change(reader)?),
            "userIdentity" => members.is_expiry = is_expiry(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    members
        .record()
        .map_err(|reason| DecodeError::here(reason, reader))
}

/// The parsed members of a record.
#[derive(Debug, Default)]
struct Members {
    event_id: Option<String>,
    kind: Option<String>,
    source: Option<String>,
    source_arn: Option<String>,
    change: Option<Change>,
    is_expiry: bool,
}

/// The parsed `dynamodb` member of a record.
#[derive(Debug, Default)]
struct Change {
    keys: Item,
    old_image: Option<Item>,
    new_image: Option<Item>,
    sequence: Option<String>,
    size_bytes: Option<usize>,
    view: Option<String>,
    /// Defaults to 1970: if the time is unknown, the oldest possible one is the safe assumption.
    created: Timestamp,
}

impl Members {
    fn record(self) -> Result<ReceivedRecord, String> {
        let source = self.source.unwrap_or_default();
        ensure(source == SOURCE, || {
            format!("the record is not from DynamoDB: eventSource={source}")
        })?;
        let change = self.change.ok_or("the record has no member dynamodb")?;
        let name = self.kind.unwrap_or_default();
        let kind = ChangeKind::from_name(&name)
            .ok_or_else(|| format!("unknown event name: eventName={name}"))?;
        let sequence = change.sequence.ok_or("the record has no SequenceNumber")?;
        let view = change.view.unwrap_or_default();
        let view = StreamView::from_name(&view)
            .ok_or_else(|| format!("unknown stream view: StreamViewType={view}"))?;
        let record = ChangeRecord {
            event_id: self.event_id.unwrap_or_default(),
            kind,
            keys: change.keys,
            old_image: change.old_image,
            new_image: change.new_image,
            sequence,
            size_bytes: change.size_bytes.unwrap_or_default(),
            view,
            created: change.created,
            identity: self.is_expiry.then_some(ServiceIdentity::Expiry),
        };
        let source_arn = self.source_arn;
        Ok(ReceivedRecord { record, source_arn })
    }
}

fn change(reader: &mut Reader<'_>) -> Result<Change, DecodeError> {
    let mut change = Change::default();
    read_members(reader, |name, reader| {
        match name {
            "Keys" => change.keys = decode_item(reader)?,
            "OldImage" => change.old_image = Some(decode_item(reader)?),
            "NewImage" => change.new_image = Some(decode_item(reader)?),
            "SequenceNumber" => change.sequence = text(reader)?,
            "SizeBytes" => change.size_bytes = number(reader)?.and_then(|text| text.parse().ok()),
            "StreamViewType" => change.view = text(reader)?,
            "ApproximateCreationDateTime" => change.created = time(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(change)
}

/// Whether the change was made by the service that deletes expired items. Lambda writes the member name in lower case,
/// DynamoDB in upper case.
fn is_expiry(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    let mut is_expiry = false;
    read_members(reader, |name, reader| {
        match name {
            "principalId" | "PrincipalId" => is_expiry |= text(reader)?.as_deref() == Some(EXPIRY),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(is_expiry)
}

/// Reads a string; skips anything else and returns `None`.
fn text(reader: &mut Reader<'_>) -> Result<Option<String>, Malformed> {
    match reader.peek()? {
        Token::String => Ok(Some(reader.string()?.into_owned())),
        _ => reader.skip().map(|()| None),
    }
}

/// Reads a number; skips anything else and returns `None`.
fn number<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Malformed> {
    match reader.peek()? {
        Token::Number => reader.number().map(Some),
        _ => reader.skip().map(|()| None),
    }
}

/// Reads seconds since the epoch, with or without a fraction.
fn time(reader: &mut Reader<'_>) -> Result<Timestamp, DecodeError> {
    let seconds = number(reader)?.and_then(|text| text.parse::<f64>().ok());
    let seconds =
        seconds.ok_or_else(|| DecodeError::here("expected a number of seconds", reader))?;
    // The conversion saturates: a negative time becomes 1970.
    Ok(Timestamp::from_millis((seconds * 1_000.0).round() as u64))
}
