//! The reference model: a simple engine that defines correct results, and a property run that compares other
//! engines with it.
//!
//! [`ModelEngine`] keeps plain items in a map per table and computes everything else on request: an index is a sort
//! of all items, a page is a loop. It shares only the pure functions of `floe-store` with other engines; they are
//! covered by their own tests and by the [contract suite](crate::contract).
//!
//! [`run_property`] sends random sequences of operations to an engine and to the model, and compares every
//! response, including items and errors:
//!
//! ```
//! use floe_testkit::model::{ModelHarness, run_property};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let report = run_property(async |seed| ModelHarness::new(seed), 1, 100).await;
//! assert_eq!(report.map(|report| report.operations), Ok(100));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Mutant`] plants a single bug in an engine, to show that the run finds it.
//!
//! | file | contents |
//! |---|---|
//! | `engine.rs`, `state.rs`, `stream.rs` | the model as an engine, and its state |
//! | `read.rs`, `write.rs`, `admin.rs`, `changes.rs` | its operations |
//! | `generate/` | random operations |
//! | `step.rs`, `response.rs` | one operation, and its response in comparable form |
//! | `run.rs`, `pair.rs`, `report.rs` | the run, the comparison of each step, and the result |
//! | `shrink.rs` | reduces a failing sequence |
//! | `mutant/` | engines with a planted bug |

mod admin;
mod changes;
mod engine;
mod generate;
mod harness;
mod key;
mod mutant;
mod pair;
mod read;
mod report;
mod response;
mod run;
mod shrink;
mod state;
mod step;
mod stream;
mod write;

pub use engine::ModelEngine;
pub use harness::ModelHarness;
pub use mutant::{Bug, Mutant, MutantHarness};
pub use report::{Mismatch, Report};
pub use run::run_property;
pub use step::Step;
