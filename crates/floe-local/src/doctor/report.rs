//! The doctor's report.

use std::fmt;

use floe_store::Error;

use crate::engine::Recovery;

/// Maximum number of findings that a report lists.
const FINDINGS_MAX: u64 = 1000;

/// The result of an examination.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The amount of data examined.
    pub checked: Checked,
    /// Why the store could not be sealed when it was closed; `None` if it was. Nothing is lost; it is opened as after a
    /// crash.
    pub unsealed: Option<String>,
    /// Result of the recovery when the store was opened.
    pub recovery: Recovery,
    /// What is wrong: the first thousand findings.
    pub findings: Vec<Finding>,
    /// Total number of findings.
    pub findings_total: u64,
    /// Number of repaired findings.
    pub repaired_total: u64,
}

impl Report {
    /// Whether there are no findings.
    pub const fn is_clean(&self) -> bool {
        self.findings_total == 0
    }

    /// Whether all findings were repaired.
    pub const fn is_repaired(&self) -> bool {
        self.findings_total == self.repaired_total
    }

    /// Whether the first thousand findings include one of this kind.
    pub(super) fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    /// Adds a finding, and returns its number.
    pub(super) fn add(&mut self, finding: Finding) -> u64 {
        if self.findings_total < FINDINGS_MAX {
            self.findings.push(finding);
        }
        self.findings_total += 1;
        self.findings_total - 1
    }

    /// Returns the report with an additional finding.
    pub(super) fn with(mut self, finding: Finding) -> Self {
        self.add(finding);
        self
    }

    /// Marks the finding with this number as repaired.
    pub(super) fn set_repaired(&mut self, number: u64) {
        self.repaired_total += 1;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(finding) = self.findings.get_mut(at) {
            finding.repaired = true;
        }
    }
}

/// The amount of data examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Number of tables.
    pub tables: u64,
    /// Number of items.
    pub items: u64,
    /// Number of index entries.
    pub index_entries: u64,
    /// Number of expiry entries.
    pub expiry_entries: u64,
    /// Number of change records.
    pub change_records: u64,
    /// Number of all entries: those above, and those of the catalog and of tokens.
    pub entries: u64,
    /// Bytes of files whose checksums were verified.
    pub file_bytes: u64,
}

/// The progress of an examination.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DoctorProgress<'a> {
    /// The current stage.
    pub stage: Stage,
    /// The table being examined.
    pub table: Option<&'a str>,
    /// The amount of data examined so far.
    pub checked: Checked,
}

/// A stage of an examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Verifies the checksums of files.
    Files,
    /// Reads the catalog.
    Catalog,
    /// Reads everything in a table.
    Table,
    /// Compares the entries of a table with its items one by one, because something is wrong.
    Compare,
    /// Reads change records.
    ChangeLog,
    /// Reads idempotency tokens.
    Tokens,
    /// Searches for keys that belong to no table.
    Spaces,
    /// Copies everything intact to a new store.
    Salvage,
}

/// A problem in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of problem.
    pub kind: FindingKind,
    /// The affected table.
    pub table: Option<String>,
    /// The affected index.
    pub index: Option<String>,
    /// The affected item or entry: its key attributes if known, otherwise its key in hexadecimal digits.
    pub key: Option<String>,
    /// Description of the problem.
    pub what: String,
    /// Whether it was repaired.
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
    /// A file is damaged. If none of its entries is unreadable, the store can still be
    /// [exported](crate::LocalEngine::export_table) or [backed up](crate::LocalEngine::backup); otherwise restore a
    /// backup.
    DamagedFile,
    /// A range of keys cannot be read. Restore a backup; if only an index is affected, delete it and create it again.
    Unreadable,
    /// Stored bytes that the engine never wrote. Such items are left unchanged, and can be overwritten by a put with
    /// their content from another source.
    Undecodable,
    /// A derived entry is missing. Repairable.
    Missing,
    /// An entry is not derived from any item. Repairable.
    Extra,
    /// A derived entry differs from its item. Repairable.
    Different,
    /// A count or size is wrong. Repairable.
    WrongCount,
    /// The change log lacks records, or contains some that belong to no stream.
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
