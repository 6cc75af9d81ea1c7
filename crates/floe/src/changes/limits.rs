//! The limits of consumers, each with its reason.

use std::time::Duration;

/// How many items are handled at once, unless something else is said.
pub(super) const ITEMS_AT_ONCE: usize = 64;

/// How many changes of an item are given to one turn of it, so that others get theirs.
pub(super) const CHANGES_PER_TURN: usize = 100;

/// How many records are read with one look at a table.
pub(super) const LOOK_RECORDS: usize = 1_000;

/// How many changes may wait or be handled before no more are read: what is read must be remembered.
pub(super) const RECORDS_AHEAD: usize = 10_000;

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

/// How long is waited where there is nothing new, unless something else is said: a shard of DynamoDB bears five looks a
/// second.
pub(super) const POLL: Duration = Duration::from_millis(250);

/// How many looks that bring nothing go by before new shards are looked for. Where one has ended, they are looked for at
/// once.
pub(super) const LOOKS_PER_SEARCH: u32 = 20;

/// How often in a row nothing must be found before a consumer has caught up: DynamoDB gives empty pages before the end.
pub(super) const EMPTY_LOOKS: u32 = 3;

/// How long a process may be silent before another takes its place, unless something else is said.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// How often a process says that it is alive while a lease lasts: one time may be lost, and another one late.
pub(super) const BEATS_PER_LEASE: u32 = 4;

/// How long handlers that are under way may take when a consumer stops, unless something else is said.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How often a consumer tries to give its lease back in the end. If it cannot, the lease runs out.
pub(super) const LEAVE_TRIES: u32 = 3;
