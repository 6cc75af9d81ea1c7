//! Changes: what a commit leaves behind for others to act on.
//!
//! [`outbox`] has the messages that are written in the same commit as the items they tell of. What reads
//! change streams and delivers them, the router, is not here yet.

pub mod outbox;
