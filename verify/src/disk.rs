//! A disk that loses power: replays a trace up to a cut and leaves what a
//! machine could find after it.
//!
//! The disk knows, for each file, what is durable and which changes are not,
//! and the same for names in directories. The rules:
//!
//! - A write or truncation is durable once fsync or fdatasync of the file
//!   succeeded after it. Until then it may be there, be missing, or be torn:
//!   sectors of 512 bytes are written whole or not at all, in any order. Two
//!   writes to one sector may also part, which is harsher than real disks.
//! - When data beyond the old end is missing, the file is either shorter or has
//!   zeros there.
//! - A name made, moved or removed becomes durable as [`DirModel`] says. A
//!   rename happens whole or not at all.
//! - What a failed sync should have made durable never will be, because Linux
//!   then forgets that it was dirty; later syncs cover later changes only. It
//!   may nevertheless be found after a crash.
//! - sync_file_range promises nothing and is not traced.
//!
//! [`Disk`] replays; `crash.rs` chooses what is lost and writes the result into
//! a directory; `trace.rs` reads what [`crate::shim`] recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

mod content;
mod crash;
#[cfg(test)]
pub(crate) mod tests;
mod trace;

use content::Content;
pub(crate) use trace::Trace;
use trace::{Event, FileId, Place, ROOT, invalid};

/// When names become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirModel {
    /// As ext4, XFS and Btrfs do in practice: changes of names enter one
    /// ordered journal. A sync of a file or directory makes durable the changes
    /// that concern it, and with them all earlier ones, so that a new file that
    /// was synced has its name. A crash keeps the journal up to some point.
    Ext4,
    /// As POSIX promises and no more: a change of names is durable once each
    /// directory it touches was synced. A crash keeps any of the others.
    Strict,
}

/// What happens to changes that are not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All are lost.
    All,
    /// The seed decides: mostly each change on its own is kept, torn or lost,
    /// sometimes all up to a moment are kept and the later ones lost.
    Random,
    /// None is lost, as when the process is killed and the machine runs on.
    None,
}

/// What became of the changes that were not durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Writes and truncations found whole.
    pub(crate) edits_kept: usize,
    /// Writes of which only some sectors are found.
    pub(crate) edits_torn: usize,
    /// Writes and truncations not found.
    pub(crate) edits_lost: usize,
    /// Names found as changed.
    pub(crate) names_kept: usize,
    /// Changes of names not found.
    pub(crate) names_lost: usize,
}

/// How far a change has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    /// Its sync failed: it may be on the disk, but nothing will make sure of it.
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

/// A file: its durable content and the edits since the first that is not.
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
        self.fold();
    }

    /// Durable edits go into the content unless a doomed one lies below them.
    fn fold(&mut self) {
        let lasting = |edit: &Edit<'_>| edit.status == Status::Durable;
        let ready = self.edits.iter().take_while(|edit| lasting(edit)).count();
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
    removed: Option<&'t Place>,
    added: Option<&'t Place>,
    /// Directories whose sync is still needed; matters in the strict model.
    awaits: BTreeSet<FileId>,
}

impl NameEdit<'_> {
    fn concerns(&self, file: FileId) -> bool {
        let touches = |place: Option<&Place>| place.is_some_and(|place| place.dir == file);
        self.file == file || touches(self.removed) || touches(self.added)
    }
}

/// The names on the disk.
type Names<'t> = BTreeMap<&'t Place, FileId>;

/// An acknowledgement, or whatever else the process wrote to its marks file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark<'t> {
    /// Its record in the trace.
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
    /// An empty disk before the trace's first record.
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

    /// The disk when the power is cut after the first `cut` records.
    ///
    /// # Errors
    ///
    /// When the trace contradicts itself.
    pub(crate) fn replay(trace: &'t Trace, model: DirModel, cut: usize) -> io::Result<Self> {
        let mut disk = Self::new(trace, model);
        disk.advance(cut)?;
        Ok(disk)
    }

    /// Goes on to a later cut; an earlier one changes nothing.
    ///
    /// # Errors
    ///
    /// When the trace contradicts itself.
    pub(crate) fn advance(&mut self, cut: usize) -> io::Result<()> {
        let trace = self.trace;
        let todo = cut.min(trace.len()).saturating_sub(self.position);
        for event in trace.events.iter().skip(self.position).take(todo) {
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

    /// What was found at the start is durable.
    fn status(&self) -> Status {
        if self.position < self.trace.start() {
            Status::Durable
        } else {
            Status::Pending
        }
    }

    fn contradiction(&self, what: &str, file: FileId) -> io::Error {
        let (FileId(file), record) = (file, self.position);
        invalid(format!("the trace {what} file={file} record={record}"))
    }

    fn edit(&mut self, file: FileId, what: EditKind<'t>) -> io::Result<()> {
        let (record, status) = (self.position, self.status());
        let unknown = self.contradiction("changes a file that it never made", file);
        let node = self.files.get_mut(&file).ok_or(unknown)?;
        node.edits.push(Edit {
            record,
            status,
            what,
        });
        node.fold();
        Ok(())
    }

    fn rename(
        &mut self,
        file: FileId,
        removed: Option<&'t Place>,
        added: Option<&'t Place>,
    ) -> io::Result<()> {
        if !self.files.contains_key(&file) && !self.directories.contains(&file) {
            return Err(self.contradiction("names a file that it never made", file));
        }
        let places = [removed, added].into_iter().flatten();
        let awaits: BTreeSet<FileId> = places.map(|place| place.dir).collect();
        if !awaits.is_subset(&self.directories) {
            return Err(self.contradiction("uses a directory that it never made", file));
        }
        self.name_edits.push(NameEdit {
            record: self.position,
            status: self.status(),
            file,
            removed,
            added,
            awaits,
        });
        self.fold_names();
        Ok(())
    }

    fn settle(&mut self, file: FileId, outcome: Status) -> io::Result<()> {
        if let Some(node) = self.files.get_mut(&file) {
            node.settle(outcome);
        } else if !self.directories.contains(&file) {
            return Err(self.contradiction("syncs a file that it never made", file));
        }
        match self.model {
            DirModel::Ext4 => self.settle_journal(file, outcome),
            DirModel::Strict => self.settle_directory(file, outcome),
        }
        self.fold_names();
        Ok(())
    }

    fn settle_journal(&mut self, file: FileId, outcome: Status) {
        let waits = |edit: &NameEdit<'_>| edit.status == Status::Pending && edit.concerns(file);
        let reach = self.name_edits.iter().rposition(waits);
        let committed = reach.map_or(0, |last| last + 1);
        for edit in self.name_edits.iter_mut().take(committed) {
            if edit.status == Status::Pending {
                edit.status = outcome;
            }
        }
    }

    fn settle_directory(&mut self, dir: FileId, outcome: Status) {
        for edit in &mut self.name_edits {
            let waited = edit.status == Status::Pending && edit.awaits.remove(&dir);
            if waited && (outcome == Status::Doomed || edit.awaits.is_empty()) {
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
        self.fold_names();
    }

    fn fold_names(&mut self) {
        let lasting = |edit: &NameEdit<'_>| edit.status == Status::Durable;
        let ready = self.name_edits.iter().take_while(|edit| lasting(edit));
        let ready = ready.count();
        for edit in self.name_edits.drain(..ready) {
            apply_name(&mut self.names, &edit, &self.directories);
        }
    }
}

/// Changes names as one edit does, on whatever state it meets: after a crash
/// the edits before it may be missing.
fn apply_name<'t>(names: &mut Names<'t>, edit: &NameEdit<'t>, directories: &BTreeSet<FileId>) {
    if let Some(place) = edit.removed {
        names.remove(place);
    }
    if let Some(place) = edit.added {
        // A directory has one name; a file may be left with two.
        if directories.contains(&edit.file) {
            names.retain(|_, file| *file != edit.file);
        }
        names.insert(place, edit.file);
    }
}
