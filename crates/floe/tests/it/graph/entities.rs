//! Entities: created, updated, merged, set, in both forms.

use std::sync::Arc;

use floe::ErrorKind;
use floe::graph::{EntityKey, GraphSchema, Node};
use floe::{Db, Entity};
use floe_local::LocalEngine;
use floe_store::env::ManualClock;
use floe_store::{Capabilities, Env, Item, Timestamp, Value};
use uuid::Uuid;

use super::support::{Article, Author, World, article, author, shelf};

#[tokio::test]
async fn an_entity_is_created_once() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let world = World::with(capabilities.clone()).await;
        world.graph.create(&shelf("north")).await.unwrap();
        // Where an answer can get lost, only a transaction tells what became of a write.
        let request = match capabilities.loses_answers {
            true => "TransactWriteItems",
            false => "PutItem",
        };
        assert_eq!(world.requests(), [request]);
        let error = world.graph.create(&shelf("north")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(
            error.to_string(),
            "the entity exists already: entity=library:shelf:north"
        );
    }
}

#[tokio::test]
async fn an_update_needs_something_to_update() {
    let world = World::new().await;
    let error = world.graph.update(&author("ann")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        "the entity is not there: entity=library:author:ann"
    );
    let missing = world
        .graph
        .modify::<Author>("ann", |author| author.name.clear());
    assert_eq!(missing.await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_upsert_merges_maps_and_keeps_what_it_does_not_name() {
    let world = World::new().await;
    let address = |pairs: &[(&str, &str)]| -> Value {
        Value::M(pairs.iter().map(|(name, text)| (*name, *text)).collect())
    };
    let old = Node::new("place", "p")
        .with("address", address(&[("street", "Main"), ("city", "Rome")]))
        .with("open", true);
    world.graph.upsert(&old).await.unwrap();
    let new = Node::new("place", "p").with("address", address(&[("city", "Oslo")]));
    world.graph.upsert(&new).await.unwrap();
    let found = world
        .graph
        .get_node(&("place", "p"))
        .await
        .unwrap()
        .unwrap();
    let expected = Item::new()
        .with("address", address(&[("street", "Main"), ("city", "Oslo")]))
        .with("open", true);
    assert_eq!(found.attributes, expected);
    world.graph.set(&new).await.unwrap();
    let found = world
        .graph
        .get_node(&("place", "p"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.attributes, new.attributes);
}

#[tokio::test]
async fn the_store_keeps_when_it_was_created_and_tells_when_it_was_updated() {
    let clock = ManualClock::at(Timestamp::from_millis(1_795_000_000_000));
    let env = Env::manual(clock, 1);
    let engine = LocalEngine::memory_with(floe_local::Options::new().env(env.clone())).unwrap();
    let db = Db::with_parts(Arc::new(engine), env, Arc::new(floe::db::TokioTimer));
    db.ensure_graph().await.unwrap();
    let graph = db.graph("s");
    graph.create(&Node::new("t", "a")).await.unwrap();
    let mut last = String::new();
    for _ in 0..5 {
        graph
            .upsert(&Node::new("t", "a").with("n", 1))
            .await
            .unwrap();
        let node = graph.get_node(&("t", "a")).await.unwrap().unwrap();
        assert!(node.created.unwrap().ends_with(".000000Z"));
        // The clock stands still, and yet each update is later than the one before.
        let updated = node.updated.unwrap();
        assert!(updated > last, "{updated} {last}");
        last = updated;
    }
}

#[tokio::test]
async fn many_are_got_in_batches_and_in_the_order_asked_for() {
    let world = World::new().await;
    for number in 0..120 {
        world
            .graph
            .create(&shelf(&number.to_string()))
            .await
            .unwrap();
    }
    world.engine.take();
    let mut names: Vec<String> = (0..130).rev().map(|number| number.to_string()).collect();
    names.push("7".to_owned());
    let found = world
        .graph
        .get_many::<super::support::Shelf, _>(&names)
        .await
        .unwrap();
    let requests = world.requests();
    assert_eq!(requests, ["BatchGetItem", "BatchGetItem"]);
    assert_eq!(found.len(), names.len());
    for (name, found) in names.iter().zip(&found) {
        let is_there = name.parse::<u32>().unwrap() < 120;
        assert_eq!(
            found.as_ref().map(|shelf| &shelf.name),
            is_there.then_some(name)
        );
    }
}

#[tokio::test]
async fn awkward_keys_are_different_entities() {
    let world = World::new().await;
    let names = [
        "a:b", "a\\:b", "a\\b", "a", ":", "\\", "ß𝄞", " ", "\u{0}", "a\nb",
    ];
    for scope in names {
        for type_name in names {
            for id in names {
                let node = Node::new(type_name, id).with("is", format!("{scope}|{type_name}|{id}"));
                world.db.graph(scope).create(&node).await.unwrap();
            }
        }
    }
    for scope in names {
        let graph = world.db.graph(scope);
        for type_name in names {
            let all = graph.all_of(type_name).collect().await.unwrap();
            assert_eq!(all.len(), names.len());
            for id in names {
                let node = graph.get_node(&(type_name, id)).await.unwrap().unwrap();
                let is = format!("{scope}|{type_name}|{id}");
                assert_eq!(node.get("is").unwrap().as_s(), Some(is.as_str()));
                assert_eq!(node.key, EntityKey::new(type_name, id));
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_before_anything_is_sent() {
    let world = World::new().await;
    let refused = [
        (Node::new("", "a"), "type"),
        (Node::new("t", ""), "id"),
        (Node::new("t", "a".repeat(3000)), "_id"),
        (Node::new("t", "a").with("_meta", 1), "_meta"),
        (Node::new("t", "a").with("", 1), "attributes"),
    ];
    for (node, field) in refused {
        let error = world.graph.create(&node).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
        assert_eq!(error.field(), Some(field), "{error}");
    }
    let error = world.db.graph("").get_node(&("t", "a")).await.unwrap_err();
    assert_eq!(error.field(), Some("scope"));
    let large = Node::new("t", "a").with("text", "x".repeat(400 * 1024));
    let error = world.graph.create(&large).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test]
async fn a_missing_table_is_told_with_what_to_do() {
    let db = Db::memory().unwrap();
    let graph = db.graph("s");
    let error = graph.get_node(&("t", "a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    let error = graph.create(&Node::new("t", "a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert!(error.to_string().contains("call ensure_graph"), "{error}");
}

#[tokio::test]
async fn tables_have_the_prefix_and_ensuring_them_again_changes_nothing() {
    let db = Db::memory()
        .unwrap()
        .with_graph(GraphSchema::new().prefix("shop_"));
    let names: Vec<_> = db
        .ensure_graph()
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        names,
        [
            "created: table=shop_entities_master",
            "created: table=shop_relationship_entries",
            "created: table=shop_index_entries"
        ]
    );
    let again = db.ensure_graph().await.unwrap();
    assert!(
        again
            .iter()
            .all(|change| change.to_string().starts_with("unchanged"))
    );
    db.graph("s").create(&Node::new("t", "a")).await.unwrap();
}

#[tokio::test]
async fn concurrent_changes_lose_nothing() {
    let world = World::new().await;
    world.graph.create(&article("a")).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let graph = world.graph.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..20 {
                graph
                    .modify::<Article>("a", |article| article.year += 1)
                    .await
                    .unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let article = world.graph.get::<Article>("a").await.unwrap().unwrap();
    assert_eq!(article.year, 2000 + 160);
    world.check().await;
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Address {
    city: String,
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(type = "person")]
struct Visitor {
    #[entity(id)]
    number: Uuid,
    #[entity(rename = "full-name")]
    name: String,
    #[entity(serde)]
    address: Address,
    #[entity(default = 3)]
    visits: u32,
    left: Option<String>,
}

#[tokio::test]
async fn a_derived_entity_is_stored_by_its_attributes() {
    let world = World::new().await;
    let visitor = Visitor {
        number: Uuid::from_u128(7),
        name: "Bo".to_owned(),
        address: Address {
            city: "Rome".to_owned(),
        },
        visits: 1,
        left: None,
    };
    world.graph.create(&visitor).await.unwrap();
    let found = world.graph.get::<Visitor>(visitor.number).await.unwrap();
    assert_eq!(found, Some(visitor.clone()));
    let key = EntityKey::new("person", visitor.number);
    let node = world.graph.get_node(&key).await.unwrap().unwrap();
    let names: Vec<_> = node
        .attributes
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["address", "full-name", "visits"]);
    // A default stands in for what is missing; anything else that is missing is an error.
    let bare = Node::new("person", Uuid::from_u128(8))
        .with("full-name", "Al")
        .with("address", Value::M(Item::new().with("city", "Oslo")));
    world.graph.create(&bare).await.unwrap();
    let found = world
        .graph
        .get::<Visitor>(Uuid::from_u128(8))
        .await
        .unwrap();
    assert_eq!(found.unwrap().visits, 3);
    world.graph.create(&Node::new("person", "9")).await.unwrap();
    let error = world.graph.get::<Visitor>("9").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the id is not one of this type: id=9 model=Visitor field=number"
    );
}
