//! The records of a writing process about its operations, one line each.
//!
//! An intent is reported before the operation is sent, and its outcome after the response, each in one system call. So
//! whatever happens to the process, the check knows that an operation with an outcome is settled, and one with only an
//! intent may or may not have been applied.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Mutex;

use super::test_table::{Key, State, Step};

/// A write of one or several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// Unique among all operations of a check.
    pub(super) stamp: u64,
    /// The resulting state of each key.
    pub(super) effects: Vec<(Key, Step)>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The engine is open; opening took this many microseconds.
    Opened(u64),
    /// The operation is about to be sent.
    Intent(Operation),
    /// The operation succeeded.
    Acked(u64),
    /// The operation was rejected and changed nothing.
    Refused(u64),
    /// The operation failed, and may or may not have been applied.
    Failed(u64, String),
    /// A read failed.
    ReadFailed(String),
    /// The process detected a violation.
    Broken(String),
    /// The process has finished its work.
    Done,
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened(micros) => write!(out, "opened {micros}"),
            Self::Intent(operation) => {
                write!(out, "intent {}", operation.stamp)?;
                for (key, step) in &operation.effects {
                    write!(out, " {key} {}", step.version)?;
                    match step.state {
                        State::Set => write!(out, " set")?,
                        State::Expiring(at) => write!(out, " until:{at}")?,
                        State::Absent => write!(out, " absent")?,
                    }
                }
                Ok(())
            }
            Self::Acked(stamp) => write!(out, "acked {stamp}"),
            Self::Refused(stamp) => write!(out, "refused {stamp}"),
            Self::Failed(stamp, why) => write!(out, "failed {stamp} {}", one_line(why)),
            Self::ReadFailed(why) => write!(out, "read-failed {}", one_line(why)),
            Self::Broken(what) => write!(out, "broken {}", one_line(what)),
            Self::Done => write!(out, "done"),
        }
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        parse(line).ok_or_else(|| format!("not a record: {line:?}"))
    }
}

fn parse(line: &str) -> Option<Record> {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(match kind {
        "opened" => Record::Opened(rest.parse().ok()?),
        "intent" => Record::Intent(parse_operation(rest)?),
        "acked" => Record::Acked(rest.parse().ok()?),
        "refused" => Record::Refused(rest.parse().ok()?),
        "failed" => {
            let (stamp, why) = rest.split_once(' ')?;
            Record::Failed(stamp.parse().ok()?, why.to_owned())
        }
        "read-failed" => Record::ReadFailed(rest.to_owned()),
        "broken" => Record::Broken(rest.to_owned()),
        "done" => Record::Done,
        _ => return None,
    })
}

fn parse_operation(text: &str) -> Option<Operation> {
    let mut words = text.split(' ');
    let stamp = words.next()?.parse().ok()?;
    let mut effects = Vec::new();
    while let Some(key) = words.next() {
        let version = words.next()?.parse().ok()?;
        let state = match words.next()? {
            "set" => State::Set,
            "absent" => State::Absent,
            until => State::Expiring(until.strip_prefix("until:")?.parse().ok()?),
        };
        let step = Step {
            version,
            stamp,
            state,
        };
        effects.push((key.parse().ok()?, step));
    }
    Some(Operation { stamp, effects })
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Writes the records of a process.
pub(super) struct Reporter(Mutex<Box<dyn Write + Send>>);

impl Reporter {
    /// Creates a reporter that writes to this output.
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(output)))
    }

    /// Reports a record, in one system call if the output is unbuffered.
    ///
    /// # Errors
    ///
    /// When the output is closed; the process should end then.
    pub(super) fn report(&self, record: &Record) -> io::Result<()> {
        let line = format!("{record}\n");
        let mut output = self
            .0
            .lock()
            .map_err(|_| io::Error::other("a reporting task panicked"))?;
        output.write_all(line.as_bytes())?;
        output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(record: &Record, line: &str) {
        assert_eq!(record.to_string(), line);
        assert_eq!(line.parse().as_ref(), Ok(record));
    }

    #[test]
    fn record_round_trips_as_text() {
        let step = |version, state| Step {
            version,
            stamp: 7,
            state,
        };
        let effects = vec![
            (Key::new("a", 1), step(1, State::Set)),
            (Key::new("a", 2), step(5, State::Absent)),
            (Key::new("b", 1), step(9, State::Expiring(12))),
        ];
        let operation = Operation { stamp: 7, effects };
        check(
            &Record::Intent(operation),
            "intent 7 a/1 1 set a/2 5 absent b/1 9 until:12",
        );
        check(&Record::Opened(250), "opened 250");
        check(&Record::Acked(7), "acked 7");
        check(&Record::Refused(7), "refused 7");
        check(&Record::Failed(7, "no space".into()), "failed 7 no space");
        check(&Record::ReadFailed("eio".into()), "read-failed eio");
        check(
            &Record::Broken("partial trio".into()),
            "broken partial trio",
        );
        check(&Record::Done, "done");
    }

    #[test]
    fn truncated_lines_are_rejected() {
        for line in [
            "",
            "inten",
            "intent 7 a/1",
            "intent 7 a/1 1",
            "failed 7",
            "acked",
        ] {
            assert!(line.parse::<Record>().is_err(), "{line:?}");
        }
    }
}
