//! Applies the rules on dependencies and on which code may name what.

use std::collections::BTreeSet;

use super::facts::Kind;
use super::fault::Fault;
use super::graph::Resolved;
use super::names::Target;
use super::rules::{OnlyIn, Rules, Separation, Word};
use super::tree::Crate;
use super::workspace::Workspace;

/// The allowances that were needed: the rule, and the prefix of the path.
pub(crate) type UsedAllowances = BTreeSet<(&'static str, &'static str)>;

/// Reports names in files where a rule does not allow them.
pub(crate) fn only_in(
    rules: &Rules,
    tree: &Crate<'_>,
    resolved: &[Resolved<'_>],
    used: &mut UsedAllowances,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for rule in rules.only_in {
        for entry in resolved {
            let Some(module) = tree.modules.get(entry.module) else {
                continue;
            };
            let is_test = module.is_test || entry.reference.is_test;
            if (is_test && !rule.in_tests) || !starts_with_any(module.file, rule.within) {
                continue;
            }
            if !rule.words.iter().any(|word| is_named(*word, entry)) {
                continue;
            }
            let allowed = rule
                .allowed
                .iter()
                .find(|path| module.file.starts_with(**path));
            if let Some(allowed) = allowed {
                used.insert((rule.rule, allowed));
                continue;
            }
            faults.extend(entry.reference.lines.iter().map(|line| {
                let what = format!("names {}", entry.reference.path);
                Fault::new(rule.rule, module.file, *line, what)
            }));
        }
    }
    faults
}

/// Reports allowances that are not needed.
pub(crate) fn unused_allowances(rules: &Rules, used: &UsedAllowances) -> Vec<Fault> {
    let all = rules.only_in.iter().flat_map(|rule: &OnlyIn| {
        let allowed = rule.allowed.iter();
        allowed.map(|allowed| (rule.rule, *allowed))
    });
    all.filter(|allowance| !used.contains(allowance))
        .map(|(rule, path)| {
            Fault::new(
                rule,
                path,
                0,
                "is allowed but names nothing of it".to_owned(),
            )
        })
        .collect()
}

/// Reports modules that name a module they must not name.
pub(crate) fn separations(
    rules: &Rules,
    tree: &Crate<'_>,
    resolved: &[Resolved<'_>],
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let of_crate = |rule: &&Separation| rule.package == tree.package.name && tree.target.is_lib;
    for rule in rules.separations.iter().filter(of_crate) {
        for entry in resolved {
            let Some(module) = tree.modules.get(entry.module) else {
                continue;
            };
            let own = first(&module.path);
            if module.is_test || entry.reference.is_test || !rule.from.contains(&own) {
                continue;
            }
            for to in entry.modules.iter().filter_map(|to| tree.modules.get(*to)) {
                let other = first(&to.path);
                if other == own || !rule.to.contains(&other) {
                    continue;
                }
                faults.extend(entry.reference.lines.iter().map(|line| {
                    let what = format!("names {} of {}", entry.reference.path, to.path);
                    Fault::new(rule.rule, module.file, *line, what)
                }));
            }
        }
    }
    faults
}

/// Reports dependencies that a package must not have.
pub(crate) fn dependencies(rules: &Rules, workspace: &Workspace) -> Vec<Fault> {
    let mut faults = Vec::new();
    for rule in rules.dependencies {
        let mut packages = workspace.packages.iter();
        let Some(package) = packages.find(|package| package.name == rule.package) else {
            let what = format!("unknown package {}", rule.package);
            faults.push(Fault::new(rule.rule, "Cargo.toml", 0, what));
            continue;
        };
        let manifest = format!("{}/Cargo.toml", package.folder);
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let is_checked = !dependency.is_dev && name.starts_with(rule.among);
            if is_checked && !rule.allowed.contains(&name) {
                let what = format!("depends on {name}");
                faults.push(Fault::new(rule.rule, &manifest, 0, what));
            }
        }
    }
    faults
}

pub(crate) fn starts_with_any(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// The first segment of a path.
fn first(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}

fn is_named(word: Word, entry: &Resolved<'_>) -> bool {
    let reference = entry.reference;
    let outside = |test: &dyn Fn(&str) -> bool| {
        entry.targets.iter().any(|target| match target {
            Target::External(path) => test(path),
            Target::Module(_) | Target::Item { .. } | Target::Unknown { .. } => false,
        })
    };
    let last = reference.path.rsplit("::").next().unwrap_or_default();
    match word {
        Word::Crate(name) => outside(&|path| first(path) == name),
        Word::Crates(prefix) => outside(&|path| path.starts_with(prefix)),
        Word::Path(segments) => {
            let segments = format!("::{segments}::");
            outside(&|path| format!("::{path}::").contains(&segments))
        }
        Word::NameEnd(end) => reference.kind != Kind::Attribute && last.ends_with(end),
        Word::Macro(name) => reference.kind == Kind::Macro && last == name,
        Word::Attribute(name) => reference.kind == Kind::Attribute && last == name,
    }
}
