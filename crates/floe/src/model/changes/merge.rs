//! What several rows of one item have done with a field, taken together.

use crate::attribute::Invalid;
use crate::error::Error;
use crate::model::field::Change;
use crate::model::report::FieldReport;

/// Adds what a row has done with a field to what rows before it have done. A row sees what the rows before
/// it have changed, so its value is the last word; whether the field is locked depends on all of them.
pub(super) fn merge(fields: &mut Vec<FieldReport>, later: FieldReport) {
    let mut known = fields.iter_mut();
    let Some(earlier) = known.find(|field| field.attribute == later.attribute) else {
        fields.push(later);
        return;
    };
    earlier.is_read |= later.is_read;
    if later.change == Change::None {
        return;
    }
    earlier.value = later.value;
    earlier.change = match (&earlier.change, later.change) {
        (Change::None, change) => change,
        (Change::Incremented(first), Change::Incremented(second)) => {
            match first.checked_add(second) {
                Ok(sum) => Change::Incremented(sum),
                Err(_) => {
                    let beyond = Invalid::new("the sum is out of range");
                    earlier.value = Err(Error::invalid(earlier.model, earlier.field, &beyond));
                    Change::Incremented(second)
                }
            }
        }
        (Change::Overwritten, Change::Overwritten | Change::Incremented(_))
        | (Change::Incremented(_), Change::Overwritten) => Change::Overwritten,
        (Change::Written, _) | (_, Change::Written) => Change::Written,
        (earlier, Change::None) => earlier.clone(),
    };
}
