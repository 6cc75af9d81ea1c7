//! Text tables with aligned columns. On a terminal, the widest text columns are truncated to fit its width.

use std::fmt::Display;

use super::print;

/// Maximum number of characters of a cell, so that a long value does not push other columns off the screen.
const CELL_MAX: usize = 60;

/// Minimum width of a truncated column.
const COLUMN_MIN: usize = 10;

/// The separator of columns.
const GAP: &str = "  ";

/// A table. Columns of numbers are right-aligned, others left-aligned.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether the first column is never truncated.
    keeps_first_column: bool,
}

impl Table {
    pub(crate) fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// A list of keys and values, without a header.
    pub(crate) fn key_value() -> Self {
        Self::default()
    }

    /// Like [`new`](Self::new), but never truncates the first column: its values are arguments of other commands.
    pub(crate) fn with_whole_first_column<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        Self {
            keeps_first_column: true,
            ..Self::new(names)
        }
    }

    pub(crate) fn row<C: Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter().map(|cell| escaped(&cell.to_string()));
        let cells = cells.enumerate().map(|(at, cell)| {
            let is_whole = at == 0 && self.keeps_first_column;
            if is_whole {
                cell
            } else {
                truncate(&cell, CELL_MAX)
            }
        });
        self.rows.push(cells.collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a key and its value.
    pub(crate) fn entry(&mut self, name: &str, value: impl Display) {
        self.rows
            .push(vec![name.to_owned(), escaped(&value.to_string())]);
    }

    /// Adds a key and its value, if there is one.
    pub(crate) fn entry_if_some(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.entry(name, value);
        }
    }

    /// Prints the table. Returns `false` if standard output is closed.
    pub(crate) fn print(&self) -> bool {
        self.lines(terminal_width()).into_iter().all(print)
    }

    fn lines(&self, width_max: Option<usize>) -> Vec<String> {
        let named = (!self.names.is_empty()).then_some(&self.names);
        let count = self.rows.iter().chain(named).map(Vec::len).max();
        let mut columns: Vec<Column> = (0..count.unwrap_or(0)).map(|at| self.column(at)).collect();
        if let (Some(width_max), Some(_)) = (width_max, named) {
            fit(
                &mut columns,
                width_max,
                usize::from(self.keeps_first_column),
            );
        }
        let lines = named.into_iter().chain(&self.rows);
        lines.map(|cells| line(cells, &columns)).collect()
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
    const fn can_be_truncate(&self) -> bool {
        !self.is_number && !self.is_timestamp && self.width > COLUMN_MIN
    }
}

/// Narrows text columns, the widest first, until lines fit into `width_max`.
fn fit(columns: &mut [Column], width_max: usize, whole: usize) {
    let gaps = columns.len().saturating_sub(1) * GAP.len();
    let mut width = gaps + columns.iter().map(|column| column.width).sum::<usize>();
    while width > width_max {
        let texts = columns.iter_mut().skip(whole);
        let texts = texts.filter(|column| column.can_be_truncate());
        let Some(widest) = texts.max_by_key(|column| column.width) else {
            return;
        };
        widest.width -= 1;
        width -= 1;
    }
}

/// The width of the terminal, if standard output is one.
fn terminal_width() -> Option<usize> {
    #[cfg(unix)]
    {
        use std::io::IsTerminal;
        let stdout = std::io::stdout();
        let size = stdout
            .is_terminal()
            .then(|| rustix::termios::tcgetwinsize(&stdout));
        let columns = usize::from(size?.ok()?.ws_col);
        (columns > 0).then_some(columns)
    }
    #[cfg(not(unix))]
    None
}

fn line(cells: &[String], columns: &[Column]) -> String {
    let mut line = String::new();
    for (at, (cell, column)) in cells.iter().zip(columns).enumerate() {
        if at > 0 {
            line.push_str(GAP);
        }
        let cell = truncate(cell, column.width);
        let gap = " ".repeat(column.width.saturating_sub(width(&cell)));
        if column.is_number {
            line.extend([gap, cell]);
        } else {
            line.extend([cell, gap]);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok() || cell.replace(',', "").parse::<f64>().is_ok()
}

fn is_timestamp(cell: &str) -> bool {
    let mut chars = cell.chars();
    chars.all(|c| c.is_ascii_digit() || "-: ".contains(c))
}

/// Truncates text to `chars_max` characters.
fn truncate(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
    }
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

    #[test]
    fn widest_text_column_is_truncated_to_the_terminal_width() {
        let mut table = Table::with_whole_first_column(["id", "n", "why"]);
        table.row(["an id that is long", "7", "the connection was refused"]);
        table.row(["b", "12", "x"]);
        assert_eq!(
            table.lines(Some(40)),
            [
                "id                   n  why",
                "an id that is long   7  the connection …",
                "b                   12  x"
            ]
        );
        let narrow = table.lines(Some(10));
        assert_eq!(
            narrow.get(1).map(String::as_str),
            Some("an id that is long   7  the conne…")
        );
    }

    #[test]
    fn text_is_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::new(["name", "items", "key"]);
        table.row(["orders", "1,024", "id"]);
        table.row(["a", "7", "customer"]);
        assert_eq!(
            table.lines(None),
            [
                "name    items  key",
                "orders  1,024  id",
                "a           7  customer"
            ]
        );
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut table = Table::new(["v"]);
        table.row(["a\nb\u{1b}[31m"]);
        table.row(["é".repeat(61)]);
        let lines = table.lines(None);
        assert_eq!(lines.get(1).map(String::as_str), Some("a\\nb\\u{1b}[31m"));
        let long = format!("{}…", "é".repeat(59));
        assert_eq!(lines.get(2), Some(&long));
    }

    #[test]
    fn table_without_rows_prints_its_header() {
        assert_eq!(Table::new(["a", "b"]).lines(None), ["a  b"]);
        assert!(Table::key_value().lines(None).is_empty());
    }
}
