//! Engines with one planted bug each, to show that the property run finds such bugs.
//!
//! A [`Mutant`] wraps an engine and bends what goes in or what comes out. Bugs that need more than the
//! operations (what happens at a sweep or when reopening) are planted by [`MutantHarness`].

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
            /// All of them.
            pub const ALL: [Self; 35] = [$(Self::$bug,)*];
        }
    };
}

bugs! {
    /// A page that ends at the limit does not say where to go on.
    LastKeyMissingAtLimit,
    /// The limit counts items that passed the filter.
    FilterBeforeLimit,
    /// A page begins with the item at which the one before ended.
    StartKeyIncluded,
    /// Queries always go forward.
    BackwardIgnored,
    /// `BETWEEN` leaves out its upper end.
    BetweenExcludesTheEnd,
    /// Numbers in sort keys are ordered as texts.
    NumbersSortedAsText,
    /// Pages go on after a megabyte.
    PageWithoutMegabyte,
    /// The count tells how many items were read.
    CountBeforeFilter,
    /// A scan of several segments leaves out the last item of each.
    SegmentLosesAnItem,
    /// An index keeps the entries of items that are gone.
    IndexEntryNotRemoved,
    /// An index with all attributes returns only keys.
    IndexProjectionLost,
    /// The condition of a delete is not looked at.
    ConditionIgnoredOnDelete,
    /// The condition of a put on an item that is there is not looked at.
    ConditionIgnoredOnPut,
    /// A failed condition does not return the item.
    OldItemMissingOnFailure,
    /// A condition check in a transaction always holds.
    CheckIgnored,
    /// The actions of a transaction are applied one by one until one fails.
    TransactionNotAtomic,
    /// Only the first failed action of a transaction is told.
    ReasonsStopAtTheFirst,
    /// A transaction sent again with its token is applied again.
    TokenForgotten,
    /// A token used for another transaction is accepted.
    TokenMismatchAccepted,
    /// A single write sent again with its token is applied again.
    WriteTokenForgotten,
    /// The last write of a batch is not done.
    BatchWriteLosesTheLast,
    /// A batch read ignores projections.
    BatchGetIgnoresProjection,
    /// A read of one item ignores its projection.
    GetIgnoresProjection,
    /// An update returns the whole new item where only its changes were asked for.
    UpdatedReturnsAll,
    /// Writes to indexes cost nothing.
    IndexWritesFree,
    /// Reads cost the same whether they are consistent or not.
    EventualReadsCostTwice,
    /// The stream leaves out modifications.
    ChangeSkipped,
    /// Change records have no old image.
    OldImageMissing,
    /// Change records of expired items look like those of others.
    ExpiryWithoutIdentity,
    /// The number of items in a description never falls.
    ItemCountNeverFalls,
    /// Messages are in lower case.
    MessageInLowerCase,
    /// The name of a table is looked up before the request is checked.
    TableBeforeRequest,
    /// A listing of tables never says where to go on.
    ListTablesWithoutLast,
    /// Expired items are not swept.
    NothingExpires,
    /// The last item put before reopening is lost.
    LastPutLostOnReopen,
}
