//! All limits of DynamoDB, each with its rule.
//!
//! The embedded engine enforces all of them, so that code which works with it works with DynamoDB. Lengths of text are
//! in bytes of UTF-8; a kilobyte is 1024 bytes. [`size`](crate::size) defines the sizes of values.

use std::ops::RangeInclusive;
use std::time::Duration;

// Items and values.

/// Maximum size of an item, names and values together: 400 KB.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// Maximum nesting of values: 32 levels. A top-level value is level 1, so a scalar can be inside 31 maps and lists.
pub const NESTING_LEVELS_MAX: usize = 32;

/// Maximum nesting of values in expressions. One level more than in items: such values can be compared but not stored.
pub const LITERAL_LEVELS_MAX: usize = NESTING_LEVELS_MAX + 1;

/// Maximum length of an attribute name: 64 KB minus one byte.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 65_535;

/// Maximum length of the name of a key attribute.
pub const KEY_ATTRIBUTE_NAME_BYTES_MAX: usize = 255;

/// Maximum length of the name of an attribute in an index projection.
pub const PROJECTED_NAME_BYTES_MAX: usize = 255;

/// Length of the name of the TTL attribute.
pub const TTL_ATTRIBUTE_NAME_BYTES: RangeInclusive<usize> = 1..=255;

/// Maximum length of the value of a partition key, in a table or an index. Several partition attributes count together.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;

/// Maximum length of the value of a sort key, in a table or an index. Several sort attributes count together.
pub const SORT_KEY_BYTES_MAX: usize = 1024;

/// Maximum number of significant digits of a number.
pub const NUMBER_DIGITS_MAX: usize = 38;

/// Maximum power of ten of the leading digit of a number: magnitudes are below 1E+126.
pub const NUMBER_EXPONENT_MAX: i32 = 125;

/// Minimum power of ten of the leading digit of a nonzero number.
pub const NUMBER_EXPONENT_MIN: i32 = -130;

/// Maximum age of an expiry time. An earlier one is considered a mistake, and the item is kept.
pub const TTL_AGE_MAX: Duration = Duration::from_secs(5 * 365 * 24 * 60 * 60);

/// Maximum size of the items and local index entries under one partition key, in a table with local indexes: 10 GB.
pub const ITEM_COLLECTION_BYTES_MAX: u64 = 10 * 1024 * 1024 * 1024;

// Expressions.

/// Maximum length of the text of an expression, with placeholders as written.
pub const EXPRESSION_BYTES_MAX: usize = 4096;

/// Maximum number of operators and functions in an expression.
pub const EXPRESSION_OPERATORS_MAX: usize = 300;

/// Maximum number of operands of `IN`.
pub const IN_OPERANDS_MAX: usize = 100;

/// Maximum length of a placeholder (`#name`, `:value`), including its sign.
pub const PLACEHOLDER_BYTES_MAX: usize = 255;

/// Maximum size of all placeholders of a request and their names and values: 2 MB.
pub const SUBSTITUTIONS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Maximum number of elements of a path.
pub const PATH_STEPS_MAX: usize = 32;

/// Maximum list index in an expression.
pub const LIST_INDEX_MAX: usize = 2_147_483_647;

// Requests for items.

/// Size at which a page of a query or scan ends, with the item that reaches it, before filter and projection: 1 MB.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of items that a transaction reads or writes.
pub const TRANSACT_ITEMS_MAX: usize = 100;

/// Maximum size of all items of a transaction: 4 MB.
pub const TRANSACT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Length of the token of a transaction.
pub const TOKEN_CHARS: RangeInclusive<usize> = 1..=36;

/// How long the token of a completed transaction is remembered: 10 minutes.
pub const TOKEN_RETENTION: Duration = Duration::from_secs(10 * 60);

/// Maximum number of items in a batch write.
pub const BATCH_WRITE_ITEMS_MAX: usize = 25;

/// Maximum size of all items of a batch write: 16 MB.
pub const BATCH_WRITE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of items in a batch read.
pub const BATCH_GET_ITEMS_MAX: usize = 100;

/// Maximum size of the items in the response to a batch read: 16 MB. The rest is returned as unprocessed keys.
pub const BATCH_GET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of segments of a parallel scan.
pub const SCAN_SEGMENTS_MAX: usize = 1_000_000;

/// Maximum item limit of a query or scan: a 32-bit number.
pub const PAGE_ITEMS_MAX: usize = 2_147_483_647;

/// Maximum number of faults in one constraint error.
pub const CONSTRAINT_ERRORS_MAX: usize = 10;

// Tables and indexes.

/// Length of a table name. Its characters are `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`.
pub const TABLE_NAME_CHARS: RangeInclusive<usize> = 3..=255;

/// Length of an index name. Its characters are those of a table name.
pub const INDEX_NAME_CHARS: RangeInclusive<usize> = 3..=255;

/// Maximum length of a table ARN, which is accepted in place of the name.
pub const TABLE_ARN_CHARS_MAX: usize = 1024;

/// Maximum number of key attributes of a table or local index: a partition key and a sort key.
pub const KEY_ATTRIBUTES_MAX: usize = 2;

/// Maximum number of partition key attributes of a global index.
pub const INDEX_PARTITION_ATTRIBUTES_MAX: usize = 4;

/// Maximum number of sort key attributes of a global index.
pub const INDEX_SORT_ATTRIBUTES_MAX: usize = 4;

/// Maximum number of global indexes of a table.
pub const GLOBAL_INDEXES_MAX: usize = 20;

/// Maximum number of local indexes of a table.
pub const LOCAL_INDEXES_MAX: usize = 5;

/// Maximum number of non-key attributes in the projection of an index.
pub const INCLUDED_ATTRIBUTES_MAX: usize = 20;

/// Maximum number of non-key attributes in the projections of all indexes of a table. One named by two indexes counts
/// twice.
pub const INCLUDED_ATTRIBUTES_TOTAL_MAX: usize = 100;

/// Maximum number of indexes that one call creates or deletes on an existing table.
pub const INDEX_CHANGES_MAX: usize = 1;

/// Range of provisioned capacity.
pub const THROUGHPUT_UNITS: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// Read units that a new on-demand table or index can serve immediately.
pub const WARM_READ_UNITS: u64 = 12_000;

/// Write units that a new on-demand table or index can serve immediately.
pub const WARM_WRITE_UNITS: u64 = 4_000;

/// Maximum number of tags of a table.
pub const TAGS_MAX: usize = 50;

/// Length of the key of a tag.
pub const TAG_KEY_CHARS: RangeInclusive<usize> = 1..=128;

/// Maximum length of the value of a tag.
pub const TAG_VALUE_CHARS_MAX: usize = 256;

/// Maximum number of names on a page of ListTables.
pub const LIST_TABLES_MAX: usize = 100;

// Change streams.

/// How long change records are kept: 24 hours.
pub const STREAM_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a shard accepts new records before child shards replace it: about 4 hours.
pub const SHARD_AGE_MAX: Duration = Duration::from_secs(4 * 60 * 60);

/// How long a shard iterator is valid: 15 minutes.
pub const SHARD_ITERATOR_AGE_MAX: Duration = Duration::from_secs(15 * 60);

/// Maximum number of records that one read of change records returns.
pub const GET_RECORDS_MAX: usize = 1000;

/// Maximum size of the records that one read of change records returns: 1 MB.
pub const GET_RECORDS_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of streams on a page of ListStreams.
pub const LIST_STREAMS_MAX: usize = 100;

/// Maximum number of shards on a page of DescribeStream.
pub const DESCRIBE_STREAM_SHARDS_MAX: usize = 100;

/// Length of a stream ARN.
pub const STREAM_ARN_CHARS: RangeInclusive<usize> = 37..=1024;

/// Length of a shard id.
pub const SHARD_ID_CHARS: RangeInclusive<usize> = 28..=65;

/// Number of digits of a sequence number.
pub const SEQUENCE_NUMBER_CHARS: RangeInclusive<usize> = 21..=40;

/// Length of a shard iterator.
pub const SHARD_ITERATOR_CHARS: RangeInclusive<usize> = 1..=2048;

/// Length of the name of a consumer that holds change records. A rule of Floe: DynamoDB has no such consumers.
pub const CONSUMER_NAME_BYTES: RangeInclusive<usize> = 1..=255;

// Capacity.

/// Bytes covered by one read unit: 4 KB.
pub const READ_UNIT_BYTES: usize = 4096;

/// Bytes covered by one write unit: 1 KB.
pub const WRITE_UNIT_BYTES: usize = 1024;
