//! An engine that lies like the cloud, on request.
//!
//! [`FaultEngine`] wraps any [`Engine`] and is one itself. It refuses requests, loses answers, does half
//! of a batch and answers from the past, as Amazon DynamoDB may at any time and hardly ever does on a
//! developer's machine. Code that survives it in a test has met the cloud's worst day.
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
//! let answer = engine.write_item(PutItem::new("Orders", order.clone()).into()).await;
//! assert!(matches!(answer, Err(Error::OutcomeUnknown(_))));
//!
//! let found = engine.get_item(GetItem::new("Orders", order)).await?;
//! assert!(found.item.is_some(), "the answer was lost, the write was not");
//! assert_eq!(engine.faults()[0].kind, FaultKind::LostAfter);
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```
//!
//! # What is promised
//!
//! **Refusals** ([`Throttle`](FaultKind::Throttle), [`Conflict`](FaultKind::Conflict)) happen before the
//! request reaches the engine: nothing was applied. A transaction is cancelled with one reason per action.
//!
//! **Lost answers** ([`LostBefore`](FaultKind::LostBefore), [`LostAfter`](FaultKind::LostAfter)) are the
//! same [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown) to the caller. Before: the engine never saw
//! the request. After: the engine has done it, or refused it, and nobody was told.
//!
//! **Partial batches** ([`PartialBatch`](FaultKind::PartialBatch)) do at least one part of the request and
//! leave at least one, in the shape in which it was sent.
//!
//! **Old answers** ([`IndexLag`](FaultKind::IndexLag), [`StaleRead`](FaultKind::StaleRead)) are never made
//! up. Every item, present or absent, is as the table held it at a moment within the lag before the read;
//! the lag counts from the answer to the write that the reader has not seen. Items are stale one by one:
//! one item of a page may be old and another new, and half of a transaction may be seen, as on DynamoDB. A
//! global index never goes back: what it has once shown of an item stays shown or becomes newer. Eventual
//! reads of the table may go back, unless [`monotonic_reads`](Faults::monotonic_reads) forbids it. Reads
//! with `consistent`, transactions and conditions are never stale. Pages keep their order, limit, filter
//! and size; an item that is no longer there is shown by a scan only if the scan fits one page, since
//! nobody knows where it stood.
//!
//! **Shard splits** ([`ShardSplit`](FaultKind::ShardSplit)) close an open shard behind its last record
//! and give it one child or two; two share the items between them by a hash of the key. Who reads
//! parents before children gets each record once, and those of an item in their order.
//!
//! **Repeated and late records** ([`RepeatedRecords`](FaultKind::RepeatedRecords),
//! [`LateRecords`](FaultKind::LateRecords)) never change the order of a shard. To repeat some is to go on from
//! an earlier place that this iterator has passed: everything from there on comes once more. To be late is to
//! come with a later page, which an empty page may precede.
//!
//! # What it takes
//!
//! To know the past, the wrapper reads each item before and after a write that passes through it, and
//! lets writes of the same item pass one at a time. It does so only if lag or stale reads are configured.
//! Writes that go around the wrapper, and expiry, are not delayed. Tables must be made, changed and
//! deleted through the wrapper. Entries of equal index keys must stand in the order of the table's key, as
//! they do in the embedded engine. Its family tree of shards lives in memory: another wrapper
//! around the same engine has another one.
//!
//! # Replaying
//!
//! Operations are numbered from 1 in the order in which their futures are first polled; administration of
//! tables, listing and holding of streams do not count. Whether a fault strikes is a pure function of the
//! seed, the number and the [`FaultKind`] (and, where items are struck one by one, of the key), so the
//! same operations in the same order meet the same faults. Under concurrency the order may differ from
//! run to run; [`Faults::at`] then repeats from the [log](FaultEngine::faults) what struck, where it did.

mod batch;
mod control;
pub(crate) mod dice;
mod engine;
mod faults;
mod kind;
mod past;
mod position;
mod records;
mod refuse;
mod shards;
mod stale;
mod streams;
mod watch;

use std::fmt;
use std::sync::Arc;

use floe_store::{Engine, Result};

use control::Control;
use shards::ShardTrees;
use watch::Watch;

pub use control::Fault;
pub use faults::{Faults, Lag};
pub use kind::{FaultKind, Operation, Request};

/// An engine around an engine that lies like the cloud; see the [module](self).
pub struct FaultEngine {
    inner: Arc<dyn Engine>,
    control: Control,
    watch: Watch,
    shards: ShardTrees,
}

impl FaultEngine {
    /// Wraps an engine.
    pub fn new(inner: Arc<dyn Engine>, faults: Faults) -> Self {
        Self {
            inner,
            control: Control::new(faults),
            watch: Watch::default(),
            shards: ShardTrees::default(),
        }
    }

    /// The engine inside, which does not lie.
    pub fn inner(&self) -> &Arc<dyn Engine> {
        &self.inner
    }

    /// From now on, other faults. The numbers of operations go on.
    pub fn set_faults(&self, faults: Faults) {
        self.control.set_faults(faults);
    }

    /// Stops all faults but those of [`script`](FaultEngine::script). Operations go on being numbered.
    pub fn pause(&self) {
        self.control.pause(true);
    }

    /// Lets faults strike again.
    pub fn resume(&self) {
        self.control.pause(false);
    }

    /// The next operation of that kind meets this fault and no other, and an old answer is as old as the
    /// lag allows. Several scripted ones for the same operation strike one after the other.
    ///
    /// # Errors
    ///
    /// [`Validation`](floe_store::Error::Validation) if such a fault never strikes such an operation, or
    /// if it is one about old answers and no lag is configured.
    pub fn script(&self, operation: Operation, kind: FaultKind) -> Result<()> {
        self.control.script(operation, kind)
    }

    /// What it did so far, in the order in which it did it: the last 100,000 faults.
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
