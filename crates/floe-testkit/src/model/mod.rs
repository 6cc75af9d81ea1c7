//! The reference model: an engine that is slow and obviously right, and the property run that holds
//! other engines to it.
//!
//! [`ModelEngine`] keeps plain items in a map per table and computes everything else when asked: an
//! index is a sort of all items, a page is a loop. It shares with other engines only the pure functions
//! of `floe-store`, whose own tests and the [contract suite](crate::contract) judge them.
//!
//! [`run_property`] sends random sequences of operations to an engine and to the model, and compares
//! every answer, item by item and error by error:
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
//! [`Mutant`] breaks an engine in one named way, to show that the run finds it.
//!
//! | file | what it holds |
//! |---|---|
//! | `engine.rs`, `state.rs`, `stream.rs` | the model as an engine, and what it remembers |
//! | `read.rs`, `write.rs`, `admin.rs`, `changes.rs` | its operations |
//! | `generate/` | random operations |
//! | `step.rs`, `answer.rs` | an operation to run, and an answer made comparable |
//! | `run.rs`, `pair.rs`, `report.rs` | the run, step by step on both sides, and what it tells |
//! | `shrink.rs` | the search for a small sequence that fails |
//! | `mutant/` | engines with a planted bug |

mod admin;
mod answer;
mod changes;
mod engine;
mod generate;
mod harness;
mod key;
mod mutant;
mod pair;
mod read;
mod report;
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
