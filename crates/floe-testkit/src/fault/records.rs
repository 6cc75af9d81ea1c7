//! Repeated records and late records.

use floe_store::op::IteratorKind;
use floe_store::{Error, Result};

use super::FaultEngine;
use super::control::Attempt;
use super::kind::FaultKind;
use super::position::Position;

/// A late page has fewer records than this.
const LATE_RECORDS_MAX: u64 = 4;

/// The limit for reading a page: lower than requested if records are late; `None` if the page is to be empty.
pub(super) fn late_limit(attempt: &Attempt<'_>, limit: Option<usize>) -> Option<Option<usize>> {
    if !attempt.has_fault(FaultKind::LateRecords) {
        return Some(limit);
    }
    let few = attempt.random(FaultKind::LateRecords, &[1]) % LATE_RECORDS_MAX;
    attempt.record_fault(FaultKind::LateRecords, format!("records_max={few}"));
    let few = usize::try_from(few).ok().filter(|few| *few > 0)?;
    Some(Some(limit.map_or(few, |limit| limit.min(few))))
}

impl FaultEngine {
    /// Moves a position back to the start of an earlier page, if records are to be repeated.
    pub(super) async fn rewind(
        &self,
        attempt: &Attempt<'_>,
        position: &mut Position,
    ) -> Result<()> {
        if !attempt.has_fault(FaultKind::RepeatedRecords) {
            return Ok(());
        }
        let Position {
            stream_arn,
            shard_id,
            read_up_to,
            inner,
        } = position;
        let mut pages = self
            .shards
            .with(stream_arn, |tree| tree.pages_up_to(shard_id, read_up_to));
        let roll = attempt.random(FaultKind::RepeatedRecords, &[1]);
        let chosen = roll.checked_rem(pages.len() as u64);
        let chosen = chosen.and_then(|place| usize::try_from(place).ok());
        let Some((from, shard)) = chosen
            .map(|place| pages.swap_remove(place))
            .zip(self.virtual_shard(stream_arn, shard_id))
        else {
            return Ok(());
        };
        let at = IteratorKind::AtSequenceNumber(from.clone());
        match self.inner_iterator(stream_arn, &shard, at).await {
            // The page was trimmed and cannot be read again.
            Err(Error::TrimmedDataAccess(_)) => return Ok(()),
            iterator => *inner = iterator?,
        }
        let detail = format!("shard={shard_id} from={from}");
        attempt.record_fault(FaultKind::RepeatedRecords, detail);
        read_up_to.clear();
        Ok(())
    }
}
