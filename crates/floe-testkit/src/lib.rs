#![forbid(unsafe_code)]

pub mod contract;
pub mod harness;
pub mod model;

pub use harness::Harness;
