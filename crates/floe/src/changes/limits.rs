//! Limits of consumers, with their reasons.

/// Default maximum number of items handled concurrently.
pub(super) const CONCURRENCY_MAX: usize = 64;

/// Maximum number of changes of an item per turn, so that other items get turns.
pub(super) const CHANGES_PER_TURN: u64 = 100;

/// Maximum number of records per read of a table.
pub(super) const RECORDS_PER_READ: usize = 1_000;

/// Maximum number of changes read ahead, which bounds memory.
pub(super) const RECORDS_AHEAD: u64 = 10_000;

/// Maximum bytes of changes read ahead.
pub(super) const BYTES_AHEAD: usize = 64 << 20;

/// Maximum number of reads ahead of the first incomplete one.
pub(super) const READS_AHEAD: usize = 1_000;

/// Number of change ids remembered to detect duplicates.
pub(super) const REMEMBERED: usize = 20_000;

/// Default maximum attempts before a change becomes a dead letter.
pub(super) const ATTEMPTS_MAX: u32 = 8;

/// Default maximum number of dead letters of a consumer. If there are more, the cause is not in the changes.
pub(super) const DEAD_LETTERS_MAX: usize = 1_000;

/// Maximum stored length of a handler's error message.
pub(super) const ERROR_CHARS_MAX: usize = 1_000;

/// Maximum text in one item of a dead letter. An item holds 400 KB.
pub(super) const PART_BYTES_MAX: usize = 300_000;

/// Empty reads between searches for new shards. After the end of a shard, the search starts at once.
pub(super) const EMPTY_READS_PER_SEARCH: u32 = 20;

/// Consecutive empty reads after which a consumer has caught up. DynamoDB returns empty pages before the end.
pub(super) const EMPTY_READS: u32 = 3;
