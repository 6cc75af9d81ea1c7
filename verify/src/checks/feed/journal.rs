//! Files to which several processes append lines, and of which one process reads the new lines.
//!
//! A line is one system call at the end of the file, so lines are in the order in which they were written, by whichever
//! process. A process that is killed leaves at most a partial line, which has no end mark and is ignored.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The mark at the end of a complete line.
const END: char = ';';

/// Appends lines.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self(file))
    }

    pub(super) fn append(&self, line: impl Display) -> io::Result<()> {
        // The leading line feed separates this line from a partial line of a killed process.
        (&self.0).write_all(format!("\n{line}{END}\n").as_bytes())
    }
}

/// Events of a stream, as recorded in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) stream: String,
    /// The index of the first event.
    pub(super) start: u64,
    pub(super) numbers: Vec<u64>,
}

impl Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.stream, self.start)?;
        self.numbers
            .iter()
            .try_for_each(|number| write!(f, " {number}"))
    }
}

impl Run {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            stream: words.next()?.to_owned(),
            start: words.next()?.parse().ok()?,
            numbers: words.map(str::parse).collect::<Result<_, _>>().ok()?,
        })
    }
}

/// Reads lines that are new since the last call.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    offset: u64,
}

impl Tail {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    pub(super) fn read(&mut self) -> io::Result<Vec<String>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // An incomplete line is read again by the next call.
        let whole = text.rfind('\n').map_or("", |end| text.split_at(end + 1).0);
        self.offset += whole.len() as u64;
        let lines = whole.lines().filter_map(|line| line.strip_suffix(END));
        Ok(lines.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_lines_are_ignored_and_do_not_affect_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut tail = Tail::new(path.clone());
        assert!(tail.read().unwrap().is_empty());
        let journal = Journal::open(&path).unwrap();
        journal.append("one").unwrap();
        (&journal.0).write_all(b"\nhalf of a li").unwrap();
        assert_eq!(tail.read().unwrap(), ["one"]);
        Journal::open(&path).unwrap().append("two").unwrap();
        assert_eq!(tail.read().unwrap(), ["two"]);
        assert!(tail.read().unwrap().is_empty());
    }

    #[test]
    fn run_round_trips_as_text() {
        let run = Run {
            stream: "Raw-7".to_owned(),
            start: 3,
            numbers: vec![5, 9],
        };
        assert_eq!(Run::parse(&run.to_string()), Some(run));
        assert_eq!(Run::parse("Raw-7 3 x"), None);
    }
}
