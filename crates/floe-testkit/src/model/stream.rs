//! A change stream of the model.

use floe_store::env::Timestamp;
use floe_store::op::{ChangeRecord, Shard};
use floe_store::table::{KeySchema, StreamHandle, StreamView};

/// A stream and all its records.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) label: String,
    pub(super) table_name: String,
    pub(super) key: KeySchema,
    pub(super) view: StreamView,
    pub(super) created: Timestamp,
    pub(super) shard: Shard,
    pub(super) records: Vec<ChangeRecord>,
}

impl Stream {
    pub(super) fn arn(&self) -> String {
        format!("{}/stream/{}", table_arn(&self.table_name), self.label)
    }

    pub(super) fn handle(&self) -> StreamHandle {
        StreamHandle {
            arn: self.arn(),
            label: self.label.clone(),
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.shard.ending_sequence.is_none()
    }
}

/// The text of a sequence number.
pub(super) fn sequence_text(number: u64) -> String {
    format!("{number:021}")
}

/// The ARN of a table.
pub(super) fn table_arn(table_name: &str) -> String {
    format!("arn:aws:dynamodb:model:000000000000:table/{table_name}")
}
