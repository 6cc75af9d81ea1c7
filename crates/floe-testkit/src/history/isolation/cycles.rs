//! Finds cycles in the dependency graph and classifies them by the weakest guarantee that they violate.
//!
//! The graph is searched four times, each time with one more kind of edge. It is divided into strongly connected
//! components (Tarjan), and for each component with an edge of the newest kind, one short cycle through such an
//! edge is reported. A component of a thousand transactions is one finding.

use std::collections::VecDeque;

use super::AnomalyKind;
use super::graph::{Dependency, Edge, Graph, Mask, NodeId};
use super::index::{ElementId, TransactionId};

/// Maximum number of nodes visited in search of a component's shortest cycle. In a larger component, a longer cycle
/// may be reported, and a G-single may be reported as G2.
const VISITS_MAX: usize = 10_000_000;

/// A cycle of transactions.
pub(super) struct Cycle {
    pub(super) kind: AnomalyKind,
    pub(super) links: Vec<Link>,
}

/// One transaction must come before another.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) from: TransactionId,
    pub(super) to: TransactionId,
    pub(super) dependency: Dependency,
    pub(super) element: Option<ElementId>,
}

/// Finds the cycles of a graph whose first nodes are the transactions.
pub(super) fn find(graph: &Graph, transactions: usize) -> Vec<Cycle> {
    use Dependency::{ReadWrite, RealTime, WriteRead, WriteWrite};
    let order = [WriteWrite, WriteRead, ReadWrite, RealTime];
    let mut cycles = Vec::new();
    for (at, &newest) in order.iter().enumerate() {
        let mask = Mask::of(order.get(..=at).unwrap_or(&order));
        let mut search = Search::new(graph, mask);
        for component in search.edges_within(newest) {
            let (kind, walk) = match newest {
                WriteWrite => (AnomalyKind::G0, search.shortest(&component, mask)),
                WriteRead => (AnomalyKind::G1c, search.shortest(&component, mask)),
                ReadWrite => {
                    let others = Mask::of(&[WriteWrite, WriteRead]);
                    match search.shortest(&component, others) {
                        Some(walk) => (AnomalyKind::GSingle, Some(walk)),
                        None => (AnomalyKind::G2, search.shortest(&component, mask)),
                    }
                }
                RealTime => (AnomalyKind::RealTime, search.shortest(&component, mask)),
            };
            cycles.extend(walk.map(|walk| Cycle {
                kind,
                links: links(&walk, transactions),
            }));
        }
    }
    cycles
}

/// An edge with its source.
type Arc = (NodeId, Edge);

/// Reduces a path to its transactions, without the auxiliary nodes.
fn links(walk: &[Arc], transactions: usize) -> Vec<Link> {
    let mut links = Vec::new();
    let mut open: Option<(TransactionId, Dependency)> = None;
    for (from, edge) in walk {
        if let Some(dependency) = edge.dependency {
            open = Some((*from, dependency));
        }
        if let Some((from, dependency)) = open
            && edge.to < transactions
        {
            links.push(Link {
                from,
                to: edge.to,
                dependency,
                element: edge.element,
            });
        }
    }
    links
}

/// Searches for shortest paths. All searches share one allocation.
struct Search<'a> {
    graph: &'a Graph,
    /// The component of each node; paths do not leave it.
    component: Vec<usize>,
    /// For each node, the last search that reached it and the edge used.
    reached: Vec<(usize, Option<Arc>)>,
    searches: usize,
    /// The number of nodes visited by all searches.
    visits: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, mask: Mask) -> Self {
        Self {
            graph,
            component: components(graph, mask),
            reached: vec![(0, None); graph.nodes()],
            searches: 0,
            visits: 0,
        }
    }

    /// The edges of one kind within each component. Components without such edges are left out.
    fn edges_within(&self, dependency: Dependency) -> Vec<Vec<Arc>> {
        let mut within: Vec<Vec<Arc>> = vec![Vec::new(); self.graph.nodes()];
        for (from, &own) in self.component.iter().enumerate() {
            for edge in self.graph.edges(from) {
                if edge.dependency == Some(dependency)
                    && self.component.get(edge.to) == Some(&own)
                    && let Some(edges) = within.get_mut(own)
                {
                    edges.push((from, *edge));
                }
            }
        }
        within.retain(|edges| !edges.is_empty());
        within
    }

    /// The shortest cycle of one of these edges and others allowed by the mask.
    fn shortest(&mut self, edges: &[Arc], mask: Mask) -> Option<Vec<Arc>> {
        let mut best: Option<Vec<Arc>> = None;
        let visits_end = self.visits.saturating_add(VISITS_MAX);
        for &(from, edge) in edges {
            if self.visits > visits_end {
                break;
            }
            let Some(path) = self.path(edge.to, from, mask) else {
                continue;
            };
            let cycle: Vec<Arc> = std::iter::once((from, edge)).chain(path).collect();
            let length = |c: &[Arc]| c.iter().filter(|(_, e)| e.dependency.is_some()).count();
            if best.as_ref().is_none_or(|b| length(&cycle) < length(b)) {
                best = Some(cycle);
            }
            if best.as_ref().is_some_and(|b| length(b) == 2) {
                break;
            }
        }
        best
    }

    /// The path with the fewest dependencies between two nodes of a component.
    fn path(&mut self, from: NodeId, to: NodeId, mask: Mask) -> Option<Vec<Arc>> {
        self.searches += 1;
        let own = self.component.get(from).copied()?;
        // Edges from auxiliary nodes cost nothing, so their targets are visited first.
        let mut queue: VecDeque<(NodeId, Option<Arc>)> = VecDeque::from([(from, None)]);
        while let Some((node, by)) = queue.pop_front() {
            let reached = self.reached.get_mut(node)?;
            if reached.0 == self.searches {
                continue;
            }
            *reached = (self.searches, by);
            self.visits += 1;
            if node == to {
                return Some(self.trace(from, to));
            }
            for edge in self.graph.edges(node) {
                if mask.allows(edge) && self.component.get(edge.to) == Some(&own) {
                    let next = (edge.to, Some((node, *edge)));
                    match edge.dependency {
                        Some(_) => queue.push_back(next),
                        None => queue.push_front(next),
                    }
                }
            }
        }
        None
    }

    fn trace(&self, from: NodeId, to: NodeId) -> Vec<Arc> {
        let mut path = Vec::new();
        let mut node = to;
        while node != from
            && let Some((_, Some(arc))) = self.reached.get(node)
        {
            path.push(*arc);
            node = arc.0;
        }
        path.reverse();
        path
    }
}

/// The strongly connected component of each node (Tarjan, without recursion).
#[expect(
    clippy::indexing_slicing,
    reason = "every vector has one entry per node of the graph"
)]
fn components(graph: &Graph, mask: Mask) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let nodes = graph.nodes();
    let mut component = vec![NONE; nodes];
    let mut index = vec![NONE; nodes];
    let mut low = vec![NONE; nodes];
    let (mut visited, mut found) = (0, 0);
    let mut open: Vec<NodeId> = Vec::new();
    // The nodes on the current path, each with its next edge.
    let mut path: Vec<(NodeId, usize)> = Vec::new();
    for root in 0..nodes {
        if index[root] == NONE {
            path.push((root, 0));
        }
        while let Some((node, at)) = path.pop() {
            if at == 0 {
                index[node] = visited;
                low[node] = visited;
                visited += 1;
                open.push(node);
            }
            if let Some(edge) = graph.edges(node).get(at) {
                path.push((node, at + 1));
                if !mask.allows(edge) {
                    continue;
                }
                if index[edge.to] == NONE {
                    path.push((edge.to, 0));
                } else if component[edge.to] == NONE {
                    low[node] = low[node].min(index[edge.to]);
                }
                continue;
            }
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                while let Some(member) = open.pop() {
                    component[member] = found;
                    if member == node {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}
