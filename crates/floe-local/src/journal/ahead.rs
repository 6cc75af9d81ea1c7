//! Zeros ahead of the journal, so that a sync has less to do.
//!
//! The store below makes a journal long and empty: a file of holes. Whatever is written into a hole needs a block, and
//! with the block the file system must write down where it is: a second write for each sync, and on many file systems
//! a commit of their own journal. Where zeros have been written before, a sync writes the data and nothing else. So
//! zeros are kept some way ahead of the last batch.
//!
//! The committer does this between two batches, and nobody but the committer adds batches, so no zero can fall on data:
//! they begin behind the last byte of the newest journal that is something else. If the journal is changed for another
//! one meanwhile, they fall on the end of the old one, where zeros are what is read anyway.
//!
//! All of this only saves time. If it fails, it is left; a disk that is full or broken shows in the next commit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{data_length, newest_journal};

/// How far ahead of the last batch zeros are kept.
const AHEAD_BYTES: u64 = 128 << 10;

/// How often to look: each time so much has been written.
const STEP_BYTES: u64 = 64 << 10;

/// Commits that write more than this are left alone: what they write counts more than where it is.
const COMMIT_BYTES_MAX: u64 = 16 << 10;

/// The size of a page: what is written is written page by page.
const PAGE_BYTES: u64 = 4 << 10;

/// Keeps zeros ahead of the journal in a folder.
#[derive(Debug)]
pub(crate) struct Ahead {
    folder: PathBuf,
    journal: Option<Journal>,
    /// What was written since it looked last.
    commits: u64,
    bytes: u64,
    /// It has failed, and will not be tried again.
    is_off: bool,
}

/// The journal that is written to.
#[derive(Debug)]
struct Journal {
    path: PathBuf,
    file: File,
    /// Nothing but zeros comes from here on, when it was looked at last.
    end: u64,
    /// Up to where there are zeros.
    zeroed: u64,
}

impl Ahead {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            journal: None,
            commits: 0,
            // It looks at once.
            bytes: STEP_BYTES,
            is_off: cfg!(not(target_os = "linux")),
        }
    }

    /// Takes note of a commit of so many bytes that was synced.
    pub(crate) fn note(&mut self, bytes: u64) {
        self.commits += 1;
        self.bytes += bytes;
    }

    /// Writes zeros, if it is time to.
    pub(crate) fn keep_up(&mut self) {
        if self.bytes < STEP_BYTES || self.is_off {
            return;
        }
        let is_large = self.bytes > self.commits * COMMIT_BYTES_MAX && self.commits > 0;
        (self.commits, self.bytes) = (0, 0);
        if !is_large {
            self.is_off = self.write().is_err();
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let newest = newest_journal(&self.folder).map_err(io::Error::other)?;
        let Some(path) = newest else {
            return Ok(());
        };
        let journal = match &mut self.journal {
            Some(journal) if journal.path == path => journal,
            other => other.insert(Journal::open(path)?),
        };
        journal.find_end()?;
        journal.write_zeros()
    }
}

impl Journal {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let end = data_length(&file)?;
        Ok(Self {
            path,
            file,
            end,
            zeroed: end,
        })
    }

    /// Looks how far batches have come since. The last byte of a batch is never zero.
    fn find_end(&mut self) -> io::Result<()> {
        let written = data_length(&self.file)?.saturating_sub(self.end);
        let mut bytes = vec![0; usize::try_from(written).map_err(io::Error::other)?];
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.read_exact(&mut bytes)?;
        let last = bytes.iter().rposition(|byte| *byte != 0);
        self.end += last.map_or(0, |last| last as u64 + 1);
        Ok(())
    }

    fn write_zeros(&mut self) -> io::Result<()> {
        static ZEROS: [u8; STEP_BYTES as usize] = [0; STEP_BYTES as usize];
        let first = self.end.next_multiple_of(PAGE_BYTES);
        let last = (first + AHEAD_BYTES).min(self.file.metadata()?.len());
        let mut at = self.zeroed.max(first);
        self.file.seek(SeekFrom::Start(at))?;
        while at < last {
            let length = (last - at).min(STEP_BYTES);
            let zeros = ZEROS.get(..usize::try_from(length).unwrap_or_default());
            self.file.write_all(zeros.unwrap_or_default())?;
            at += length;
        }
        self.zeroed = at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal as the store below makes it, and somebody who keeps zeros ahead of it.
    fn journal(folder: &Path, number: u32) -> (File, Ahead) {
        let file = File::create_new(folder.join(format!("{number}.jnl"))).unwrap();
        file.set_len(4 << 20).unwrap();
        (file, Ahead::new(folder))
    }

    fn written(folder: &Path, number: u32) -> u64 {
        data_length(&File::open(folder.join(format!("{number}.jnl"))).unwrap()).unwrap()
    }

    #[test]
    fn zeros_stay_ahead_and_fall_on_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut file, mut ahead) = journal(folder.path(), 0);
        let mut expected = Vec::new();
        for n in 0..1000_u32 {
            ahead.keep_up();
            // Batches have zeros inside, and none at their end.
            let batch = [&[1; 500][..], &vec![0; n as usize % 3000], &[3]].concat();
            file.write_all(&batch).unwrap();
            expected.extend_from_slice(&batch);
            ahead.note(batch.len() as u64);
            if n % 100 == 99 {
                let bytes = std::fs::read(folder.path().join("0.jnl")).unwrap();
                assert!(bytes[..expected.len()] == expected[..], "n={n}");
                assert!(
                    bytes[expected.len()..].iter().all(|byte| *byte == 0),
                    "n={n}"
                );
            }
        }
        assert!(!ahead.is_off);
        let (written, end) = (written(folder.path(), 0), expected.len() as u64);
        assert!(
            written > end + AHEAD_BYTES / 2 && written < end + 2 * AHEAD_BYTES,
            "{written} {end}"
        );
    }

    #[test]
    fn it_goes_over_to_the_next_journal() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mut ahead) = journal(folder.path(), 9);
        ahead.keep_up();
        journal(folder.path(), 10);
        ahead.note(STEP_BYTES);
        ahead.note(0);
        ahead.note(0);
        ahead.note(0);
        ahead.keep_up();
        assert_eq!(written(folder.path(), 10), AHEAD_BYTES);
    }

    #[test]
    fn the_journal_does_not_grow() {
        let folder = tempfile::tempdir().unwrap();
        let (file, mut ahead) = journal(folder.path(), 0);
        file.set_len(5000).unwrap();
        ahead.keep_up();
        assert_eq!(file.metadata().unwrap().len(), 5000);
        assert!(!ahead.is_off);
    }

    #[test]
    fn large_commits_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mut ahead) = journal(folder.path(), 0);
        ahead.note(1 << 20);
        ahead.keep_up();
        assert_eq!(written(folder.path(), 0), 0);
    }

    #[test]
    fn what_cannot_be_written_is_left() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("0.jnl")).unwrap();
        let mut ahead = Ahead::new(folder.path());
        ahead.keep_up();
        assert!(ahead.is_off);
    }
}
