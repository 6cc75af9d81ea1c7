//! What the server writes of DynamoDB's JSON beyond [`floe_store::json`], for programs beside it: the command line does.

pub use crate::wire::body::write_item_hashed;
pub use crate::wire::table::describe::{Moment, write as write_table};
pub use crate::wire::write::write_items;
