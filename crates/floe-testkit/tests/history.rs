//! The history checkers accept what a correct store answers and find what it cannot have answered:
//! histories made by hand, one for each rule and each anomaly, and long generated ones with planted bugs.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "history/isolation.rs"]
mod isolation;
#[path = "history/linear.rs"]
mod linear;
