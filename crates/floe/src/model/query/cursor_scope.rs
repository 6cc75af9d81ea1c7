//! The scope of a cursor: the query that it belongs to.

use floe_store::expr::KeyOp;
use floe_store::{Item, Value};

use super::reader::ReadPlan;

impl ReadPlan {
    /// Everything about the query that determines the meaning of a key in a cursor.
    pub(super) fn cursor_scope(&self) -> Item {
        let mut scope = Item::new()
            .with("table", self.schema.table)
            .with("forward", self.forward);
        if let Some(index) = self.index {
            scope.insert("index", index.name);
        }
        if let Some(range) = &self.range {
            let terms = range.condition.terms.iter();
            let terms = terms.map(|(name, op)| Value::L(term(name, op).collect()));
            scope.insert("key", Value::L(terms.collect()));
        }
        if let Some(segment) = self.segment {
            scope.insert("segment", segment.index as u64);
            scope.insert("segments", segment.total as u64);
        }
        scope
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
    let start = [Value::from(name), Value::from(operator)];
    start.into_iter().chain(op.values().cloned())
}
