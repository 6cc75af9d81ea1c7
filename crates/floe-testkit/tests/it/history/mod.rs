//! The history checkers accept what a correct store answers and find what it cannot have answered:
//! histories made by hand, one for each rule and each anomaly, and long generated ones with planted bugs.

mod isolation;
mod linear;
