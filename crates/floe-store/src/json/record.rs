//! Change records, as the API of DynamoDB Streams and the events of AWS Lambda have them.

use super::reader::{Malformed, Reader, Token};
use super::sound::{Unsound, read_members, sound_item};
use super::write::write_item;
use super::writer::Writer;
use crate::env::Timestamp;
use crate::error::ensure;
use crate::item::Item;
use crate::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use crate::table::StreamView;

/// The service that writes the records.
const SOURCE: &str = "aws:dynamodb";

/// The service that removes expired items.
const EXPIRY: &str = "dynamodb.amazonaws.com";

/// In what the API of DynamoDB Streams and AWS Lambda differ.
#[derive(Clone, Copy, Debug)]
pub struct RecordForm<'a> {
    /// The region, if it is named.
    pub region: Option<&'a str>,
    /// The names for the id and the type of a service that has made the change.
    pub identity: [&'static str; 2],
    /// Writes the images of the item.
    pub write_image: fn(&mut Writer, &Item),
}

impl RecordForm<'_> {
    /// As AWS Lambda passes records to functions.
    pub const LAMBDA: RecordForm<'static> = RecordForm {
        region: None,
        identity: ["principalId", "type"],
        write_image: write_item,
    };
}

/// A record, as an object.
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
    write_moment(w.name("ApproximateCreationDateTime"), record.created);
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

/// A moment, in seconds since 1970 with decimals if it has any.
pub fn write_moment(w: &mut Writer, moment: Timestamp) {
    let (secs, millis) = (moment.as_secs(), moment.as_millis() % 1000);
    if millis == 0 {
        w.number(secs);
    } else {
        w.number(format_args!("{secs}.{millis:03}"));
    }
}

/// A record, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRecord {
    /// The record.
    pub record: ChangeRecord,
    /// The resource name of the stream, which Lambda names.
    pub source_arn: Option<String>,
}

/// Reads a record.
///
/// # Errors
///
/// When the text is no record of DynamoDB.
pub fn read_record(reader: &mut Reader<'_>) -> Result<SentRecord, Unsound> {
    let mut sent = Members::default();
    read_members(reader, |name, reader| {
        match name {
            "eventID" => sent.event_id = text(reader)?,
            "eventName" => sent.kind = text(reader)?,
            "eventSource" => sent.source = text(reader)?,
            "eventSourceARN" => sent.source_arn = text(reader)?,
            "dynamodb" => sent.change = Some(change(reader)?),
            "userIdentity" => sent.is_expiry = is_expiry(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    sent.record()
        .map_err(|reason| Unsound::here(reason, reader))
}

/// The members of a record.
#[derive(Debug, Default)]
struct Members {
    event_id: Option<String>,
    kind: Option<String>,
    source: Option<String>,
    source_arn: Option<String>,
    change: Option<Change>,
    is_expiry: bool,
}

/// The members of the change in a record.
#[derive(Debug, Default)]
struct Change {
    keys: Item,
    old_image: Option<Item>,
    new_image: Option<Item>,
    sequence: Option<String>,
    size_bytes: Option<usize>,
    view: Option<String>,
    /// Without it nothing is known, and as long ago as can be is what asks for most care.
    created: Timestamp,
}

impl Members {
    fn record(self) -> Result<SentRecord, String> {
        let source = self.source.unwrap_or_default();
        ensure(source == SOURCE, || {
            format!("it is none of DynamoDB: eventSource={source}")
        })?;
        let change = self.change.ok_or("it has no change")?;
        let name = self.kind.unwrap_or_default();
        let kind = ChangeKind::from_name(&name)
            .ok_or_else(|| format!("nothing that happens to an item: eventName={name}"))?;
        let sequence = change.sequence.ok_or("it has no SequenceNumber")?;
        let view = change.view.unwrap_or_default();
        let view = StreamView::from_name(&view)
            .ok_or_else(|| format!("no view of a stream: StreamViewType={view}"))?;
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
        Ok(SentRecord { record, source_arn })
    }
}

fn change(reader: &mut Reader<'_>) -> Result<Change, Unsound> {
    let mut change = Change::default();
    read_members(reader, |name, reader| {
        match name {
            "Keys" => change.keys = sound_item(reader)?,
            "OldImage" => change.old_image = Some(sound_item(reader)?),
            "NewImage" => change.new_image = Some(sound_item(reader)?),
            "SequenceNumber" => change.sequence = text(reader)?,
            "SizeBytes" => change.size_bytes = number(reader)?.and_then(|text| text.parse().ok()),
            "StreamViewType" => change.view = text(reader)?,
            "ApproximateCreationDateTime" => change.created = moment(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(change)
}

/// Whether the one that has made the change is the service that removes what has expired. Lambda writes the name of the
/// member small, DynamoDB large.
fn is_expiry(reader: &mut Reader<'_>) -> Result<bool, Unsound> {
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

/// The text that stands next; nothing if it is something else.
fn text(reader: &mut Reader<'_>) -> Result<Option<String>, Malformed> {
    match reader.peek()? {
        Token::String => Ok(Some(reader.string()?.into_owned())),
        _ => reader.skip().map(|()| None),
    }
}

/// The number that stands next; nothing if it is something else.
fn number<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Malformed> {
    match reader.peek()? {
        Token::Number => reader.number().map(Some),
        _ => reader.skip().map(|()| None),
    }
}

/// Seconds since the epoch, with or without a part behind the point.
fn moment(reader: &mut Reader<'_>) -> Result<Timestamp, Unsound> {
    let seconds = number(reader)?.and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.ok_or_else(|| Unsound::here("a moment is no number", reader))?;
    // Converting saturates: no moment lies before the first.
    Ok(Timestamp::from_millis((seconds * 1_000.0).round() as u64))
}
