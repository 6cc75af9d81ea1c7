//! The bytes of one file, kept in pages.
//!
//! Pages that were never written are zeros and use no memory, because databases preallocate journals of many megabytes.
//! Clones share their pages, because every cut contains mostly the same files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

const PAGE_BYTES: usize = 4096;

type Page = [u8; PAGE_BYTES];

/// A sparse file in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Writes like the kernel: a gap after the old end is filled with zeros.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let (page, within) = locate(at);
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - within));
            if let Some(bytes) = self.page_mut(page).get_mut(within..within + now.len()) {
                bytes.copy_from_slice(now);
            }
            at += now.len() as u64;
            rest = later;
        }
        self.len = self.len.max(at);
    }

    /// Truncates the file, or extends it with zeros.
    pub(super) fn resize(&mut self, len: u64) {
        let (last, within) = locate(len);
        if len < self.len {
            self.pages.split_off(&(last + 1));
            if self.pages.contains_key(&last)
                && let Some(bytes) = self.page_mut(last).get_mut(within..)
            {
                bytes.fill(0);
            }
        }
        self.len = len;
    }

    fn page_mut(&mut self, page: u64) -> &mut Page {
        let zeros = || Arc::new([0; PAGE_BYTES]);
        Arc::make_mut(self.pages.entry(page).or_insert_with(zeros))
    }

    /// Creates a file with this content.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create_new(path)?;
        file.set_len(self.len)?;
        let mut position = 0;
        for (page, bytes) in &self.pages {
            let start = page * PAGE_BYTES as u64;
            let used = (self.len - start).min(PAGE_BYTES as u64);
            if start != position {
                file.seek(SeekFrom::Start(start))?;
            }
            file.write_all(bytes.get(..used as usize).unwrap_or(bytes.as_slice()))?;
            position = start + used;
        }
        Ok(())
    }
}

fn locate(offset: u64) -> (u64, usize) {
    let page_bytes = PAGE_BYTES as u64;
    (offset / page_bytes, (offset % page_bytes) as usize)
}
