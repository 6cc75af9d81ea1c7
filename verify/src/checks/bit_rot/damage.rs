//! The kinds of damage, and applying them.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use floe_store::env::SeededRandom;

use super::super::tree;
use super::base::{Base, Kind};
use crate::Failure;

const SECTOR_BYTES: u64 = 512;
/// Size of the end of a journal, which is damaged as often as all bytes before it.
const TAIL_BYTES: u64 = 256;

/// The bytes at the boundary between two batches of a journal.
const BATCH_START: &[u8; 5] = b"FJL\x03\x01";
/// The offset of a batch's number from the start of the batch. No checksum covers it.
const NUMBER_OFFSET: u64 = 5;
const NUMBER_BYTES: u64 = 8;

/// Damage of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    file: PathBuf,
    file_kind: &'static str,
    kind: DamageKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DamageKind {
    Flip { byte: u64, bit: u8 },
    Zero { sector: u64 },
    Truncate { length: u64 },
    Remove,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "file={} damage=", self.file.display())?;
        match self.kind {
            DamageKind::Flip { byte, bit } => write!(out, "flip byte={byte} bit={bit}"),
            DamageKind::Zero { sector } => write!(out, "zero sector={sector}"),
            DamageKind::Truncate { length } => write!(out, "truncate length={length}"),
            DamageKind::Remove => write!(out, "remove"),
        }
    }
}

impl Damage {
    /// Chooses random damage, weighted by kind of file.
    pub(super) fn choose(base: &Base, random: &SeededRandom) -> Result<Self, Failure> {
        let mut kinds: Vec<_> = base.files().iter().map(|file| file_kind(file)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let shares = kinds.iter().flat_map(|kind| vec![*kind; share(kind)]);
        let file_kind = *pick(&shares.collect::<Vec<_>>(), random)?;
        let files = base.files().iter();
        let files: Vec<_> = files
            .filter(|file| self::file_kind(file) == file_kind)
            .collect();
        let file = *pick(&files, random)?;
        let kind = choose_kind(base, file, random)?;
        Ok(Self {
            file: file.clone(),
            file_kind,
            kind,
        })
    }

    pub(super) const fn file_kind(&self) -> &'static str {
        self.file_kind
    }

    /// Applies the damage to a copy.
    pub(super) fn apply(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(&self.file);
        if self.kind == DamageKind::Remove {
            return fs::remove_file(path);
        }
        let file = File::options().read(true).write(true).open(path)?;
        match self.kind {
            DamageKind::Flip { byte, bit } => {
                let mut buffer = [0];
                // A read past the end of the file leaves the zero in place.
                let _ = file.read_at(&mut buffer, byte)?;
                let [value] = buffer;
                file.write_all_at(&[value ^ (1 << bit)], byte)
            }
            DamageKind::Zero { sector } => {
                let length = file.metadata()?.len();
                let bytes = length.saturating_sub(sector * SECTOR_BYTES);
                let bytes = usize::try_from(bytes.min(SECTOR_BYTES)).unwrap_or(0);
                file.write_all_at(&vec![0; bytes], sector * SECTOR_BYTES)
            }
            DamageKind::Truncate { length } => file.set_len(length),
            DamageKind::Remove => Ok(()),
        }
    }
}

fn pick<'a, T>(from: &'a [T], random: &SeededRandom) -> Result<&'a T, Failure> {
    let at = usize::try_from(random.below(from.len() as u64)).unwrap_or(0);
    from.get(at)
        .ok_or_else(|| Failure::broken("no file to damage"))
}

/// Returns the kind of a file, derived from its name.
fn file_kind(path: &Path) -> &'static str {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().and_then(Path::file_name);
    let is_numbered = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    if name.ends_with(".jnl") {
        "journal"
    } else if parent.is_some_and(|parent| parent == "tables") {
        "sorted"
    } else if name.strip_prefix('v').is_some_and(is_numbered) {
        "version"
    } else if name == "current" {
        "current"
    } else if name == "FORMAT" {
        "format"
    } else if path.starts_with("data") {
        "data"
    } else {
        "store"
    }
}

/// The weight of a kind of file: files with items weigh more than files of a few bytes.
fn share(kind: &str) -> usize {
    match kind {
        "journal" | "sorted" => 3,
        "version" => 2,
        _ => 1,
    }
}

/// The offsets at which the batches of a journal begin.
fn batch_starts(path: &Path, end: u64) -> io::Result<Vec<u64>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(end).read_to_end(&mut bytes)?;
    let ends = bytes.windows(BATCH_START.len()).enumerate();
    let ends = ends.filter(|(_, window)| window == BATCH_START);
    let first = bytes.first().filter(|byte| **byte == 1).map(|_| 0);
    Ok(first
        .into_iter()
        .chain(ends.map(|(at, _)| at as u64 + BATCH_START.len() as u64 - 1))
        .collect())
}

fn choose_kind(base: &Base, file: &Path, random: &SeededRandom) -> Result<DamageKind, Failure> {
    let path = base.folder().join(file);
    let is_journal = file_kind(file) == "journal";
    let is_newest = base.newest_journal().is_some_and(|newest| newest == file);
    let end = if is_journal {
        tree::data_end(&path)?
    } else {
        fs::metadata(&path)?.len()
    };
    // The end of the newest journal of a killed process may be torn; the content after it is unknown.
    let is_open_ended = base.kind() == Kind::Killed && is_newest;
    let position = |random: &SeededRandom| match random.below(20) {
        0..=9 if is_journal => end - 1 - random.below(TAIL_BYTES.min(end)),
        // In the preallocated space after the data.
        10 if is_journal => end + random.below(TAIL_BYTES),
        _ => random.below(end),
    };
    let starts = if is_journal {
        batch_starts(&path, end)?
    } else {
        Vec::new()
    };
    Ok(match random.below(10) {
        _ if end == 0 => DamageKind::Remove,
        0 | 5 if !starts.is_empty() => DamageKind::Flip {
            byte: pick(&starts, random)? + NUMBER_OFFSET + random.below(NUMBER_BYTES),
            bit: u8::try_from(random.below(8)).unwrap_or(0),
        },
        0..=4 => DamageKind::Flip {
            byte: position(random),
            bit: u8::try_from(random.below(8)).unwrap_or(0),
        },
        5 | 6 => DamageKind::Zero {
            sector: position(random) / SECTOR_BYTES,
        },
        _ if is_open_ended => DamageKind::Flip {
            byte: random.below(end),
            bit: 0,
        },
        7 | 8 if is_newest && random.below(2) == 0 => DamageKind::Truncate {
            length: *pick(base.boundaries(), random)?,
        },
        7 | 8 => DamageKind::Truncate {
            length: position(random).min(end - 1),
        },
        _ => DamageKind::Remove,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_kind_follows_from_the_name() {
        let cases = [
            ("data/0.jnl", "journal"),
            ("data/keyspaces/3/tables/17", "sorted"),
            ("data/keyspaces/3/v12", "version"),
            ("data/keyspaces/3/current", "current"),
            ("data/version", "data"),
            ("FORMAT", "format"),
            ("LOCK", "store"),
        ];
        for (path, kind) in cases {
            assert_eq!(file_kind(Path::new(path)), kind, "{path}");
        }
    }

    #[test]
    fn damage_applies_the_described_change() {
        let folder = tempfile::tempdir().unwrap();
        let check = |kind, expected: Option<Vec<u8>>| {
            fs::write(folder.path().join("f"), [0xff; 700]).unwrap();
            let damage = Damage {
                file: "f".into(),
                file_kind: "store",
                kind,
            };
            damage.apply(folder.path()).unwrap();
            assert_eq!(fs::read(folder.path().join("f")).ok(), expected, "{damage}");
        };
        let mut flipped = vec![0xff; 700];
        flipped[699] = 0xfe;
        check(DamageKind::Flip { byte: 699, bit: 0 }, Some(flipped));
        let zeroed = [vec![0xff; 512], vec![0; 188]].concat();
        check(DamageKind::Zero { sector: 1 }, Some(zeroed));
        check(DamageKind::Truncate { length: 9 }, Some(vec![0xff; 9]));
        check(DamageKind::Remove, None);
    }
}
