//! Records that come again, and records that come late.

use floe_store::op::IteratorKind;
use floe_store::{Error, Result};

use super::FaultEngine;
use super::control::Attempt;
use super::kind::FaultKind;
use super::position::Position;

/// A late page holds fewer records than this.
const LATE_RECORDS_MAX: u64 = 4;

/// How many records to ask for instead, if some come late; `None` if all do.
pub(super) fn hold_back(attempt: &Attempt<'_>, limit: Option<usize>) -> Option<Option<usize>> {
    if !attempt.meets(FaultKind::LateRecords) {
        return Some(limit);
    }
    let few = attempt.roll(FaultKind::LateRecords, &[1]) % LATE_RECORDS_MAX;
    attempt.struck(FaultKind::LateRecords, format!("records_max={few}"));
    let few = usize::try_from(few).ok().filter(|few| *few > 0)?;
    Some(Some(limit.map_or(few, |limit| limit.min(few))))
}

impl FaultEngine {
    /// Moves a position to the beginning of a page that was read on the way to it, if records are to come again.
    pub(super) async fn go_back(
        &self,
        attempt: &Attempt<'_>,
        position: &mut Position,
    ) -> Result<()> {
        if !attempt.meets(FaultKind::RepeatedRecords) {
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
        let roll = attempt.roll(FaultKind::RepeatedRecords, &[1]);
        let chosen = roll.checked_rem(pages.len() as u64);
        let chosen = chosen.and_then(|place| usize::try_from(place).ok());
        let Some((from, shard)) = chosen
            .map(|place| pages.swap_remove(place))
            .zip(self.shown_shard(stream_arn, shard_id))
        else {
            return Ok(());
        };
        let at = IteratorKind::AtSequenceNumber(from.clone());
        match self.inner_iterator(stream_arn, &shard, at).await {
            // It was trimmed: it cannot come again.
            Err(Error::TrimmedDataAccess(_)) => return Ok(()),
            iterator => *inner = iterator?,
        }
        let detail = format!("shard={shard_id} from={from}");
        attempt.struck(FaultKind::RepeatedRecords, detail);
        read_up_to.clear();
        Ok(())
    }
}
