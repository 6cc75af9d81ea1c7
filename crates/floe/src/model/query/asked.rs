//! What a query asks, as far as it decides what a key in a cursor means.

use floe_store::expr::KeyOp;
use floe_store::{Item, Value};

use super::reader::Plan;

impl Plan {
    /// What was asked, as far as it decides what a key in a cursor means.
    pub(super) fn asked(&self) -> Item {
        let mut asked = Item::new()
            .with("table", self.schema.table)
            .with("forward", self.forward);
        if let Some(index) = self.index {
            asked.insert("index", index.name);
        }
        if let Some(range) = &self.range {
            let terms = range.condition.terms.iter();
            let terms = terms.map(|(name, op)| Value::L(term(name, op).collect()));
            asked.insert("key", Value::L(terms.collect()));
        }
        if let Some(segment) = self.segment {
            asked.insert("segment", segment.index as u64);
            asked.insert("segments", segment.total as u64);
        }
        asked
    }
}

fn term<'a>(name: &'a str, op: &'a KeyOp) -> impl Iterator<Item = Value> + 'a {
    let operator = match op {
        KeyOp::Eq(_) => "=",
        KeyOp::Lt(_) => "<",
        KeyOp::Le(_) => "<=",
        KeyOp::Gt(_) => ">",
        KeyOp::Ge(_) => ">=",
        KeyOp::Between(..) => "between",
        KeyOp::BeginsWith(_) => "prefix",
    };
    let words = [Value::from(name), Value::from(operator)];
    words.into_iter().chain(op.values().cloned())
}
