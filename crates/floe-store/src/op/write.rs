//! What the writes of one item have in common: their settings, their condition, and what they return.

use super::constraint::{Faults, enveloped};
use super::keys::MISMATCH;
use crate::declare::named;
use crate::error::{Error, Result, ensure};
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

/// Declares a write of one item: what it has of its own, and what all three have.
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
                /// What must hold of the item as it stands; an item that is not there counts as empty.
                pub condition: Option<$crate::expr::Condition> = None,
                /// Which attributes to return.
                pub return_values: $crate::op::ReturnValues = $crate::op::ReturnValues::None,
                /// Whether a failed condition returns the item as it stands.
                pub return_old_on_failure: bool = false,
                /// How much to tell about the cost.
                pub return_capacity: $crate::capacity::ReturnConsumedCapacity = Default::default(),
                /// Whether to tell the size of the item collection.
                pub return_collection: bool = false,
                /// Makes the write apply once however often it is sent, where the engine
                /// [can](crate::Capabilities::write_tokens).
                pub token: Option<String> = None,
                $( $($own)+ )?
            }

            $(#[$new_doc])*
            pub fn new;
        }

        impl $operation {
            $crate::declare::setters! {
                /// Writes only if this holds.
                condition(condition: $crate::expr::Condition) => condition = Some(condition);
                /// Returns these attributes.
                return_values(which: $crate::op::ReturnValues) => return_values = which;
                /// Returns the item as it stands when the condition fails.
                return_old_on_failure() => return_old_on_failure = true;
                /// Applies once however often it is sent with this token.
                token(token: impl Into<String>) => token = Some(token.into());
            }
        }
    };
}
pub(super) use write_operation;

/// The same expression of what each of these variants holds.
macro_rules! of_each {
    ($of:expr, [$($variant:ident)+], $one:ident => $result:expr) => {
        match $of {
            $( Self::$variant($one) => $result, )+
        }
    };
}
pub(super) use of_each;

/// Makes variants of an enum of what they hold.
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

/// What a write makes of an item.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Applied {
    /// The item after the write; `None` when there is none.
    pub new: Option<Item>,
    /// The attributes that the write returns.
    pub returned: Option<Item>,
}

named! {
    /// Which attributes a write returns. Put and delete know `None` and `AllOld` only.
    #[derive(Default)]
    pub enum ReturnValues {
        /// None.
        #[default]
        None = "NONE",
        /// The whole item as it was.
        AllOld = "ALL_OLD",
        /// The updated attributes as they were.
        UpdatedOld = "UPDATED_OLD",
        /// The whole item as it is now.
        AllNew = "ALL_NEW",
        /// The updated attributes as they are now.
        UpdatedNew = "UPDATED_NEW",
    }
}

/// The attributes of the key, taken out of an item.
pub(super) fn key_of(table: &TableDef, item: &Item) -> Result<Item> {
    let key = table.key.key_of(item);
    key.ok_or_else(|| Error::validation(MISMATCH))
}

/// Evaluates the condition of a write on the item as it stands.
pub(super) fn check_old(
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

/// Refuses the return values that only an update has.
pub(super) fn check_old_only(return_values: ReturnValues) -> Result<()> {
    let old_only = matches!(return_values, ReturnValues::None | ReturnValues::AllOld);
    ensure(old_only, || {
        enveloped(Error::validation(
            "ReturnValues can only be ALL_OLD or NONE",
        ))
    })
}

/// Checks the length of a token.
pub(super) fn check_token(token: Option<&str>) -> Result<()> {
    Faults::check(|faults| faults.token(token))
}

/// What a put or a delete returns of the item as it was.
pub(super) fn old_returned(return_values: ReturnValues, old: Option<&Item>) -> Option<Item> {
    old.filter(|_| return_values == ReturnValues::AllOld)
        .cloned()
}
