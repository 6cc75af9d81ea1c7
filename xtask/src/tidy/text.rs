//! The rules about whole files: their first line, their length, the lint table of a package.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::File;
use super::fault::Fault;
use super::layers::begins_with_any;
use super::rules::Rules;
use super::workspace::Workspace;

/// Every module says what it is for.
pub const DOCUMENTED: &str = "every module says what it is for";
/// Files stay readable.
pub const READABLE: &str = "files stay readable";
/// Every package takes the lint table.
pub const LINTED: &str = "every package takes the lint table of the workspace";

/// The faults of whole files.
pub(crate) fn faults(
    workspace: &Workspace,
    rules: &Rules,
    files: &BTreeMap<String, File>,
    product_files: &BTreeSet<String>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, file) in files {
        if begins_with_any(path, rules.documented) && !file.has_docs {
            let what = "opens without `//!`".to_owned();
            faults.push(Fault::new(DOCUMENTED, path, 1, what));
        }
        if let Some(max) = rules.code_lines_max
            && file.code_lines > max.lines
            && begins_with_any(path, max.within)
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
