//! Operations on whole directories: snapshots to compare, copies, and disk usage.
//!
//! Journals are large files with little data, so everything here reads data and skips holes.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, FileType, Permissions};
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The unit of reading. A block of zeros counts as a hole.
const BLOCK_BYTES: usize = 4096;

/// The properties of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: &'static str,
    mode: u32,
    length: u64,
    /// The hash of a file's content.
    content: u64,
    /// The target of a symbolic link.
    target: PathBuf,
}

/// A path and everything below it: kinds, modes, link targets and content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(BTreeMap<PathBuf, Entry>);

impl Tree {
    /// Takes a snapshot. Symbolic links are not followed.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.add(path, PathBuf::new())?;
        Ok(tree)
    }

    /// Takes a snapshot of a path that may not exist; a missing path gives an empty snapshot.
    pub(super) fn of_existing(path: &Path) -> io::Result<Self> {
        match Self::of(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            other => other,
        }
    }

    fn add(&mut self, path: &Path, name: PathBuf) -> io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        let mut entry = Entry {
            kind: kind(metadata.file_type()),
            mode: metadata.mode(),
            length: 0,
            content: 0,
            target: PathBuf::new(),
        };
        match entry.kind {
            "file" => {
                entry.length = metadata.len();
                entry.content = content_hash(path)?;
            }
            "link" => entry.target = fs::read_link(path)?,
            "directory" => {
                for child in fs::read_dir(path)? {
                    let child = child?;
                    self.add(&child.path(), name.join(child.file_name()))?;
                }
            }
            _ => {}
        }
        self.0.insert(name, entry);
        Ok(())
    }

    /// Returns the paths that differ between two snapshots, each with its change.
    pub(super) fn differences(&self, later: &Self) -> Vec<String> {
        let gone = self.0.keys().filter(|path| !later.0.contains_key(*path));
        let gone = gone.map(|path| format!("removed={}", path.display()));
        let other = later
            .0
            .iter()
            .filter_map(|(path, entry)| match self.0.get(path) {
                None => Some(format!("created={}", path.display())),
                Some(before) if before != entry => Some(format!("modified={}", path.display())),
                Some(_) => None,
            });
        gone.chain(other).collect()
    }
}

fn kind(of: FileType) -> &'static str {
    if of.is_dir() {
        "directory"
    } else if of.is_file() {
        "file"
    } else if of.is_symlink() {
        "link"
    } else if of.is_fifo() {
        "fifo"
    } else {
        "other"
    }
}

fn content_hash(path: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    each_block(&File::open(path)?, |offset, block| {
        hasher.write_u64(offset);
        hasher.write(block);
        Ok(())
    })?;
    Ok(hasher.finish())
}

/// Calls `take` with the offset and content of every block of a file that is not all zeros.
fn each_block(file: &File, mut take: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = [0; BLOCK_BYTES];
    for range in data_ranges(file)? {
        // Ranges may begin anywhere: blocks are aligned to the beginning of the file.
        let mut at = range.start - range.start % BLOCK_BYTES as u64;
        while at < range.end {
            let block = read_block(file, at, &mut buffer)?;
            if block.iter().any(|byte| *byte != 0) {
                take(at, block)?;
            }
            at += BLOCK_BYTES as u64;
        }
    }
    Ok(())
}

fn read_block<'a>(file: &File, at: u64, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    Ok(buffer.get(..filled).unwrap_or_default())
}

/// Returns the parts of a file that are not holes.
fn data_ranges(file: &File) -> io::Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        let start = match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            Ok(start) => start,
            // Only a hole until the end.
            Err(Errno::NXIO) => return Ok(ranges),
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(start))?;
        ranges.push(start..end);
        at = end;
    }
}

/// Returns the offset after the last byte of a file that is not zero.
pub(super) fn data_end(path: &Path) -> io::Result<u64> {
    let mut end = 0;
    each_block(&File::open(path)?, |offset, block| {
        let last = block.iter().rposition(|byte| *byte != 0);
        end = last.map_or(end, |last| offset + last as u64 + 1);
        Ok(())
    })?;
    Ok(end)
}

/// Copies a file, or a directory with its content. Holes stay holes.
pub(super) fn copy(source: &Path, target: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(source)?;
    match kind(metadata.file_type()) {
        "directory" => {
            fs::create_dir_all(target)?;
            for entry in fs::read_dir(source)? {
                let entry = entry?;
                copy(&entry.path(), &target.join(entry.file_name()))?;
            }
            fs::set_permissions(target, Permissions::from_mode(metadata.mode() & 0o7777))
        }
        "link" => symlink(fs::read_link(source)?, target),
        "file" => copy_file(source, target, metadata.len()),
        other => Err(io::Error::other(format!(
            "cannot copy this kind of file: kind={other} path={}",
            source.display()
        ))),
    }
}

fn copy_file(source: &Path, target: &Path, length: u64) -> io::Result<()> {
    let mut source = File::open(source)?;
    let mut copy = File::create_new(target)?;
    for range in data_ranges(&source)? {
        source.seek(SeekFrom::Start(range.start))?;
        copy.seek(SeekFrom::Start(range.start))?;
        io::copy(&mut (&mut source).take(range.end - range.start), &mut copy)?;
    }
    copy.flush()?;
    copy.set_len(length)
}

/// The disk usage of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Bytes allocated on the disk, without journals.
    pub(super) bytes: u64,
    /// Bytes allocated by journals, which are bounded separately.
    pub(super) journal_bytes: u64,
    /// Number of files and directories.
    pub(super) files: u64,
}

impl Usage {
    /// All bytes.
    pub(super) const fn total_bytes(&self) -> u64 {
        self.bytes + self.journal_bytes
    }

    /// Measures a directory, which may change in the meantime.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut usage = Self::default();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let metadata = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other?,
            };
            usage.files += 1;
            let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
            if is_journal {
                usage.journal_bytes += metadata.blocks() * 512;
            } else {
                usage.bytes += metadata.blocks() * 512;
            }
            if metadata.is_dir() {
                match fs::read_dir(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    entries => {
                        for entry in entries? {
                            open.push(entry?.path());
                        }
                    }
                }
            }
        }
        Ok(usage)
    }
}

/// Returns all regular files below a directory, relative to it, in the order of their names.
pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let tree = Tree::of(folder)?;
    let files = tree.0.into_iter().filter(|(_, entry)| entry.kind == "file");
    Ok(files.map(|(path, _)| path).collect())
}

/// Returns the first directory of this name below a directory, in the order of paths.
pub(super) fn find_folder(folder: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    let tree = Tree::of_existing(folder)?;
    let mut entries = tree.0.into_iter();
    let found = entries.find(|(path, entry)| entry.kind == "directory" && path.ends_with(name));
    Ok(found.map(|(path, _)| folder.join(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_equals_its_source_and_keeps_holes() {
        let root = tempfile::tempdir().unwrap();
        let (source, target) = (root.path().join("a"), root.path().join("b"));
        fs::create_dir_all(source.join("deep")).unwrap();
        let file = File::create(source.join("deep/journal")).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"tail", 5000).unwrap();
        symlink("/nowhere", source.join("link")).unwrap();
        copy(&source, &target).unwrap();
        let (one, other) = (Tree::of(&source).unwrap(), Tree::of(&target).unwrap());
        assert_eq!(one, other);
        assert_eq!(data_end(&target.join("deep/journal")).unwrap(), 5004);
        assert!(Usage::of(&target).unwrap().total_bytes() < 1 << 20);
        assert_eq!(files(&target).unwrap(), [PathBuf::from("deep/journal")]);
        let found = find_folder(&target, "deep").unwrap();
        assert_eq!(found, Some(target.join("deep")));
    }

    #[test]
    fn differences_name_each_change() {
        let root = tempfile::tempdir().unwrap();
        for name in ["kept", "changed", "gone"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        let before = Tree::of(root.path()).unwrap();
        assert!(before.differences(&before).is_empty());
        fs::write(root.path().join("changed"), "otherwise").unwrap();
        fs::remove_file(root.path().join("gone")).unwrap();
        fs::write(root.path().join("LOCK"), "1").unwrap();
        let after = Tree::of(root.path()).unwrap();
        let mut differences = before.differences(&after);
        differences.sort();
        assert_eq!(
            differences,
            ["created=LOCK", "modified=changed", "removed=gone"]
        );
    }
}
