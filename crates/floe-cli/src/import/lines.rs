//! The lines of an import. Lines that are items themselves, and items in plain JSON, are converted to the lines of an export,
//! `{"Item":{"id":{"S":"a"}}}`, which the engine and the import into a server read.

use std::io::{self, BufRead, Read};

use floe_store::Item;
use floe_store::json::{Reader, Writer, write_item};

use crate::{Failure, Input, JsonFormat, Result};

/// The members of the lines of an export.
const EXPORT_MEMBERS: [&str; 4] = ["FloeExport", "Table", "Item", "End"];

/// Maximum length of a line that is converted. The reader of the lines rejects longer ones.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// The lines of an input as lines of an export.
pub(super) struct ItemLines<R> {
    input: R,
    format: Input,
    /// The current line, and how much of it has been read.
    line: Vec<u8>,
    at: usize,
    lines: u64,
    bytes: u64,
    /// Why a line cannot be converted. The reader gets an error without a message.
    failure: Option<Failure>,
}

impl<R: BufRead> ItemLines<R> {
    pub(super) const fn new(input: R, format: Input) -> Self {
        Self {
            input,
            format,
            line: Vec::new(),
            at: 0,
            lines: 0,
            bytes: 0,
            failure: None,
        }
    }

    /// Returns the number of bytes of the input. Fails if a line could not be converted.
    pub(super) fn end(self) -> Result<u64> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.bytes),
        }
    }

    fn next_line(&mut self) -> io::Result<()> {
        self.at = 0;
        self.line.clear();
        let mut input = self.input.by_ref().take(LINE_BYTES_MAX + 1);
        let count = input.read_until(b'\n', &mut self.line)?;
        self.lines += u64::from(count > 0);
        self.bytes += u64::try_from(count).unwrap_or(0);
        // The reader reports text that is not UTF-8.
        let Ok(text) = std::str::from_utf8(&self.line) else {
            return Ok(());
        };
        match converted(self.format, text.trim(), self.lines) {
            Ok(None) => {}
            Ok(Some(line)) => self.line = line,
            Err(failure) => {
                self.failure = Some(failure);
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ItemLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.fill_buf()?;
        let count = rest.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for ItemLines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.line.len() {
            self.next_line()?;
        }
        Ok(self.line.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

/// Converts a line. `None` if it is empty, a line of an export in DynamoDB JSON, or not an object, which the reader of the
/// lines reports.
fn converted(format: Input, text: &str, number: u64) -> Result<Option<Vec<u8>>> {
    let Some(members) = members(text) else {
        return Ok(None);
    };
    let source = format!("line {number}");
    let is_of_export = |(name, _): &&(String, &str)| EXPORT_MEMBERS.contains(&name.as_str());
    let of_export = members.iter().find(is_of_export);
    let item = match of_export {
        Some(_) if format.form == JsonFormat::Plain => format.parse(&source, text)?,
        None => format.parse(&source, text)?,
        Some((name, _)) => {
            if let Some((other, _)) = members.iter().find(|member| !is_of_export(member)) {
                return Err(Failure::usage(format!(
                    "{source} is ambiguous, it can be an item or a line of an export: member={name} attribute={other}; with \
                         --input plain, every line is an item, and DynamoDB JSON can be written as {{\"Item\":{{..}}}}"
                )));
            }
            match members.iter().find(|(name, _)| name == "Item") {
                Some((_, item)) if members.len() == 1 && item.starts_with('{') => {
                    if is_dynamodb(format, item) {
                        return Ok(None);
                    }
                    format.parse(&source, item)?
                }
                _ => return Ok(None),
            }
        }
    };
    Ok(Some(line_of(&item)))
}

/// Whether an item is left to the reader of the lines, whose errors have the path in the line.
fn is_dynamodb(format: Input, item: &str) -> bool {
    let has_plain_value = || {
        let members = members(item).unwrap_or_default();
        let mut values = members.iter().map(|(_, value)| value);
        values.any(|value| !value.starts_with('{'))
    };
    format.form == JsonFormat::Dynamodb || !has_plain_value()
}

/// The members of an object, with the JSON of their values. `None` if the text is not an object.
fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let mut reader = Reader::new(text);
    let mut members = Vec::new();
    reader.begin_object().ok()?;
    while let Some(name) = reader.next_name().ok()? {
        members.push((name.into_owned(), reader.raw().ok()?));
    }
    reader.finish().ok()?;
    Some(members)
}

/// The line of an item in an export.
fn line_of(item: &Item) -> Vec<u8> {
    let mut writer = Writer::with_capacity(256);
    writer.object(|w| write_item(w.name("Item"), item));
    let mut line = writer.into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: JsonFormat, text: &str) -> Result<String, String> {
        let mut lines = ItemLines::new(text.as_bytes(), Input { form });
        let mut converted = String::new();
        let read = lines.read_to_string(&mut converted);
        let bytes = lines.end().map_err(|failure| failure.to_string())?;
        assert_eq!((read.is_ok(), bytes), (true, text.len() as u64), "{text}");
        Ok(converted)
    }

    #[test]
    fn items_become_lines_of_an_export() {
        let exported = "{\"Item\":{\"id\":{\"S\":\"a\"},\"n\":{\"N\":\"5\"}}}\n";
        for line in [
            r#"{"id":"a","n":5}"#,
            r#" {"id": {"S":"a"},"n":{"N":"5.0"}} "#,
            r#"{"Item":{"id":"a","n":5}}"#,
            exported.trim_end(),
        ] {
            for end in ["", "\n", "\r\n"] {
                let read = read(JsonFormat::Auto, &format!("{line}{end}")).unwrap();
                assert_eq!(read.trim_end(), exported.trim_end(), "{line}");
            }
        }
        let plain = r#"{"id":"a","Item":{"x":1},"v":{"S":"x"}}"#;
        assert_eq!(
            read(JsonFormat::Plain, plain).unwrap(),
            "{\"Item\":{\"Item\":{\"M\":{\"x\":{\"N\":\"1\"}}},\"id\":{\"S\":\"a\"},\"v\":{\"M\":{\"S\":{\"S\":\"x\"}}}}}\n"
        );
    }

    #[test]
    fn other_lines_are_unchanged() {
        for text in [
            "",
            "\n\n",
            "nonsense\n",
            "[1]\n",
            "{\"FloeExport\":1,\"Table\":{\"TableName\":\"x\"}}\n{\"End\":{\"ItemCount\":0}}\n",
            "{\"Item\":{}}\n",
            "{\"Item\":7}\n",
            "{\"Item\":{\"id\":{\"X\":1}}}\n",
            "{\"id\":1} x\n",
        ] {
            assert_eq!(read(JsonFormat::Auto, text), Ok(text.to_owned()));
        }
    }

    #[test]
    fn ambiguous_lines_are_rejected_with_their_number() {
        for (line, words) in [
            (
                r#"{"id":"a","v":{"S":"x"}}"#,
                "line 2 mixes plain and DynamoDB JSON: plain=1 dynamodb=1",
            ),
            (
                r#"{"id":"a","v":[{"SS":["x"]}]}"#,
                "line 2: a value can be a map, or a value of DynamoDB JSON: offset=15",
            ),
            (
                r#"{"id":"a","Item":{"x":1}}"#,
                "line 2 is ambiguous, it can be an item or a line of an export: member=Item attribute=id",
            ),
        ] {
            let refused = read(JsonFormat::Auto, &format!("{{\"id\":\"a\"}}\n{line}\n"));
            let refused = refused.unwrap_err();
            assert!(refused.starts_with(words), "{refused}");
        }
    }
}
