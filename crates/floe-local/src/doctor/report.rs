//! What the doctor says.

use std::fmt;

use floe_store::Error;

use crate::engine::Recovery;

/// The most findings that a report lists one by one.
const FINDINGS_MAX: u64 = 1000;

/// What an examination found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What was examined.
    pub checked: Checked,
    /// Why the store could not be sealed when it was closed, if it could not. Nothing is lost; it is opened as after a crash.
    pub unsealed: Option<String>,
    /// What opening the store found.
    pub recovery: Recovery,
    /// What is wrong: the first thousand findings.
    pub findings: Vec<Finding>,
    /// How many findings there are in all.
    pub findings_total: u64,
    /// How many of them were repaired.
    pub repaired_total: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub const fn is_clean(&self) -> bool {
        self.findings_total == 0
    }

    /// Whether nothing is wrong any more.
    pub const fn is_repaired(&self) -> bool {
        self.findings_total == self.repaired_total
    }

    /// Whether there is a finding of this kind among the first thousand.
    pub(super) fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    /// Adds a finding, and answers its number.
    pub(super) fn add(&mut self, finding: Finding) -> u64 {
        if self.findings_total < FINDINGS_MAX {
            self.findings.push(finding);
        }
        self.findings_total += 1;
        self.findings_total - 1
    }

    /// The report with this finding, too.
    pub(super) fn with(mut self, finding: Finding) -> Self {
        self.add(finding);
        self
    }

    /// Marks the finding of this number as repaired.
    pub(super) fn set_repaired(&mut self, number: u64) {
        self.repaired_total += 1;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(finding) = self.findings.get_mut(at) {
            finding.repaired = true;
        }
    }
}

/// How much was examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Tables.
    pub tables: u64,
    /// Items.
    pub items: u64,
    /// Entries of indexes.
    pub index_entries: u64,
    /// Expiry entries.
    pub expiry_entries: u64,
    /// Change records.
    pub change_records: u64,
    /// All entries: those above and those of the catalog and of tokens.
    pub entries: u64,
    /// Bytes of files that were compared with their checksums.
    pub file_bytes: u64,
}

/// How far an examination has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What is being done.
    pub stage: Stage,
    /// The table that is being examined.
    pub table: Option<&'a str>,
    /// What was examined so far.
    pub checked: Checked,
}

/// A part of an examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Files are compared with their checksums.
    Files,
    /// The catalog is read.
    Catalog,
    /// Everything in a table is read.
    Table,
    /// The entries of a table are compared with its items one by one, because something is wrong.
    Compare,
    /// Change records are read.
    ChangeLog,
    /// Idempotency tokens are read.
    Tokens,
    /// Keys that belong to no table are looked for.
    Spaces,
    /// What is intact is copied into a new store.
    Salvage,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The table that it is about.
    pub table: Option<String>,
    /// The index that it is about.
    pub index: Option<String>,
    /// The item or entry that it is about: its key attributes where they can be told, otherwise the
    /// bytes of its key as hexadecimal digits.
    pub key: Option<String>,
    /// What is wrong.
    pub what: String,
    /// Whether it was put right.
    pub repaired: bool,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            table: None,
            index: None,
            key: None,
            what: what.into(),
            repaired: false,
        }
    }

    pub(super) fn unopenable(error: &Error) -> Self {
        Self::new(FindingKind::Unopenable, error.to_string())
    }

    pub(super) fn table(mut self, name: &str) -> Self {
        self.table = Some(name.to_owned());
        self
    }

    pub(super) fn index(mut self, name: Option<&str>) -> Self {
        self.index = name.map(str::to_owned);
        self
    }

    pub(super) fn key(mut self, key: String) -> Self {
        self.key = Some(key);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)?;
        let named = [
            ("table", &self.table),
            ("index", &self.index),
            ("key", &self.key),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        write!(f, " repaired={}", self.repaired)
    }
}

/// A kind of [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The store cannot be opened. Restore a backup.
    Unopenable,
    /// A file is not as it was written. What is still readable can be [exported](crate::LocalEngine::export_table)
    /// or [backed up](crate::LocalEngine::backup) if no entry of it is unreadable; otherwise restore a backup.
    DamagedFile,
    /// A range of keys cannot be read. Restore a backup; or, if only an index is hit, remove it and make
    /// it again.
    Unreadable,
    /// Stored bytes that the engine never wrote. Items of this kind are left alone, and can be replaced by
    /// a put once they are restored from elsewhere.
    Undecodable,
    /// An entry that follows from an item is not there. Repairable.
    Missing,
    /// An entry that follows from no item. Repairable.
    Extra,
    /// An entry holds something else than what follows from its item. Repairable.
    Different,
    /// A counter does not tell how much there is. Repairable.
    WrongCount,
    /// The change log lacks records, or has some that belong nowhere.
    ChangeLog,
    /// The records of the catalog do not agree with each other.
    Catalog,
    /// Keys that belong to no table. Repairable.
    LeftoverKeys,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unopenable => "unopenable",
            Self::DamagedFile => "damaged file",
            Self::Unreadable => "unreadable",
            Self::Undecodable => "undecodable",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Different => "different",
            Self::WrongCount => "wrong count",
            Self::ChangeLog => "change log",
            Self::Catalog => "catalog",
            Self::LeftoverKeys => "leftover keys",
        })
    }
}
