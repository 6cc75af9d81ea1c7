//! Applies the rules on whole files: their first line, their length, the lint table of a package.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::File;
use super::fault::Fault;
use super::layers::starts_with_any;
use super::rules::Rules;
use super::workspace::Workspace;

/// The rule about module docs, as reported.
pub const DOCUMENTED: &str = "every file starts with module docs";
/// The rule about the length of files, as reported.
pub const READABLE: &str = "files have a limited length";
/// The rule about lints, as reported.
pub const LINTED: &str = "every package uses the lint table of the workspace";

/// Reports faults of whole files.
pub(crate) fn faults(
    workspace: &Workspace,
    rules: &Rules,
    files: &BTreeMap<String, File>,
    product_files: &BTreeSet<String>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, file) in files {
        if starts_with_any(path, rules.documented) && !file.has_docs {
            let what = "does not start with `//!`".to_owned();
            faults.push(Fault::new(DOCUMENTED, path, 1, what));
        }
        if let Some(max) = rules.code_lines_max
            && file.code_lines > max.lines
            && starts_with_any(path, max.within)
            && product_files.contains(path)
            && !max.exempt.iter().any(|end| path.ends_with(end))
        {
            let what = format!("{} lines of code, at most {}", file.code_lines, max.lines);
            faults.push(Fault::new(READABLE, path, 0, what));
        }
    }
    if let Some(without) = rules.without_lint_table {
        for package in &workspace.packages {
            let manifest = format!("{}/Cargo.toml", package.folder);
            let text = workspace.files.get(&manifest);
            let is_linted = text.is_some_and(|text| text.contains("[lints]\nworkspace = true"));
            if !is_linted && !without.contains(&package.name.as_str()) {
                let what = "has no `[lints] workspace = true`".to_owned();
                faults.push(Fault::new(LINTED, &manifest, 0, what));
            }
        }
    }
    faults
}
