//! Reads the traces that the shim writes.
//!
//! The format is described in `verify/shim/trace.c`. The reader checks everything that the replay relies on, so that a
//! damaged trace is an error and never a wrong disk. An incomplete last record, left by a killed process, is dropped.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use floe_store::env::SeededRandom;

const MAGIC: &[u8; 8] = b"FLOETRC1";
const SYNC_CLASS: u64 = 2;

/// Identifies a file or directory of the watched process; ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(super) u64);

/// The watched directory.
pub(super) const ROOT: FileId = FileId(1);

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DirEntry {
    pub(super) dir: FileId,
    pub(super) name: String,
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The end of the content found when the process started.
    Start,
    Create {
        at: DirEntry,
        file: FileId,
    },
    Mkdir {
        at: DirEntry,
        file: FileId,
    },
    Link {
        at: DirEntry,
        file: FileId,
    },
    Rename {
        from: DirEntry,
        to: DirEntry,
        file: FileId,
    },
    Unlink {
        at: DirEntry,
        file: FileId,
    },
    Write {
        file: FileId,
        offset: u64,
        data: Vec<u8>,
    },
    Truncate {
        file: FileId,
        len: u64,
    },
    /// fsync or fdatasync: in both models, fdatasync also keeps the metadata needed to read the data back.
    Sync {
        file: FileId,
    },
    SyncAll,
    Mark {
        bytes: Vec<u8>,
    },
    /// A failed sync, injected by the shim or from the kernel.
    SyncFailed {
        file: FileId,
    },
    /// Another failure that the shim injected: the call had no effect, or wrote less.
    Fault,
    /// A call that the shim refused because the trace format cannot express it.
    Refused {
        what: String,
    },
}

/// The changes that a watched process made to its directory, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    pub(super) events: Vec<Event>,
    start: usize,
}

impl Trace {
    /// Reads the file given to [`crate::shim::Watch::trace`].
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not a trace, or ends before the start record.
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        Self::parse(BufReader::new(File::open(file)?)).map_err(|error| {
            io::Error::new(error.kind(), format!("{error} file={}", file.display()))
        })
    }

    pub(super) fn parse(mut input: impl Read) -> io::Result<Self> {
        let mut magic = [0; 8];
        if !fill(&mut input, &mut magic)? || magic != *MAGIC {
            return Err(invalid("not a trace of the shim".into()));
        }
        let mut events = Vec::new();
        while let Some(event) = read_event(&mut input, events.len())? {
            events.push(event);
        }
        let start = events.iter().position(|event| *event == Event::Start);
        let start = start.ok_or_else(|| invalid("the trace has no start record".into()))?;
        Ok(Self {
            events,
            start: start + 1,
        })
    }

    /// The number of records; a cut is a number from 0 to this one.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The first cut at which the process had started; earlier records are the initial content.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Chooses `count` different cuts after the start, or all if there are fewer, in ascending order, so that one
    /// [`super::Disk`] can advance through them.
    pub(crate) fn cuts(&self, seed: u64, count: usize) -> Vec<usize> {
        let mut cuts: Vec<usize> = (self.start..=self.len()).collect();
        let random = SeededRandom::new(seed);
        while cuts.len() > count {
            let dropped = random.below(cuts.len() as u64) as usize;
            cuts.swap_remove(dropped);
        }
        cuts.sort_unstable();
        cuts
    }

    /// The index of the first failed call, if any.
    pub(crate) fn first_fault(&self) -> Option<usize> {
        let failed = |event: &Event| matches!(event, Event::Fault | Event::SyncFailed { .. });
        self.events.iter().position(failed)
    }

    /// The calls that the shim refused because the trace format cannot express them. The process saw errors that a real
    /// disk would not return.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|event| match event {
            Event::Refused { what } => Some(what.as_str()),
            _ => None,
        })
    }
}

/// The fixed part of a record.
struct Header {
    op: u8,
    name_len: u32,
    to_name_len: u32,
    data_len: u32,
    file: FileId,
    dir: FileId,
    to_dir: FileId,
    value: u64,
}

impl Header {
    fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [[0u8; 4]; 4];
        let mut tail = [[0u8; 8]; 4];
        if !fill(input, head.as_flattened_mut())? || !fill(input, tail.as_flattened_mut())? {
            return Ok(None);
        }
        let [[op, ..], name_len, to_name_len, data_len] = head;
        let [file, dir, to_dir, value] = tail.map(u64::from_le_bytes);
        Ok(Some(Self {
            op,
            name_len: u32::from_le_bytes(name_len),
            to_name_len: u32::from_le_bytes(to_name_len),
            data_len: u32::from_le_bytes(data_len),
            file: FileId(file),
            dir: FileId(dir),
            to_dir: FileId(to_dir),
            value,
        }))
    }
}

/// Reads the next event. Returns `None` at the end, and for an incomplete last record.
fn read_event(input: &mut impl Read, record: usize) -> io::Result<Option<Event>> {
    let Some(header) = Header::read(input)? else {
        return Ok(None);
    };
    let (Some(name), Some(to_name), Some(data)) = (
        take(input, header.name_len)?,
        take(input, header.to_name_len)?,
        take(input, header.data_len)?,
    ) else {
        return Ok(None);
    };
    event(&header, name, to_name, data)
        .map(Some)
        .map_err(|what| invalid(format!("{what}: record={record} op={}", header.op)))
}

/// The numbers are those of `enum op` in `shim.h`. Initial content becomes the same events as later changes.
fn event(
    header: &Header,
    name: Vec<u8>,
    to_name: Vec<u8>,
    data: Vec<u8>,
) -> Result<Event, &'static str> {
    let file = header.file;
    Ok(match header.op {
        4 => Event::Start,
        1 | 6 => Event::Mkdir {
            at: dir_entry(header.dir, name)?,
            file,
        },
        2 | 5 => Event::Create {
            at: dir_entry(header.dir, name)?,
            file,
        },
        7 => Event::Link {
            at: dir_entry(header.dir, name)?,
            file,
        },
        8 => Event::Rename {
            from: dir_entry(header.dir, name)?,
            to: dir_entry(header.to_dir, to_name)?,
            file,
        },
        9 => Event::Unlink {
            at: dir_entry(header.dir, name)?,
            file,
        },
        3 | 10 => Event::Write {
            file,
            offset: bounded(header.value, data.len())?,
            data,
        },
        11 => Event::Truncate {
            file,
            len: bounded(header.value, 0)?,
        },
        12 | 13 => Event::Sync { file },
        14 => Event::SyncAll,
        15 => Event::Mark { bytes: data },
        16 if header.value == SYNC_CLASS => Event::SyncFailed { file },
        16 => Event::Fault,
        17 => Event::Refused {
            what: String::from_utf8(data).map_err(|_| "text is not UTF-8")?,
        },
        _ => return Err("unknown operation"),
    })
}

/// Parses a name. The replay creates files with these names, so they must not lead out of their directory.
fn dir_entry(dir: FileId, name: Vec<u8>) -> Result<DirEntry, &'static str> {
    let name = String::from_utf8(name).map_err(|_| "file name is not UTF-8")?;
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return Err("not a file name");
    }
    Ok(DirEntry { dir, name })
}

/// Checks that the end of a write fits into the kernel's offsets.
fn bounded(offset: u64, len: usize) -> Result<u64, &'static str> {
    let end = offset.checked_add(len as u64);
    match end {
        Some(end) if i64::try_from(end).is_ok() => Ok(offset),
        _ => Err("offset out of range"),
    }
}

fn take(input: &mut impl Read, len: u32) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(len.into()).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == u64::from(len)).then_some(bytes))
}

/// Fills `bytes`. Returns false if the input ends first.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn invalid(message: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message)
}
