//! JSON, read from the front and written to the back, without a tree in between.

mod reader;
mod scan;
mod writer;

pub use reader::{Malformed, Reader, Token};
pub use writer::Writer;
