//! The output of commands: aligned [tables](table) as text, or lines of JSON, and progress bars.
//!
//! Results are written to standard output, notes and errors to standard error, so that `floe … --json | jq` always works.

pub(super) mod items;
pub(super) mod json;
pub(super) mod progress;
pub(super) mod table;
pub(super) mod value;

use std::fmt::Display;
use std::io::Write;

use floe_store::json::Writer;
use indicatif::HumanCount;

use json::Members;
pub(super) use table::Table;

/// The output format.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Output {
    /// Print JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}

impl Output {
    /// Prints a result as JSON or as text.
    pub(super) fn either(self, json: &dyn Fn(&mut Writer), text: &dyn Fn()) {
        if self.json {
            print_json(json);
        } else {
            text();
        }
    }

    /// Prints a result as a JSON object with these members, or as a line of text.
    pub(super) fn line(self, members: Members<'_>, line: &dyn Display) {
        let json = |w: &mut Writer| w.object(|w| json::write(w, members));
        self.either(&json, &|| {
            print(line.to_string());
        });
    }

    /// Prints rows, each as a line of JSON, or all as a text table.
    pub(super) fn rows<T, C: Display, const N: usize>(
        self,
        rows: impl IntoIterator<Item = T>,
        json: impl Fn(&mut Writer, &T),
        mut table: Table,
        cells: impl Fn(&T) -> [C; N],
    ) {
        for row in rows {
            if self.json {
                print_json(&|w| json(w, &row));
            } else {
                table.row(cells(&row));
            }
        }
        if !self.json {
            table.print();
        }
    }
}

/// Prints a line to standard output. Returns `false` if it is closed.
pub(super) fn print(line: impl AsRef<[u8]>) -> bool {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout
        .write_all(line.as_ref())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
    printed.is_ok()
}

/// Prints a line of JSON to standard output. Returns `false` if it is closed.
pub(super) fn print_json(write: &dyn Fn(&mut Writer)) -> bool {
    let mut writer = Writer::with_capacity(256);
    write(&mut writer);
    print(writer.into_bytes())
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
