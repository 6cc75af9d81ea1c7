//! Merges what several rows of one item did with a field.

use crate::attribute::Invalid;
use crate::error::Error;
use crate::model::field::Change;
use crate::model::report::FieldReport;

/// Merges the report of a later row into those of earlier rows. A row contains the changes of earlier ones, so its value
/// is final; whether the field is locked depends on all of them.
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
            match first.then(second.amount) {
                Some(sum) => Change::Incremented(sum),
                None => {
                    let out_of_range = Invalid::new("the sum is out of range");
                    earlier.value =
                        Err(Error::invalid(earlier.model, earlier.field, &out_of_range));
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
