//! Engines with one planted bug each, to show that the property run finds it.
//!
//! A [`Mutant`] wraps an engine and alters requests or responses. [`MutantHarness`] plants bugs that affect
//! sweeping or reopening.

mod engine;
mod harness;

pub use engine::Mutant;
pub use harness::MutantHarness;

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident,)*) => {
        /// A bug to plant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Bug {
            $($(#[$doc])* $bug,)*
        }

        impl Bug {
            /// All bugs.
            pub const ALL: [Self; 35] = [$(Self::$bug,)*];
        }
    };
}

bugs! {
    /// A page that ends at the limit has no last key.
    LastKeyMissingAtLimit,
    /// The limit counts only items that pass the filter.
    FilterBeforeLimit,
    /// A page begins with the last item of the previous page.
    StartKeyIncluded,
    /// Queries always run forward.
    BackwardIgnored,
    /// `BETWEEN` excludes its upper bound.
    BetweenExcludesEnd,
    /// Numbers in sort keys are ordered as texts.
    NumbersSortedAsText,
    /// Pages continue beyond a megabyte.
    PageBytesUnlimited,
    /// The count includes items that the filter removed.
    CountBeforeFilter,
    /// A scan of several segments drops the last item of each segment.
    SegmentDropsItem,
    /// An index keeps the entries of deleted items.
    IndexEntryNotRemoved,
    /// An index that projects all attributes returns only keys.
    IndexProjectionLost,
    /// The condition of a delete is ignored.
    ConditionIgnoredOnDelete,
    /// The condition of a put is ignored.
    ConditionIgnoredOnPut,
    /// A failed condition does not return the item.
    OldItemMissingOnFailure,
    /// A condition check in a transaction always holds.
    CheckIgnored,
    /// The actions of a transaction are applied one by one until one fails.
    TransactionNotAtomic,
    /// Only the first failed action of a transaction has a reason.
    OnlyFirstReason,
    /// A transaction repeated with its token is applied again.
    TokenIgnored,
    /// A token used for another transaction is accepted.
    TokenMismatchAccepted,
    /// A single write repeated with its token is applied again.
    WriteTokenIgnored,
    /// The last write of a batch is dropped.
    BatchWriteDropsLast,
    /// A batch read ignores projections.
    BatchGetIgnoresProjection,
    /// `GetItem` ignores its projection.
    GetIgnoresProjection,
    /// An update returns the whole new item instead of the updated attributes.
    UpdatedReturnsAll,
    /// Writes to indexes cost nothing.
    IndexWritesFree,
    /// Eventually consistent reads cost as much as consistent ones.
    EventualReadsCostTwice,
    /// The stream omits modifications.
    ChangeSkipped,
    /// Change records have no old image.
    OldImageMissing,
    /// Change records of expired items lack the identity of the service.
    ExpiryWithoutIdentity,
    /// The item count of a description never decreases.
    ItemCountNeverDecreases,
    /// Messages are in lower case.
    MessageInLowerCase,
    /// The table is looked up before the request is validated.
    TableCheckedBeforeRequest,
    /// A page of table names has no last name.
    ListTablesWithoutLastName,
    /// Expired items are never removed.
    NothingExpires,
    /// The item of the last put is lost on reopening.
    LastPutLostOnReopen,
}
