//! A reference model of the graph in memory.

use std::collections::{BTreeMap, BTreeSet};

use floe::ErrorKind;
use floe::graph::{GraphSchema, IndexDef, IndexKey, OnDelete, RelationDef};
use floe_store::Value;

/// The predicates: detaching, restricting, cascading, owning.
pub(crate) const PREDICATES: [&str; 4] = ["likes", "needs", "follows", "has"];

/// The schema: one relation of each kind, and one index of each kind.
pub(crate) fn schema() -> GraphSchema {
    let relation = |predicate: &str| RelationDef::new("thing", predicate, "thing");
    GraphSchema::new()
        .relation_def(relation("needs").on_delete(OnDelete::Restrict))
        .relation_def(relation("follows").on_delete(OnDelete::Cascade))
        .relation_def(relation("has").owns())
        .index_def(IndexDef::new("by_value", "thing", 1, |thing, emit| {
            if let Some(Value::N(value)) = thing.get("value") {
                emit.key_with(IndexKey::number(*value), [("value", *value)]);
                let is_even = value.to_i64().is_some_and(|value| value % 2 == 0);
                emit.key(IndexKey::text(if is_even { "even" } else { "odd" }));
            }
        }))
        .index_def(
            IndexDef::new("by_name", "thing", 1, |thing, emit| {
                if let Some(Value::S(name)) = thing.get("name") {
                    emit.key(IndexKey::text(name.as_str()));
                }
            })
            .unique(),
        )
}

/// An entity of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Thing {
    pub value: Option<i64>,
    pub name: Option<String>,
}

/// The entities and their lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub things: BTreeMap<String, Thing>,
    /// Key: subject and predicate.
    pub lists: BTreeMap<(String, &'static str), Vec<String>>,
}

pub(crate) type Outcome = Result<(), ErrorKind>;

impl Model {
    fn require(&self, id: &str) -> Outcome {
        if self.things.contains_key(id) {
            Ok(())
        } else {
            Err(ErrorKind::NotFound)
        }
    }

    fn check_name(&self, id: &str, name: Option<&String>) -> Outcome {
        let taken = |(other, thing): (&String, &Thing)| other != id && thing.name.as_ref() == name;
        if name.is_some() && self.things.iter().any(taken) {
            Err(ErrorKind::Conflict)
        } else {
            Ok(())
        }
    }

    pub(crate) fn create(&mut self, id: &str, thing: Thing) -> Outcome {
        if self.things.contains_key(id) {
            return Err(ErrorKind::AlreadyExists);
        }
        self.set(id, thing)
    }

    pub(crate) fn set(&mut self, id: &str, thing: Thing) -> Outcome {
        self.check_name(id, thing.name.as_ref())?;
        self.things.insert(id.to_owned(), thing);
        Ok(())
    }

    pub(crate) fn update(&mut self, id: &str, thing: Thing) -> Outcome {
        self.require(id)?;
        self.set(id, thing)
    }

    pub(crate) fn merge(&mut self, id: &str, thing: Thing) -> Outcome {
        self.require(id)?;
        self.upsert(id, thing)
    }

    pub(crate) fn upsert(&mut self, id: &str, thing: Thing) -> Outcome {
        let old = self.things.get(id).cloned().unwrap_or_default();
        let merged = Thing {
            value: thing.value.or(old.value),
            name: thing.name.or(old.name),
        };
        self.set(id, merged)
    }

    pub(crate) fn list(&self, id: &str, predicate: &'static str) -> Vec<String> {
        let list = self.lists.get(&(id.to_owned(), predicate));
        list.cloned().unwrap_or_default()
    }

    pub(crate) fn set_list(
        &mut self,
        id: &str,
        predicate: &'static str,
        list: Vec<String>,
    ) -> Outcome {
        self.require(id)?;
        let old = self.list(id, predicate);
        let is_new = |object: &&String| !old.contains(object);
        for object in list.iter().filter(is_new) {
            self.require(object)?;
        }
        self.lists.insert((id.to_owned(), predicate), list);
        Ok(())
    }

    /// The entities that are deleted with an entity.
    fn closure(&self, id: &str) -> BTreeSet<String> {
        let (mut deleted, mut queue) = (BTreeSet::new(), vec![id.to_owned()]);
        while let Some(id) = queue.pop() {
            if !deleted.insert(id.clone()) {
                continue;
            }
            queue.extend(self.list(&id, "has"));
            for ((subject, predicate), list) in &self.lists {
                if *predicate == "follows" && list.contains(&id) {
                    queue.push(subject.clone());
                }
            }
        }
        deleted
    }

    pub(crate) fn delete(&mut self, id: &str) -> Outcome {
        if !self.things.contains_key(id) {
            return Ok(());
        }
        let deleted = self.closure(id);
        for ((subject, predicate), list) in &self.lists {
            let restricts = *predicate == "needs" && !deleted.contains(subject);
            if restricts && list.iter().any(|object| deleted.contains(object)) {
                return Err(ErrorKind::Restricted);
            }
        }
        self.things.retain(|id, _| !deleted.contains(id));
        self.lists
            .retain(|(subject, _), _| !deleted.contains(subject));
        for list in self.lists.values_mut() {
            list.retain(|object| !deleted.contains(object));
        }
        Ok(())
    }
}
