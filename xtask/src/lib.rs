//! The part of the project's tools that its tests use too: the checker of the source tree.

#![forbid(unsafe_code)]

pub mod tidy;
