//! The programs, started as a reader starts them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod book;
mod command_lines;
