//! A simulated disk: replays a trace up to a power cut, and produces a state that a machine could find after it.
//!
//! The disk tracks which changes of each file's content, and of names in directories, are durable. The rules:
//!
//! - A write or truncation is durable after a later successful fsync or fdatasync of the file. Until then it may be
//!   present, missing or torn: each sector of 512 bytes is written completely or not at all, in any order. Two writes
//!   to one sector may have different outcomes, which is stricter than real disks.
//! - If data beyond the old end is missing, the file is either shorter or contains zeros there.
//! - When a created, renamed or removed name becomes durable depends on [`DirModel`]. A rename is atomic.
//! - Changes before a failed sync never become durable, because Linux then marks them clean; later syncs only cover
//!   later changes. They may still be found after a crash.
//! - sync_file_range guarantees nothing and is not traced.
//!
//! [`Disk`] replays; `crash.rs` chooses the losses and writes the result into a directory; `trace.rs` reads the trace
//! that [`crate::shim`] recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

mod content;
mod crash;
#[cfg(test)]
pub(crate) mod tests;
mod trace;

use content::Content;
pub(crate) use trace::Trace;
use trace::{DirEntry, Event, FileId, ROOT, invalid};

/// When changes of names become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirModel {
    /// Like ext4, XFS and Btrfs in practice: changes of names enter one ordered journal. A sync of a file or directory
    /// makes its changes durable, together with all earlier ones, so that a new synced file has its name. A crash keeps
    /// the journal up to some point.
    Ext4,
    /// As POSIX guarantees: a change of names is durable only after each affected directory was synced. A crash keeps
    /// any subset of the other changes.
    Strict,
}

/// Which of the changes that are not durable are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of them.
    All,
    /// Random: usually each change is independently kept, torn or lost; sometimes all up to a moment are kept and all
    /// later ones lost.
    Random,
    /// None, as when the process is killed and the machine keeps running.
    None,
}

/// The outcomes of the changes that were not durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Writes and truncations that were kept.
    pub(crate) edits_kept: usize,
    /// Writes of which only some sectors were kept.
    pub(crate) edits_torn: usize,
    /// Writes and truncations that were lost.
    pub(crate) edits_lost: usize,
    /// Changes of names that were kept.
    pub(crate) names_kept: usize,
    /// Changes of names that were lost.
    pub(crate) names_lost: usize,
}

/// The durability of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    /// The sync failed: the change may be on the disk, but no later sync makes it durable.
    Doomed,
    Durable,
}

/// A change of a file's content.
#[derive(Debug)]
struct Edit<'t> {
    record: usize,
    status: Status,
    what: EditKind<'t>,
}

#[derive(Debug, Clone, Copy)]
enum EditKind<'t> {
    Write { offset: u64, data: &'t [u8] },
    Truncate { len: u64 },
}

impl EditKind<'_> {
    fn apply(self, content: &mut Content) {
        match self {
            Self::Write { offset, data } => content.write(offset, data),
            Self::Truncate { len } => content.resize(len),
        }
    }
}

/// A file: its durable content, and the edits from the first one that is not durable.
#[derive(Debug, Default)]
struct Node<'t> {
    durable: Content,
    edits: Vec<Edit<'t>>,
}

impl Node<'_> {
    fn settle(&mut self, outcome: Status) {
        for edit in &mut self.edits {
            if edit.status == Status::Pending {
                edit.status = outcome;
            }
        }
        self.apply_durable();
    }

    /// Applies durable edits to the content, up to the first edit that is not durable.
    fn apply_durable(&mut self) {
        let is_durable = |edit: &Edit<'_>| edit.status == Status::Durable;
        let ready = self
            .edits
            .iter()
            .take_while(|edit| is_durable(edit))
            .count();
        for edit in self.edits.drain(..ready) {
            edit.what.apply(&mut self.durable);
        }
    }
}

/// A change of names.
#[derive(Debug)]
struct NameEdit<'t> {
    record: usize,
    status: Status,
    file: FileId,
    removed: Option<&'t DirEntry>,
    added: Option<&'t DirEntry>,
    /// Directories that must still be synced; used in the strict model.
    pending_dirs: BTreeSet<FileId>,
}

impl NameEdit<'_> {
    fn affects(&self, file: FileId) -> bool {
        let touches = |entry: Option<&DirEntry>| entry.is_some_and(|entry| entry.dir == file);
        self.file == file || touches(self.removed) || touches(self.added)
    }
}

/// The durable names.
type Names<'t> = BTreeMap<&'t DirEntry, FileId>;

/// An acknowledgement: one write of the process to its marks file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark<'t> {
    /// The index of its record in the trace.
    pub(crate) record: usize,
    /// The bytes of one write.
    pub(crate) bytes: &'t [u8],
}

/// The state of a disk after the first records of a trace.
#[derive(Debug)]
pub(crate) struct Disk<'t> {
    trace: &'t Trace,
    model: DirModel,
    position: usize,
    files: BTreeMap<FileId, Node<'t>>,
    directories: BTreeSet<FileId>,
    names: Names<'t>,
    name_edits: Vec<NameEdit<'t>>,
    marks: Vec<Mark<'t>>,
}

impl<'t> Disk<'t> {
    /// Creates an empty disk before the first record of the trace.
    pub(crate) fn new(trace: &'t Trace, model: DirModel) -> Self {
        Self {
            trace,
            model,
            position: 0,
            files: BTreeMap::new(),
            directories: BTreeSet::from([ROOT]),
            names: Names::new(),
            name_edits: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Replays the trace up to a power cut after the first `cut` records.
    ///
    /// # Errors
    ///
    /// When the trace is inconsistent.
    pub(crate) fn replay(trace: &'t Trace, model: DirModel, cut: usize) -> io::Result<Self> {
        let mut disk = Self::new(trace, model);
        disk.advance(cut)?;
        Ok(disk)
    }

    /// Advances to a later cut; an earlier one changes nothing.
    ///
    /// # Errors
    ///
    /// When the trace is inconsistent.
    pub(crate) fn advance(&mut self, cut: usize) -> io::Result<()> {
        let trace = self.trace;
        let remaining = cut.min(trace.len()).saturating_sub(self.position);
        for event in trace.events.iter().skip(self.position).take(remaining) {
            self.apply(event)?;
            self.position += 1;
        }
        Ok(())
    }

    /// The marks before the cut, in order.
    pub(crate) fn marks(&self) -> &[Mark<'t>] {
        &self.marks
    }

    fn apply(&mut self, event: &'t Event) -> io::Result<()> {
        match event {
            Event::Create { at, file } => {
                self.files.entry(*file).or_default();
                self.rename(*file, None, Some(at))
            }
            Event::Mkdir { at, file } => {
                self.directories.insert(*file);
                self.rename(*file, None, Some(at))
            }
            Event::Link { at, file } => self.rename(*file, None, Some(at)),
            Event::Rename { from, to, file } => self.rename(*file, Some(from), Some(to)),
            Event::Unlink { at, file } => self.rename(*file, Some(at), None),
            Event::Write { file, offset, data } => {
                let offset = *offset;
                self.edit(*file, EditKind::Write { offset, data })
            }
            Event::Truncate { file, len } => self.edit(*file, EditKind::Truncate { len: *len }),
            Event::Sync { file } => self.settle(*file, Status::Durable),
            Event::SyncFailed { file } => self.settle(*file, Status::Doomed),
            Event::SyncAll => {
                self.settle_all();
                Ok(())
            }
            Event::Mark { bytes } => {
                let record = self.position;
                self.marks.push(Mark { record, bytes });
                Ok(())
            }
            Event::Start | Event::Fault | Event::Refused { .. } => Ok(()),
        }
    }

    /// Content found at the start is durable.
    fn status(&self) -> Status {
        if self.position < self.trace.start() {
            Status::Durable
        } else {
            Status::Pending
        }
    }

    fn contradiction(&self, what: &str, file: FileId) -> io::Error {
        let (FileId(file), record) = (file, self.position);
        invalid(format!(
            "inconsistent trace: it {what}: file={file} record={record}"
        ))
    }

    fn edit(&mut self, file: FileId, what: EditKind<'t>) -> io::Result<()> {
        let (record, status) = (self.position, self.status());
        let unknown = self.contradiction("changes an unknown file", file);
        let node = self.files.get_mut(&file).ok_or(unknown)?;
        node.edits.push(Edit {
            record,
            status,
            what,
        });
        node.apply_durable();
        Ok(())
    }

    fn rename(
        &mut self,
        file: FileId,
        removed: Option<&'t DirEntry>,
        added: Option<&'t DirEntry>,
    ) -> io::Result<()> {
        if !self.files.contains_key(&file) && !self.directories.contains(&file) {
            return Err(self.contradiction("names an unknown file", file));
        }
        let entries = [removed, added].into_iter().flatten();
        let pending_dirs: BTreeSet<FileId> = entries.map(|entry| entry.dir).collect();
        if !pending_dirs.is_subset(&self.directories) {
            return Err(self.contradiction("uses an unknown directory", file));
        }
        self.name_edits.push(NameEdit {
            record: self.position,
            status: self.status(),
            file,
            removed,
            added,
            pending_dirs,
        });
        self.apply_durable_names();
        Ok(())
    }

    fn settle(&mut self, file: FileId, outcome: Status) -> io::Result<()> {
        if let Some(node) = self.files.get_mut(&file) {
            node.settle(outcome);
        } else if !self.directories.contains(&file) {
            return Err(self.contradiction("syncs an unknown file", file));
        }
        match self.model {
            DirModel::Ext4 => self.settle_journal(file, outcome),
            DirModel::Strict => self.settle_directory(file, outcome),
        }
        self.apply_durable_names();
        Ok(())
    }

    fn settle_journal(&mut self, file: FileId, outcome: Status) {
        let is_covered = |edit: &NameEdit<'_>| edit.status == Status::Pending && edit.affects(file);
        let last = self.name_edits.iter().rposition(is_covered);
        let committed = last.map_or(0, |last| last + 1);
        for edit in self.name_edits.iter_mut().take(committed) {
            if edit.status == Status::Pending {
                edit.status = outcome;
            }
        }
    }

    fn settle_directory(&mut self, dir: FileId, outcome: Status) {
        for edit in &mut self.name_edits {
            let waited = edit.status == Status::Pending && edit.pending_dirs.remove(&dir);
            if waited && (outcome == Status::Doomed || edit.pending_dirs.is_empty()) {
                edit.status = outcome;
            }
        }
    }

    fn settle_all(&mut self) {
        for node in self.files.values_mut() {
            node.settle(Status::Durable);
        }
        for edit in &mut self.name_edits {
            if edit.status == Status::Pending {
                edit.status = Status::Durable;
            }
        }
        self.apply_durable_names();
    }

    fn apply_durable_names(&mut self) {
        let is_durable = |edit: &NameEdit<'_>| edit.status == Status::Durable;
        let ready = self.name_edits.iter().take_while(|edit| is_durable(edit));
        let ready = ready.count();
        for edit in self.name_edits.drain(..ready) {
            apply_name(&mut self.names, &edit, &self.directories);
        }
    }
}

/// Applies a change of names to any state: after a crash, earlier changes may be missing.
fn apply_name<'t>(names: &mut Names<'t>, edit: &NameEdit<'t>, directories: &BTreeSet<FileId>) {
    if let Some(entry) = edit.removed {
        names.remove(entry);
    }
    if let Some(entry) = edit.added {
        // A directory has one name; a file may have several.
        if directories.contains(&edit.file) {
            names.retain(|_, file| *file != edit.file);
        }
        names.insert(entry, edit.file);
    }
}
