//! Every limit of the server, with the rule it comes from.
//!
//! Two kinds: what DynamoDB refuses, and what keeps one client from taking the server away from the others.
//! The first cannot be changed; the second are the defaults of [`Limits`].

use std::time::Duration;

/// The largest body of a request. DynamoDB answers a larger one with 413.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// Answers from this size on are compressed for who wants it, as DynamoDB does.
pub(crate) const COMPRESSED_BYTES_MIN: usize = 4096;

/// How many bytes one byte can stand for in what is compressed: the most that deflate can do.
pub(crate) const COMPRESSION_RATIO_MAX: usize = 1032;

/// How many members a body in gzip may be made of. One is usual; each takes its time, however little is in it.
pub(crate) const GZIP_MEMBERS_MAX: usize = 1024;

/// How far the clock of a client may be off when it signs, as DynamoDB has it.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// How long a browser may remember the answer to a preflight, as DynamoDB has it.
pub(crate) const PREFLIGHT_SECONDS: u32 = 172_800;

/// How much of a body is read and thrown away, so that a client that sends first and listens afterwards learns
/// why it was refused, instead of finding its connection broken.
pub(crate) const DISCARDED_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// The line of the request and all headers. A session token alone may have 4 KB.
pub(crate) const HEAD_BYTES_MAX: usize = 16 << 10;

/// The most that is read at once and kept unread for a connection.
pub(crate) const READ_BUFFER_BYTES_MAX: usize = 32 << 10;

/// What the system keeps for a connection, in either direction. Left to itself it takes in megabytes that nobody
/// reads, and runs short for all connections of the machine.
pub(crate) const SOCKET_BYTES: u32 = 256 << 10;

/// Connections that the system may accept before the server does. Who comes on top of that has to try again after a
/// second.
pub(crate) const BACKLOG: u32 = 4096;

/// Bodies and answers up to this size belong to the price of a connection and are not counted: who sends and
/// reads small things never waits for memory that others use up.
pub(crate) const UNCOUNTED_BYTES_MAX: usize = 32 << 10;

/// A quarter of the memory for bodies and answers is kept for those up to this size, so that a few very large ones
/// do not keep everybody waiting who sends an ordinary item.
pub(crate) const ORDINARY_BYTES_MAX: usize = 1 << 20;

/// Calls with a larger body than this are run beside the threads that serve connections: to read such a body
/// takes milliseconds, in which a small call should not have to wait.
pub(crate) const BESIDE_BYTES_MIN: usize = 256 << 10;

/// How often the server looks for connections that are overdue; all deadlines are met to within this.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Files that the engine and everything else may need beside the connections: it must never fail to open one
/// because clients hold them all.
pub(crate) const FILES_RESERVED: u64 = 256;

/// What keeps one client from taking the server away from the others.
///
/// ```
/// use floe_server::Limits;
/// use std::time::Duration;
///
/// let limits = Limits {
///     connections_max: 100,
///     idle_deadline: Duration::from_secs(60),
///     ..Limits::default()
/// };
/// # let _ = limits;
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time. One more takes the place of the one that has waited longest for its client.
    pub connections_max: usize,
    /// Memory for large request bodies, over all connections.
    pub bodies_bytes_max: usize,
    /// Memory for large answers that clients have not yet taken, over all connections.
    pub answers_bytes_max: usize,
    /// Until the headers of a request are there, from its first byte; from the beginning of the connection for
    /// the first request.
    pub head_deadline: Duration,
    /// Until a body is there. Beyond it, a body must have come at [`pace_bytes`](Self::pace_bytes) a second.
    pub body_deadline: Duration,
    /// Until an answer is taken. Beyond it, it must have been taken at [`pace_bytes`](Self::pace_bytes) a second.
    pub answer_deadline: Duration,
    /// How long a connection is kept without a request.
    pub idle_deadline: Duration,
    /// What a slow client must send or take in a second, once its deadline is over.
    pub pace_bytes: usize,
    /// How long a request waits for memory before it is refused with 503, which SDKs try again.
    pub memory_deadline: Duration,
    /// How long what is under way is waited for when the server stops.
    pub shutdown_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            bodies_bytes_max: 64 << 20,
            answers_bytes_max: 64 << 20,
            head_deadline: Duration::from_secs(20),
            body_deadline: Duration::from_secs(20),
            answer_deadline: Duration::from_secs(20),
            idle_deadline: Duration::from_secs(300),
            pace_bytes: 64 << 10,
            memory_deadline: Duration::from_secs(5),
            shutdown_deadline: Duration::from_secs(10),
        }
    }
}
