//! Interrupted wide changes: the next writer of the same entity completes them.

use std::sync::Arc;

use floe::ErrorKind;
use floe::graph::{EntityKey, Node};
use floe_local::LocalEngine;
use floe_store::Capabilities;

use super::slow::{Slow, interrupt};
use super::support::{
    Article, ByTag, Holds, World, article, create, held_by, is_unfinished, shelf,
};

async fn slow() -> World {
    let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
    World::on(Arc::new(engine), Capabilities::all()).await
}

/// A test graph in which an append to a list of a hub was interrupted. Returns the hub and the pages.
async fn with_unfinished_list(id: &str) -> (World, Node, Vec<EntityKey>) {
    let world = slow().await;
    let hub = Node::new("hub", id);
    world.graph.create(&hub).await.unwrap();
    let pages = world.pages(130).await;
    let mut polls = 2;
    while !is_unfinished(&world).await {
        polls += 2;
        let list = world.graph.related_by(&hub, "pages");
        assert!(interrupt(list.append(pages.clone()), polls).await.is_none());
    }
    (world, hub, pages)
}

#[tokio::test]
async fn next_list_change_of_a_subject_completes_an_interrupted_one() {
    // The record of a list change has another key if the key of its subject is long.
    for id in ["h".to_owned(), "x".repeat(1200)] {
        for other in ["pages", "more"] {
            let (world, hub, pages) = with_unfinished_list(&id).await;
            let list = world.graph.related_by(&hub, other);
            list.link(&pages[3]).await.unwrap();
            let pages = world.graph.related_by(&hub, "pages").keys().await.unwrap();
            assert_eq!(pages.len(), if other == "pages" { 131 } else { 130 });
            world.check().await;
        }
    }
}

#[tokio::test]
async fn next_wide_list_change_completes_an_interrupted_one() {
    let (world, hub, pages) = with_unfinished_list("h").await;
    let more = world.graph.related_by(&hub, "more");
    more.append(pages.clone()).await.unwrap();
    let all = world.graph.related_all(&hub).keys().await.unwrap();
    assert_eq!(all.len(), 260);
    world.check().await;
}

#[tokio::test]
async fn list_change_in_a_transaction_completes_an_interrupted_one() {
    let (world, hub, pages) = with_unfinished_list("h").await;
    let linked = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let list = graph.related_by(&hub, "pages");
        list.link_at(0, &pages[7]).await
    });
    linked.await.unwrap();
    let edges = world.graph.related_by(&hub, "pages").keys().await.unwrap();
    assert_eq!((edges.len(), &edges[0].object), (131, &pages[7]));
    world.check().await;
}

#[tokio::test]
async fn concurrent_writers_complete_an_interrupted_list_change() {
    let (world, hub, pages) = with_unfinished_list("h").await;
    let mut tasks = Vec::new();
    for page in pages.into_iter().take(6) {
        let (graph, hub) = (world.graph.clone(), hub.clone());
        tasks.push(tokio::spawn(async move {
            graph.related_by(&hub, "more").link(&page).await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let list = world.graph.related_by(&hub, "pages");
    assert_eq!(list.keys().await.unwrap().len(), 130);
    world.check().await;
}

/// A test graph in which the deletion of an article with many incoming edges was interrupted.
async fn with_unfinished_deletion() -> World {
    let world = slow().await;
    create(&world, &["a"]).await;
    held_by(&world, "a", 120).await;
    let mut polls = 2;
    while !is_unfinished(&world).await {
        polls += 2;
        let deletion = interrupt(world.graph.delete(&article("a")), polls).await;
        assert!(deletion.is_none());
    }
    world
}

#[tokio::test]
async fn next_writer_of_an_entity_completes_its_interrupted_deletion() {
    let new = Article {
        title: "New".to_owned(),
        ..article("a")
    };
    for call in ["create", "set", "upsert", "transaction"] {
        let world = with_unfinished_deletion().await;
        let written = match call {
            "create" => world.graph.create(&new).await,
            "set" => world.graph.set(&new).await,
            "upsert" => world.graph.upsert(&new).await,
            _ => {
                let created = world
                    .db
                    .transact(async |tx| tx.graph("library").create(&new).await);
                created.await
            }
        };
        written.unwrap_or_else(|error| panic!("{call}: {error}"));
        let found = world.graph.get::<Article>("a").await.unwrap();
        assert_eq!(found.as_ref(), Some(&new), "{call}");
        let holds = world.graph.related::<Holds>(&shelf("0"));
        assert_eq!(holds.keys().await.unwrap(), [], "{call}");
        world.check().await;
    }
    // An entity under deletion does not exist.
    let world = with_unfinished_deletion().await;
    for refused in [
        world.graph.update(&new).await,
        world.graph.merge(&new).await,
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let deleted = world.graph.delete(&new).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 120));
    world.check().await;
}

#[tokio::test]
async fn next_write_of_an_entity_completes_its_pending_entries() {
    let world = slow().await;
    let tagged = |count: usize| Article {
        tags: (0..count).map(|number| format!("t{number}")).collect(),
        ..article("a")
    };
    world.graph.create(&tagged(1)).await.unwrap();
    let mut polls = 2;
    while !is_unfinished(&world).await {
        polls += 2;
        let set = interrupt(world.graph.set(&tagged(250)), polls).await;
        assert!(set.is_none());
    }
    let renamed = world
        .graph
        .modify::<Article>("a", |article| article.year = 1999);
    renamed.await.unwrap();
    let found = world.graph.find::<ByTag>().keys().await.unwrap();
    assert_eq!(ids_of(&found), ["a"; 250]);
    world.check().await;
}

fn ids_of(keys: &[EntityKey]) -> Vec<&str> {
    keys.iter().map(EntityKey::id).collect()
}
