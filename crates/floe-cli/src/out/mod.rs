//! What commands print: aligned [tables](table) for people, lines of JSON for programs, bars while something takes long.
//!
//! Results go to the standard output, notes and errors to the standard error. So `floe … --json | jq` always works.

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

/// How the result is printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Output {
    /// As JSON, for programs
    #[arg(long)]
    pub(super) json: bool,
}

impl Output {
    /// Prints one of two forms of a result.
    pub(super) fn either(self, json: &dyn Fn(&mut Writer), people: &dyn Fn()) {
        match self.json {
            true => drop(print_json(json)),
            false => people(),
        }
    }

    /// Prints a result: an object of these members, or a line for people.
    pub(super) fn line(self, members: Members<'_>, line: &dyn Display) {
        let json = |w: &mut Writer| w.object(|w| json::write(w, members));
        self.either(&json, &|| {
            print(line.to_string());
        });
    }

    /// Prints rows: each as JSON, or all in this table for people.
    pub(super) fn rows<T, C: Display, const N: usize>(
        self,
        rows: impl IntoIterator<Item = T>,
        json: impl Fn(&mut Writer, &T),
        mut table: Table,
        cells: impl Fn(&T) -> [C; N],
    ) {
        for row in rows {
            match self.json {
                true => drop(print_json(&|w| json(w, &row))),
                false => table.row(cells(&row)),
            }
        }
        if !self.json {
            table.print();
        }
    }
}

/// Prints a line of output; `false` if nobody reads it any more.
pub(super) fn print(line: impl AsRef<[u8]>) -> bool {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout
        .write_all(line.as_ref())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
    printed.is_ok()
}

/// Prints what a function writes as one line of JSON; `false` if nobody reads it any more.
pub(super) fn print_json(write: &dyn Fn(&mut Writer)) -> bool {
    let mut writer = Writer::with_capacity(256);
    write(&mut writer);
    print(writer.into_bytes())
}

/// A number for people: in groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Bytes for people.
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
    fn numbers_are_printed_as_people_read_them() {
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
