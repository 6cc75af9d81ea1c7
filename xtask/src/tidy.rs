//! `cargo xtask tidy`: checks the structure of the source tree.
//!
//! Parses all code of the workspace, follows the modules from each root, and resolves every path. Then it checks that
//! the module graph of every crate is acyclic, that the layers of ARCHITECTURE.md hold, and that every file is reached.
//! Test code is excluded item by item.
//!
//! | module | what it does |
//! |---|---|
//! | [`workspace`] | packages and targets from cargo, the text of their files |
//! | `collect`, `tokens`, `syntax`, `cfg` | turn a file into facts: modules, names, paths |
//! | `tree` | the module tree of a target |
//! | `names` | resolves paths |
//! | `graph` | edges and cycles |
//! | [`rules`] | the kinds of rules |
//! | [`project`] | the rules of the project |
//! | [`check`](mod@check), `layers`, [`text`] | apply the rules |
//! | [`licenses`], [`msrv`] | check dependencies |
//! | `language` | checks words and test names |
//! | [`surface`] | measures the public surface of a package |
//! | [`report`], [`fault`] | the results |

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

/// The long help of the command.
pub const HELP: &str = "\
Checks the structure of the source tree: module cycles, layers, unreached files, and the licenses and Rust versions of dependencies.

Prints a line for each fault, every reference of each cycle, and one line of figures. Exit code: 0 clean; 1 faults; 2 usage error.";

/// Checks the project and prints the results. `prints_language` adds each banned word and unclear test name.
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
    // A closed output is not a fault of the source tree.
    drop(writeln!(io::stdout().lock(), "{}", text.join("\n")));
    if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Adds faults in the licenses and Rust versions of dependencies.
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
