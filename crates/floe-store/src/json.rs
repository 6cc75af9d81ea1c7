//! DynamoDB's JSON: items with the type of each value (`{"id":{"S":"a"},"n":{"N":"5"}}`) and change records.
//!
//! The wire, exports, the events of AWS Lambda and the command line all read and write through here. A [`Reader`] goes
//! through a text once, without a tree in between, and hands out strings without copying them; a [`Writer`] appends to one
//! buffer, items straight from their packed bytes.
//!
//! DynamoDB reads on behind some faults of a value, such as an empty set or a number out of range, and reports them after
//! other faults of the request. [`read_item`] and [`read_value`] do the same and return such a fault as a [`ValueFault`];
//! [`sound_item`] is for everything but the wire: it returns an item or an [`Unsound`] that says what is wrong, and where.
//!
//! ```
//! use floe_store::json::{Reader, Writer, sound_item, write_item};
//!
//! let text = r#"{"id":{"S":"a"},"tags":{"SS":["x","y"]}}"#;
//! let item = sound_item(&mut Reader::new(text))?;
//! let mut writer = Writer::default();
//! write_item(&mut writer, &item);
//! assert_eq!(writer.into_text(), text);
//! # Ok::<(), floe_store::json::Unsound>(())
//! ```
//!
//! What is not here: the members of requests and the words of DynamoDB's framework for a text of the wrong shape
//! (`floe-server`).

mod fault;
mod read;
mod reader;
mod record;
mod scan;
mod sound;
mod write;
mod writer;

pub use fault::{Duplicates, FlagForm, Layer, Named, Nesting, SetKind, ValueFault};
pub use read::{Expected, Found, Sent, Unreadable, read_flag, read_item, read_text, read_value};
pub use reader::{Malformed, Reader, Token};
pub use record::{RecordForm, SentRecord, read_record, write_moment, write_record};
pub use sound::{Unsound, read_members, sound_item};
pub use write::{ItemWriter, write_item};
pub use writer::Writer;
