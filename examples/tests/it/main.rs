//! Runs the programs as a reader would.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod book;
mod command_lines;
