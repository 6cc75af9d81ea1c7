//! The output of commands: aligned [tables](table) as text, or lines of JSON, and progress bars.
//!
//! Results are written to standard output, notes and errors to standard error, so that `floe … --json | jq` always works.
//! A result that cannot be written is a failure of the command, so every function that prints returns a `Result`.

pub(super) mod items;
pub(super) mod json;
pub(super) mod progress;
pub(super) mod screen;
pub(super) mod table;
pub(super) mod value;
mod width;

use std::fmt::Display;
use std::io::{self, StdoutLock, Write};

use clap::ValueEnum;
use floe_store::Item;
use floe_store::json::{Writer, write_item};
use indicatif::HumanCount;

use crate::{Failure, Result};
use json::{AsItem, Members};
pub(super) use table::Table;

/// The output format.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct Output {
    /// Print JSON instead of text; items are plain JSON, or DynamoDB JSON with --json=dynamodb
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "plain"
    )]
    json: Option<ItemFormat>,
}

/// The format of items in JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ItemFormat {
    /// Plain JSON: {"id":"a","n":5}
    Plain,
    /// DynamoDB JSON: {"id":{"S":"a"},"n":{"N":"5"}}
    Dynamodb,
}

impl Output {
    /// Whether results are printed as JSON.
    pub(super) const fn is_json(self) -> bool {
        self.json.is_some()
    }

    /// The function that writes items as JSON.
    pub(super) fn item_writer(self) -> fn(&mut Writer, &Item) {
        match self.json {
            Some(ItemFormat::Dynamodb) => write_item,
            Some(ItemFormat::Plain) | None => value::write_plain_item,
        }
    }

    /// An item as a member of a JSON object.
    pub(super) fn item(self, item: &Item) -> AsItem<'_> {
        AsItem(item, self.item_writer())
    }

    /// Prints a result as JSON or as text.
    pub(super) fn either(self, json: &dyn Fn(&mut Writer), text: &dyn Fn() -> Result) -> Result {
        if self.is_json() {
            print_json(json)
        } else {
            text()
        }
    }

    /// Prints a result as a JSON object with these members, or as a line of text.
    pub(super) fn line(self, members: Members<'_>, line: &dyn Display) -> Result {
        let json = |w: &mut Writer| w.object(|w| json::write(w, members));
        self.either(&json, &|| print(line.to_string()))
    }

    /// Prints rows, each as a line of JSON, or all as a text table.
    pub(super) fn rows<T, C: Display, const N: usize>(
        self,
        rows: impl IntoIterator<Item = T>,
        json: impl Fn(&mut Writer, &T),
        mut table: Table,
        cells: impl Fn(&T) -> [C; N],
    ) -> Result {
        if self.is_json() {
            let mut rows = rows.into_iter();
            return rows.try_for_each(|row| print_json(&|w| json(w, &row)));
        }
        for row in rows {
            table.row(cells(&row));
        }
        table.print()
    }
}

/// Prints a line to standard output, and flushes it.
pub(super) fn print(line: impl AsRef<[u8]>) -> Result {
    let mut stdout = io::stdout().lock();
    let printed = stdout
        .write_all(line.as_ref())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
    printed.map_err(Failure::Output)
}

/// Prints a line of JSON to standard output.
pub(super) fn print_json(write: &dyn Fn(&mut Writer)) -> Result {
    let mut writer = Writer::with_capacity(256);
    write(&mut writer);
    print(writer.into_bytes())
}

/// Standard output for code that turns errors into text of its own: keeps the first error.
#[derive(Debug)]
pub(super) struct OutputStream {
    stdout: StdoutLock<'static>,
    error: Option<io::Error>,
}

impl OutputStream {
    pub(super) fn new() -> Self {
        Self {
            stdout: io::stdout().lock(),
            error: None,
        }
    }

    /// Fails with the first error.
    pub(super) fn check(self) -> Result {
        self.error
            .map_or(Ok(()), |error| Err(Failure::Output(error)))
    }

    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            // An interrupted write is repeated by the caller.
            if kind != io::ErrorKind::Interrupted {
                self.error.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stdout.write(bytes);
        self.keep(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stdout.flush();
        self.keep(flushed)
    }
}

/// Formats a number with thousands separators.
pub(super) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Formats a number of bytes with a unit.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    let unit = UNITS.iter().find(|(_, size)| count >= *size);
    match unit {
        None => format!("{count} B"),
        Some((name, size)) => {
            let tenths = u128::from(count) * 10 / u128::from(*size);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_bytes_have_units() {
        for (number, printed) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), printed);
        }
        for (count, printed) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KB"),
            (3 << 30, "3.0 GB"),
        ] {
            assert_eq!(bytes(count), printed);
        }
    }
}
