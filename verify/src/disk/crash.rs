//! Chooses the losses of a power cut, and writes the result into a directory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use floe_store::env::SeededRandom;

use super::content::Content;
use super::{
    Damage, DirModel, Disk, EditKind, FileId, Loss, Names, Node, ROOT, Status, apply_name,
};

const SECTOR_BYTES: usize = 512;

impl Disk<'_> {
    /// Writes a state of the watched directory that a machine could find after the cut into `target`, which must be
    /// missing or empty. Equal seeds give equal directories.
    ///
    /// # Errors
    ///
    /// When `target` is not empty or cannot be written.
    pub(crate) fn materialise(&self, target: &Path, seed: u64, loss: Loss) -> io::Result<Damage> {
        fs::create_dir_all(target)?;
        if fs::read_dir(target)?.next().is_some() {
            let message = format!(
                "the target directory is not empty: path={}",
                target.display()
            );
            return Err(io::Error::new(ErrorKind::AlreadyExists, message));
        }
        let mut choices = CrashChoices::new(self, seed, loss);
        let names = choices.names(self);
        let contents = self
            .files
            .iter()
            .map(|(id, node)| (*id, choices.content(node)));
        let contents: BTreeMap<FileId, Content> = contents.collect();
        save(&names, &contents, target)?;
        Ok(choices.damage)
    }

    /// The records whose edits are not durable.
    fn open_records(&self) -> impl Iterator<Item = usize> {
        let edits = self.files.values().flat_map(|node| &node.edits);
        let edits = edits.map(|edit| (edit.status, edit.record));
        let names = self.name_edits.iter();
        let names = names.map(|edit| (edit.status, edit.record));
        let open = edits.chain(names);
        open.filter_map(|(status, record)| (status != Status::Durable).then_some(record))
    }
}

/// How one crash treats changes that are not durable.
#[derive(Debug, Clone, Copy)]
enum Plan {
    KeepAll,
    LoseAll,
    /// Changes before a record are kept; the record itself is torn.
    Until {
        record: usize,
    },
    Each {
        keep_percent: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Tear,
    Lose,
}

/// The random choices of one crash.
struct CrashChoices {
    random: SeededRandom,
    plan: Plan,
    damage: Damage,
}

impl CrashChoices {
    fn new(disk: &Disk<'_>, seed: u64, loss: Loss) -> Self {
        let random = SeededRandom::new(seed);
        let plan = match loss {
            Loss::All => Plan::LoseAll,
            Loss::None => Plan::KeepAll,
            Loss::Random => random_plan(disk, &random),
        };
        Self {
            random,
            plan,
            damage: Damage::default(),
        }
    }

    fn fate(&mut self, record: usize) -> Fate {
        match self.plan {
            Plan::KeepAll => Fate::Keep,
            Plan::LoseAll => Fate::Lose,
            Plan::Until { record: last } if record < last => Fate::Keep,
            Plan::Until { record: last } if record == last => Fate::Tear,
            Plan::Until { .. } => Fate::Lose,
            Plan::Each { keep_percent } if self.random.below(100) < keep_percent => Fate::Keep,
            Plan::Each { .. } if self.random.coin() => Fate::Tear,
            Plan::Each { .. } => Fate::Lose,
        }
    }

    /// Returns the content of a file after the crash.
    fn content(&mut self, node: &Node<'_>) -> Content {
        let mut content = node.durable.clone();
        for edit in &node.edits {
            if edit.status == Status::Durable {
                edit.what.apply(&mut content);
                continue;
            }
            match (self.fate(edit.record), edit.what) {
                (Fate::Keep, what) => self.keep(&mut content, what),
                (Fate::Tear, EditKind::Write { offset, data }) => {
                    self.tear(&mut content, offset, data);
                }
                (Fate::Tear, what) if self.random.coin() => self.keep(&mut content, what),
                (Fate::Lose | Fate::Tear, what) => self.lose(&mut content, what),
            }
        }
        content
    }

    fn keep(&mut self, content: &mut Content, what: EditKind<'_>) {
        self.damage.edits_kept += 1;
        what.apply(content);
    }

    fn lose(&mut self, content: &mut Content, what: EditKind<'_>) {
        self.damage.edits_lost += 1;
        if let EditKind::Write { offset, data } = what {
            self.leave_hole(content, offset + data.len() as u64);
        }
    }

    /// The new length may be on the disk although the data is not.
    fn leave_hole(&mut self, content: &mut Content, end: u64) {
        let random = !matches!(self.plan, Plan::LoseAll);
        if random && end > content.len() && self.random.coin() {
            content.resize(end);
        }
    }

    /// Keeps either the first sectors or random ones.
    fn tear(&mut self, content: &mut Content, offset: u64, data: &[u8]) {
        let sectors = sectors(offset, data);
        let in_order = self.random.coin();
        let head = self.random.below(sectors.len() as u64 + 1) as usize;
        let mut kept = 0;
        for (index, (at, bytes)) in sectors.iter().enumerate() {
            if if in_order {
                index < head
            } else {
                self.random.coin()
            } {
                content.write(*at, bytes);
                kept += 1;
            }
        }
        self.leave_hole(content, offset + data.len() as u64);
        match kept {
            0 => self.damage.edits_lost += 1,
            _ if kept == sectors.len() => self.damage.edits_kept += 1,
            _ => self.damage.edits_torn += 1,
        }
    }

    /// Returns the names after the crash.
    fn names<'t>(&mut self, disk: &Disk<'t>) -> Names<'t> {
        let mut names = disk.names.clone();
        let mut is_journal_kept = true;
        for edit in &disk.name_edits {
            if edit.status != Status::Durable {
                let kept = match self.fate(edit.record) {
                    Fate::Keep => true,
                    Fate::Tear => self.random.coin(),
                    Fate::Lose => false,
                };
                is_journal_kept &= kept;
                let found = match disk.model {
                    DirModel::Strict => kept,
                    DirModel::Ext4 => is_journal_kept,
                };
                if !found {
                    self.damage.names_lost += 1;
                    continue;
                }
                self.damage.names_kept += 1;
            }
            apply_name(&mut names, edit, &disk.directories);
        }
        names
    }
}

fn random_plan(disk: &Disk<'_>, random: &SeededRandom) -> Plan {
    let records: Vec<usize> = disk.open_records().collect();
    if random.below(4) == 0 {
        let chosen = random.below(records.len() as u64) as usize;
        let record = records.get(chosen).copied().unwrap_or(0);
        return Plan::Until { record };
    }
    let keep_percent = match random.below(3) {
        0 => 10,
        1 => 50,
        _ => 90,
    };
    Plan::Each { keep_percent }
}

/// Splits a write at the sector boundaries of the file.
fn sectors(offset: u64, data: &[u8]) -> Vec<(u64, &[u8])> {
    let mut sectors = Vec::new();
    let (mut at, mut rest) = (offset, data);
    while !rest.is_empty() {
        let to_boundary = SECTOR_BYTES - (at % SECTOR_BYTES as u64) as usize;
        let (sector, later) = rest.split_at(rest.len().min(to_boundary));
        sectors.push((at, sector));
        at += sector.len() as u64;
        rest = later;
    }
    sectors
}

/// Writes the tree of names from the root; the content of a lost directory is lost with it.
fn save(names: &Names<'_>, contents: &BTreeMap<FileId, Content>, target: &Path) -> io::Result<()> {
    let mut children: BTreeMap<FileId, Vec<(&str, FileId)>> = BTreeMap::new();
    for (entry, file) in names {
        let child = (entry.name.as_str(), *file);
        children.entry(entry.dir).or_default().push(child);
    }
    let mut saved: BTreeMap<FileId, PathBuf> = BTreeMap::new();
    let mut open = vec![(ROOT, target.to_path_buf())];
    while let Some((dir, path)) = open.pop() {
        for (name, file) in children.remove(&dir).unwrap_or_default() {
            let path = path.join(name);
            let Some(content) = contents.get(&file) else {
                fs::create_dir(&path)?;
                open.push((file, path));
                continue;
            };
            match saved.entry(file) {
                Entry::Occupied(first) => fs::hard_link(first.get(), path)?,
                Entry::Vacant(first) => content.save(first.insert(path))?,
            }
        }
    }
    Ok(())
}
