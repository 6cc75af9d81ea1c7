//! The dependencies between the modules of a crate, and the cycles among siblings.
//!
//! A reference from one module to an item of another is an edge between their ancestors (or themselves) that have the
//! same parent. A module may use its children; references to an enclosing module are counted, and are not edges.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::facts::{Kind, Reference};
use super::names::{Names, Target};
use super::tree::Crate;

/// A resolved reference.
#[derive(Debug)]
pub(crate) struct Resolved<'w> {
    pub(crate) module: usize,
    pub(crate) reference: &'w Reference,
    pub(crate) targets: Vec<Target>,
    /// The modules it depends on.
    pub(crate) modules: Vec<usize>,
}

/// Resolves all references of a crate.
pub(crate) fn resolve<'w>(tree: &Crate<'w>) -> Vec<Resolved<'w>> {
    let names = Names::new(tree);
    let mut resolved = Vec::new();
    for (module, of) in tree.modules.iter().enumerate() {
        for reference in &of.body.references {
            let is_test = of.is_test || reference.is_test;
            let kind = reference.kind;
            let mut targets =
                names.resolve(module, reference.scope, &reference.path, kind, is_test);
            let mut modules: Vec<usize> = Vec::new();
            for target in &targets {
                match target {
                    // The type is referenced elsewhere in the block.
                    Target::Item { .. } if kind == Kind::OwnMethod => {}
                    Target::Module(module)
                    | Target::Item { module, .. }
                    | Target::Unknown { module, .. } => modules.push(*module),
                    Target::External(_) => {}
                }
                let functions = names.functions(target).iter();
                modules.extend(functions.filter(|at| is_test || !is_test_module(tree, **at)));
            }
            modules.sort_unstable();
            modules.dedup();
            if kind == Kind::OwnMethod {
                targets.clear();
            }
            resolved.push(Resolved {
                module,
                reference,
                targets,
                modules,
            });
        }
    }
    resolved
}

fn is_test_module(tree: &Crate<'_>, at: usize) -> bool {
    tree.modules.get(at).is_none_or(|module| module.is_test)
}

/// The edges between the children of one module.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// The path of the parent module; empty for the root of the crate.
    pub(crate) parent: String,
    pub(crate) edges: BTreeMap<(String, String), Vec<Site>>,
}

/// A reference that is part of an edge.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) file: String,
    pub(crate) lines: Vec<usize>,
    /// The path, as written.
    pub(crate) what: String,
    /// The module that defines it.
    pub(crate) to: String,
}

/// The module graph of a crate.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) levels: Vec<Level>,
    /// References to items of an enclosing module.
    pub(crate) child_to_parent: usize,
}

/// Builds the module graph of the product code of a crate.
pub(crate) fn graph(tree: &Crate<'_>, resolved: &[Resolved<'_>]) -> Graph {
    let mut levels: BTreeMap<usize, Level> = BTreeMap::new();
    let mut child_to_parent = 0;
    for entry in resolved {
        let Some(module) = tree.modules.get(entry.module) else {
            continue;
        };
        if module.is_test || entry.reference.is_test {
            continue;
        }
        for at in &entry.modules {
            match relation(tree, entry.module, *at) {
                Relation::Own | Relation::Child => {}
                Relation::Parent => child_to_parent += entry.reference.lines.len(),
                Relation::Siblings { parent, from, to } => {
                    let level = levels.entry(parent).or_default();
                    let edge = level.edges.entry((from, to)).or_default();
                    edge.push(Site {
                        file: module.file.to_owned(),
                        lines: entry.reference.lines.clone(),
                        what: entry.reference.path.clone(),
                        to: module_path(tree, *at),
                    });
                }
            }
        }
    }
    for (at, level) in &mut levels {
        level.parent = module_path(tree, *at);
    }
    Graph {
        levels: levels.into_values().collect(),
        child_to_parent,
    }
}

fn module_path(tree: &Crate<'_>, at: usize) -> String {
    let module = tree.modules.get(at);
    module.map_or_else(String::new, |module| module.path.clone())
}

enum Relation {
    Own,
    Child,
    Parent,
    Siblings {
        parent: usize,
        from: String,
        to: String,
    },
}

fn relation(tree: &Crate<'_>, from: usize, to: usize) -> Relation {
    let (from_line, to_line) = (ancestry(tree, from), ancestry(tree, to));
    let common = from_line.iter().zip(&to_line).take_while(|(a, b)| a == b);
    let depth = common.count();
    let name = |line: &[usize]| {
        let module = line.get(depth).and_then(|at| tree.modules.get(*at));
        module.map(|module| module.name.to_owned())
    };
    match (name(&from_line), name(&to_line)) {
        (None, None) => Relation::Own,
        (None, Some(_)) => Relation::Child,
        (Some(_), None) => Relation::Parent,
        // Two variants of one module, for example for two operating systems.
        (Some(from), Some(to)) if from == to => Relation::Own,
        (Some(from), Some(to)) => Relation::Siblings {
            parent: depth
                .checked_sub(1)
                .and_then(|at| from_line.get(at).copied())
                .unwrap_or_default(),
            from,
            to,
        },
    }
}

/// The path from the root to a module, including it.
fn ancestry(tree: &Crate<'_>, module: usize) -> Vec<usize> {
    let mut line = vec![module];
    let mut at = module;
    while let Some(parent) = tree.modules.get(at).and_then(|module| module.parent) {
        line.push(parent);
        at = parent;
    }
    line.reverse();
    line
}

/// Siblings that depend on each other.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) modules: BTreeSet<String>,
    /// The shortest cycle; the first module is repeated at the end.
    pub(crate) ring: Vec<String>,
}

impl Level {
    /// The cycles among the siblings: the largest sets in which every module reaches every other.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let names: BTreeSet<&str> = self
            .edges
            .keys()
            .flat_map(|(from, to)| [from.as_str(), to.as_str()])
            .collect();
        let reach: BTreeMap<&str, BTreeSet<&str>> = names
            .iter()
            .map(|name| (*name, self.reached_from(name)))
            .collect();
        let mut cycles = Vec::new();
        let mut open = names.clone();
        while let Some(name) = open.pop_first() {
            let reaches =
                |from: &str, to: &str| reach.get(from).is_some_and(|to_all| to_all.contains(to));
            let modules: BTreeSet<String> = names
                .iter()
                .filter(|other| **other == name || (reaches(name, other) && reaches(other, name)))
                .map(|other| (*other).to_owned())
                .collect();
            open.retain(|other| !modules.contains(*other));
            if modules.len() > 1 {
                let rings = modules.iter().filter_map(|from| self.ring(from, &modules));
                let ring = rings.min_by_key(Vec::len).unwrap_or_default();
                cycles.push(Cycle { modules, ring });
            }
        }
        cycles
    }

    fn reached_from<'l>(&'l self, name: &'l str) -> BTreeSet<&'l str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![name];
        while let Some(at) = open.pop() {
            for next in self.next(at) {
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    }

    fn next<'l>(&'l self, from: &'l str) -> impl Iterator<Item = &'l str> {
        let edges = self.edges.keys();
        edges
            .filter(move |edge| edge.0 == from)
            .map(|edge| edge.1.as_str())
    }

    /// The shortest path from a module back to itself.
    fn ring(&self, from: &str, within: &BTreeSet<String>) -> Option<Vec<String>> {
        let mut open = VecDeque::from([vec![from.to_owned()]]);
        let mut seen = BTreeSet::new();
        while let Some(path) = open.pop_front() {
            let at = path.last()?;
            for next in self.next(at).filter(|next| within.contains(*next)) {
                let mut longer = path.clone();
                longer.push(next.to_owned());
                if next == from {
                    return Some(longer);
                }
                if seen.insert(next.to_owned()) {
                    open.push_back(longer);
                }
            }
        }
        None
    }
}
