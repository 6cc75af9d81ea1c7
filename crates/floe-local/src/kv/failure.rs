//! Describes errors of fjall in words for operators.

use fjall::{Error, LsmError};

/// Describes an error without names of types.
pub(super) fn describe(error: &Error) -> String {
    match error {
        Error::Io(e) => e.to_string(),
        Error::Storage(e) => describe_files(e),
        Error::JournalRecovery(_) | Error::InvalidTrailer | Error::InvalidTag(_) => {
            "a journal is damaged".to_owned()
        }
        Error::InvalidVersion(_) => "it was written by another version of the store".to_owned(),
        Error::Decompress(_) => DECOMPRESS.to_owned(),
        Error::Poisoned => "an earlier write failed".to_owned(),
        Error::KeyspaceDeleted => "a keyspace was removed".to_owned(),
        Error::Locked => "another process uses it".to_owned(),
        _ => MISSING.to_owned(),
    }
}

const DECOMPRESS: &str = "a block cannot be decompressed";
const MISSING: &str = "a file is missing or damaged";

/// Describes an error of a sorted file.
pub(super) fn describe_files(error: &LsmError) -> String {
    match error {
        LsmError::Io(e) => e.to_string(),
        LsmError::Decompress(_) => DECOMPRESS.to_owned(),
        LsmError::InvalidVersion(_) => "a file was written by another version".to_owned(),
        LsmError::ChecksumMismatch { .. } => "a checksum does not match".to_owned(),
        LsmError::InvalidTag(_)
        | LsmError::InvalidTrailer
        | LsmError::InvalidHeader(_)
        | LsmError::Utf8(_) => "a block is damaged".to_owned(),
        _ => MISSING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn descriptions_contain_no_type_names() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let damaged = || LsmError::InvalidTag(("BlockType", 7));
        for error in [
            Error::Io(full()),
            Error::Storage(LsmError::Io(full())),
            Error::Storage(LsmError::Unrecoverable),
            Error::Storage(damaged()),
            Error::InvalidTag(("Tag", 7)),
            Error::Poisoned,
            Error::Unrecoverable,
        ] {
            let words = describe(&error);
            let is_plain = words.chars().all(|c| c.is_ascii_lowercase() || c == ' ');
            assert!(is_plain, "{words}");
        }
    }
}
