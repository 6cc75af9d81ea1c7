//! The results of a check, and how they are printed.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fault::Fault;
use super::graph::Site;
use super::surface::Surface;

/// The results of a check.
#[derive(Debug, Default)]
pub struct Report {
    /// Libraries and programs whose module graph was checked.
    pub crates: usize,
    /// Their modules, without test modules.
    pub modules: usize,
    /// Lines of all source files.
    pub lines: usize,
    /// Lines of files that no target reaches or that cannot be parsed.
    pub unseen_lines: usize,
    /// Lines of the packages in `crates/` without tests, comments and blank lines.
    pub product_lines: usize,
    /// References from a module to items of an enclosing module.
    pub child_to_parent: usize,
    /// Words of `words.txt` in crates, xtask and docs.
    pub banned_words: usize,
    /// Test names whose first word names no subject.
    pub riddle_tests: usize,
    /// Each banned word and unclear test name.
    pub language_faults: Vec<Fault>,
    /// The public surface of the package that users import.
    pub surface: Surface,
    /// Cycles of modules.
    pub cycles: Vec<ModuleCycle>,
    /// Faults, including unused entries of the rule tables.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Whether there are no faults. Language faults do not count.
    pub fn is_clean(&self) -> bool {
        self.cycles.is_empty() && self.faults.is_empty() && self.unseen_lines == 0
    }

    /// The faults of one rule.
    pub fn faults_of(&self, rule: &str) -> Vec<String> {
        let faults = self.faults.iter().filter(|fault| fault.rule == rule);
        faults.map(Fault::line).collect()
    }

    /// The line of figures.
    pub fn figures(&self, took: Duration) -> String {
        format!(
            "tidy crates={} modules={} lines={} module_cycles={} layer_faults={} unseen_lines={} \
             child_to_parent={} product_lines={} told={} riddle_tests={} public_modules={} public_items={} seconds={:.1}",
            self.crates,
            self.modules,
            self.lines,
            self.cycles.len(),
            self.faults.len(),
            self.unseen_lines,
            self.child_to_parent,
            self.product_lines,
            self.banned_words,
            self.riddle_tests,
            self.surface.modules,
            self.surface.items,
            took.as_secs_f64()
        )
    }

    /// One line for each fault and, for each cycle, every reference of every edge.
    pub fn details(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.faults.iter().map(Fault::line).collect();
        for cycle in &self.cycles {
            lines.push(cycle.summary());
            lines.extend(cycle.edge_lines());
        }
        lines
    }
}

/// A cycle of modules.
#[derive(Debug)]
pub struct ModuleCycle {
    /// The package and, for a program, its name.
    pub package: String,
    /// The parent of the modules; empty for the root of the crate.
    pub parent: String,
    /// The modules.
    pub modules: BTreeSet<String>,
    /// The shortest cycle; the first module is repeated at the end.
    pub ring: Vec<String>,
    /// Every edge between the modules of the cycle, with its references.
    pub(crate) edges: Vec<(String, String, Vec<Site>)>,
}

impl ModuleCycle {
    /// The modules, then the shortest cycle with an example of each edge.
    pub fn summary(&self) -> String {
        let modules: Vec<_> = self.modules.iter().map(String::as_str).collect();
        let location = [self.package.as_str(), self.parent.as_str()].join(" ");
        let mut lines = vec![format!("cycle {}: {}", location.trim(), modules.join(" "))];
        for (from, to) in self.ring.iter().zip(self.ring.iter().skip(1)) {
            let mut edges = self.edges.iter();
            let Some((_, _, sites)) = edges.find(|edge| edge.0 == *from && edge.1 == *to) else {
                continue;
            };
            let example = sites.first().map_or_else(String::new, |site| {
                let line = site.lines.first().copied().unwrap_or_default();
                format!("{}:{line}: {}", site.file, site.what)
            });
            lines.push(format!("  {from} -> {to} ({}): {example}", count(sites)));
        }
        lines.join("\n")
    }

    fn edge_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (from, to, sites) in &self.edges {
            lines.push(format!("  edge {from} -> {to} ({})", count(sites)));
            for site in sites {
                let numbers: Vec<_> = site.lines.iter().map(usize::to_string).collect();
                let numbers = numbers.join(",");
                lines.push(format!(
                    "    {}:{numbers}: {} in {}",
                    site.file, site.what, site.to
                ));
            }
        }
        lines
    }
}

fn count(sites: &[Site]) -> usize {
    sites.iter().map(|site| site.lines.len()).sum()
}
