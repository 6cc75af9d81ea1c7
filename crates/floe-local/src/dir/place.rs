//! Whether the files of an open store are still the ones that its directory leads to.
//!
//! What is written to a file that was removed or replaced is lost, although writing succeeds. Asked after each commit,
//! this costs two `stat` calls: of the lock, and of the folder of the key-value store. The time of the last change of the
//! folder says whether a name in it came or went; only then are the names compared.

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

/// Two changes of a folder in less than this may have the same time.
const SAME_TIME_MAX: Duration = Duration::from_millis(100);

/// How often names are compared while the store below makes and removes journals.
const ATTEMPTS_MAX: u32 = 20;

/// The folder of an open key-value store.
#[derive(Debug)]
pub(super) struct Place {
    folder: FileId,
    seen: Mutex<Option<Seen>>,
}

/// What was in the folder when it was looked at last.
#[derive(Debug)]
struct Seen {
    names: Names,
    changed: Changed,
    /// Since the folder has this time.
    since: Stopwatch,
    /// Another change would have another time.
    is_settled: bool,
}

/// The time of the last change of a folder.
type Changed = (i64, i64);

#[derive(Debug, PartialEq, Eq)]
struct Names {
    keyspaces: FileId,
    journals: BTreeMap<u64, FileId>,
}

impl Place {
    /// The folder at this path.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: FileId::of(&fs::metadata(folder)?),
            seen: Mutex::default(),
        })
    }

    /// Whether the folder at this path is this one, with its files. `journal_count` returns how many journals there must be;
    /// none if that is not known.
    pub(super) fn is_at(&self, folder: &Path, journal_count: impl Fn() -> Option<usize>) -> bool {
        let Ok(found) = fs::metadata(folder) else {
            return false;
        };
        if FileId::of(&found) != self.folder {
            return false;
        }
        let changed = changed(&found);
        let mut seen = lock(&self.seen);
        let since = match &*seen {
            Some(seen) if seen.changed == changed && seen.is_settled => return true,
            Some(seen) if seen.changed == changed => seen.since,
            _ => Stopwatch::start(),
        };
        let is_settled = since.elapsed() > SAME_TIME_MAX;
        let Some(names) = Names::read(folder, journal_count) else {
            return false;
        };
        if !seen.as_ref().is_none_or(|seen| names.follow(&seen.names)) {
            return false;
        }
        *seen = Some(Seen {
            names,
            changed,
            since,
            is_settled,
        });
        true
    }
}

impl Names {
    /// The names in a folder; none if one that must be there is missing.
    fn read(folder: &Path, journal_count: impl Fn() -> Option<usize>) -> Option<Self> {
        for _ in 0..ATTEMPTS_MAX {
            let expected = journal_count();
            // A journal may be removed between the two calls that list it.
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

    /// Whether these can be the names of the same store some time later: journals come at the end, and none is replaced.
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
fn changed(found: &fs::Metadata) -> Changed {
    use std::os::unix::fs::MetadataExt;

    (found.ctime(), found.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> Changed {
    (0, 0)
}
