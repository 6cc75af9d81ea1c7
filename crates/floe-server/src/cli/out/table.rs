//! A table for people: a line of names, and rows whose columns line up below them.

use std::fmt::Display;

use super::print;

/// The most letters of a cell, so that one long value does not push the others out of sight.
const CELL_MAX: usize = 60;

/// Rows of cells. Columns of numbers end at the same place, all others begin at the same place.
#[derive(Debug, Default)]
pub(in crate::cli) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(in crate::cli) fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Names on the left, what they stand for on the right, and no line above them.
    pub(in crate::cli) fn of_facts() -> Self {
        Self::default()
    }

    pub(in crate::cli) fn row<C: Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter();
        self.rows
            .push(cells.map(|cell| shown(&cell.to_string())).collect());
    }

    /// A name and what it stands for.
    pub(in crate::cli) fn fact(&mut self, name: &str, value: impl Display) {
        self.rows
            .push(vec![name.to_owned(), escaped(&value.to_string())]);
    }

    /// Prints it; `false` if nobody reads it any more.
    pub(in crate::cli) fn print(&self) -> bool {
        self.lines().into_iter().all(print)
    }

    fn lines(&self) -> Vec<String> {
        let named = (!self.names.is_empty()).then_some(&self.names);
        let count = self.rows.iter().chain(named).map(Vec::len).max();
        let columns: Vec<Column> = (0..count.unwrap_or(0)).map(|at| self.column(at)).collect();
        let lines = named.into_iter().chain(&self.rows);
        lines.map(|cells| line(cells, &columns)).collect()
    }

    fn column(&self, at: usize) -> Column {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let name = self.names.get(at);
        let width = cells.clone().chain(name).map(|cell| width(cell)).max();
        let mut filled = cells.filter(|cell| !cell.is_empty()).peekable();
        Column {
            width: width.unwrap_or(0),
            is_number: !self.names.is_empty()
                && filled.peek().is_some()
                && filled.all(|cell| is_number(cell)),
        }
    }
}

struct Column {
    width: usize,
    is_number: bool,
}

fn line(cells: &[String], columns: &[Column]) -> String {
    let mut line = String::new();
    for (cell, column) in cells.iter().zip(columns) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        let gap = " ".repeat(column.width.saturating_sub(width(cell)));
        match column.is_number {
            true => line.extend([gap.as_str(), cell]),
            false => line.extend([cell.as_str(), &gap]),
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

/// A cell: one line, without what a terminal would obey, and not too long.
fn shown(text: &str) -> String {
    let text = escaped(text);
    match text.char_indices().nth(CELL_MAX) {
        None => text,
        Some(_) => text.chars().take(CELL_MAX - 1).chain(['…']).collect(),
    }
}

/// Text without what would end the line, or what a terminal would obey.
pub(in crate::cli) fn escaped(text: &str) -> String {
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
    fn columns_line_up_and_numbers_end_together() {
        let mut table = Table::new(["name", "items", "key"]);
        table.row(["orders", "1,024", "id"]);
        table.row(["a", "7", "customer"]);
        assert_eq!(
            table.lines(),
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
        let lines = table.lines();
        assert_eq!(lines.get(1).map(String::as_str), Some("a\\nb\\u{1b}[31m"));
        let long = format!("{}…", "é".repeat(59));
        assert_eq!(lines.get(2), Some(&long));
    }

    #[test]
    fn a_table_without_rows_is_its_names() {
        assert_eq!(Table::new(["a", "b"]).lines(), ["a  b"]);
        assert!(Table::of_facts().lines().is_empty());
    }
}
