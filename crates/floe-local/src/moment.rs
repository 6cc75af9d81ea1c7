//! The whole store at one moment: a snapshot, and the tables that it shows. For what reads everything:
//! backups and the doctor.

use floe_store::{Error, Result};

use crate::kv::{Direction, Kv, Snapshot, Space};
use crate::layout::record::{self, TableRecord};
use crate::layout::{META_SPACE, damaged, table_space_name};

/// How often to look again for the space of a table that is being removed. Once is enough, unless tables
/// come and go all the time.
const TRIES_MAX: usize = 1000;

/// The whole store at one moment.
pub(crate) struct Moment {
    /// What was stored.
    pub(crate) snapshot: Snapshot,
    /// The space of the catalog.
    pub(crate) meta: Space,
    /// The tables. A table that is removed later stays readable.
    pub(crate) tables: Vec<TableAt>,
    /// Why tables could not be read from the catalog.
    pub(crate) faults: Vec<Error>,
    /// The names of tables that have no space.
    pub(crate) without_space: Vec<String>,
}

/// A table at one moment.
pub(crate) struct TableAt {
    /// What the catalog said of it.
    pub(crate) record: TableRecord,
    /// Where its entries are.
    pub(crate) space: Space,
}

impl Moment {
    /// The present moment.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if there is no catalog.
    pub(crate) fn now(kv: &Kv) -> Result<Self> {
        let meta = kv
            .find_space(META_SPACE)
            .ok_or_else(|| damaged("store without a catalog"))?;
        for _ in 1..TRIES_MAX {
            let moment = Self::take(kv, &meta);
            if moment.without_space.is_empty() {
                return Ok(moment);
            }
            // A table was removed after the snapshot was taken: a later snapshot does not show it.
            std::thread::yield_now();
        }
        Ok(Self::take(kv, &meta))
    }

    /// Checks that all tables could be read and have their space.
    pub(crate) fn check(&self) -> Result<()> {
        match (self.faults.first(), self.without_space.first()) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some(name)) => Err(Error::Storage(format!(
                "a table has no space: table={name}"
            ))),
            (None, None) => Ok(()),
        }
    }

    fn take(kv: &Kv, meta: &Space) -> Self {
        let mut moment = Self {
            snapshot: kv.snapshot(),
            meta: meta.clone(),
            tables: Vec::new(),
            faults: Vec::new(),
            without_space: Vec::new(),
        };
        let records = moment
            .snapshot
            .prefix(meta, record::TABLES_PREFIX, Direction::Forward);
        for entry in records {
            let record = entry.and_then(|(_, value)| TableRecord::decode(&value));
            match record.map(|record| (kv.find_space(&table_space_name(record.id)), record)) {
                Ok((Some(space), record)) => moment.tables.push(TableAt { record, space }),
                Ok((None, record)) => moment.without_space.push(record.definition.name),
                Err(error) => moment.faults.push(error),
            }
        }
        moment
    }
}
