//! `cargo xtask tidy`: checks the structure of the source tree.
//!
//! Parses all code of the workspace, follows the modules from each root, and finds out what every path
//! stands for. On that it checks that the module graph of every crate is acyclic, that the layers of
//! ARCHITECTURE.md hold, and that no line stays unseen. Test code is left out item by item.
//!
//! | module | what it does |
//! |---|---|
//! | [`workspace`] | packages and targets from cargo, the text of their files |
//! | `collect`, `tokens`, `syntax`, `cfg` | a file becomes facts: modules, names, paths |
//! | `tree` | the module tree of a target |
//! | `names` | what a path stands for |
//! | `graph` | edges and cycles |
//! | [`rules`] | the kinds of rules |
//! | [`project`] | the project's rules |
//! | [`check`](mod@check), `layers`, [`text`] | apply them |
//! | [`licenses`], [`msrv`] | what may be depended on |
//! | `language` | words and test names |
//! | [`surface`] | the public surface of a package |
//! | [`report`], [`fault`] | what was found |

mod cfg;
pub mod check;
mod collect;
mod facts;
pub mod fault;
mod graph;
mod language;
mod layers;
pub mod licenses;
pub mod msrv;
mod names;
pub mod project;
pub mod report;
pub mod rules;
pub mod surface;
mod syntax;
pub mod text;
mod tokens;
mod tree;
pub mod workspace;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use fault::Fault;
use report::Report;
use workspace::Workspace;

/// How the command is called.
pub const HELP: &str = "\
Checks the structure of the source tree: module cycles, layers, unseen lines, and the licenses and Rust versions of dependencies.

Prints a line for each fault, every reference of each cycle, and one line of figures. Exit code: 0 clean; 1 faults; 2 usage error.";

/// Checks the project and prints what was found: with each banned word and riddle, or only their numbers.
pub fn run(prints_language: bool) -> ExitCode {
    let start = Instant::now();
    let report = match check_project().and_then(with_licenses) {
        Ok(report) => report,
        Err(error) => {
            drop(writeln!(io::stderr().lock(), "xtask: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut text = report.details();
    if prints_language {
        text.extend(report.language_faults.iter().map(Fault::line));
    }
    text.push(report.figures(start.elapsed()));
    // A reader that has gone away is no fault of the source tree.
    drop(writeln!(io::stdout().lock(), "{}", text.join("\n")));
    if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Adds what is wrong with the licenses of dependencies.
fn with_licenses(mut report: Report) -> Result<Report, String> {
    let root = root();
    let deny = root.join("deny.toml");
    let deny = fs::read_to_string(&deny).map_err(|error| format!("{}: {error}", deny.display()))?;
    let dependencies = workspace::dependencies(&root.join("Cargo.toml"))?;
    let allowed = licenses::allowed(&deny)?;
    report
        .faults
        .extend(licenses::faults(&dependencies, &allowed));
    report.faults.extend(msrv::faults(&dependencies));
    Ok(report)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Checks this project.
///
/// # Errors
///
/// When its files cannot be read.
pub fn check_project() -> Result<Report, String> {
    let workspace = Workspace::load(&root(), project::MANIFESTS)?;
    Ok(check::check(&workspace, &project::RULES))
}
