//! The kinds of faults, and the operations that they apply to.

use std::fmt;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The request is throttled.
    Throttle = 1,
    /// The request is rejected because another transaction holds the item.
    Conflict = 2,
    /// The request is lost before it reaches the engine.
    LostBefore = 3,
    /// The response is lost after the engine processed the request.
    LostAfter = 4,
    /// A part of the batch is not processed.
    PartialBatch = 5,
    /// A global index lags behind its table.
    IndexLag = 6,
    /// An eventually consistent read is served by a replica that lags.
    StaleRead = 7,
    /// A shard of a stream is closed and continues in child shards.
    ShardSplit = 8,
    /// Records of a shard are returned again, from an earlier position on.
    RepeatedRecords = 9,
    /// Available records are returned with a later page.
    LateRecords = 10,
}

impl FaultKind {
    /// Whether this fault can occur in this operation.
    pub const fn applies_to(self, operation: Operation) -> bool {
        use Operation::{
            BatchGetItem, BatchWriteItem, DescribeStream, GetItem, GetRecords, Query, Scan,
            TransactGetItems, TransactWriteItems, WriteItem,
        };
        match self {
            Self::Throttle | Self::LostBefore | Self::LostAfter => true,
            Self::Conflict => {
                matches!(operation, WriteItem | TransactWriteItems | TransactGetItems)
            }
            Self::PartialBatch => matches!(operation, BatchGetItem | BatchWriteItem),
            Self::IndexLag => matches!(operation, Query | Scan),
            Self::StaleRead => matches!(operation, GetItem | BatchGetItem | Query | Scan),
            Self::ShardSplit => matches!(operation, DescribeStream | GetRecords),
            Self::RepeatedRecords | Self::LateRecords => matches!(operation, GetRecords),
        }
    }

    /// A number that identifies the kind. It must not change, so that old seeds reproduce their runs.
    pub(super) const fn salt(self) -> u64 {
        self as u64
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Throttle => "throttle",
            Self::Conflict => "conflict",
            Self::LostBefore => "lost before",
            Self::LostAfter => "lost after",
            Self::PartialBatch => "partial batch",
            Self::IndexLag => "index lag",
            Self::StaleRead => "stale read",
            Self::ShardSplit => "shard split",
            Self::RepeatedRecords => "repeated records",
            Self::LateRecords => "late records",
        })
    }
}

/// An operation that faults can be injected into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each is the operation of the engine of that name"
)]
#[non_exhaustive]
pub enum Operation {
    GetItem,
    BatchGetItem,
    TransactGetItems,
    WriteItem,
    BatchWriteItem,
    TransactWriteItems,
    Query,
    Scan,
    DescribeStream,
    GetShardIterator,
    GetRecords,
}

impl Operation {
    /// Whether it reads a change stream.
    pub(super) const fn is_of_stream(self) -> bool {
        matches!(
            self,
            Self::DescribeStream | Self::GetShardIterator | Self::GetRecords
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An operation as passed to a [filter](super::Faults::only).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Its number.
    pub number: u64,
    /// The operation.
    pub operation: Operation,
    /// The tables that it uses, possibly with duplicates; the ARN of the stream for stream operations.
    pub resources: Vec<String>,
    /// The index that it reads, if any.
    pub index_name: Option<String>,
}
