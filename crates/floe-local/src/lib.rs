//! The embedded engine.
#![allow(dead_code, reason = "being built")]

mod kv;
mod layout;
