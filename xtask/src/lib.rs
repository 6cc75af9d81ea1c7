//! The part of the project's tools that its tests run as well: the checker of the source tree.

#![forbid(unsafe_code)]

pub mod tidy;
