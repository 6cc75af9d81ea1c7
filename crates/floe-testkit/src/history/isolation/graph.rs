//! The dependency graph of a history.
//!
//! Its nodes are the transactions and a few auxiliary nodes that stand for many edges: the moments of a history (a
//! transaction that ended comes before all that began later) and, for each list, the appends that no transaction
//! read. An edge into an auxiliary node carries the dependency; the edges from it carry none.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use super::Level;
use super::index::{ElementId, TransactionId};
use super::versions::{List, Versions};

/// Why one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Dependency {
    WriteWrite,
    WriteRead,
    ReadWrite,
    RealTime,
}

impl Dependency {
    const fn bit(self) -> u8 {
        match self {
            Self::WriteWrite => 1,
            Self::WriteRead => 2,
            Self::ReadWrite => 4,
            Self::RealTime => 8,
        }
    }
}

/// A set of dependencies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask(u8);

impl Mask {
    pub(super) fn of(dependencies: &[Dependency]) -> Self {
        Self(dependencies.iter().fold(0, |bits, d| bits | d.bit()))
    }

    /// Whether the set contains the edge's dependency. Edges from auxiliary nodes are always allowed.
    pub(super) fn allows(self, edge: &Edge) -> bool {
        edge.dependency.is_none_or(|d| self.0 & d.bit() != 0)
    }
}

pub(super) type NodeId = usize;

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) to: NodeId,
    /// `None` on edges from auxiliary nodes.
    pub(super) dependency: Option<Dependency>,
    /// The append that causes the dependency.
    pub(super) element: Option<ElementId>,
}

#[derive(Default)]
pub(super) struct Graph {
    /// By node; the transactions come first.
    edges: Vec<Vec<Edge>>,
    dependencies: usize,
}

impl Graph {
    /// Builds the graph of the committed transactions of a history.
    pub(super) fn build<K, V>(versions: &Versions<'_, K, V>, level: Level) -> Self
    where
        K: Eq + Hash + Debug,
        V: Eq + Hash + Debug,
    {
        let mut graph = Self::default();
        graph.edges.resize_with(versions.history().len(), Vec::new);
        let tails: Vec<Tail> = (versions.lists().iter())
            .map(|list| Tail::build(list, &mut graph))
            .collect();
        for (list, tail) in versions.lists().iter().zip(&tails) {
            graph.add_appends(list, tail, versions);
        }
        for read in versions.reads() {
            let (Some(list), Some(tail)) = (versions.lists().get(read.key), tails.get(read.key))
            else {
                continue;
            };
            let writer = |id: &ElementId| (versions.element(*id).transaction, *id);
            let last = read.version.checked_sub(1);
            if let Some((from, id)) = last.and_then(|at| list.order.get(at)).map(writer) {
                graph.add(from, read.transaction, Dependency::WriteRead, Some(id));
            }
            match list.order.get(read.version).map(writer) {
                Some((to, id)) => {
                    graph.add(read.transaction, to, Dependency::ReadWrite, Some(id));
                }
                None => tail.add_edges_from(read.transaction, Dependency::ReadWrite, &mut graph),
            }
        }
        if level == Level::StrictSerializable {
            graph.add_moments(versions);
        }
        graph
    }

    pub(super) fn nodes(&self) -> usize {
        self.edges.len()
    }

    /// The number of dependencies.
    pub(super) fn dependencies(&self) -> usize {
        self.dependencies
    }

    pub(super) fn edges(&self, from: NodeId) -> &[Edge] {
        self.edges.get(from).map_or(&[], Vec::as_slice)
    }

    fn node(&mut self) -> NodeId {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    fn add(
        &mut self,
        from: NodeId,
        to: NodeId,
        dependency: Dependency,
        element: Option<ElementId>,
    ) {
        if from != to {
            self.dependencies += 1;
            self.push(from, to, Some(dependency), element);
        }
    }

    fn push(
        &mut self,
        from: NodeId,
        to: NodeId,
        dependency: Option<Dependency>,
        element: Option<ElementId>,
    ) {
        if let Some(edges) = self.edges.get_mut(from) {
            edges.push(Edge {
                to,
                dependency,
                element,
            });
        }
    }

    fn add_appends<K, V>(&mut self, list: &List, tail: &Tail, versions: &Versions<'_, K, V>)
    where
        K: Eq + Hash + Debug,
        V: Eq + Hash + Debug,
    {
        let writer = |id: ElementId| versions.element(id).transaction;
        for (&before, &after) in list.order.iter().zip(list.order.iter().skip(1)) {
            self.add(
                writer(before),
                writer(after),
                Dependency::WriteWrite,
                Some(after),
            );
        }
        if let Some(&last) = list.order.last() {
            tail.add_edges_from(writer(last), Dependency::WriteWrite, self);
        }
    }

    /// Adds a chain of the moments at which transactions ended. A transaction that ended leads into the chain, and
    /// the chain leads to all transactions that began later.
    fn add_moments<K, V>(&mut self, versions: &Versions<'_, K, V>)
    where
        K: Eq + Hash + Debug,
        V: Eq + Hash + Debug,
    {
        let committed = || {
            (0..)
                .zip(versions.history())
                .filter(|(id, _)| versions.is_committed(*id))
        };
        let mut ends: Vec<_> = committed()
            .filter_map(|(id, t): (TransactionId, _)| Some((t.returned?, id)))
            .collect();
        ends.sort_unstable();
        let moments: Vec<NodeId> = ends.iter().map(|_| self.node()).collect();
        for (&moment, &next) in moments.iter().zip(moments.iter().skip(1)) {
            self.push(moment, next, None, None);
        }
        for (&(_, id), &moment) in ends.iter().zip(&moments) {
            self.add(id, moment, Dependency::RealTime, None);
        }
        for (id, transaction) in committed() {
            let ended_before = ends.partition_point(|&(end, _)| end < transaction.invoked);
            let latest = ended_before.checked_sub(1).and_then(|at| moments.get(at));
            if let Some(&moment) = latest {
                self.push(moment, id, None, None);
            }
        }
    }
}

/// The appends to a list that no transaction read, as a target of edges. They come after everything that was read,
/// in an unknown order.
///
/// The source of an edge may be one of them and must not come before itself. So there are two chains over the
/// appends: one leads to all up to a position, the other to all from a position on.
struct Tail {
    up_to: Vec<NodeId>,
    from: Vec<NodeId>,
    positions: HashMap<TransactionId, usize>,
}

impl Tail {
    fn build(list: &List, graph: &mut Graph) -> Self {
        let up_to: Vec<NodeId> = list.unread.iter().map(|_| graph.node()).collect();
        let from: Vec<NodeId> = list.unread.iter().map(|_| graph.node()).collect();
        for (chain, &(transaction, id)) in up_to.iter().chain(&from).zip(list.unread.iter().cycle())
        {
            graph.push(*chain, transaction, None, Some(id));
        }
        for (&node, &next) in from.iter().zip(from.iter().skip(1)) {
            graph.push(node, next, None, None);
        }
        for (&node, &next) in up_to.iter().skip(1).zip(&up_to) {
            graph.push(node, next, None, None);
        }
        let positions = (list.unread.iter().enumerate()).map(|(position, &(t, _))| (t, position));
        Self {
            positions: positions.collect(),
            up_to,
            from,
        }
    }

    fn add_edges_from(&self, source: TransactionId, dependency: Dependency, graph: &mut Graph) {
        let (before, after) = match self.positions.get(&source) {
            Some(&position) => (position.checked_sub(1), position + 1),
            None => (None, 0),
        };
        let before = before.and_then(|at| self.up_to.get(at));
        for &node in before.into_iter().chain(self.from.get(after)) {
            graph.add(source, node, dependency, None);
        }
    }
}
