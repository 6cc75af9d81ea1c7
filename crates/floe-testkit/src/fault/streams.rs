//! Reads change streams through the wrapper's [shard tree](super::shards).

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
use super::records::late_limit;
use super::shards::VirtualShard;

impl FaultEngine {
    pub(super) async fn describe_virtual_stream(
        &self,
        attempt: &Attempt<'_>,
        input: DescribeStream,
    ) -> Result<StreamDescription> {
        let mut description = self.refresh(&input.stream_arn).await?;
        if attempt.has_fault(FaultKind::ShardSplit) {
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

    pub(super) async fn virtual_iterator(
        &self,
        _: &Attempt<'_>,
        input: GetShardIterator,
    ) -> Result<String> {
        let (stream_arn, shard_id) = (input.stream_arn, input.shard_id);
        self.refresh(&stream_arn).await?;
        let shard = self
            .virtual_shard(&stream_arn, &shard_id)
            .ok_or_else(|| missing_shard(&stream_arn, &shard_id))?;
        let (read_up_to, inner) = match input.kind {
            IteratorKind::TrimHorizon => {
                self.iterator_after(&stream_arn, &shard, shard.after.clone())
                    .await?
            }
            IteratorKind::Latest => {
                let mut last_sequence = shard.until.clone();
                if last_sequence.is_none() {
                    last_sequence = self.last_sequence(&stream_arn, &shard).await?;
                }
                self.iterator_after(&stream_arn, &shard, last_sequence)
                    .await?
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

    pub(super) async fn virtual_records(
        &self,
        attempt: &Attempt<'_>,
        input: GetRecords,
    ) -> Result<GetRecordsOutput> {
        let Some(mut position) = Position::parse(&input.iterator) else {
            return self.inner.get_records(input).await;
        };
        self.rewind(attempt, &mut position).await?;
        let Some(limit) = late_limit(attempt, input.limit) else {
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
                tree.note_returned(&shard.id, &last.sequence);
            }
            if let Some(first) = output.records.first() {
                tree.remember_page(&shard.id, &first.sequence);
            }
            Some(shard)
        });
        let Some(shard) = shard else {
            // The engine removed the shard with all its records.
            return Ok(GetRecordsOutput::default());
        };
        let ended = self.is_read(&position, &shard, was_empty).await?;
        output.next_iterator = output.next_iterator.filter(|_| !ended).map(|inner| {
            position.inner = inner;
            position.text()
        });
        if attempt.has_fault(FaultKind::ShardSplit) {
            self.split(attempt, &position.stream_arn, Some(shard.id))
                .await?;
        }
        Ok(output)
    }

    /// Whether a closed shard has no more records to read.
    async fn is_read(
        &self,
        position: &Position,
        shard: &VirtualShard,
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
        // No records before the last one, which was not read: it was trimmed or is still to come.
        let last = IteratorKind::AtSequenceNumber(until.clone());
        match self.inner_iterator(&position.stream_arn, shard, last).await {
            Ok(_) => Ok(false),
            Err(Error::TrimmedDataAccess(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Updates the shard tree from the engine and returns the engine's description of the stream.
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

    /// Splits an open shard: the given one if it is open, or any if none is given.
    async fn split(
        &self,
        attempt: &Attempt<'_>,
        stream_arn: &str,
        shard_id: Option<String>,
    ) -> Result<()> {
        let roll = attempt.random(FaultKind::ShardSplit, &[1]);
        let chosen = self.shards.with(stream_arn, |tree| match shard_id {
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
        let last_sequence = self.last_sequence(stream_arn, &shard).await?;
        let in_two = attempt.random(FaultKind::ShardSplit, &[2]) & 1 == 0;
        let split = self.shards.with(stream_arn, |tree| {
            tree.split(&shard.id, last_sequence.as_deref(), in_two)
        });
        if let Some(split) = split {
            let detail = format!(
                "shard={} until={} children={}",
                shard.id, split.until, split.children
            );
            attempt.record_fault(FaultKind::ShardSplit, detail);
        }
        Ok(())
    }

    /// The sequence number of the last known record of a shard's source.
    async fn last_sequence(
        &self,
        stream_arn: &str,
        shard: &VirtualShard,
    ) -> Result<Option<String>> {
        let mut last_sequence = shard.last_returned.clone().max(shard.after.clone());
        let iterator = self.iterator_after(stream_arn, shard, last_sequence.clone());
        let mut next = Some(iterator.await?.1);
        while let Some(iterator) = next {
            let limit = None;
            let read = GetRecords { iterator, limit };
            let output = self.inner.get_records(read).await?;
            let Some(last) = output.records.last() else {
                break;
            };
            last_sequence = Some(last.sequence.clone());
            next = output.next_iterator;
        }
        Ok(last_sequence)
    }

    /// An iterator over a shard's source that starts after a record, or at the beginning, and that sequence number.
    async fn iterator_after(
        &self,
        stream_arn: &str,
        shard: &VirtualShard,
        sequence: Option<String>,
    ) -> Result<(String, String)> {
        let all = || self.inner_iterator(stream_arn, shard, IteratorKind::TrimHorizon);
        let Some(sequence) = sequence else {
            return Ok((String::new(), all().await?));
        };
        let kind = IteratorKind::AfterSequenceNumber(sequence.clone());
        let iterator = match self.inner_iterator(stream_arn, shard, kind).await {
            // Everything before was trimmed and cannot be read anyway.
            Err(Error::TrimmedDataAccess(_)) => all().await?,
            other => other?,
        };
        Ok((sequence, iterator))
    }
}
