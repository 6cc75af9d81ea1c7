//! The limits of consumers, each with its reason.

/// How many items are handled at once, unless something else is said.
pub(super) const ITEMS_AT_ONCE: usize = 64;

/// How many changes of an item are given to one turn of it, so that others get theirs.
pub(super) const CHANGES_PER_TURN: u64 = 100;

/// How many records are read with one look at a table.
pub(super) const LOOK_RECORDS: usize = 1_000;

/// How many changes may wait or be handled before no more are read: what is read must be remembered.
pub(super) const RECORDS_AHEAD: u64 = 10_000;

/// How many bytes of changes may wait or be handled before no more are read.
pub(super) const BYTES_AHEAD: usize = 64 << 20;

/// How many looks may be ahead of the first that is not done.
pub(super) const LOOKS_AHEAD: usize = 1_000;

/// How many changes are remembered, to know those that come again.
pub(super) const REMEMBERED: usize = 20_000;

/// How often a change is tried before it is parked, unless something else is said.
pub(super) const ATTEMPTS_MAX: u32 = 8;

/// How many changes of a consumer may be parked, unless something else is said. If it is more, something else is wrong than
/// the changes.
pub(super) const PARKED_MAX: usize = 1_000;

/// How much is kept of what a handler said of a change that is parked.
pub(super) const ERROR_CHARS_MAX: usize = 1_000;

/// How long the text in one item of a parked change is at most: an item takes 400 KB.
pub(super) const PART_BYTES_MAX: usize = 300_000;

/// How many looks that bring nothing go by before new shards are looked for. Where one has ended, they are looked for at
/// once.
pub(super) const LOOKS_PER_SEARCH: u32 = 20;

/// How often in a row nothing must be found before a consumer has caught up: DynamoDB gives empty pages before the end.
pub(super) const EMPTY_LOOKS: u32 = 3;
