//! Items and change records as DynamoDB writes them in JSON, and as it tells AWS Lambda of them.
//!
//! Numbers are text there, so none loses a digit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::table::StreamView;
use floe_store::value::Set;
use floe_store::{Item, Number, Text, Timestamp, Value};
use serde_json::{Map, Value as Json, json};

/// The service that removes expired items.
const EXPIRY: &str = "dynamodb.amazonaws.com";

/// A change as Lambda is told of it.
pub(super) fn record(record: &ChangeRecord) -> Json {
    let mut change = Map::new();
    let seconds = record.created.as_millis() as f64 / 1000.0;
    change.insert(
        "ApproximateCreationDateTime".to_owned(),
        match record.created.as_millis().is_multiple_of(1000) {
            true => record.created.as_secs().into(),
            false => seconds.into(),
        },
    );
    change.insert("Keys".to_owned(), item(&record.keys));
    let images = [
        ("NewImage", &record.new_image),
        ("OldImage", &record.old_image),
    ];
    for (name, image) in images {
        if let Some(image) = image {
            change.insert(name.to_owned(), item(image));
        }
    }
    change.insert("SequenceNumber".to_owned(), record.sequence.as_str().into());
    change.insert("SizeBytes".to_owned(), record.size_bytes.into());
    change.insert("StreamViewType".to_owned(), record.view.as_str().into());
    let mut told = json!({
        "eventID": record.event_id,
        "eventName": record.kind.as_str(),
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "dynamodb": change,
    });
    if let (Some(ServiceIdentity::Expiry), Json::Object(told)) = (record.identity, &mut told) {
        let identity = json!({ "type": "Service", "principalId": EXPIRY });
        told.insert("userIdentity".to_owned(), identity);
    }
    told
}

/// An item as DynamoDB writes it.
pub(super) fn item(item: &Item) -> Json {
    let fields = item.iter();
    let fields = fields.map(|(name, value)| (name.as_str().to_owned(), self::value(value)));
    Json::Object(fields.collect())
}

fn value(value: &Value) -> Json {
    let json = match value {
        Value::S(text) => text.as_str().into(),
        Value::N(number) => number.to_string().into(),
        Value::B(bytes) => STANDARD.encode(bytes).into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Null => true.into(),
        Value::M(map) => item(map),
        Value::L(list) => list.iter().map(self::value).collect(),
        Value::Ss(set) => set.iter().map(Text::as_str).collect(),
        Value::Ns(set) => set.iter().map(Number::to_string).collect(),
        Value::Bs(set) => set.iter().map(|bytes| STANDARD.encode(bytes)).collect(),
    };
    let name = value.value_type().as_str().to_owned();
    Json::Object(Map::from_iter([(name, json)]))
}

/// The change of a record, as Lambda or the API of DynamoDB Streams tell it. Fails with the reason.
pub(super) fn read_record(json: &Json) -> Result<ChangeRecord, String> {
    let change = json.get("dynamodb").ok_or("it has no change")?;
    let name = text(json, "eventName").unwrap_or_default();
    let kind = kind(name)?;
    let image = |name: &str| change.get(name).map(read_item).transpose();
    let view = text(change, "StreamViewType").unwrap_or_default();
    // Lambda writes these names small, DynamoDB large.
    let identity = json.get("userIdentity").and_then(|identity| {
        let names = ["principalId", "PrincipalId"];
        names.iter().find_map(|name| text(identity, name))
    });
    Ok(ChangeRecord {
        event_id: text(json, "eventID").unwrap_or_default().to_owned(),
        kind,
        keys: image("Keys")?.unwrap_or_default(),
        old_image: image("OldImage")?,
        new_image: image("NewImage")?,
        sequence: text(change, "SequenceNumber")
            .ok_or("it has no SequenceNumber")?
            .to_owned(),
        size_bytes: change
            .get("SizeBytes")
            .and_then(Json::as_u64)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or_default(),
        view: self::view(view)?,
        created: created(change.get("ApproximateCreationDateTime"))?,
        identity: (identity == Some(EXPIRY)).then_some(ServiceIdentity::Expiry),
    })
}

fn text<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    json.get(name)?.as_str()
}

fn kind(name: &str) -> Result<ChangeKind, String> {
    let kinds = [ChangeKind::Insert, ChangeKind::Modify, ChangeKind::Remove];
    let found = kinds.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| format!("nothing that happens to an item: eventName={name}"))
}

fn view(name: &str) -> Result<StreamView, String> {
    let views = [
        StreamView::KeysOnly,
        StreamView::NewImage,
        StreamView::OldImage,
        StreamView::NewAndOldImages,
    ];
    let found = views.into_iter().find(|view| view.as_str() == name);
    found.ok_or_else(|| format!("no view of a stream: StreamViewType={name}"))
}

/// Seconds since the epoch, with or without a part behind the point. Without them nothing is known, and as long ago as can
/// be is what asks for most care.
fn created(json: Option<&Json>) -> Result<Timestamp, String> {
    let seconds = match json {
        None | Some(Json::Null) => return Ok(Timestamp::default()),
        Some(json) => json.as_f64().ok_or("a moment is no number")?,
    };
    // Converting saturates: no moment lies before the first.
    Ok(Timestamp::from_millis((seconds * 1_000.0).round() as u64))
}

/// The item of what DynamoDB writes. Fails with the reason.
pub(super) fn read_item(json: &Json) -> Result<Item, String> {
    let fields = json.as_object().ok_or("an image is no object")?;
    let mut item = Item::with_capacity(fields.len());
    for (name, json) in fields {
        let value = read_value(json).map_err(|reason| {
            let joint = if reason.contains(": ") { " " } else { ": " };
            format!("{reason}{joint}attribute={name}")
        })?;
        item.insert(name.as_str(), value);
    }
    Ok(item)
}

fn read_value(json: &Json) -> Result<Value, String> {
    let malformed = || "an attribute is an object of its type and its value".to_owned();
    let fields = json.as_object().ok_or_else(malformed)?;
    let mut fields = fields.iter();
    let (Some((name, json)), None) = (fields.next(), fields.next()) else {
        return Err(malformed());
    };
    let wrong = || format!("the value is none of its type: type={name}");
    let text = || json.as_str().ok_or_else(wrong);
    Ok(match name.as_str() {
        "S" => Value::from(text()?),
        "N" => Value::N(number(text()?)?),
        "B" => Value::B(bytes(text()?)?),
        "BOOL" => Value::Bool(json.as_bool().ok_or_else(wrong)?),
        "NULL" => Value::Null,
        "M" => Value::M(read_item(json)?),
        "L" => {
            let list = json.as_array().ok_or_else(wrong)?;
            Value::L(list.iter().map(read_value).collect::<Result<_, _>>()?)
        }
        "SS" => Value::Ss(set(json, |text| Ok(Text::from(text)))?),
        "NS" => Value::Ns(set(json, number)?),
        "BS" => Value::Bs(set(json, bytes)?),
        _ => return Err(format!("no such type of value: type={name}")),
    })
}

fn number(text: &str) -> Result<Number, String> {
    let number = text.parse();
    number.map_err(|_| format!("a number cannot be stored: value={text}"))
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let bytes = STANDARD.decode(text);
    bytes.map_err(|_| "bytes are not Base64".to_owned())
}

fn set<T: Ord>(json: &Json, read: impl Fn(&str) -> Result<T, String>) -> Result<Set<T>, String> {
    let list = json.as_array().ok_or("a set is a list")?;
    let elements = list.iter().map(|json| {
        let text = json.as_str().ok_or("a set is a list of text")?;
        read(text)
    });
    let elements: Vec<T> = elements.collect::<Result<_, String>>()?;
    Set::new(elements).map_err(|_| "a set has elements, each once".to_owned())
}
