//! The limits of DynamoDB on the expressions of a request, checked before anything is sent.

use floe_store::Timestamp;
use floe_store::expr::{Condition, Renderer};
use floe_store::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_OPERATORS_MAX};

use super::compile::{Action, Plan};
use crate::error::{Error, ErrorKind, Result};

/// Up to this number of fields, no expression of a plan can exceed a limit.
const FIELDS_MAX: usize = 60;

/// A condition without that on the stamp, which is added when a write is sent again: `AND #n1000 = :v1000`.
const OPERATORS_MAX: usize = EXPRESSION_OPERATORS_MAX - 2;
const CONDITION_BYTES_MAX: usize = EXPRESSION_BYTES_MAX - 24;

/// Rejects a plan whose condition or update the store would reject for its size.
pub(super) fn check(plan: &Plan, now: Timestamp) -> Result<()> {
    let fields_locked = plan.precondition.fields();
    let update = match &plan.action {
        Action::Update(update) => Some(update),
        Action::Check | Action::Put(_) | Action::Delete => None,
    };
    let fields_changed = update.map_or(0, |update| update.set.len() + update.remove.len());
    if fields_locked + fields_changed <= FIELDS_MAX {
        return Ok(());
    }
    let mut renderer = Renderer::new();
    if let Some(condition) = plan.condition(now) {
        let operators = operators(&condition);
        let bytes = renderer.condition(&condition).len();
        let what = "the commit depends on too many fields of one item; read fewer of them, `peek` at those that need \
                    not be unchanged, or store several in one nested field";
        if operators > OPERATORS_MAX {
            let facts = format!("fields={fields_locked} operators={operators} max={OPERATORS_MAX}");
            return Err(too_large(plan, what, &facts));
        }
        if bytes > CONDITION_BYTES_MAX {
            let facts = format!("fields={fields_locked} bytes={bytes} max={CONDITION_BYTES_MAX}");
            return Err(too_large(plan, what, &facts));
        }
    }
    if let Some(update) = update {
        let bytes = renderer.update(update).len();
        if bytes > EXPRESSION_BYTES_MAX {
            let what = "the commit changes too many fields of one item; change fewer of them, delete the item and \
                        create it anew, or store several in one nested field";
            let facts = format!("fields={fields_changed} bytes={bytes} max={EXPRESSION_BYTES_MAX}");
            return Err(too_large(plan, what, &facts));
        }
    }
    Ok(())
}

/// The number of operators and functions, as the store counts them.
fn operators(condition: &Condition) -> usize {
    match condition {
        Condition::And(one, other) | Condition::Or(one, other) => {
            1 + operators(one) + operators(other)
        }
        Condition::Not(inner) => 1 + operators(inner),
        _ => 1,
    }
}

fn too_large(plan: &Plan, what: &str, facts: &str) -> Error {
    let message = format!(
        "{what}: model={} key={} {facts}",
        plan.schema.model, plan.key
    );
    Error::new(ErrorKind::TooLarge, message).with_items(vec![plan.error_item(None)])
}
