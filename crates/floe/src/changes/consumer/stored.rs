//! The items of consumers in the table `floe_changes`: leases, positions and dead letters.
//!
//! | `_id` | `_sk` | contents |
//! |---|---|---|
//! | the consumer | `lease` | the lease: see [`ConsumerLease`] |
//! | the consumer | `position` NUL table | the position in a table's changes: see [`ConsumerPosition`] |
//! | the consumer | `parked` NUL table NUL item NUL sequence | a dead letter: see [`DeadLetterRecord`] |
//! | the consumer | `parked_part` NUL table NUL item NUL sequence NUL number | the rest of a large one: [`DeadLetterPart`] |

use floe_store::json::{Reader, RecordForm, Writer, read_record, write_record};
use floe_store::{Item, Timestamp};
use sha2::{Digest, Sha256};

use super::super::change::Change;
use super::super::limits::{ERROR_CHARS_MAX, PART_BYTES_MAX};
use super::super::work::Pending;
use crate::attribute::document::Json;
use crate::error::{Error, ErrorKind, Result};
use crate::model::Schema;

/// The schemas of the items of consumers, for [`Db::ensure_tables`](crate::Db::ensure_tables).
pub const SCHEMAS: [&Schema; 4] = [
    <ConsumerLease as crate::Model>::SCHEMA,
    <ConsumerPosition as crate::Model>::SCHEMA,
    <DeadLetterRecord as crate::Model>::SCHEMA,
    <DeadLetterPart as crate::Model>::SCHEMA,
];

/// The lease of a consumer.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "floe_changes", sort_key = "lease")]
pub struct ConsumerLease {
    /// The name of the consumer.
    #[model(key)]
    pub consumer: String,
    /// The process that holds the lease, if any.
    pub holder: Option<String>,
    /// Number of heartbeats of all holders.
    pub beats: u64,
    /// How often the lease was acquired.
    pub term: u64,
    /// How often a replay was requested.
    pub asked: u64,
}

/// The position up to which the changes of a table are processed.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "floe_changes", sort_key = "position")]
pub struct ConsumerPosition {
    /// The name of the consumer.
    #[model(key)]
    pub consumer: String,
    /// The table.
    #[model(sort_key)]
    pub table: String,
    /// The term of the lease under which it was stored.
    pub term: u64,
    /// For each shard of its change streams (`<label of the stream>/<id of the shard>`): `{"begun": <first sequence number
    /// or null>}`, `{"after": <sequence number>}`, or `{"end": true}`.
    pub shards: Json,
}

/// A stored dead letter.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "floe_changes", sort_key = "parked")]
pub struct DeadLetterRecord {
    /// The name of the consumer.
    #[model(key)]
    pub consumer: String,
    /// The table.
    #[model(sort_key)]
    pub table: String,
    /// A digest of the item's key, which may be too long for this key.
    #[model(sort_key)]
    pub item: String,
    /// The sequence number of the change, padded with zeros so that text order is the order of changes.
    #[model(sort_key)]
    pub sequence: String,
    /// The change in the JSON of AWS Lambda events, as much of it as fits.
    pub record: String,
    /// Number of items with the rest.
    pub parts: u32,
    /// The handlers that have not completed it.
    pub handlers: Vec<String>,
    /// The last error of the first of them.
    pub error: String,
    /// Number of attempts.
    pub attempts: u32,
    /// When it became a dead letter, or was last replayed.
    pub parked: Timestamp,
    /// Whether a replay was requested. Set on the first dead letter of an item.
    pub asked: bool,
}

/// A further part of the record of a dead letter.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "floe_changes", sort_key = "parked_part")]
pub struct DeadLetterPart {
    /// The name of the consumer.
    #[model(key)]
    pub consumer: String,
    /// The table.
    #[model(sort_key)]
    pub table: String,
    /// The item.
    #[model(sort_key)]
    pub item: String,
    /// The sequence number.
    #[model(sort_key)]
    pub sequence: String,
    /// The number of the part, starting at 1.
    #[model(sort_key)]
    pub number: u32,
    /// The text.
    pub text: String,
}

/// The name of an item in the keys of dead letters.
pub(super) fn item_name(keys: &Item) -> String {
    let mut packed = Vec::new();
    keys.pack_into(&mut packed);
    let digest = Sha256::digest(&packed);
    let half = digest.iter().take(16);
    half.map(|byte| format!("{byte:02x}")).collect()
}

/// Sequence numbers of DynamoDB have up to 40 digits.
const SEQUENCE_DIGITS: usize = 40;

impl DeadLetterRecord {
    /// Creates the record of a change, with the parts that do not fit into one item.
    pub(super) fn new(
        consumer: &str,
        change: &Change,
        pending: &[Pending],
        attempts: u32,
        now: Timestamp,
    ) -> (Self, Vec<DeadLetterPart>) {
        let mut text = Writer::with_capacity(512);
        write_record(&mut text, change.record(), &RecordForm::LAMBDA);
        let text = text.into_text();
        let mut chunks = chunks(&text, PART_BYTES_MAX).into_iter();
        let error = pending.first().map(|pending| pending.failure.to_string());
        let error = error.unwrap_or_default();
        let mut record = Self {
            consumer: consumer.to_owned(),
            table: change.table().to_owned(),
            item: item_name(change.keys()),
            sequence: format!("{:0>SEQUENCE_DIGITS$}", change.sequence()),
            record: chunks.next().unwrap_or_default().to_owned(),
            parts: 0,
            handlers: pending.iter().map(|pending| pending.name.clone()).collect(),
            error: error.chars().take(ERROR_CHARS_MAX).collect(),
            attempts,
            parked: now,
            asked: false,
        };
        let parts: Vec<DeadLetterPart> = (1..)
            .zip(chunks)
            .map(|(number, text)| record.part(number, text))
            .collect();
        record.parts = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        (record, parts)
    }

    fn part(&self, number: u32, text: &str) -> DeadLetterPart {
        DeadLetterPart {
            consumer: self.consumer.clone(),
            table: self.table.clone(),
            item: self.item.clone(),
            sequence: self.sequence.clone(),
            number,
            text: text.to_owned(),
        }
    }

    /// Decodes the change from the record and its parts.
    pub(super) fn change(&self, parts: &str) -> Result<Change> {
        let text = format!("{}{parts}", self.record);
        let reason = match read_record(&mut Reader::new(&text)) {
            Ok(sent) => return Ok(Change::new(self.table.as_str(), sent.record)),
            Err(reason) => reason,
        };
        let message = format!(
            "cannot read a dead letter, {reason}: consumer={} table={} sequence={}",
            self.consumer, self.table, self.sequence
        );
        Err(Error::new(ErrorKind::InvalidField, message))
    }
}

/// Splits text into chunks of at most `bytes_max` bytes.
fn chunks(text: &str, bytes_max: usize) -> Vec<&str> {
    let (mut chunks, mut rest) = (Vec::new(), text);
    while rest.len() > bytes_max {
        // A character has at most four bytes.
        let cut = (0..=bytes_max).rev().find(|at| rest.is_char_boundary(*at));
        let (chunk, behind) = rest.split_at(cut.unwrap_or(rest.len()));
        chunks.push(chunk);
        rest = behind;
    }
    chunks.push(rest);
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_split_between_characters() {
        assert_eq!(chunks("", 3), [""]);
        assert_eq!(chunks("abc", 3), ["abc"]);
        assert_eq!(chunks("abcde", 3), ["abc", "de"]);
        assert_eq!(chunks("aäöü", 4), ["aä", "öü"]);
    }

    #[test]
    fn item_names_are_unique_and_of_fixed_length() {
        let keys = |id: &str| Item::new().with("id", id);
        let name = item_name(&keys("a"));
        assert_eq!(name.len(), 32);
        assert_eq!(name, item_name(&keys("a")));
        assert_ne!(name, item_name(&keys("b")));
        assert_ne!(name, item_name(&Item::new().with("id", 7)));
    }
}
