//! Files to which several processes write what they did, line by line, and of which one reads what is new.
//!
//! A line is one system call at the end of the file, so lines stand in the order in which they were written, whoever
//! wrote them. Who is killed meanwhile leaves half a line at most, which has no end mark and is not counted.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What ends a line that was written whole.
const END: char = ';';

/// Writes lines.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self(file))
    }

    pub(super) fn tell(&self, line: impl Display) -> io::Result<()> {
        // Half a line of somebody who was killed must not become a part of this one.
        (&self.0).write_all(format!("\n{line}{END}\n").as_bytes())
    }
}

/// Events of a stream, as a journal names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) stream: String,
    /// The index of the first.
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

/// Reads lines that are new since it last looked.
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
        // What has no end yet is read again the next time.
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
    fn half_a_line_is_not_counted_and_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut tail = Tail::new(path.clone());
        assert!(tail.read().unwrap().is_empty());
        let journal = Journal::open(&path).unwrap();
        journal.tell("one").unwrap();
        (&journal.0).write_all(b"\nhalf of a li").unwrap();
        assert_eq!(tail.read().unwrap(), ["one"]);
        Journal::open(&path).unwrap().tell("two").unwrap();
        assert_eq!(tail.read().unwrap(), ["two"]);
        assert!(tail.read().unwrap().is_empty());
    }

    #[test]
    fn a_run_reads_as_it_is_written() {
        let run = Run {
            stream: "Raw-7".to_owned(),
            start: 3,
            numbers: vec![5, 9],
        };
        assert_eq!(Run::parse(&run.to_string()), Some(run));
        assert_eq!(Run::parse("Raw-7 3 x"), None);
    }
}
