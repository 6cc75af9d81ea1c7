//! DynamoDB JSON of the server beyond [`floe_store::json`], for other programs such as the command line.

pub use crate::wire::body::write_item_hashed;
pub use crate::wire::table::describe::{TableLifecycle, write as write_table};
pub use crate::wire::write::write_items;
