//! Detects whether the files of an open store were removed or replaced.
//!
//! Writes to a removed or replaced file succeed but are lost. The check after each commit costs two `stat` calls: of
//! the lock, and of the folder of the key-value store. The modification time of the folder shows whether a name in it
//! was added or removed; only then are the names compared.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use floe_store::env::Stopwatch;

use crate::files::KEYSPACES_FOLDER;
use crate::journal;
use crate::locks::lock;
use crate::private::FileId;

/// Two changes of a folder within this time may have the same modification time.
const SAME_TIME_MAX: Duration = Duration::from_millis(100);

/// Maximum number of attempts to read the names while the key-value store creates and removes journals.
const ATTEMPTS_MAX: u32 = 20;

/// The folder of an open key-value store.
#[derive(Debug)]
pub(super) struct DataFolder {
    folder: FileId,
    last_check: Mutex<Option<LastCheck>>,
}

/// The content of the folder at the last check.
#[derive(Debug)]
struct LastCheck {
    names: Names,
    modified: ModificationTime,
    /// Time since the folder was first seen with this modification time.
    since: Stopwatch,
    /// Whether any further change would change the modification time.
    is_settled: bool,
}

/// The time at which a folder was last modified.
type ModificationTime = (i64, i64);

#[derive(Debug, PartialEq, Eq)]
struct Names {
    keyspaces: FileId,
    journals: BTreeMap<u64, FileId>,
}

impl DataFolder {
    /// Identifies the folder at this path.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: FileId::of(&fs::metadata(folder)?),
            last_check: Mutex::default(),
        })
    }

    /// Whether the folder at this path is this one, with its files. `journal_count` returns the expected number of
    /// journals; `None` if it is not known.
    pub(super) fn is_at(&self, folder: &Path, journal_count: impl Fn() -> Option<usize>) -> bool {
        let Ok(found) = fs::metadata(folder) else {
            return false;
        };
        if FileId::of(&found) != self.folder {
            return false;
        }
        let modified = modified(&found);
        let mut last_check = lock(&self.last_check);
        let since = match &*last_check {
            Some(last_check) if last_check.modified == modified && last_check.is_settled => {
                return true;
            }
            Some(last_check) if last_check.modified == modified => last_check.since,
            _ => Stopwatch::start(),
        };
        let is_settled = since.elapsed() > SAME_TIME_MAX;
        let Some(names) = Names::read(folder, journal_count) else {
            return false;
        };
        if !last_check
            .as_ref()
            .is_none_or(|last_check| names.follow(&last_check.names))
        {
            return false;
        }
        *last_check = Some(LastCheck {
            names,
            modified,
            since,
            is_settled,
        });
        true
    }
}

impl Names {
    /// Reads the names in a folder; `None` if a required one is missing.
    fn read(folder: &Path, journal_count: impl Fn() -> Option<usize>) -> Option<Self> {
        for _ in 0..ATTEMPTS_MAX {
            let expected = journal_count();
            // A journal may be removed between the two counts.
            let names = Self::list(folder);
            let is_whole = |names: &Self| names.journals.len() >= expected.unwrap_or(1);
            if let Some(names) = names.ok().filter(is_whole)
                && journal_count() == expected
            {
                return Some(names);
            }
            std::thread::yield_now();
        }
        None
    }

    fn list(folder: &Path) -> io::Result<Self> {
        let journals = journal::journals(folder).map_err(io::Error::other)?;
        let journals = journals
            .into_iter()
            .map(|(number, path)| Ok((number, FileId::at(&path)?)));
        Ok(Self {
            keyspaces: FileId::at(&folder.join(KEYSPACES_FOLDER))?,
            journals: journals.collect::<io::Result<_>>()?,
        })
    }

    /// Whether these names are possible after `before` in the same store: journals are only added at the end, and never
    /// replaced.
    fn follow(&self, before: &Self) -> bool {
        let is_same = |(number, id): (&u64, &FileId)| {
            let now = self.journals.get(number);
            now.is_none_or(|now| now == id)
        };
        let newest = |names: &Self| names.journals.last_key_value().map(|(number, _)| *number);
        self.keyspaces == before.keyspaces
            && before.journals.iter().all(is_same)
            && newest(self) >= newest(before)
    }
}

#[cfg(unix)]
fn modified(found: &fs::Metadata) -> ModificationTime {
    use std::os::unix::fs::MetadataExt;

    (found.ctime(), found.ctime_nsec())
}

#[cfg(not(unix))]
fn modified(_: &fs::Metadata) -> ModificationTime {
    (0, 0)
}
