//! Models as types that change handlers can select.

use floe_store::{Item, Value};

use super::Model;
use crate::error::Result;
use crate::key::SORT_ATTRIBUTE;
use crate::watched::Watched;

impl<M: Model> Watched for M {
    const NAME: &'static str = M::SCHEMA.model;

    fn table() -> &'static str {
        M::SCHEMA.table
    }

    /// Models that share a table are distinguished by the constant prefix of their sort keys.
    fn recognises(item: &Item) -> bool {
        let Some(constant) = M::SCHEMA.sort_constant else {
            return true;
        };
        let sort = item.get(SORT_ATTRIBUTE).and_then(Value::as_s);
        let rest = sort.and_then(|sort| sort.strip_prefix(constant));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\0'))
    }

    fn decode(item: &Item) -> Result<Self> {
        M::from_item(item)
    }
}
