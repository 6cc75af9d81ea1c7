//! An engine that injects the faults of a distributed database.
//!
//! [`FaultEngine`] wraps any [`Engine`] and implements it. It rejects requests, loses responses, processes batches
//! in part and returns stale results: everything that Amazon DynamoDB may do and that a local engine never does.
//!
//! ```
//! use std::sync::Arc;
//! use floe_store::op::{GetItem, PutItem};
//! use floe_store::{Engine, Error, Item};
//! use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
//! # use floe_testkit::model::ModelHarness;
//! # use floe_testkit::Harness;
//! # use floe_store::{TableDef, op::CreateTable, table::KeyKind};
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! # let inner = ModelHarness::new(1).engine();
//! # let table = TableDef::builder("Orders", "id", KeyKind::S).build()?;
//! # inner.create_table(CreateTable::from(table)).await?;
//!
//! let engine = FaultEngine::new(inner, Faults::seeded(42).throttle(0.05).lost_after(0.1));
//! engine.pause();
//!
//! engine.script(Operation::WriteItem, FaultKind::LostAfter)?;
//! let order = Item::new().with("id", "o-1");
//! let response = engine.write_item(PutItem::new("Orders", order.clone()).into()).await;
//! assert!(matches!(response, Err(Error::OutcomeUnknown(_))));
//!
//! let found = engine.get_item(GetItem::new("Orders", order)).await?;
//! assert!(found.item.is_some(), "only the response was lost");
//! assert_eq!(engine.faults()[0].kind, FaultKind::LostAfter);
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```
//!
//! # Guarantees
//!
//! **Rejections** ([`Throttle`](FaultKind::Throttle), [`Conflict`](FaultKind::Conflict)) happen before the request
//! reaches the engine: nothing is applied. A transaction is cancelled with one reason per action.
//!
//! **Lost requests and responses** ([`LostBefore`](FaultKind::LostBefore), [`LostAfter`](FaultKind::LostAfter))
//! return the same [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown). Before: the engine never receives the
//! request. After: the engine applies or rejects the request, but the caller does not learn the result.
//!
//! **Partial batches** ([`PartialBatch`](FaultKind::PartialBatch)) process at least one part of the request and
//! leave at least one unprocessed, in the form in which it was sent.
//!
//! **Stale results** ([`IndexLag`](FaultKind::IndexLag), [`StaleRead`](FaultKind::StaleRead)) are always states
//! that existed: every item, present or absent, is returned as the table held it at a moment within the lag before
//! the read. The lag counts from the response to the write that the reader does not see. Items are stale
//! individually: a page may contain a stale item and a current one, and half of a transaction may be visible, as in
//! DynamoDB. A global index never goes back: after it returned a version of an item, it returns that version or a
//! newer one. Eventually consistent reads of the table may go back, unless
//! [`monotonic_reads`](Faults::monotonic_reads) forbids it. Consistent reads, transactions and conditions are never
//! stale. Pages keep their order, limit, filter and size. A scan returns a deleted item only if the scan fits into
//! one page, because the item's position is not known.
//!
//! **Shard splits** ([`ShardSplit`](FaultKind::ShardSplit)) close an open shard after its last record and add one
//! or two children; two children divide the items by a hash of the key. A reader that reads parents before children
//! gets each record once, and the records of an item in order.
//!
//! **Repeated and late records** ([`RepeatedRecords`](FaultKind::RepeatedRecords),
//! [`LateRecords`](FaultKind::LateRecords)) never change the order of a shard. Repeating continues at an earlier
//! position that this iterator has passed: all records from there on are returned again. Late records are returned
//! with a later page, possibly after an empty page.
//!
//! # Requirements
//!
//! To keep earlier versions, the wrapper reads each item before and after a write and serialises writes of the same
//! item. It does so only if index lag or stale reads are configured. Writes that bypass the wrapper, and expiry,
//! are not delayed. Tables must be created, changed and deleted through the wrapper. Entries with equal index keys
//! must be in the order of the table's key, as in the embedded engine. The shard tree is kept in memory: another
//! wrapper around the same engine has its own.
//!
//! # Replaying
//!
//! Operations are numbered from 1 in the order in which their futures are first polled; table administration,
//! listing and holding streams are not counted. Whether a fault occurs is a pure function of the seed, the number
//! and the [`FaultKind`] (and of the key, where items are affected individually), so the same operations in the
//! same order get the same faults. With concurrency the order may differ between runs; [`Faults::at`] then repeats
//! the faults of the [log](FaultEngine::faults) at the same operations.

mod batch;
mod control;
mod engine;
mod faults;
mod kind;
mod position;
pub(crate) mod random;
mod records;
mod reject;
mod shards;
mod stale;
mod streams;
mod tracker;
mod versions;

use std::fmt;
use std::sync::Arc;

use floe_store::{Engine, Result};

use control::Control;
use shards::ShardTrees;
use tracker::WriteTracker;

pub use control::Fault;
pub use faults::{Faults, Lag};
pub use kind::{FaultKind, Operation, Request};

/// An engine that wraps another one and injects faults; see the [module](self).
pub struct FaultEngine {
    inner: Arc<dyn Engine>,
    control: Control,
    tracker: WriteTracker,
    shards: ShardTrees,
}

impl FaultEngine {
    /// Wraps an engine.
    pub fn new(inner: Arc<dyn Engine>, faults: Faults) -> Self {
        Self {
            inner,
            control: Control::new(faults),
            tracker: WriteTracker::default(),
            shards: ShardTrees::default(),
        }
    }

    /// The wrapped engine, without faults.
    pub fn inner(&self) -> &Arc<dyn Engine> {
        &self.inner
    }

    /// Replaces the configured faults. The numbering of operations continues.
    pub fn set_faults(&self, faults: Faults) {
        self.control.set_faults(faults);
    }

    /// Stops all faults except those of [`script`](FaultEngine::script). Operations are still numbered.
    pub fn pause(&self) {
        self.control.pause(true);
    }

    /// Injects faults again.
    pub fn resume(&self) {
        self.control.pause(false);
    }

    /// Injects this fault, and no other, into the next operation of this kind; a stale result lags by the maximum.
    /// Repeated calls for one operation apply to consecutive operations.
    ///
    /// # Errors
    ///
    /// [`Validation`](floe_store::Error::Validation) if the fault does not apply to the operation, or needs a lag
    /// that is not configured.
    pub fn script(&self, operation: Operation, kind: FaultKind) -> Result<()> {
        self.control.script(operation, kind)
    }

    /// The log: the last 100,000 faults, in the order in which they occurred.
    pub fn faults(&self) -> Vec<Fault> {
        self.control.faults()
    }

    /// The number of the last operation.
    pub fn operations(&self) -> u64 {
        self.control.operations()
    }
}

impl fmt::Debug for FaultEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultEngine")
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}
