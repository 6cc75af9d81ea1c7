//! Writes zeros ahead of the journal's end, so that a sync has less to do.
//!
//! The key-value store creates a journal as a long sparse file. Writing into a hole allocates a block, and the file
//! system must record where that block is: a second write for each sync, and on many file systems a commit of their own
//! journal. Where zeros have already been written, a sync writes only data. So zeros are kept some distance ahead of
//! the last batch.
//!
//! The committer does this between two batches, and only the committer adds batches, so zeros can never overwrite data:
//! they start after the last nonzero byte of the newest journal. If the key-value store rotates the journal meanwhile,
//! they are written to the end of the old one, which reads as zeros anyway.
//!
//! This only saves time. If it fails, it is disabled; a full or broken disk shows in the next commit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{data_length, newest_journal};

/// Number of zero bytes to keep ahead of the last batch.
const AHEAD_BYTES: u64 = 128 << 10;

/// Number of bytes written between two checks.
const STEP_BYTES: u64 = 64 << 10;

/// Larger commits get no zeros: their writing time outweighs the allocation.
const COMMIT_BYTES_MAX: u64 = 16 << 10;

/// Size of a page. Writes happen in whole pages.
const PAGE_BYTES: u64 = 4 << 10;

/// Writes zeros ahead of the journal in a folder.
#[derive(Debug)]
pub(crate) struct JournalZeroing {
    folder: PathBuf,
    journal: Option<Journal>,
    /// Commits since the last check.
    commits: u64,
    bytes: u64,
    /// Whether a write failed; it is not retried.
    is_disabled: bool,
}

/// The journal that is being written.
#[derive(Debug)]
struct Journal {
    path: PathBuf,
    file: File,
    /// Only zeros followed from this offset on at the last check.
    end: u64,
    /// End of the written zeros.
    zeroed: u64,
}

impl JournalZeroing {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            journal: None,
            commits: 0,
            // Due immediately.
            bytes: STEP_BYTES,
            is_disabled: cfg!(not(target_os = "linux")),
        }
    }

    /// Records a synced commit of this size.
    pub(crate) fn record_commit(&mut self, bytes: u64) {
        self.commits += 1;
        self.bytes += bytes;
    }

    /// Writes zeros, if a check is due.
    pub(crate) fn write_if_due(&mut self) {
        if self.bytes < STEP_BYTES || self.is_disabled {
            return;
        }
        let is_large = self.bytes > self.commits * COMMIT_BYTES_MAX && self.commits > 0;
        (self.commits, self.bytes) = (0, 0);
        if !is_large {
            self.is_disabled = self.write().is_err();
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

    /// Finds the end of the last batch. The last byte of a batch is never zero.
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

    /// A journal as the key-value store creates it, and the zeroing for it.
    fn journal(folder: &Path, number: u32) -> (File, JournalZeroing) {
        let file = File::create_new(folder.join(format!("{number}.jnl"))).unwrap();
        file.set_len(4 << 20).unwrap();
        (file, JournalZeroing::new(folder))
    }

    fn written(folder: &Path, number: u32) -> u64 {
        data_length(&File::open(folder.join(format!("{number}.jnl"))).unwrap()).unwrap()
    }

    #[test]
    fn zeros_stay_ahead_and_never_overwrite_data() {
        let folder = tempfile::tempdir().unwrap();
        let (mut file, mut zeroing) = journal(folder.path(), 0);
        let mut expected = Vec::new();
        for n in 0..1000_u32 {
            zeroing.write_if_due();
            // Batches can contain zeros, but do not end with one.
            let batch = [&[1; 500][..], &vec![0; n as usize % 3000], &[3]].concat();
            file.write_all(&batch).unwrap();
            expected.extend_from_slice(&batch);
            zeroing.record_commit(batch.len() as u64);
            if n % 100 == 99 {
                let bytes = std::fs::read(folder.path().join("0.jnl")).unwrap();
                assert!(bytes[..expected.len()] == expected[..], "n={n}");
                assert!(
                    bytes[expected.len()..].iter().all(|byte| *byte == 0),
                    "n={n}"
                );
            }
        }
        assert!(!zeroing.is_disabled);
        let (written, end) = (written(folder.path(), 0), expected.len() as u64);
        assert!(
            written > end + AHEAD_BYTES / 2 && written < end + 2 * AHEAD_BYTES,
            "{written} {end}"
        );
    }

    #[test]
    fn zeros_continue_in_the_next_journal() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mut zeroing) = journal(folder.path(), 9);
        zeroing.write_if_due();
        journal(folder.path(), 10);
        zeroing.record_commit(STEP_BYTES);
        zeroing.record_commit(0);
        zeroing.record_commit(0);
        zeroing.record_commit(0);
        zeroing.write_if_due();
        assert_eq!(written(folder.path(), 10), AHEAD_BYTES);
    }

    #[test]
    fn journal_length_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (file, mut zeroing) = journal(folder.path(), 0);
        file.set_len(5000).unwrap();
        zeroing.write_if_due();
        assert_eq!(file.metadata().unwrap().len(), 5000);
        assert!(!zeroing.is_disabled);
    }

    #[test]
    fn large_commits_get_no_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mut zeroing) = journal(folder.path(), 0);
        zeroing.record_commit(1 << 20);
        zeroing.write_if_due();
        assert_eq!(written(folder.path(), 0), 0);
    }

    #[test]
    fn write_error_disables_zeroing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("0.jnl")).unwrap();
        let mut zeroing = JournalZeroing::new(folder.path());
        zeroing.write_if_due();
        assert!(zeroing.is_disabled);
    }
}
