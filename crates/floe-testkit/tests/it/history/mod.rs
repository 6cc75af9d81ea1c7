//! The history checkers accept correct histories and find incorrect ones: handwritten histories, one for each rule
//! and each anomaly, and long generated ones with planted bugs.

mod isolation;
mod linear;
