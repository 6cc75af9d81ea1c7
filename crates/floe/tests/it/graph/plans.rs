//! The limit of one commit: the size of a change is known exactly before anything is written.

use std::sync::Arc;

use floe::graph::{EntityKey, Node, ToKey};
use floe_local::LocalEngine;
use floe_store::Capabilities;
use floe_store::limits::TRANSACT_ITEMS_MAX;

use super::slow::Slow;
use super::support::{Article, World, article, shelf};

const HUB: (&str, &str) = ("hub", "h");

/// Number of commits since the last call.
fn commits(world: &World) -> usize {
    let requests = world.requests().into_iter();
    requests.filter(|name| name == "TransactWriteItems").count()
}

async fn with_hub() -> World {
    let world = World::new().await;
    world.graph.create(&Node::new("hub", "h")).await.unwrap();
    world
}

/// The entity and each edge are one item; the subjects of the edges are not written.
#[tokio::test]
async fn deletion_with_incoming_edges_fits_to_the_item() {
    for (edges, is_one) in [(TRANSACT_ITEMS_MAX - 1, true), (TRANSACT_ITEMS_MAX, false)] {
        let world = with_hub().await;
        for page in world.pages(edges).await {
            let list = world.graph.related_by(&page, "at");
            list.link(&HUB).await.unwrap();
        }
        commits(&world);
        let deleted = world.graph.delete(&HUB).await.unwrap();
        assert_eq!((deleted.entities, deleted.edges), (1, edges as u64));
        assert_eq!(commits(&world) == 1, is_one, "edges={edges}");
        world.check().await;
    }
}

/// Each outgoing edge takes two items, because the object's count of incoming edges changes.
#[tokio::test]
async fn deletion_with_outgoing_edges_fits_to_the_item() {
    for (edges, is_one) in [(49, true), (50, false)] {
        let world = with_hub().await;
        let pages = world.pages(edges).await;
        world
            .graph
            .related_by(&HUB, "has")
            .append(pages)
            .await
            .unwrap();
        commits(&world);
        let deleted = world.graph.delete(&HUB).await.unwrap();
        assert_eq!((deleted.entities, deleted.edges), (1, edges as u64));
        assert_eq!(commits(&world) == 1, is_one, "edges={edges}");
        world.check().await;
    }
}

#[tokio::test]
async fn list_change_fits_to_the_item() {
    for (edges, is_one) in [(49, true), (50, false), (120, false)] {
        let world = with_hub().await;
        let pages = world.pages(edges).await;
        let list = world.graph.related_by(&HUB, "has");
        commits(&world);
        list.append(pages.clone()).await.unwrap();
        assert_eq!(commits(&world) == 1, is_one, "edges={edges}");
        assert_eq!(list.keys().await.unwrap().len(), edges);
        // A move writes two edges and no object.
        list.move_to(0, edges - 1).await.unwrap();
        assert_eq!(commits(&world), 1);
        world.check().await;
    }
}

#[tokio::test]
async fn entries_fit_to_the_item() {
    // The article, its entry by year, and its entries by tag.
    for (tags, is_one) in [
        (TRANSACT_ITEMS_MAX - 2, true),
        (TRANSACT_ITEMS_MAX - 1, false),
    ] {
        let world = World::new().await;
        let tagged = Article {
            tags: (0..tags).map(|number| format!("t{number}")).collect(),
            ..article("a")
        };
        world.graph.create(&tagged).await.unwrap();
        assert_eq!(commits(&world) == 1, is_one, "tags={tags}");
        world.check().await;
    }
}

/// The caller's transaction cannot run steps: its commit counts all changes and is rejected before it is sent.
#[tokio::test]
async fn wide_list_change_is_refused_in_a_transaction() {
    let world = with_hub().await;
    let pages: Vec<EntityKey> = world.pages(120).await;
    let refused = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.related_by(&HUB, "has").append(pages.clone()).await
    });
    let error = refused.await.unwrap_err();
    assert_eq!(error.kind(), floe::ErrorKind::TooLarge, "{error}");
    assert_eq!(commits(&world), 0);
}

/// A change that is undone in the same transaction is not part of its commit.
#[tokio::test]
async fn changes_that_undo_each_other_fit_into_a_transaction() {
    let world = with_hub().await;
    let pages = world.pages(60).await;
    let (first, last) = pages.split_at(40);
    let committed = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let list = graph.related_by(&HUB, "has");
        list.append(first.to_vec()).await?;
        list.replace(last.to_vec()).await?;
        list.append(first.to_vec()).await?;
        list.replace(first.to_vec()).await
    });
    committed.await.unwrap();
    assert_eq!(
        world
            .graph
            .related_by(&HUB, "has")
            .keys()
            .await
            .unwrap()
            .len(),
        40
    );
    world.check().await;
}

/// The counts in the plan change before the commit, whose conditions include them, so the deletion is planned again.
#[tokio::test]
async fn deletion_that_outgrows_its_plan_continues_in_steps() {
    let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
    let world = World::on(Arc::new(engine), Capabilities::all()).await;
    world.graph.create(&Node::new("hub", "h")).await.unwrap();
    for page in world.pages(TRANSACT_ITEMS_MAX - 1).await {
        let list = world.graph.related_by(&page, "at");
        list.link(&HUB).await.unwrap();
    }
    let mut tasks = Vec::new();
    for number in 0..20 {
        let subject = shelf(&number.to_string());
        world.graph.create(&subject).await.unwrap();
        let graph = world.graph.clone();
        tasks.push(tokio::spawn(async move {
            let linked = graph.related_by(&subject, "at").link(&HUB).await;
            linked.map_err(|error| error.kind())
        }));
    }
    let deleted = world.graph.delete(&HUB).await.unwrap();
    assert_eq!(deleted.entities, 1);
    for task in tasks {
        let linked = task.await.unwrap();
        assert!(
            matches!(linked, Ok(()) | Err(floe::ErrorKind::NotFound)),
            "{linked:?}"
        );
    }
    assert_eq!(world.graph.get_node(&HUB.to_key()).await.unwrap(), None);
    world.check().await;
}

/// A wide change reads its list once, whatever its width, and each edge is written once.
#[tokio::test]
async fn wide_list_change_reads_its_list_once() {
    for width in [100, 400] {
        let world = with_hub().await;
        let mut pages = world.pages(width).await;
        let list = world.graph.related_by(&HUB, "has");
        list.append(pages.clone()).await.unwrap();
        pages.reverse();
        world.engine.take();
        list.reorder(pages.clone()).await.unwrap();
        let requests = world.requests();
        let count = |name: &str| requests.iter().filter(|request| *request == name).count();
        // One read each for the attempt, the plan, and the steps.
        assert_eq!(count("Query"), 3, "width={width} {requests:?}");
        assert_eq!(count("GetItem"), 3, "width={width}");
        let found = list.keys().await.unwrap();
        let found: Vec<EntityKey> = found.into_iter().map(|edge| edge.object).collect();
        assert_eq!(found, pages);
        world.check().await;
    }
}
