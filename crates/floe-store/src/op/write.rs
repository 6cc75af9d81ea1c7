//! The common parts of the writes of one item: settings, condition, and return values.

use super::constraint::{Faults, as_constraint_error};
use super::keys::MISMATCH;
use crate::declare::named;
use crate::error::{Error, Result, ensure};
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

/// Declares a write of one item: its own members and the common ones.
macro_rules! write_operation {
    (
        $(#[$doc:meta])*
        pub struct $operation:ident {
            $( $(#[$given_doc:meta])* pub $given:ident: $given_type:ty, )+
            $( ; $($own:tt)+ )?
        }
        $(#[$new_doc:meta])*
        pub fn new;
    ) => {
        $crate::declare::operation! {
            $(#[$doc])*
            pub struct $operation {
                $( $(#[$given_doc])* pub $given: $given_type, )+
                ;
                /// The condition on the current item; a missing item counts as empty.
                pub condition: Option<$crate::expr::Condition> = None,
                /// Which attributes to return.
                pub return_values: $crate::op::ReturnValues = $crate::op::ReturnValues::None,
                /// Whether a failed condition returns the current item.
                pub return_old_on_failure: bool = false,
                /// How much detail about the cost to return.
                pub return_capacity: $crate::capacity::ReturnConsumedCapacity = Default::default(),
                /// Whether to return the size of the item collection.
                pub return_collection: bool = false,
                /// The idempotency token, if the engine [supports it](crate::Capabilities::write_tokens): requests with
                /// the same token are applied once.
                pub token: Option<String> = None,
                $( $($own)+ )?
            }

            $(#[$new_doc])*
            pub fn new;
        }

        impl $operation {
            $crate::declare::setters! {
                /// Writes only if this condition holds.
                condition(condition: $crate::expr::Condition) => condition = Some(condition);
                /// Returns these attributes.
                return_values(which: $crate::op::ReturnValues) => return_values = which;
                /// Returns the current item if the condition fails.
                return_old_on_failure() => return_old_on_failure = true;
                /// Sets the idempotency token.
                token(token: impl Into<String>) => token = Some(token.into());
            }
        }
    };
}
pub(super) use write_operation;

/// Matches several variants with the same expression.
macro_rules! match_variants {
    ($of:expr, [$($variant:ident)+], $one:ident => $result:expr) => {
        match $of {
            $( Self::$variant($one) => $result, )+
        }
    };
}
pub(super) use match_variants;

/// Implements `From` for variants of an enum.
macro_rules! from_variants {
    ($enum:ident: $($variant:ident($held:ty)),+) => {$(
        impl From<$held> for $enum {
            fn from(held: $held) -> Self {
                Self::$variant(held)
            }
        }
    )+};
}
pub(super) use from_variants;

/// The result of applying a write to an item.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AppliedWrite {
    /// The item after the write; `None` if it does not exist.
    pub new: Option<Item>,
    /// The attributes that the write returns.
    pub returned: Option<Item>,
}

named! {
    /// Which attributes a write returns. Put and delete accept only `None` and `AllOld`.
    #[derive(Default)]
    pub enum ReturnValues {
        /// No attributes.
        #[default]
        None = "NONE",
        /// The whole item before the write.
        AllOld = "ALL_OLD",
        /// The updated attributes before the write.
        UpdatedOld = "UPDATED_OLD",
        /// The whole item after the write.
        AllNew = "ALL_NEW",
        /// The updated attributes after the write.
        UpdatedNew = "UPDATED_NEW",
    }
}

/// Returns the key of an item.
pub(super) fn key_of(table: &TableDef, item: &Item) -> Result<Item> {
    let key = table.key.key_of(item);
    key.ok_or_else(|| Error::validation(MISMATCH))
}

/// Evaluates the condition of a write on the current item.
pub(super) fn evaluate_condition(
    condition: Option<&Condition>,
    old: Option<&Item>,
    return_old: bool,
) -> Result<()> {
    const ABSENT: &Item = &Item::new();
    let holds = condition.is_none_or(|condition| condition.evaluate(old.unwrap_or(ABSENT)));
    ensure(holds, || {
        let item = old.filter(|_| return_old).cloned().map(Box::new);
        Error::ConditionalCheckFailed { item }
    })
}

/// Rejects return values that only updates support.
pub(super) fn check_return_values(return_values: ReturnValues) -> Result<()> {
    let old_only = matches!(return_values, ReturnValues::None | ReturnValues::AllOld);
    ensure(old_only, || {
        as_constraint_error(Error::validation(
            "ReturnValues can only be ALL_OLD or NONE",
        ))
    })
}

/// Checks the length of a token.
pub(super) fn check_token(token: Option<&str>) -> Result<()> {
    Faults::check(|faults| faults.token(token))
}

/// Returns the old item, if a put or delete is to return it.
pub(super) fn returned_old_item(return_values: ReturnValues, old: Option<&Item>) -> Option<Item> {
    old.filter(|_| return_values == ReturnValues::AllOld)
        .cloned()
}
