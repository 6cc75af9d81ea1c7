//! DynamoDB's JSON: items with the type of each value (`{"id":{"S":"a"},"n":{"N":"5"}}`) and change records.
//!
//! The wire protocol, exports, the events of AWS Lambda and the command line all read and write JSON with this module.
//! A [`Reader`] reads a text in one pass, without building a tree, and borrows strings without copying them. A
//! [`Writer`] appends to one buffer, items directly from their packed bytes.
//!
//! For some faults of a value, such as an empty set or a number out of range, DynamoDB continues reading and reports
//! them after other faults of the request. [`read_item`] and [`read_value`] do the same and return such a fault as a
//! [`ValueFault`]. Everything but the wire protocol uses [`decode_item`], which returns an item or a [`DecodeError`]
//! with the reason and the path.
//!
//! ```
//! use floe_store::json::{Reader, Writer, decode_item, write_item};
//!
//! let text = r#"{"id":{"S":"a"},"tags":{"SS":["x","y"]}}"#;
//! let item = decode_item(&mut Reader::new(text))?;
//! let mut writer = Writer::default();
//! write_item(&mut writer, &item);
//! assert_eq!(writer.into_text(), text);
//! # Ok::<(), floe_store::json::DecodeError>(())
//! ```
//!
//! Not here: the members of requests, and DynamoDB's errors for a text of the wrong shape (`floe-server`).

mod decode;
mod fault;
mod read;
mod reader;
mod record;
mod scan;
mod write;
mod writer;

pub use decode::{DecodeError, decode_item, read_members};
pub use fault::{DepthFault, Duplicates, FlagForm, NameKind, SetKind, ValidationLayer, ValueFault};
pub use read::{Expected, Found, Parsed, ReadError, read_flag, read_item, read_text, read_value};
pub use reader::{Malformed, Reader, Token};
pub use record::{ReceivedRecord, RecordForm, read_record, write_record, write_timestamp};
pub use write::{ItemWriter, write_item};
pub use writer::Writer;
