//! Entities: create, update, upsert and set, typed and untyped.

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
async fn create_fails_if_the_entity_exists() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let world = World::with(capabilities.clone()).await;
        world.graph.create(&shelf("north")).await.unwrap();
        // If a response can be lost, only a transaction allows to determine the outcome of a write.
        let request = if capabilities.loses_responses {
            "TransactWriteItems"
        } else {
            "PutItem"
        };
        assert_eq!(world.requests(), [request]);
        let error = world.graph.create(&shelf("north")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(
            error.to_string(),
            "the entity already exists: entity=library:shelf:north"
        );
    }
}

#[tokio::test]
async fn update_fails_if_the_entity_is_missing() {
    let world = World::new().await;
    let error = world.graph.update(&author("ann")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        "the entity does not exist: entity=library:author:ann"
    );
    let missing = world
        .graph
        .modify::<Author>("ann", |author| author.name.clear());
    assert_eq!(missing.await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn upsert_merges_maps_and_keeps_other_attributes() {
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
async fn update_writes_a_value_whole_and_merge_keeps_other_attributes() {
    let world = World::new().await;
    let ann = Author {
        email: Some("ann@x".to_owned()),
        ..author("ann")
    };
    world.graph.create(&ann).await.unwrap();
    let renamed = Author {
        name: "Ann".to_owned(),
        email: None,
        ..ann.clone()
    };
    // A partial update: the missing address stays.
    world.graph.merge(&renamed).await.unwrap();
    let found = world.graph.get::<Author>("ann").await.unwrap().unwrap();
    assert_eq!(
        (found.name.as_str(), found.email),
        ("Ann", ann.email.clone())
    );
    // The value as a whole: the address is removed, and its unique key is free again.
    world.graph.update(&renamed).await.unwrap();
    let found = world.graph.get::<Author>("ann").await.unwrap();
    assert_eq!(found, Some(renamed));
    let bob = Author {
        id: "bob".to_owned(),
        ..ann
    };
    world.graph.create(&bob).await.unwrap();
    let missing = world.graph.merge(&author("eve")).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    world.check().await;
}

#[tokio::test]
async fn creation_time_is_kept_and_update_time_increases() {
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
        // Each update is later than the one before, although the clock does not advance.
        let updated = node.updated.unwrap();
        assert!(updated > last, "{updated} {last}");
        last = updated;
    }
}

#[tokio::test]
async fn get_many_reads_in_batches_and_keeps_the_order() {
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
async fn unusual_keys_identify_different_entities() {
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
async fn invalid_entities_are_rejected_without_a_request() {
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
async fn missing_table_error_names_ensure_graph() {
    let db = Db::memory().unwrap();
    let graph = db.graph("s");
    let error = graph.get_node(&("t", "a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    let error = graph.create(&Node::new("t", "a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert!(error.to_string().contains("call ensure_graph"), "{error}");
}

#[tokio::test]
async fn ensure_graph_uses_the_prefix_and_is_idempotent() {
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
async fn concurrent_modifications_are_all_applied() {
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
async fn derived_entity_round_trips() {
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
    // A default replaces a missing attribute; other missing attributes are errors.
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
        "the id does not match the type of the field: id=9 model=Visitor field=number"
    );
}
