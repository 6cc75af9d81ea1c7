//! Events as lines of text and of JSON.

use floe::events::feed::{Checkpoint, Partition};
use floe::events::{Recorded, StreamName};
use floe_store::json::{Reader, Writer};

use crate::{AsText, escaped, utc, write_members};

/// The text line of an event.
pub(super) fn line(stream: &StreamName, recorded: &Recorded) -> String {
    let data = String::from_utf8_lossy(&recorded.event.data);
    let line = format!(
        "{}  {:<20}  {:>4}  {:<12}  {}",
        utc::date_time(recorded.time),
        stream.as_str(),
        recorded.index,
        recorded.event.event_type,
        escaped(&data)
    );
    line.trim_end().to_owned()
}

/// A JSON line with the position in the feed, the stream, and further members.
pub(super) fn json_line(
    partition: Partition,
    checkpoint: Checkpoint,
    stream: &StreamName,
    write: &dyn Fn(&mut Writer),
) -> String {
    let mut writer = Writer::with_capacity(256);
    writer.object(|w| {
        let (partition, stream) = (partition.number(), stream.as_str());
        write_members!(w; "partition": partition, "checkpoint": AsText(checkpoint), "stream": stream);
        write(w);
    });
    writer.into_text()
}

/// Writes the members of an event.
pub(crate) fn write_event(w: &mut Writer, recorded: &Recorded) {
    let event = &recorded.event;
    let time_ms = recorded.time.as_millis();
    write_members!(w; "index": recorded.index, "type": event.event_type, "time_ms": time_ms);
    write_body(w, ["data", "data_base64"], &event.data);
    write_body(w, ["meta", "meta_base64"], &event.meta);
    write_members!(w; "correlation_id": event.correlation_id, "causation_id": event.causation_id);
}

/// Writes a body unchanged if it is JSON, otherwise in base 64.
fn write_body(w: &mut Writer, [as_json, as_base64]: [&str; 2], body: &[u8]) {
    if body.is_empty() {
        return;
    }
    match std::str::from_utf8(body).ok().filter(|text| is_json(text)) {
        // Line breaks in JSON are insignificant, but would break the output line.
        Some(text) => w.name(as_json).number(text.replace(['\n', '\r'], " ")),
        None => w.name(as_base64).base64(body),
    }
}

fn is_json(text: &str) -> bool {
    let mut reader = Reader::new(text);
    reader.skip().is_ok() && reader.finish().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_written_on_one_line() {
        for (body, expected) in [
            (&b""[..], "{}"),
            (br#"{"a":1}"#, r#"{"data":{"a":1}}"#),
            (b"{\n\"a\":\r\n1}", r#"{"data":{ "a":  1}}"#),
            (b"7", r#"{"data":7}"#),
            (b"{", r#"{"data_base64":"ew=="}"#),
            (b"{} {}", r#"{"data_base64":"e30ge30="}"#),
            (&[0xff], r#"{"data_base64":"/w=="}"#),
        ] {
            let mut writer = Writer::with_capacity(64);
            writer.object(|w| write_body(w, ["data", "data_base64"], body));
            let written = String::from_utf8(writer.into_bytes()).unwrap();
            assert_eq!(written, expected);
        }
    }
}
