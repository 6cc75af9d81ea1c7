//! The seal of a closed store: names, lengths and checksums of its journals.
//!
//! A journal that was truncated after a clean close looks like one that was never longer, because each batch left in it
//! is complete. So closing writes a seal, and opening first checks it and then removes it. A store without a seal was
//! not closed: its process died, and the end of its journal may be torn.

use std::fmt::Write as _;
use std::path::Path;

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::journal;

const HEAD: &str = "floe-seal 1";

/// Computes the seal of the journals in a folder.
///
/// # Errors
///
/// [`Error::Storage`] if a journal cannot be read.
pub(crate) fn compute(data: &Path) -> Result<String> {
    let mut text = format!("{HEAD}\n");
    for journal in journals(data)? {
        let (name, length, checksum) = (journal.name, journal.length, journal.checksum);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} {length} {checksum:032x}");
    }
    let checksum = xxh3_128(text.as_bytes());
    let _ = writeln!(text, "end {checksum:032x}");
    Ok(text)
}

/// Checks the journals in a folder against the seal.
///
/// # Errors
///
/// [`Error::Storage`] if a journal is missing, or has changed since the store was closed.
pub(crate) fn check(seal: &str, data: &Path) -> Result<()> {
    match mismatches(seal, data)?.into_iter().next() {
        Some(mismatch) => Err(Error::Storage(format!(
            "a journal has changed since the store was closed, so acknowledged writes are missing: restore a backup, or \
            run floe doctor with --salvage: {mismatch}"
        ))),
        None => Ok(()),
    }
}

/// Describes each journal that has changed since the store was closed, with its path.
///
/// # Errors
///
/// [`Error::Storage`] if the seal is damaged or a journal cannot be read.
pub(crate) fn mismatches(seal: &str, data: &Path) -> Result<Vec<String>> {
    let mut found = journals(data)?;
    let mut mismatches = Vec::new();
    for expected in parse(seal)? {
        let at = found.iter().position(|found| found.name == expected.name);
        let what = match at.map(|at| found.remove(at)) {
            None => "the journal is missing".to_owned(),
            Some(found) if found.length != expected.length => {
                format!("the journal has {} bytes", found.length)
            }
            Some(found) if found.checksum != expected.checksum => "the checksum differs".to_owned(),
            Some(_) => continue,
        };
        let (path, bytes) = (data.join(&expected.name), expected.length);
        let path = path.display();
        mismatches.push(format!("{what}: path={path} expected_bytes={bytes}"));
    }
    for extra in found.iter().filter(|extra| extra.length > 0) {
        let path = data.join(&extra.name);
        mismatches.push(format!("the journal was added: path={}", path.display()));
    }
    Ok(mismatches)
}

struct Journal {
    name: String,
    /// Length without trailing zeros.
    length: u64,
    checksum: u128,
}

fn journals(data: &Path) -> Result<Vec<Journal>> {
    let mut sealed = Vec::new();
    for (number, path) in journal::journals(data)? {
        let mut bytes = journal::read(&path)?;
        let used = bytes.iter().rposition(|byte| *byte != 0);
        bytes.truncate(used.map_or(0, |last| last + 1));
        sealed.push(Journal {
            name: format!("{number}.jnl"),
            length: bytes.len() as u64,
            checksum: xxh3_128(&bytes),
        });
    }
    Ok(sealed)
}

fn parse(seal: &str) -> Result<Vec<Journal>> {
    let damaged = || {
        Error::Storage(
            "the seal of the store is damaged: restore a backup, or run floe doctor with --salvage"
                .to_owned(),
        )
    };
    let (text, end) = seal
        .rfind("end ")
        .and_then(|at| seal.split_at_checked(at))
        .ok_or_else(damaged)?;
    if end != format!("end {:032x}\n", xxh3_128(text.as_bytes())) {
        return Err(damaged());
    }
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Err(damaged());
    }
    let journal = |line: &str| {
        let mut words = line.split(' ');
        Some(Journal {
            name: words.next()?.to_owned(),
            length: words.next()?.parse().ok()?,
            checksum: u128::from_str_radix(words.next()?, 16).ok()?,
        })
    };
    lines
        .map(|line| journal(line).ok_or_else(damaged))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn any_change_of_a_journal_fails_the_seal_check() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jnl");
        let written = [b"some batches".as_slice(), &[0; 100]].concat();
        fs::write(&path, &written).unwrap();
        fs::write(folder.path().join("2.jnl"), [0; 64]).unwrap();
        let seal = compute(folder.path()).unwrap();
        check(&seal, folder.path()).unwrap();
        // Trailing zeros are preallocated space, not content.
        fs::write(&path, &written[..20]).unwrap();
        check(&seal, folder.path()).unwrap();

        for at in 0..12 {
            fs::write(&path, &written[..at]).unwrap();
            let error = check(&seal, folder.path()).unwrap_err().to_string();
            assert!(error.contains("1.jnl"), "{error}");
            let mut flipped = written.clone();
            flipped[at] ^= 4;
            fs::write(&path, &flipped).unwrap();
            assert!(check(&seal, folder.path()).is_err(), "flipped at {at}");
        }
        fs::remove_file(&path).unwrap();
        let error = check(&seal, folder.path()).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    }

    #[test]
    fn added_journal_is_rejected_unless_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.jnl"), "a").unwrap();
        let seal = compute(folder.path()).unwrap();
        fs::write(folder.path().join("2.jnl"), [0; 10]).unwrap();
        check(&seal, folder.path()).unwrap();
        fs::write(folder.path().join("2.jnl"), "b").unwrap();
        assert!(check(&seal, folder.path()).is_err());
    }

    #[test]
    fn damaged_seal_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.jnl"), "a").unwrap();
        let seal = compute(folder.path()).unwrap();
        for at in 0..seal.len() {
            assert!(parse(&seal[..at]).is_err(), "cut at {at}");
            let mut flipped = seal.clone().into_bytes();
            flipped[at] ^= 1;
            if let Ok(flipped) = String::from_utf8(flipped) {
                assert!(parse(&flipped).is_err(), "flipped at {at}");
            }
        }
    }
}
