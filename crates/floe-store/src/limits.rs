//! Every limit of DynamoDB in one place, each with the rule that it comes from.
//!
//! The embedded engine keeps them all, so that code which runs there runs on DynamoDB. Bytes of text
//! are bytes of UTF-8; a kilobyte is 1024 bytes. How data is weighed stands in [`size`](crate::size).

use std::ops::RangeInclusive;
use std::time::Duration;

// Items and values.

/// An item weighs at most 400 KB, names and values together.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// Values nest at most 32 levels deep. A value of the item itself is level 1, so a scalar may stand
/// inside 31 maps and lists.
pub const NESTING_LEVELS_MAX: usize = 32;

/// Values in expressions nest one level deeper than those of items: they cannot be stored, but be compared.
pub const LITERAL_LEVELS_MAX: usize = NESTING_LEVELS_MAX + 1;

/// The name of an attribute is at most 64 KB long, less one byte.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 65_535;

/// The name of an attribute of a key is at most 255 bytes long.
pub const KEY_ATTRIBUTE_NAME_BYTES_MAX: usize = 255;

/// The name of an attribute that an index is told to copy is at most 255 bytes long.
pub const PROJECTED_NAME_BYTES_MAX: usize = 255;

/// The name of the attribute that holds the moment of expiry has 1 to 255 characters.
pub const TTL_ATTRIBUTE_NAME_BYTES: RangeInclusive<usize> = 1..=255;

/// The value of a partition key is at most 2048 bytes long, in a table and in an index. With several
/// partition attributes they count together.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;

/// The value of a sort key is at most 1024 bytes long, in a table and in an index. With several sort
/// attributes they count together.
pub const SORT_KEY_BYTES_MAX: usize = 1024;

/// A number has at most 38 significant digits.
pub const NUMBER_DIGITS_MAX: usize = 38;

/// The magnitude of a number is below 1E+126: its leading digit stands for at most 1E+125.
pub const NUMBER_EXPONENT_MAX: i32 = 125;

/// The magnitude of a number that is not zero is at least 1E-130.
pub const NUMBER_EXPONENT_MIN: i32 = -130;

/// An item whose moment of expiry lies further back than this is taken for a mistake and kept.
pub const TTL_AGE_MAX: Duration = Duration::from_secs(5 * 365 * 24 * 60 * 60);

/// The items and local index entries under one partition key weigh at most 10 GB, in a table that has
/// local indexes.
pub const ITEM_COLLECTION_BYTES_MAX: u64 = 10 * 1024 * 1024 * 1024;

// Expressions.

/// The text of an expression is at most 4 KB long, with its placeholders as they are written.
pub const EXPRESSION_BYTES_MAX: usize = 4096;

/// An expression has at most 300 operators and functions.
pub const EXPRESSION_OPERATORS_MAX: usize = 300;

/// `IN` takes at most 100 values.
pub const IN_OPERANDS_MAX: usize = 100;

/// A placeholder (`#name`, `:value`) is at most 255 bytes long, its sign included.
pub const PLACEHOLDER_BYTES_MAX: usize = 255;

/// All placeholders of a request and the names and values that replace them weigh at most 2 MB together.
pub const SUBSTITUTIONS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A path has at most 32 steps.
pub const PATH_STEPS_MAX: usize = 32;

/// A position in a list that an expression names is at most this.
pub const LIST_INDEX_MAX: usize = 2_147_483_647;

// Requests for items.

/// A page of a query or scan ends with the item that reaches 1 MB, before the filter and the
/// projection.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// A transaction reads or writes at most 100 items.
pub const TRANSACT_ITEMS_MAX: usize = 100;

/// The items of a transaction weigh at most 4 MB together.
pub const TRANSACT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The token of a transaction has 1 to 36 characters.
pub const TOKEN_CHARS: RangeInclusive<usize> = 1..=36;

/// The token of a transaction is remembered for 10 minutes after the transaction is done.
pub const TOKEN_RETENTION: Duration = Duration::from_secs(10 * 60);

/// A batch writes at most 25 items.
pub const BATCH_WRITE_ITEMS_MAX: usize = 25;

/// The items of a batch write weigh at most 16 MB together.
pub const BATCH_WRITE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A batch reads at most 100 items.
pub const BATCH_GET_ITEMS_MAX: usize = 100;

/// The answer to a batch read holds at most 16 MB of items; the rest comes back as unprocessed keys.
pub const BATCH_GET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A scan divides a table into at most 1,000,000 segments.
pub const SCAN_SEGMENTS_MAX: usize = 1_000_000;

/// A query or scan asks for at most this many items at once: the field is a 32-bit number.
pub const PAGE_ITEMS_MAX: usize = 2_147_483_647;

/// A constraint error lists at most 10 faults of a request.
pub const CONSTRAINT_ERRORS_MAX: usize = 10;

// Tables and indexes.

/// The name of a table has 3 to 255 characters of `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`.
pub const TABLE_NAME_CHARS: RangeInclusive<usize> = 3..=255;

/// The name of an index has 3 to 255 characters of the same set as a table's.
pub const INDEX_NAME_CHARS: RangeInclusive<usize> = 3..=255;

/// The resource name of a table, which may stand in the place of its name, has at most 1024 characters.
pub const TABLE_ARN_CHARS_MAX: usize = 1024;

/// The key of a table or local index has at most two attributes: one to part by, one to sort by.
pub const KEY_ATTRIBUTES_MAX: usize = 2;

/// The key of a global index has at most four attributes to part by.
pub const INDEX_PARTITION_ATTRIBUTES_MAX: usize = 4;

/// The key of a global index has at most four attributes to sort by.
pub const INDEX_SORT_ATTRIBUTES_MAX: usize = 4;

/// A table has at most 20 global indexes.
pub const GLOBAL_INDEXES_MAX: usize = 20;

/// A table has at most 5 local indexes.
pub const LOCAL_INDEXES_MAX: usize = 5;

/// An index names at most 20 attributes to copy besides the keys.
pub const INCLUDED_ATTRIBUTES_MAX: usize = 20;

/// All indexes of a table together name at most 100 attributes to copy. One named by two indexes
/// counts twice.
pub const INCLUDED_ATTRIBUTES_TOTAL_MAX: usize = 100;

/// One call creates or deletes at most one index of a table that is there.
pub const INDEX_CHANGES_MAX: usize = 1;

/// Provisioned capacity is at least one unit and at most this.
pub const THROUGHPUT_UNITS: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// A table or an index that is paid for by the request takes so many units of reading at once when it is new.
pub const WARM_READ_UNITS: u64 = 12_000;

/// As [`WARM_READ_UNITS`], of writing.
pub const WARM_WRITE_UNITS: u64 = 4_000;

/// A table has at most 50 tags.
pub const TAGS_MAX: usize = 50;

/// The key of a tag has 1 to 128 characters.
pub const TAG_KEY_CHARS: RangeInclusive<usize> = 1..=128;

/// The value of a tag has at most 256 characters.
pub const TAG_VALUE_CHARS_MAX: usize = 256;

/// A listing of tables has at most 100 names on a page.
pub const LIST_TABLES_MAX: usize = 100;

// Change streams.

/// Change records are kept for 24 hours.
pub const STREAM_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// A shard takes new records for about 4 hours before children follow it.
pub const SHARD_AGE_MAX: Duration = Duration::from_secs(4 * 60 * 60);

/// A shard iterator is good for 15 minutes.
pub const SHARD_ITERATOR_AGE_MAX: Duration = Duration::from_secs(15 * 60);

/// A read of change records returns at most 1000 of them.
pub const GET_RECORDS_MAX: usize = 1000;

/// A read of change records returns at most 1 MB of them.
pub const GET_RECORDS_BYTES_MAX: usize = 1024 * 1024;

/// A listing of streams has at most 100 of them on a page.
pub const LIST_STREAMS_MAX: usize = 100;

/// The description of a stream has at most 100 shards on a page.
pub const DESCRIBE_STREAM_SHARDS_MAX: usize = 100;

/// The name of a stream has 37 to 1024 characters.
pub const STREAM_ARN_CHARS: RangeInclusive<usize> = 37..=1024;

/// The name of a shard has 28 to 65 characters.
pub const SHARD_ID_CHARS: RangeInclusive<usize> = 28..=65;

/// A sequence number has 21 to 40 digits.
pub const SEQUENCE_NUMBER_CHARS: RangeInclusive<usize> = 21..=40;

/// A shard iterator has 1 to 2048 characters.
pub const SHARD_ITERATOR_CHARS: RangeInclusive<usize> = 1..=2048;

/// The name of a consumer that holds change records has 1 to 255 bytes. The rule is Floe's own: DynamoDB
/// knows no such consumers.
pub const CONSUMER_NAME_BYTES: RangeInclusive<usize> = 1..=255;

// Capacity.

/// One unit of reading covers 4 KB.
pub const READ_UNIT_BYTES: usize = 4096;

/// One unit of writing covers 1 KB.
pub const WRITE_UNIT_BYTES: usize = 1024;
