//! The difference between two versions of a list, edge by edge, and the number of items it writes.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::graph::changes::EdgeChangeKind;
use crate::graph::keys::EntityKey;
use crate::graph::stored::Edge;
use crate::graph::writes::counts;

/// The removed edges, followed by the added and rewritten ones.
#[derive(Debug, Default)]
pub(super) struct Difference(pub(super) Vec<(Edge, EdgeChangeKind)>);

impl Difference {
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a key is too long.
    pub(super) fn between(old: &[Edge], new: &[Edge]) -> Result<Self> {
        let (mut old, new) = (by_key(old)?, by_key(new)?);
        let mut put = Vec::new();
        for (key, edge) in new {
            let kind = match old.remove(&key) {
                Some(was) if *was == *edge => continue,
                Some(_) => EdgeChangeKind::Rewrite,
                None => EdgeChangeKind::Add,
            };
            put.push((edge.clone(), kind));
        }
        let removed = old.into_values();
        let removed = removed.map(|edge| (edge.clone(), EdgeChangeKind::Remove));
        Ok(Self(removed.chain(put).collect()))
    }

    /// Number of removed edges.
    pub(super) fn removed(&self) -> u64 {
        let removed = |(_, kind): &&(Edge, EdgeChangeKind)| *kind == EdgeChangeKind::Remove;
        self.0.iter().filter(removed).count() as u64
    }

    /// The objects of the removed edges.
    pub(super) fn removed_objects(&self) -> Vec<EntityKey> {
        let removed = self.0.iter();
        let removed = removed.filter(|(_, kind)| *kind == EdgeChangeKind::Remove);
        removed.map(|(edge, _)| edge.object.clone()).collect()
    }

    /// Number of items to write: the edges, the subject, and the objects whose counts of incoming edges change.
    pub(super) fn items(&self, subject: &EntityKey) -> usize {
        let mut objects = counts(self.0.iter().map(|(edge, kind)| (edge, *kind)));
        objects.remove(subject);
        1 + self.0.len() + objects.len()
    }
}

fn by_key(edges: &[Edge]) -> Result<BTreeMap<String, &Edge>> {
    let edges = edges.iter();
    edges
        .map(|edge| Ok((edge.predicate_key()?, edge)))
        .collect()
}
