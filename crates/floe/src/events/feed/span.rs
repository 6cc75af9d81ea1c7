//! Spans: adjacent events of one stream.
//!
//! A span contains the position and types of its events, not their bodies. It is stored as `{"p": stream, "i": index
//! of the first, "c": [types]}`.

use floe_store::Text;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::events::keys::StreamName;

/// Adjacent events of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first event.
    pub start: u64,
    /// The types of the events.
    pub types: Vec<Text>,
}

impl Span {
    /// Creates a span from the index and the types of its events.
    pub fn new<T: Into<Text>>(
        stream: StreamName,
        start: u64,
        types: impl IntoIterator<Item = T>,
    ) -> Self {
        let types = types.into_iter().map(Into::into).collect();
        Self {
            stream,
            start,
            types,
        }
    }

    /// The index after the last event.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.types.len() as u64)
    }

    /// The part of the span from this index; `None` if it is empty.
    #[must_use]
    pub fn from_index(mut self, index: u64) -> Option<Self> {
        let known = index.saturating_sub(self.start);
        let known = usize::try_from(known)
            .unwrap_or(usize::MAX)
            .min(self.types.len());
        self.types.drain(..known);
        self.start += known as u64;
        (!self.types.is_empty()).then_some(self)
    }

    /// Splits before the event that exceeds `bytes_max` bytes of JSON.
    pub(crate) fn split_by_bytes(mut self, bytes_max: usize) -> (Option<Self>, Option<Self>) {
        let mut bytes = self.bytes_without_types();
        let fits = |case: &&Text| {
            bytes += text_bytes(case) + 1;
            bytes <= bytes_max
        };
        let count = self.types.iter().take_while(fits).count();
        let rest = Self {
            stream: self.stream.clone(),
            start: self.start + count as u64,
            types: self.types.split_off(count),
        };
        let or_none = |span: Self| (!span.types.is_empty()).then_some(span);
        (or_none(self), or_none(rest))
    }

    /// Splits after the first event.
    pub(crate) fn split_first(mut self) -> (Self, Option<Self>) {
        let rest = self.types.split_off(self.types.len().min(1));
        let rest = Self {
            stream: self.stream.clone(),
            start: self.start + self.types.len() as u64,
            types: rest,
        };
        (self, (!rest.types.is_empty()).then_some(rest))
    }

    /// Size as JSON.
    pub(crate) fn bytes(&self) -> usize {
        let types: usize = self.types.iter().map(|case| text_bytes(case)).sum();
        let commas = self.types.len().saturating_sub(1);
        self.bytes_without_types() + types + commas
    }

    fn bytes_without_types(&self) -> usize {
        let digits = self.start.checked_ilog10().unwrap_or(0) as usize + 1;
        r#"{"p":,"i":,"c":[]}"#.len() + text_bytes(self.stream.as_str()) + digits
    }

    /// Parses a span from JSON.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if the JSON is not a span.
    pub(crate) fn of_json(json: &Value) -> Result<Self> {
        let invalid = || {
            let message = format!("a span must have p, i and c: span={json}");
            Error::new(ErrorKind::InvalidEvent, message)
        };
        let stream = json.get("p").and_then(Value::as_str).ok_or_else(invalid)?;
        let start = json.get("i").and_then(Value::as_u64).ok_or_else(invalid)?;
        let types = json.get("c").and_then(Value::as_array);
        let types: Option<Vec<Text>> = types
            .ok_or_else(invalid)?
            .iter()
            .map(|case| case.as_str().map(Text::from))
            .collect();
        Ok(Self {
            stream: StreamName::parse(stream)?,
            start,
            types: types.ok_or_else(invalid)?,
        })
    }
}

/// Size of a text as JSON.
fn text_bytes(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum::<usize>() + 2
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let types: Vec<&str> = self.types.iter().map(Text::as_str).collect();
        let mut span = serializer.serialize_struct("Span", 3)?;
        span.serialize_field("p", self.stream.as_str())?;
        span.serialize_field("i", &self.start)?;
        span.serialize_field("c", &types)?;
        span.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, types: &[&str]) -> Span {
        Span::new(
            StreamName::parse("Cart-1").unwrap(),
            start,
            types.iter().copied(),
        )
    }

    #[test]
    fn span_json_is_compatible() {
        let json = serde_json::to_string(&span(3, &["Added", "Gone"])).unwrap();
        assert_eq!(json, r#"{"p":"Cart-1","i":3,"c":["Added","Gone"]}"#);
        let read = Span::of_json(&serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(read, span(3, &["Added", "Gone"]));
    }

    #[test]
    fn invalid_spans_are_rejected() {
        for json in [
            r#"{}"#,
            r#"{"p":"A-1","i":-1,"c":[]}"#,
            r#"{"p":"A-1","i":0,"c":[1]}"#,
        ] {
            let value = serde_json::from_str(json).unwrap();
            let error = Span::of_json(&value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidEvent, "{json}");
            assert!(
                error
                    .to_string()
                    .starts_with("a span must have p, i and c: span={")
            );
        }
    }

    #[test]
    fn bytes_match_the_json() {
        let all_bytes: String = (0..0x80_u8).map(char::from).collect();
        for (start, types) in [
            (0, vec![]),
            (9, vec!["A"]),
            (10, vec!["é\u{2028}", ""]),
            (u64::MAX / 2, vec![all_bytes.as_str(), "B", "C"]),
        ] {
            let span = span(start, &types);
            assert_eq!(span.bytes(), serde_json::to_vec(&span).unwrap().len());
        }
    }

    #[test]
    fn from_index_drops_earlier_events() {
        let types = ["a", "b", "c"];
        assert_eq!(span(4, &types).from_index(0), Some(span(4, &types)));
        assert_eq!(span(4, &types).from_index(4), Some(span(4, &types)));
        assert_eq!(span(4, &types).from_index(6), Some(span(6, &["c"])));
        assert_eq!(span(4, &types).from_index(7), None);
        assert_eq!(span(4, &types).from_index(99), None);
    }

    #[test]
    fn span_is_split_by_bytes() {
        let whole = span(4, &["a", "b", "c"]);
        let one = span(4, &["a"]).bytes();
        assert_eq!(
            whole.clone().split_by_bytes(one),
            (None, Some(whole.clone()))
        );
        let (first, rest) = whole.clone().split_by_bytes(one + 1);
        assert_eq!(
            (first, rest),
            (Some(span(4, &["a"])), Some(span(5, &["b", "c"])))
        );
        assert_eq!(
            whole.clone().split_by_bytes(1_000),
            (Some(whole.clone()), None)
        );
        assert_eq!(
            whole.split_first(),
            (span(4, &["a"]), Some(span(5, &["b", "c"])))
        );
        assert_eq!(span(4, &["a"]).split_first(), (span(4, &["a"]), None));
    }
}
