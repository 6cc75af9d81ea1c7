//! Runs all checks over a source tree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::collect;
use super::facts::File;
use super::fault::Fault;
use super::graph;
use super::language;
use super::layers::{self, UsedAllowances};
use super::report::{ModuleCycle, Report};
use super::rules::Rules;
use super::surface;
use super::text;
use super::tree::{self, Crate};
use super::workspace::Workspace;

/// The rule about unreached files, as reported.
pub const REACHED: &str = "every file is reached from a target and parsed";

/// Checks a source tree.
pub fn check(workspace: &Workspace, rules: &Rules) -> Report {
    let mut check = Check {
        rules,
        report: Report::default(),
        product_files: BTreeSet::new(),
        used_allowances: UsedAllowances::new(),
    };
    let files = check.parse(workspace);
    check.walk(workspace, &files);
    let mut report = check.report;
    let product = check.product_files.iter();
    let product = product.filter(|path| path.starts_with("crates/"));
    let product = product.filter_map(|path| files.get(path));
    report.product_lines = product.map(|file| file.code_lines).sum();
    let language = language::find(workspace, &files);
    report.banned_words = language.banned_words;
    report.riddle_tests = language.riddle_tests;
    report.language_faults = language.faults;
    let faults = [
        layers::unused_allowances(rules, &check.used_allowances),
        layers::dependencies(rules, workspace),
        text::faults(workspace, rules, &files, &check.product_files),
    ];
    report.faults.extend(faults.into_iter().flatten());
    report.faults.sort();
    // A file can belong to more than one target.
    report.faults.dedup();
    report
}

struct Check<'r> {
    rules: &'r Rules,
    report: Report,
    /// Files that are part of a build without tests.
    product_files: BTreeSet<String>,
    used_allowances: UsedAllowances,
}

impl Check<'_> {
    fn report_unseen(&mut self, path: &str, lines: usize, what: String) {
        self.report.unseen_lines += lines;
        self.report.faults.push(Fault::new(REACHED, path, 0, what));
    }

    /// Parses all source files in parallel.
    fn parse(&mut self, workspace: &Workspace) -> BTreeMap<String, File> {
        let sources = workspace.files.iter();
        let sources: Vec<_> = sources.filter(|(path, _)| path.ends_with(".rs")).collect();
        let next = AtomicUsize::new(0);
        let parsed = Mutex::new(Vec::new());
        let work = || {
            while let Some((path, text)) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                let file = collect::parse(text);
                let mut parsed = parsed.lock().unwrap_or_else(PoisonError::into_inner);
                parsed.push(((*path).clone(), text.lines().count(), file));
            }
        };
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let mut files = BTreeMap::new();
        for (path, lines, file) in parsed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.report.lines += lines;
            match file {
                Ok(file) => {
                    files.insert(path, file);
                }
                Err(error) => {
                    self.report_unseen(&path, lines, format!("cannot be parsed: {error}"));
                }
            }
        }
        files
    }

    /// Walks the module trees of all targets, and reports files that are not reached.
    fn walk(&mut self, workspace: &Workspace, files: &BTreeMap<String, File>) {
        let mut reached = BTreeSet::new();
        for package in &workspace.packages {
            for target in &package.targets {
                let walked = tree::walk(package, target, files);
                reached.extend(walked.modules.iter().map(|module| module.file.to_owned()));
                for missing in &walked.missing {
                    let fault =
                        Fault::new(REACHED, missing.file, missing.line, missing.what.clone());
                    self.report.faults.push(fault);
                }
                self.target(&walked);
            }
        }
        for (path, file) in files {
            let by_tests = self.rules.compiled_by_tests;
            let is_left = by_tests.iter().any(|folder| path.contains(folder));
            if !is_left && !reached.contains(path) {
                let what = format!("no target reaches these {} lines", file.lines);
                self.report_unseen(path, file.lines, what);
            }
        }
    }

    fn target(&mut self, tree: &Crate<'_>) {
        let resolved = graph::resolve(tree);
        let used = &mut self.used_allowances;
        let faults = layers::only_in(self.rules, tree, &resolved, used);
        self.report.faults.extend(faults);
        if tree.target.is_test {
            return;
        }
        let faults = layers::separations(self.rules, tree, &resolved);
        self.report.faults.extend(faults);
        let product = tree.modules.iter().filter(|module| !module.is_test);
        let files: Vec<_> = product.map(|module| module.file.to_owned()).collect();
        self.report.crates += 1;
        self.report.modules += files.len();
        self.product_files.extend(files);
        if self.rules.surface == Some(tree.package.name.as_str()) && tree.target.is_lib {
            self.report.surface = surface::of(tree);
        }
        let graph = graph::graph(tree, &resolved);
        self.report.child_to_parent += graph.child_to_parent;
        for level in graph.levels {
            for cycle in level.cycles() {
                let edges = level.edges.iter().filter(|((from, to), _)| {
                    cycle.modules.contains(from) && cycle.modules.contains(to)
                });
                let edges =
                    edges.map(|((from, to), sites)| (from.clone(), to.clone(), sites.clone()));
                self.report.cycles.push(ModuleCycle {
                    package: tree.name(),
                    parent: level.parent.clone(),
                    edges: edges.collect(),
                    modules: cycle.modules,
                    ring: cycle.ring,
                });
            }
        }
    }
}
