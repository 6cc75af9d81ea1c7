//! What can go wrong, and where.

use std::fmt;

/// A way in which the cloud fails or lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The request is refused because there are too many of them.
    Throttle = 1,
    /// The request is refused because another transaction holds the item.
    Conflict = 2,
    /// The request is lost on its way there.
    LostBefore = 3,
    /// The answer is lost on its way back.
    LostAfter = 4,
    /// A part of the batch is left undone.
    PartialBatch = 5,
    /// A global index has not caught up with the table.
    IndexLag = 6,
    /// An eventual read is answered by a replica that is behind.
    StaleRead = 7,
    /// A shard of a stream is closed and goes on in others.
    ShardSplit = 8,
    /// Records of a shard are handed out once more, from an earlier place on.
    RepeatedRecords = 9,
    /// Records that are there come with a later page.
    LateRecords = 10,
}

impl FaultKind {
    /// Whether such a fault can strike such an operation.
    pub const fn strikes(self, operation: Operation) -> bool {
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

    /// A number that stands for the kind in all versions, so that old seeds go on giving the same run.
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

/// An operation that can meet faults.
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

/// An operation as a [filter](super::Faults::only) sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Its number.
    pub number: u64,
    /// What it is.
    pub operation: Operation,
    /// The tables that it is about, some perhaps twice; for one on a stream, the stream's resource name.
    pub resources: Vec<String>,
    /// The index that it reads, if it reads one.
    pub index_name: Option<String>,
}
