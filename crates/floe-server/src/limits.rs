//! All limits of the server, and where they come from.
//!
//! There are two kinds: DynamoDB's own limits, which are fixed, and limits that keep one client from starving
//! other clients, which are the defaults of [`Limits`].

use std::time::Duration;

/// Maximum size of a request body. DynamoDB rejects larger ones with status 413.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// Minimum size of a response that is compressed if the client accepts it, as in DynamoDB.
pub(crate) const COMPRESSED_BYTES_MIN: usize = 4096;

/// Maximum compression ratio of deflate.
pub(crate) const COMPRESSION_RATIO_MAX: usize = 1032;

/// Maximum number of gzip members in a body. One is usual; each costs time, even if it is empty.
pub(crate) const GZIP_MEMBERS_MAX: usize = 1024;

/// Maximum clock skew of a signature, as in DynamoDB.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// How long a browser may cache the response to a preflight request, as in DynamoDB.
pub(crate) const PREFLIGHT_SECONDS: u32 = 172_800;

/// Maximum size of a rejected body that is read and discarded, so that a client that sends everything before it reads
/// receives the error instead of a broken connection.
pub(crate) const DISCARDED_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Maximum size of the request line and all headers. A session token alone may have 4 KB.
pub(crate) const HEAD_BYTES_MAX: usize = 16 << 10;

/// Maximum size of the read buffer of a connection.
pub(crate) const READ_BUFFER_BYTES_MAX: usize = 32 << 10;

/// Size of the socket's send and receive buffers. By default the system buffers megabytes of unread data, and runs out
/// of memory for all connections of the machine.
pub(crate) const SOCKET_BYTES: u32 = 256 << 10;

/// Length of the system's queue of connections that wait to be accepted. Further clients retry after a second.
pub(crate) const BACKLOG: u32 = 4096;

/// Maximum size of a body or response that counts as part of its connection and not against a memory budget. Small
/// requests therefore never wait for memory.
pub(crate) const UNCOUNTED_BYTES_MAX: usize = 32 << 10;

/// A quarter of each memory budget is reserved for bodies and responses up to this size, so that a few very large ones
/// do not block ordinary items.
pub(crate) const ORDINARY_BYTES_MAX: usize = 1 << 20;

/// Minimum size of a body that is processed in a blocking section, outside the threads that serve connections: parsing
/// it takes milliseconds, which would delay small requests.
pub(crate) const BLOCKING_BYTES_MIN: usize = 256 << 10;

/// Interval at which overdue connections are detected; all deadlines have this precision.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// File descriptors reserved for the engine and other uses, so that connections cannot exhaust them.
pub(crate) const FILES_RESERVED: u64 = 256;

/// Limits that keep one client from starving other clients.
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
    /// Maximum number of connections. A further one replaces the one whose client has been idle longest. Default: 4096.
    pub connections_max: usize,
    /// Memory for large request bodies of all connections. Default: 64 MB.
    pub bodies_bytes_max: usize,
    /// Memory for large responses of all connections until clients have received them. Default: 64 MB.
    pub responses_bytes_max: usize,
    /// Time limit for the headers of a request, from its first byte; for the first request, from the start of the
    /// connection. Default: 20 seconds.
    pub head_deadline: Duration,
    /// Time limit for a body. After it, the client must have sent [`pace_bytes`](Self::pace_bytes) per second. Default:
    /// 20 seconds.
    pub body_deadline: Duration,
    /// Time limit for a response. After it, the client must have received [`pace_bytes`](Self::pace_bytes) per second.
    /// Default: 20 seconds.
    pub response_deadline: Duration,
    /// How long a connection without a request is kept. Default: 5 minutes.
    pub idle_deadline: Duration,
    /// Minimum transfer rate of a client after its time limit, in bytes per second. Default: 64 KB.
    pub pace_bytes: usize,
    /// How long a request waits for memory before it is rejected with status 503, which SDKs retry. Default: 5 seconds.
    pub memory_deadline: Duration,
    /// How long a shutdown waits for requests in progress. Default: 10 seconds.
    pub shutdown_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            bodies_bytes_max: 64 << 20,
            responses_bytes_max: 64 << 20,
            head_deadline: Duration::from_secs(20),
            body_deadline: Duration::from_secs(20),
            response_deadline: Duration::from_secs(20),
            idle_deadline: Duration::from_secs(300),
            pace_bytes: 64 << 10,
            memory_deadline: Duration::from_secs(5),
            shutdown_deadline: Duration::from_secs(10),
        }
    }
}
