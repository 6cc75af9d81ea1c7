//! Positions in virtual shards: the wrapper's iterators, each with the engine's own iterator inside.

use floe_store::Result;
use floe_store::op::{GetShardIterator, IteratorKind};

use super::FaultEngine;
use super::shards::VirtualShard;

/// The prefix of the wrapper's iterators.
const PREFIX: &str = "fault~";

/// Separates the parts of an iterator. Occurs in no ARN, shard id or sequence number.
const SEPARATOR: &str = "~";

/// A position in a virtual shard, which the iterator encodes: the shard, the last sequence number read from its
/// source, and the engine's iterator over the source.
pub(super) struct Position {
    pub(super) stream_arn: String,
    pub(super) shard_id: String,
    /// Empty before the first record.
    pub(super) read_up_to: String,
    pub(super) inner: String,
}

impl Position {
    pub(super) fn text(&self) -> String {
        let Self {
            stream_arn,
            shard_id,
            read_up_to,
            inner,
        } = self;
        let parts = [stream_arn, shard_id, read_up_to, inner].map(String::as_str);
        format!("{PREFIX}{}", parts.join(SEPARATOR))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text
            .strip_prefix(PREFIX)?
            .splitn(4, SEPARATOR)
            .map(str::to_owned);
        Some(Self {
            stream_arn: parts.next()?,
            shard_id: parts.next()?,
            read_up_to: parts.next()?,
            inner: parts.next()?,
        })
    }
}

/// The stream of one of the wrapper's iterators.
pub(super) fn stream_of(iterator: &str) -> Option<&str> {
    iterator.strip_prefix(PREFIX)?.split(SEPARATOR).next()
}

impl FaultEngine {
    pub(super) fn virtual_shard(&self, stream_arn: &str, id: &str) -> Option<VirtualShard> {
        self.shards.with(stream_arn, |tree| tree.get(id).cloned())
    }

    pub(super) async fn inner_iterator(
        &self,
        stream_arn: &str,
        shard: &VirtualShard,
        kind: IteratorKind,
    ) -> Result<String> {
        let request = GetShardIterator {
            stream_arn: stream_arn.to_owned(),
            shard_id: shard.source.id.clone(),
            kind,
        };
        self.inner.get_shard_iterator(request).await
    }
}
