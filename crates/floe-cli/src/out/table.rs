//! A table for people: a line of names, and rows whose columns line up below them. On a terminal it is made to fit, by
//! cutting the widest columns of text.

use std::fmt::Display;

use super::print;

/// The most letters of a cell, so that one long value does not push the others out of sight.
const CELL_MAX: usize = 60;

/// A column is not cut to less, however narrow the terminal.
const COLUMN_MIN: usize = 10;

/// What stands between columns.
const GAP: &str = "  ";

/// Rows of cells. Columns of numbers end at the same place, all others begin at the same place.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether the first column is never cut.
    is_first_whole: bool,
}

impl Table {
    pub(crate) fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Names on the left, what they stand for on the right, and no line above them.
    pub(crate) fn of_facts() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), with a first column that is shown whole: other commands are given what stands there.
    pub(crate) fn named<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            is_first_whole: true,
            ..Self::new(names)
        }
    }

    pub(crate) fn row<C: Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter().map(|cell| escaped(&cell.to_string()));
        let cells = cells.enumerate().map(|(at, cell)| {
            let is_whole = at == 0 && self.is_first_whole;
            if is_whole { cell } else { cut(&cell, CELL_MAX) }
        });
        self.rows.push(cells.collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A name and what it stands for.
    pub(crate) fn fact(&mut self, name: &str, value: impl Display) {
        self.rows
            .push(vec![name.to_owned(), escaped(&value.to_string())]);
    }

    /// A name and what it stands for, if that is anything.
    pub(crate) fn fact_if_any(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.fact(name, value);
        }
    }

    /// Prints it; `false` if nobody reads it any more.
    pub(crate) fn print(&self) -> bool {
        self.lines(columns_of_terminal()).into_iter().all(print)
    }

    fn lines(&self, width_max: Option<usize>) -> Vec<String> {
        let named = (!self.names.is_empty()).then_some(&self.names);
        let count = self.rows.iter().chain(named).map(Vec::len).max();
        let mut columns: Vec<Column> = (0..count.unwrap_or(0)).map(|at| self.column(at)).collect();
        if let (Some(width_max), Some(_)) = (width_max, named) {
            fit(&mut columns, width_max, usize::from(self.is_first_whole));
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
            is_moment: moments.all(|cell| is_moment(cell)),
        }
    }
}

struct Column {
    width: usize,
    is_number: bool,
    /// Whether it is of moments, which are of no use when they are cut.
    is_moment: bool,
}

impl Column {
    const fn can_be_cut(&self) -> bool {
        !self.is_number && !self.is_moment && self.width > COLUMN_MIN
    }
}

/// Makes columns of text narrower, the widest first, until a line is no longer than this.
fn fit(columns: &mut [Column], width_max: usize, whole: usize) {
    let gaps = columns.len().saturating_sub(1) * GAP.len();
    let mut width = gaps + columns.iter().map(|column| column.width).sum::<usize>();
    while width > width_max {
        let texts = columns.iter_mut().skip(whole);
        let texts = texts.filter(|column| column.can_be_cut());
        let Some(widest) = texts.max_by_key(|column| column.width) else {
            return;
        };
        widest.width -= 1;
        width -= 1;
    }
}

/// How many columns the terminal has, if the standard output is one.
fn columns_of_terminal() -> Option<usize> {
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
        let cell = cut(cell, column.width);
        let gap = " ".repeat(column.width.saturating_sub(width(&cell)));
        match column.is_number {
            true => line.extend([gap, cell]),
            false => line.extend([cell, gap]),
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

fn is_moment(cell: &str) -> bool {
    let mut letters = cell.chars();
    letters.all(|letter| letter.is_ascii_digit() || "-: ".contains(letter))
}

/// Text of at most so many letters.
fn cut(text: &str, letters_max: usize) -> String {
    match text.char_indices().nth(letters_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(letters_max - 1).chain(['…']).collect(),
    }
}

/// Text without what would end the line, or what a terminal would obey.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_a_terminal_by_cutting_the_widest_text() {
        let mut table = Table::named(["id", "n", "why"]);
        table.row(["an id that is long", "7", "somebody has not been told"]);
        table.row(["b", "12", "x"]);
        assert_eq!(
            table.lines(Some(40)),
            [
                "id                   n  why",
                "an id that is long   7  somebody has no…",
                "b                   12  x"
            ]
        );
        let narrow = table.lines(Some(10));
        assert_eq!(
            narrow.get(1).map(String::as_str),
            Some("an id that is long   7  somebody …")
        );
    }

    #[test]
    fn columns_line_up_and_numbers_end_together() {
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
    fn nothing_in_a_cell_reaches_the_terminal_as_a_command() {
        let mut table = Table::new(["v"]);
        table.row(["a\nb\u{1b}[31m"]);
        table.row(["é".repeat(61)]);
        let lines = table.lines(None);
        assert_eq!(lines.get(1).map(String::as_str), Some("a\\nb\\u{1b}[31m"));
        let long = format!("{}…", "é".repeat(59));
        assert_eq!(lines.get(2), Some(&long));
    }

    #[test]
    fn a_table_without_rows_is_its_names() {
        assert_eq!(Table::new(["a", "b"]).lines(None), ["a  b"]);
        assert!(Table::of_facts().lines(None).is_empty());
    }
}
