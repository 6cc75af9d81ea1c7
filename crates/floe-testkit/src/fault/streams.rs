//! Reads change streams through the wrapper's own [tree of shards](super::shards).

use floe_store::limits::DESCRIBE_STREAM_SHARDS_MAX;
use floe_store::op::{
    DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator, IteratorKind, Shard,
    StreamDescription, missing_shard,
};
use floe_store::{Error, Result};

use super::FaultEngine;
use super::control::Attempt;
use super::kind::FaultKind;
use super::position::Position;
use super::records::hold_back;
use super::shards::ShownShard;

impl FaultEngine {
    pub(super) async fn shown_stream(
        &self,
        attempt: &Attempt<'_>,
        input: DescribeStream,
    ) -> Result<StreamDescription> {
        let mut description = self.refresh(&input.stream_arn).await?;
        if attempt.meets(FaultKind::ShardSplit) {
            self.split(attempt, &input.stream_arn, None).await?;
        }
        let mut shards = self.shards.with(&input.stream_arn, |tree| tree.describe());
        if let Some(after) = &input.start_after {
            let place = shards.iter().position(|shard| shard.id == *after);
            let place = place.ok_or_else(|| missing_shard(&input.stream_arn, after))?;
            shards.drain(..=place);
        }
        let limit = input.limit.unwrap_or(DESCRIBE_STREAM_SHARDS_MAX);
        let more = shards.len() > limit;
        shards.truncate(limit);
        description.last_shard_id = shards.last().filter(|_| more).map(|last| last.id.clone());
        description.shards = shards;
        Ok(description)
    }

    pub(super) async fn shown_iterator(
        &self,
        _: &Attempt<'_>,
        input: GetShardIterator,
    ) -> Result<String> {
        let (stream_arn, shard_id) = (input.stream_arn, input.shard_id);
        self.refresh(&stream_arn).await?;
        let shard = self
            .shown_shard(&stream_arn, &shard_id)
            .ok_or_else(|| missing_shard(&stream_arn, &shard_id))?;
        let (read_up_to, inner) = match input.kind {
            IteratorKind::TrimHorizon => {
                self.iterator_behind(&stream_arn, &shard, shard.after.clone())
                    .await?
            }
            IteratorKind::Latest => {
                let mut tip = shard.until.clone();
                if tip.is_none() {
                    tip = self.tip(&stream_arn, &shard).await?;
                }
                self.iterator_behind(&stream_arn, &shard, tip).await?
            }
            IteratorKind::AfterSequenceNumber(sequence) => {
                let kind = IteratorKind::AfterSequenceNumber(sequence.clone());
                let inner = self.inner_iterator(&stream_arn, &shard, kind).await?;
                (sequence, inner)
            }
            at @ IteratorKind::AtSequenceNumber(_) => {
                let inner = self.inner_iterator(&stream_arn, &shard, at).await?;
                (String::new(), inner)
            }
        };
        let position = Position {
            stream_arn,
            shard_id,
            read_up_to,
            inner,
        };
        Ok(position.text())
    }

    pub(super) async fn shown_records(
        &self,
        attempt: &Attempt<'_>,
        input: GetRecords,
    ) -> Result<GetRecordsOutput> {
        let Some(mut position) = Position::parse(&input.iterator) else {
            return self.inner.get_records(input).await;
        };
        self.go_back(attempt, &mut position).await?;
        let Some(limit) = hold_back(attempt, input.limit) else {
            return Ok(GetRecordsOutput {
                next_iterator: Some(position.text()),
                ..GetRecordsOutput::default()
            });
        };
        let inner = GetRecords {
            iterator: position.inner.clone(),
            limit,
        };
        let mut output = self.inner.get_records(inner).await?;
        let was_empty = output.records.is_empty();
        if let Some(last) = output.records.last() {
            position.read_up_to.clone_from(&last.sequence);
        }
        let shard = self.shards.with(&position.stream_arn, |tree| {
            let shard = tree.get(&position.shard_id).cloned()?;
            output
                .records
                .retain(|record| shard.holds(&record.sequence, &record.keys));
            if let Some(last) = output.records.last() {
                tree.hand_out(&shard.id, &last.sequence);
            }
            if let Some(first) = output.records.first() {
                tree.remember_page(&shard.id, &first.sequence);
            }
            Some(shard)
        });
        let Some(shard) = shard else {
            // The engine's shard is gone, and with it all its records.
            return Ok(GetRecordsOutput::default());
        };
        let ended = self.is_read(&position, &shard, was_empty).await?;
        output.next_iterator = output.next_iterator.filter(|_| !ended).map(|inner| {
            position.inner = inner;
            position.text()
        });
        if attempt.meets(FaultKind::ShardSplit) {
            self.split(attempt, &position.stream_arn, Some(shard.id))
                .await?;
        }
        Ok(output)
    }

    /// Whether nothing of a closed shard is left to read.
    async fn is_read(
        &self,
        position: &Position,
        shard: &ShownShard,
        was_empty: bool,
    ) -> Result<bool> {
        let Some(until) = &shard.until else {
            return Ok(false);
        };
        if position.read_up_to >= *until {
            return Ok(true);
        }
        if !was_empty {
            return Ok(false);
        }
        // There is nothing up to the last record although it has not been read: it was trimmed, or it is
        // still to come.
        let last = IteratorKind::AtSequenceNumber(until.clone());
        match self.inner_iterator(&position.stream_arn, shard, last).await {
            Ok(_) => Ok(false),
            Err(Error::TrimmedDataAccess(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Learns about the shards of the engine, and gives its description of the stream.
    async fn refresh(&self, stream_arn: &str) -> Result<StreamDescription> {
        let mut request = DescribeStream {
            stream_arn: stream_arn.to_owned(),
            ..DescribeStream::default()
        };
        let mut shards: Vec<Shard> = Vec::new();
        loop {
            let mut page = self.inner.describe_stream(request.clone()).await?;
            shards.append(&mut page.shards);
            if page.last_shard_id.is_none() {
                self.shards.with(stream_arn, |tree| tree.refresh(shards));
                return Ok(page);
            }
            request.start_after = page.last_shard_id;
        }
    }

    /// Splits an open shard: the one named if it is open, or else any.
    async fn split(
        &self,
        attempt: &Attempt<'_>,
        stream_arn: &str,
        wanted: Option<String>,
    ) -> Result<()> {
        let roll = attempt.roll(FaultKind::ShardSplit, &[1]);
        let chosen = self.shards.with(stream_arn, |tree| match wanted {
            Some(id) => tree.open().find(|shard| shard.id == id).cloned(),
            None => {
                let open = tree.open().count() as u64;
                let place = roll
                    .checked_rem(open)
                    .and_then(|at| usize::try_from(at).ok())?;
                tree.open().nth(place).cloned()
            }
        });
        let Some(shard) = chosen else {
            return Ok(());
        };
        let tip = self.tip(stream_arn, &shard).await?;
        let in_two = attempt.roll(FaultKind::ShardSplit, &[2]) & 1 == 0;
        let split = self.shards.with(stream_arn, |tree| {
            tree.split(&shard.id, tip.as_deref(), in_two)
        });
        if let Some(split) = split {
            let detail = format!(
                "shard={} until={} children={}",
                shard.id, split.until, split.children
            );
            attempt.struck(FaultKind::ShardSplit, detail);
        }
        Ok(())
    }

    /// The sequence number of the last record of a shard's source, as far as is known.
    async fn tip(&self, stream_arn: &str, shard: &ShownShard) -> Result<Option<String>> {
        let mut tip = shard.handed_out.clone().max(shard.after.clone());
        let behind = self.iterator_behind(stream_arn, shard, tip.clone());
        let mut next = Some(behind.await?.1);
        while let Some(iterator) = next {
            let limit = None;
            let read = GetRecords { iterator, limit };
            let output = self.inner.get_records(read).await?;
            let Some(last) = output.records.last() else {
                break;
            };
            tip = Some(last.sequence.clone());
            next = output.next_iterator;
        }
        Ok(tip)
    }

    /// An iterator over a shard's source behind a record, or over all of it, and how far it is read so.
    async fn iterator_behind(
        &self,
        stream_arn: &str,
        shard: &ShownShard,
        sequence: Option<String>,
    ) -> Result<(String, String)> {
        let all = || self.inner_iterator(stream_arn, shard, IteratorKind::TrimHorizon);
        let Some(sequence) = sequence else {
            return Ok((String::new(), all().await?));
        };
        let behind = IteratorKind::AfterSequenceNumber(sequence.clone());
        let iterator = match self.inner_iterator(stream_arn, shard, behind).await {
            // What was trimmed up to there and beyond cannot be read anyway.
            Err(Error::TrimmedDataAccess(_)) => all().await?,
            other => other?,
        };
        Ok((sequence, iterator))
    }
}
