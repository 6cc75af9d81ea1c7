//! Random changes of the graph. Each move is a function of the seed and its number, so that the audit knows its
//! content.

use floe::Error;
use floe::graph::{EntityKey, Graph, GraphSchema, IndexDef, IndexKey, Node, OnDelete, RelationDef};
use floe::model::Json;
use floe_store::Value;
use floe_store::env::SeededRandom;

/// The scope of the graph.
pub(super) const SCOPE: &str = "verify";
/// Number of counters that all tasks increment.
pub(super) const COUNTERS: u64 = 4;
/// Number of consecutive moves that share a hub, to which they link things before it is deleted.
pub(super) const HUB_MOVES: u64 = 1000;
/// Number of things before the first move.
pub(super) const THINGS: u64 = 50;

/// A random change of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Create,
    Update(u64),
    /// Increments a counter.
    Increment(u64),
    /// Links a thing to another.
    Link(u64, &'static str, u64),
    /// Reorders the edges of a thing.
    Reorder(u64),
    /// Links a thing to a hub.
    LinkToHub(u64, u64),
    Delete(u64),
    /// Deletes a hub, in many steps if it has many edges.
    DeleteHub(u64),
}

impl Move {
    /// Returns the move with this number.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let random = SeededRandom::new(super::test_table::splitmix64(seed).wrapping_add(number));
        let thing = || Self::thing(seed, random.below(number.max(1)));
        if number % HUB_MOVES == HUB_MOVES - 10 {
            return Self::DeleteHub(number / HUB_MOVES);
        }
        match random.below(20) {
            0..4 => Self::Create,
            4..6 => Self::Update(thing()),
            6..9 => Self::Increment(random.below(COUNTERS)),
            9..13 => {
                let predicate = match random.below(3) {
                    0 => "needs",
                    _ => "likes",
                };
                Self::Link(thing(), predicate, thing())
            }
            13..18 => Self::LinkToHub(thing(), number / HUB_MOVES),
            18 => Self::Reorder(thing()),
            _ => Self::Delete(thing()),
        }
    }

    /// Returns the last thing created before a move, or one of the initial things.
    fn thing(seed: u64, before: u64) -> u64 {
        let kinds = (before.saturating_sub(40)..before).rev();
        let mut created = kinds.filter(|number| is_create(seed, *number));
        created
            .next()
            .map_or(before % THINGS, |number| THINGS + number)
    }

    /// Makes the move. Returns whether it changed anything.
    pub(super) async fn make(&self, graph: &Graph<'_>, number: u64) -> Result<bool, Error> {
        let done = match self {
            Self::Create => graph.create(&thing(THINGS + number)).await,
            Self::Update(id) => {
                let change = Node::new("thing", *id).with("value", number);
                graph.merge(&change).await
            }
            Self::Increment(counter) => {
                let raise = |node: Node| {
                    let value = value(&node);
                    node.with("value", value + 1)
                };
                graph
                    .modify_node(&("counter", *counter), raise)
                    .await
                    .map(drop)
            }
            Self::Link(subject, predicate, object) => {
                let list = graph.related_by(&("thing", *subject), *predicate);
                let attributes = Json::from_iter([("number", number.to_string())]);
                list.link_with(&("thing", *object), &attributes).await
            }
            Self::Reorder(subject) => {
                let list = graph.related_by(&("thing", *subject), "likes");
                let edges = list.keys().await?;
                let objects = edges.into_iter().rev().map(|edge| edge.object);
                list.reorder(objects).await
            }
            Self::LinkToHub(subject, hub) => {
                let list = graph.related_by(&("thing", *subject), "likes");
                list.link(&("hub", *hub)).await
            }
            Self::Delete(id) => {
                let deleted = graph.delete(&("thing", *id)).await?;
                return Ok(deleted.entities > 0);
            }
            Self::DeleteHub(hub) => graph.delete(&("hub", *hub)).await.map(drop),
        };
        done.map(|()| true)
    }
}

/// Whether the move with this number creates a thing: decided by the first random number alone, without recursion.
fn is_create(seed: u64, number: u64) -> bool {
    let random = SeededRandom::new(super::test_table::splitmix64(seed).wrapping_add(number));
    // The random number for a thing is drawn later, and not for deletions of hubs.
    number % HUB_MOVES != HUB_MOVES - 10 && random.below(20) < 4
}

/// A thing.
pub(super) fn thing(id: u64) -> Node {
    let name = format!("n{id}");
    Node::new("thing", id).with("value", id).with("name", name)
}

/// The value of a counter or a thing.
pub(super) fn value(node: &Node) -> i64 {
    let value = node.get("value").and_then(Value::as_n);
    value.and_then(|value| value.to_i64()).unwrap_or_default()
}

/// The key of a thing.
pub(super) fn key(id: u64) -> EntityKey {
    EntityKey::new("thing", id)
}

/// The relations and indexes.
pub(super) fn schema() -> GraphSchema {
    let needs = RelationDef::new("thing", "needs", "thing").on_delete(OnDelete::Restrict);
    let by_value = IndexDef::new("by_value", "thing", 1, |thing, emit| {
        emit.key(IndexKey::number(value(thing)));
        emit.key(IndexKey::text(format!("mod {}", value(thing) % 7)));
    });
    let by_name = IndexDef::new("by_name", "thing", 1, |thing, emit| {
        if let Some(Value::S(name)) = thing.get("name") {
            emit.key(IndexKey::text(name.as_str()));
        }
    });
    GraphSchema::new()
        .relation_def(needs)
        .index_def(by_value)
        .index_def(by_name.unique())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_cover_all_kinds_and_refer_to_created_things() {
        let mut kinds = std::collections::BTreeMap::new();
        for number in 0..5000 {
            let chosen = Move::of(7, number);
            assert_eq!(chosen, Move::of(7, number));
            assert_eq!(chosen == Move::Create, is_create(7, number));
            if let Move::Delete(id) | Move::Update(id) = chosen {
                assert!(id < THINGS || Move::of(7, id - THINGS) == Move::Create);
            }
            let name = format!("{chosen:?}");
            let name = name.split('(').next().unwrap().to_owned();
            *kinds.entry(name).or_insert(0) += 1;
        }
        assert_eq!(kinds.len(), 8);
    }
}
