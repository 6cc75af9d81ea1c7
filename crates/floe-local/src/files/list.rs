//! The list of the sorted files of a keyspace.
//!
//! A file `current` contains the number of the list (`v7`) and its checksum. The key-value store writes this checksum
//! but does not verify it: it trusts a damaged list, or panics. So it is verified here.
//!
//! The format is that of version 3 of the key-value store, which `kv.rs` pins: `current` contains the number of the
//! list (`u64`), the checksum (`u128`, xxh3) and a zero, all little-endian.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::{salvageable, unreadable};

/// The file that names the list.
pub(super) const CURRENT_FILE: &str = "current";

/// Verifies the checksum of the list, and returns its number.
///
/// # Errors
///
/// [`Error::Storage`] if the list is damaged.
pub(super) fn check(keyspace: &Path) -> Result<u64> {
    let list = Current::read(keyspace)?;
    let path = list.path(keyspace);
    let bytes = fs::read(&path).map_err(|e| unreadable(&path, &e))?;
    if xxh3_128(&bytes) == list.checksum {
        Ok(list.number)
    } else {
        Err(damaged(&path))
    }
}

/// The numbers of the sorted files of a keyspace.
///
/// # Errors
///
/// [`Error::Storage`] if the list is damaged.
pub(crate) fn listed(keyspace: &Path) -> Result<Vec<u64>> {
    check(keyspace)?;
    let path = Current::read(keyspace)?.path(keyspace);
    parse(&path).map_err(|_| damaged(&path))
}

/// The content of `current`.
pub(super) struct Current {
    pub(super) number: u64,
    checksum: u128,
}

impl Current {
    pub(super) fn read(keyspace: &Path) -> Result<Self> {
        let path = keyspace.join(CURRENT_FILE);
        let bytes = fs::read(&path).map_err(|e| unreadable(&path, &e))?;
        let (number, rest) = bytes.split_first_chunk().ok_or_else(|| damaged(&path))?;
        let (checksum, kind) = rest.split_first_chunk().ok_or_else(|| damaged(&path))?;
        if kind != [0] {
            return Err(damaged(&path));
        }
        Ok(Self {
            number: u64::from_le_bytes(*number),
            checksum: u128::from_le_bytes(*checksum),
        })
    }

    fn path(&self, keyspace: &Path) -> PathBuf {
        keyspace.join(format!("v{}", self.number))
    }
}

fn parse(path: &Path) -> io::Result<Vec<u64>> {
    let reader = sfa::Reader::new(path).map_err(io::Error::other)?;
    let section = reader.toc().section(b"tables");
    let section = section.ok_or_else(|| io::Error::other("it names no files"))?;
    let mut bytes = section.buf_reader(path)?;
    let mut numbers = Vec::new();
    let [levels] = array(&mut bytes)?;
    for _ in 0..levels {
        let [runs] = array(&mut bytes)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(array(&mut bytes)?) {
                numbers.push(u64::from_le_bytes(array(&mut bytes)?));
                // Checksum type, checksum and sequence number.
                array::<25>(&mut bytes)?;
            }
        }
    }
    Ok(numbers)
}

fn array<const LEN: usize>(bytes: &mut impl Read) -> io::Result<[u8; LEN]> {
    let mut array = [0; LEN];
    bytes.read_exact(&mut array)?;
    Ok(array)
}

fn damaged(path: &Path) -> Error {
    salvageable("a list of files is damaged", path)
}
