//! Storing how far everything is done, and holding what is not.

use std::sync::Arc;

use floe_store::Error as StoreError;
use floe_store::op::HoldChanges;

use super::super::limits::LOOK_RECORDS;
use super::lease::Mine;
use super::source::{Look, Mark, Source};
use super::{Consumer, position};
use crate::error::{Error, Result};

impl Consumer {
    /// Looks at a table, however long the store does not answer.
    pub(super) async fn look(&self, source: &mut Source) -> Result<Look> {
        let (hold, mut patience) = (self.hold_name(), self.patience());
        loop {
            match source.look(&hold, LOOK_RECORDS).await {
                Ok(look) => return Ok(look),
                Err(error) => patience.outlast(error).await?,
            }
        }
    }

    /// Stores how far everything is done; `false` if somebody else delivers by now.
    pub(super) async fn store(
        &self,
        mine: &Mine,
        places: &[(Arc<str>, Mark, Vec<HoldChanges>)],
    ) -> Result<bool> {
        self.flush().await;
        let mut patience = self.patience();
        for (table, mark, holds) in places {
            while let Err(error) = match self.store_place(mine, table, mark, holds).await {
                Ok(true) => Ok(()),
                Ok(false) => return Ok(false),
                Err(error) => Err(error),
            } {
                patience.outlast(error).await?;
            }
        }
        Ok(true)
    }

    async fn store_place(
        &self,
        mine: &Mine,
        table: &str,
        mark: &Mark,
        holds: &[HoldChanges],
    ) -> Result<bool> {
        if !position::store(&self.db, &self.name, table, mine, &mark.positions).await? {
            return Ok(false);
        }
        let engine = self.db.engine();
        if !engine.capabilities().change_holds {
            return Ok(true);
        }
        for hold in mark.holds.iter().filter(|hold| !holds.contains(hold)) {
            match engine.hold_changes(hold.clone()).await {
                // Somebody else under this name is further on. If nobody is, reading tells.
                Ok(()) | Err(StoreError::TrimmedDataAccess(_)) => {}
                Err(error) => return Err(Error::from(error)),
            }
        }
        Ok(true)
    }
}
