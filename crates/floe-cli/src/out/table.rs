//! Text tables with aligned columns. Cells are complete, except on a terminal that is too narrow: there, the widest text
//! columns are truncated, and if that does not suffice, each row becomes a list of names and values.

use std::fmt::Display;

use super::print;
use super::screen::Screen;
use super::width::{columns, width};
use crate::Result;

/// Minimum width of a truncated column.
const COLUMN_MIN: usize = 10;

/// The number of blanks between columns.
const GAP: usize = 2;

/// A table. Columns of numbers are right-aligned, others left-aligned.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether the first column is never truncated.
    keeps_first_column: bool,
}

impl Table {
    pub(crate) fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            names: names
                .into_iter()
                .map(|name| escaped(name.as_ref()))
                .collect(),
            ..Self::default()
        }
    }

    /// A list of keys and values, without a header.
    pub(crate) fn key_value() -> Self {
        Self::default()
    }

    /// Like [`new`](Self::new), but never truncates the first column: its values are arguments of other commands.
    pub(crate) fn with_whole_first_column<N: AsRef<str>>(
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        Self {
            keeps_first_column: true,
            ..Self::new(names)
        }
    }

    pub(crate) fn row<C: Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter().map(|cell| escaped(&cell.to_string()));
        self.rows.push(cells.collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a key and its value.
    pub(crate) fn entry(&mut self, name: &str, value: impl Display) {
        self.rows
            .push(vec![escaped(name), escaped(&value.to_string())]);
    }

    /// Adds a key and its value, if there is one.
    pub(crate) fn entry_if_some(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.entry(name, value);
        }
    }

    /// Prints the table.
    pub(crate) fn print(&self) -> Result {
        match self.lines(Screen::stdout()) {
            lines if lines.is_empty() => Ok(()),
            lines => print(lines.join("\n")),
        }
    }

    fn lines(&self, screen: Screen) -> Vec<String> {
        if self.names.is_empty() {
            return self.key_value_lines(screen);
        }
        let mut columns: Vec<Column> = (0..self.names.len()).map(|at| self.column(at)).collect();
        if let Some(width_max) = screen.width {
            let whole = usize::from(self.keeps_first_column);
            if !fit(&mut columns, width_max, whole) && !self.is_empty() {
                return self.record_lines(screen);
            }
        }
        let header = line(&self.names, &columns, |_, name| screen.name(name));
        let rows = self.rows.iter();
        let rows = rows.map(|cells| line(cells, &columns, |_, cell| cell.to_owned()));
        std::iter::once(header).chain(rows).collect()
    }

    /// A line for each entry. Values are not truncated: the terminal wraps them.
    fn key_value_lines(&self, screen: Screen) -> Vec<String> {
        let count = self.rows.iter().map(Vec::len).max();
        let columns: Vec<Column> = (0..count.unwrap_or(0)).map(|at| self.column(at)).collect();
        let rows = self.rows.iter();
        let styled = |at, cell: &str| {
            if at == 0 {
                screen.name(cell)
            } else {
                cell.to_owned()
            }
        };
        rows.map(|cells| line(cells, &columns, styled)).collect()
    }

    /// A line for each cell that is not empty, with its name, and an empty line between rows.
    fn record_lines(&self, screen: Screen) -> Vec<String> {
        let name_width = self.names.iter().map(|name| width(name)).max();
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                lines.push(String::new());
            }
            let cells = self.names.iter().zip(row);
            for (name, cell) in cells.filter(|(_, cell)| !cell.is_empty()) {
                let gap = name_width.unwrap_or(0) - width(name) + GAP;
                lines.push(format!("{}{}{cell}", screen.name(name), blanks(gap)));
            }
        }
        lines
    }

    fn column(&self, at: usize) -> Column {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let name = self.names.get(at);
        let width = cells.clone().chain(name).map(|cell| width(cell)).max();
        let mut moments = cells.clone();
        let mut filled = cells.filter(|cell| !cell.is_empty()).peekable();
        Column {
            width: width.unwrap_or(0),
            is_number: !self.names.is_empty()
                && filled.peek().is_some()
                && filled.all(|cell| is_number(cell)),
            is_timestamp: moments.all(|cell| is_timestamp(cell)),
        }
    }
}

struct Column {
    width: usize,
    is_number: bool,
    /// Whether all cells are timestamps, which are useless when truncated.
    is_timestamp: bool,
}

impl Column {
    const fn can_be_truncated(&self) -> bool {
        !self.is_number && !self.is_timestamp && self.width > COLUMN_MIN
    }
}

/// Narrows text columns, the widest first, until lines fit into `width_max`. Returns whether they do.
fn fit(columns: &mut [Column], width_max: usize, whole: usize) -> bool {
    let gaps = columns.len().saturating_sub(1) * GAP;
    let mut width = gaps + columns.iter().map(|column| column.width).sum::<usize>();
    while width > width_max {
        let texts = columns.iter_mut().skip(whole);
        let texts = texts.filter(|column| column.can_be_truncated());
        let Some(widest) = texts.max_by_key(|column| column.width) else {
            return false;
        };
        widest.width -= 1;
        width -= 1;
    }
    true
}

/// A line of aligned cells. `styled` adds the style of a cell, which takes no columns.
fn line(cells: &[String], columns: &[Column], styled: impl Fn(usize, &str) -> String) -> String {
    let mut line = String::new();
    // Blanks are written in front of the next cell, so that no line ends with blanks.
    let mut gap = 0;
    for (at, (cell, column)) in cells.iter().zip(columns).enumerate() {
        let cell = truncated(cell, column.width);
        let padding = column.width.saturating_sub(width(&cell));
        let (before, after) = if column.is_number {
            (padding, 0)
        } else {
            (0, padding)
        };
        if cell.is_empty() {
            gap += column.width + GAP;
            continue;
        }
        line.push_str(&blanks(gap + before));
        line.push_str(&styled(at, &cell));
        gap = after + GAP;
    }
    line
}

fn blanks(count: usize) -> String {
    " ".repeat(count)
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok() || cell.replace(',', "").parse::<f64>().is_ok()
}

fn is_timestamp(cell: &str) -> bool {
    let mut chars = cell.chars();
    chars.all(|c| c.is_ascii_digit() || "-: ".contains(c))
}

/// Truncates text to a display width.
fn truncated(text: &str, width_max: usize) -> String {
    if width(text) <= width_max {
        return text.to_owned();
    }
    let (mut used, room) = (0, width_max.saturating_sub(1));
    let shown = columns(text).take_while(|(_, columns)| {
        used += columns;
        used <= room
    });
    shown.map(|(c, _)| c).chain(['…']).collect()
}

/// Escapes control characters, which would break lines or control the terminal.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal of this width, without styles.
    const fn wide(width: usize) -> Screen {
        Screen {
            width: Some(width),
            is_styled: false,
        }
    }

    /// No terminal.
    const PIPE: Screen = Screen {
        width: None,
        is_styled: false,
    };

    #[test]
    fn widest_text_column_is_truncated_to_the_terminal_width() {
        let mut table = Table::with_whole_first_column(["id", "n", "why"]);
        table.row(["an id that is long", "7", "the connection was refused"]);
        table.row(["b", "12", "x"]);
        assert_eq!(
            table.lines(wide(40)),
            [
                "id                   n  why",
                "an id that is long   7  the connection …",
                "b                   12  x"
            ]
        );
        let narrow = table.lines(wide(34));
        assert_eq!(
            narrow.get(1).map(String::as_str),
            Some("an id that is long   7  the conne…")
        );
        assert_eq!(
            table.lines(PIPE).get(1).map(String::as_str),
            Some("an id that is long   7  the connection was refused")
        );
    }

    #[test]
    fn rows_become_lists_if_the_terminal_is_too_narrow() {
        let mut table = Table::with_whole_first_column(["id", "n", "why"]);
        table.row(["an id that is long", "7", "the connection was refused"]);
        table.row(["b", "12", ""]);
        let expected = [
            "id   an id that is long",
            "n    7",
            "why  the connection was refused",
            "",
            "id   b",
            "n    12",
        ];
        assert_eq!(table.lines(wide(33)), expected);
        assert_eq!(table.lines(wide(1)), expected);
        let none = Table::new(["a column", "another column"]);
        assert_eq!(none.lines(wide(5)), ["a column  another column"]);
    }

    #[test]
    fn columns_are_aligned_by_display_width() {
        let mut table = Table::new(["city", "n", "note"]);
        table.row(["東京", "1", "🛷 e\u{301}"]);
        table.row(["Oslo", "12", "x"]);
        assert_eq!(
            table.lines(PIPE),
            ["city   n  note", "東京   1  🛷 e\u{301}", "Oslo  12  x"]
        );
        let mut long = Table::new(["name"]);
        long.row(["東京特許許可局"]);
        assert_eq!(long.lines(wide(12)), ["name", "東京特許許…"]);
        assert_eq!(long.lines(wide(11)), ["name", "東京特許許…"]);
        assert_eq!(long.lines(wide(10)), ["name", "東京特許…"]);
    }

    #[test]
    fn names_are_bold_on_a_terminal_with_styles() {
        let screen = Screen {
            width: Some(80),
            is_styled: true,
        };
        let mut table = Table::new(["a", "", "n"]);
        table.row(["xx", "y", "7"]);
        assert_eq!(
            table.lines(screen),
            ["\u{1b}[1ma\u{1b}[0m      \u{1b}[1mn\u{1b}[0m", "xx  y  7"]
        );
        let mut entries = Table::key_value();
        entries.entry("a", "x");
        assert_eq!(entries.lines(screen), ["\u{1b}[1ma\u{1b}[0m  x"]);
    }

    #[test]
    fn text_is_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::new(["name", "items", "key"]);
        table.row(["orders", "1,024", "id"]);
        table.row(["a", "7", "customer"]);
        assert_eq!(
            table.lines(PIPE),
            [
                "name    items  key",
                "orders  1,024  id",
                "a           7  customer"
            ]
        );
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut table = Table::new(["v\u{1b}"]);
        table.row(["a\nb\u{1b}[31m"]);
        table.row(["é".repeat(61)]);
        let lines = table.lines(PIPE);
        assert_eq!(lines.first().map(String::as_str), Some("v\\u{1b}"));
        assert_eq!(lines.get(1).map(String::as_str), Some("a\\nb\\u{1b}[31m"));
        assert_eq!(lines.get(2), Some(&"é".repeat(61)));
        let mut entries = Table::key_value();
        entries.entry("\u{7}", "x");
        assert_eq!(entries.lines(PIPE), ["\\u{7}  x"]);
    }

    #[test]
    fn table_without_rows_prints_its_header() {
        assert_eq!(Table::new(["a", "b"]).lines(PIPE), ["a  b"]);
        assert!(Table::key_value().lines(PIPE).is_empty());
    }
}
