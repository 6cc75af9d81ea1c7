//! Regression tests for races and crashes: late processes, outdated reads, and combinations of changes in one
//! transaction.

use std::sync::Arc;
use std::time::Duration;

use floe::graph::{
    Difference, EntityKey, GraphSchema, Include, IndexDef, IndexKey, Node, WideChange,
};
use floe::{Db, Entity, ErrorKind};
use floe_local::LocalEngine;
use floe_store::env::ManualClock;
use floe_store::expr::KeyCondition;
use floe_store::op::Query;
use floe_store::{Capabilities, Engine, Env, Timestamp};

use super::slow::{Slow, interrupt};
use super::support::{
    Answers, Article, Author, ByEmail, ByTag, Cites, Holds, World, Wrote, article, author, create,
    held_by, ids, is_unfinished, link, shelf,
};

/// A test graph whose requests can be interrupted.
async fn slow() -> World {
    let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
    World::on(Arc::new(engine), Capabilities::all()).await
}

fn tagged(id: &str, tags: &[&str]) -> Article {
    Article {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..article(id)
    }
}

/// A process that resumes a deletion is delayed: meanwhile the entity was deleted, created again, and linked again.
#[tokio::test]
async fn delayed_resume_does_not_affect_a_recreated_entity() {
    // The delay starts after each of the first requests in turn.
    for polls in (2..60).step_by(2) {
        let world = slow().await;
        create(&world, &["a", "b"]).await;
        held_by(&world, "a", 120).await;
        link::<Cites>(&world, &article("a"), &article("b")).await;
        // Started, and interrupted.
        let mut start_polls = 2;
        while !is_unfinished(&world).await {
            start_polls += 2;
            assert!(
                interrupt(world.graph.delete(&article("a")), start_polls)
                    .await
                    .is_none()
            );
        }
        let late = world.graph.resume(|_| {});
        let mut late = std::pin::pin!(late);
        let is_delayed = interrupt(late.as_mut(), polls).await.is_none();
        world.graph.resume(|_| {}).await.unwrap();
        let recreated = tagged("a", &["new"]);
        world.graph.create(&recreated).await.unwrap();
        link::<Cites>(&world, &article("a"), &article("b")).await;
        link::<Holds>(&world, &shelf("0"), &article("a")).await;
        if is_delayed {
            late.await.unwrap();
        }
        assert_eq!(
            world.graph.get::<Article>("a").await.unwrap(),
            Some(recreated)
        );
        let cites = world.graph.related::<Cites>(&article("a"));
        assert_eq!(ids(&cites.keys().await.unwrap()), ["b"], "polls={polls}");
        let holds = world.graph.related::<Holds>(&shelf("0"));
        assert_eq!(ids(&holds.keys().await.unwrap()), ["a"], "polls={polls}");
        assert_eq!(
            world
                .graph
                .find::<ByTag>()
                .eq("new")
                .keys()
                .await
                .unwrap()
                .len(),
            1
        );
        world.check().await;
    }
}

/// A process that resumes a list change is delayed: meanwhile the change was completed, and the list changed again.
#[tokio::test]
async fn delayed_resume_does_not_undo_later_list_changes() {
    for polls in (2..40).step_by(2) {
        let world = slow().await;
        world.graph.create(&shelf("book")).await.unwrap();
        let keys = world.pages(120).await;
        let pages = world.graph.related_by(&shelf("book"), "pages");
        let mut start_polls = 2;
        while !is_unfinished(&world).await {
            start_polls += 2;
            assert!(
                interrupt(pages.append(keys.clone()), start_polls)
                    .await
                    .is_none()
            );
        }
        let mut late = std::pin::pin!(world.graph.resume(|_| {}));
        let is_delayed = interrupt(late.as_mut(), polls).await.is_none();
        world.graph.resume(|_| {}).await.unwrap();
        pages.unlink(&keys[3]).await.unwrap();
        pages.link(&keys[0]).await.unwrap();
        let expected = ids(&pages.keys().await.unwrap());
        if is_delayed {
            late.await.unwrap();
        }
        assert_eq!(ids(&pages.keys().await.unwrap()), expected, "polls={polls}");
        world.check().await;
    }
}

/// The intent of a list change remains after its subject is deleted, and must not affect a new subject with the same
/// key.
#[tokio::test]
async fn list_change_is_not_applied_to_a_recreated_subject() {
    let world = slow().await;
    world.graph.create(&shelf("book")).await.unwrap();
    let keys = world.pages(120).await;
    let pages = world.graph.related_by(&shelf("book"), "pages");
    let mut start_polls = 2;
    while !is_unfinished(&world).await {
        start_polls += 2;
        assert!(
            interrupt(pages.append(keys.clone()), start_polls)
                .await
                .is_none()
        );
    }
    world.graph.delete(&shelf("book")).await.unwrap();
    world.graph.create(&shelf("book")).await.unwrap();
    let report = world.graph.check().await.unwrap();
    let [Difference::ExtraIntent { change, .. }] = report.differences.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(*change, WideChange::List);
    // It does not block other changes.
    pages.append(keys.clone()).await.unwrap();
    assert_eq!(pages.keys().await.unwrap().len(), 120);
    pages.replace([keys[0].clone()]).await.unwrap();
    world.graph.resume(|_| {}).await.unwrap();
    assert_eq!(ids(&pages.keys().await.unwrap()), ["0"]);
    world.check().await;
}

/// An entity that is deleted and created again between a read and its commit is not the entity that was read.
#[tokio::test]
async fn update_is_repeated_if_the_entity_was_recreated() {
    for polls in (1..12).step_by(1) {
        let world = slow().await;
        world.graph.create(&tagged("a", &["old"])).await.unwrap();
        let update = world.graph.modify::<Article>("a", |article| {
            article.tags.push("more".to_owned());
        });
        let mut update = std::pin::pin!(update);
        let is_delayed = interrupt(update.as_mut(), polls).await.is_none();
        if is_delayed {
            world.graph.delete(&article("a")).await.unwrap();
            world.graph.create(&tagged("a", &["new"])).await.unwrap();
            update.await.unwrap();
        }
        world.check().await;
        let found = world.graph.get::<Article>("a").await.unwrap().unwrap();
        let first = found.tags.first().map(String::as_str);
        assert!(
            !is_delayed || first == Some("new"),
            "polls={polls} {found:?}"
        );
    }
}

/// The same for a list.
#[tokio::test]
async fn link_is_repeated_if_the_subject_was_recreated() {
    for polls in 1..12 {
        let world = slow().await;
        create(&world, &["a", "b", "c", "d"]).await;
        link::<Cites>(&world, &article("a"), &article("b")).await;
        let cites = world.graph.related::<Cites>(&article("a"));
        let mut linked = std::pin::pin!(async { cites.link(&article("c")).await });
        if interrupt(linked.as_mut(), polls).await.is_none() {
            world.graph.delete(&article("a")).await.unwrap();
            create(&world, &["a"]).await;
            // The new list has one change, like the first one, but other edges.
            cites.append(["b", "d"].map(article)).await.unwrap();
            linked.await.unwrap();
        }
        let edges = cites.keys().await.unwrap();
        let mut indexes: Vec<_> = edges.iter().map(|edge| edge.index).collect();
        indexes.dedup();
        assert_eq!(
            indexes.len(),
            edges.len(),
            "two edges have the same number: polls={polls}"
        );
        world.check().await;
    }
}

/// The index of reversed edges still shows a removed edge, whose subject must not be deleted.
#[tokio::test]
async fn removed_cascading_edge_in_a_lagging_index_does_not_cascade() {
    let world = World::lagging(5, 60).await;
    create(&world, &["a", "b"]).await;
    held_by(&world, "a", 120).await;
    link::<Answers>(&world, &article("b"), &article("a")).await;
    while !index_shows_edge(&world).await {}
    let answers = world.graph.related::<Answers>(&article("b"));
    answers.unlink(&article("a")).await.unwrap();
    let deleted = world.graph.delete(&article("a")).await.unwrap();
    assert_eq!(deleted.entities, 1);
    assert!(world.graph.get::<Article>("b").await.unwrap().is_some());
    world.check().await;
}

async fn index_shows_edge(world: &World) -> bool {
    let referrers = world.graph.referrers(&article("a")).by("answers");
    !referrers.keys().await.unwrap().is_empty()
}

#[tokio::test]
async fn entity_deleted_in_a_transaction_cannot_be_linked_in_it() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    let linked = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.delete(&article("b")).await?;
        graph
            .related::<Cites>(&article("a"))
            .link(&article("b"))
            .await
    });
    let error = linked.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    // A link to an entity that was read as missing fails immediately.
    world.engine.take();
    let linked = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        assert_eq!(graph.get::<Article>("none").await?, None);
        graph
            .related::<Cites>(&article("a"))
            .link(&article("none"))
            .await
    });
    assert_eq!(linked.await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(world.requests(), ["GetItem", "GetItem", "Query"]);
    world.check().await;
}

#[tokio::test]
async fn append_after_removing_the_last_edge_comes_last() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    create(&world, &["b", "c", "d", "a", "e"]).await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    wrote
        .append(["b", "c", "d", "e"].map(article))
        .await
        .unwrap();
    let changed = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let wrote = graph.related::<Wrote>(&author("ann"));
        wrote.unlink(&article("d")).await?;
        wrote.unlink(&article("e")).await?;
        wrote.link(&article("a")).await
    });
    changed.await.unwrap();
    assert_eq!(ids(&wrote.keys().await.unwrap()), ["b", "c", "a"]);
    world.check().await;
}

/// An edge is removed and added again with the same key, by a program that declares its relation as restricting.
#[tokio::test]
async fn edge_added_again_restricts_as_declared() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    let other = world.db.clone().with_graph(GraphSchema::new());
    let cites = other.graph("library");
    cites
        .related_by(&article("a"), "cites")
        .link(&article("b"))
        .await
        .unwrap();
    let relinked = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let cites = graph.related::<Cites>(&article("a"));
        cites.unlink(&article("b")).await?;
        cites.link(&article("b")).await
    });
    relinked.await.unwrap();
    world.check().await;
}

/// A program without the index deletes an entity: the unique key is released.
#[tokio::test]
async fn unique_key_is_released_by_any_program_that_deletes_the_entity() {
    let world = World::new().await;
    let other = world.db.clone().with_graph(GraphSchema::new());
    let ann = Author {
        email: Some("ann@x".to_owned()),
        ..author("ann")
    };
    let bob = Author {
        id: "bob".to_owned(),
        ..ann.clone()
    };
    for is_wide in [false, true] {
        world.graph.create(&ann).await.unwrap();
        for number in 0..if is_wide { 120 } else { 1 } {
            let subject = shelf(&format!("{is_wide}{number}"));
            world.graph.create(&subject).await.unwrap();
            world
                .graph
                .related_by(&subject, "likes")
                .link(&ann)
                .await
                .unwrap();
        }
        other.graph("library").delete(&ann).await.unwrap();
        world.check().await;
        world.graph.create(&bob).await.unwrap();
        world.graph.delete(&bob).await.unwrap();
    }
}

/// An index becomes unique: an entity whose key changed does not release a key that another entity has claimed.
#[tokio::test]
async fn index_that_becomes_unique_keeps_claims_of_other_entities() {
    let world = World::new().await;
    let index = |version: u64| {
        IndexDef::new("by_name", "thing", version, move |thing, emit| {
            let name = thing.get("name").and_then(|name| name.as_s()).unwrap();
            let is_first = version == 1;
            let key = if is_first { "same" } else { name };
            emit.key(IndexKey::text(key));
        })
    };
    let db = |index: IndexDef| {
        world
            .db
            .clone()
            .with_graph(GraphSchema::new().index_def(index))
    };
    let first = db(index(1));
    for (id, name) in [("a", "same"), ("b", "other")] {
        let thing = Node::new("thing", id).with("name", name);
        first.graph("library").create(&thing).await.unwrap();
    }
    let second = db(index(2).unique());
    let graph = second.graph("library");
    graph.rebuild_by("by_name", |_| {}).await.unwrap();
    assert_eq!(graph.check().await.unwrap().differences, []);
    let third = Node::new("thing", "c").with("name", "same");
    assert_eq!(
        graph.create(&third).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    // The index becomes non-unique again.
    let plain = db(index(3));
    let graph = plain.graph("library");
    graph.rebuild_by("by_name", |_| {}).await.unwrap();
    assert_eq!(graph.check().await.unwrap().differences, []);
    graph.create(&third).await.unwrap();
}

/// A program with an older function changes an entity: the entries of the newer function are then wrong, and a rebuild
/// corrects them.
#[tokio::test]
async fn rebuild_corrects_entries_after_changes_by_an_older_program() {
    let world = World::new().await;
    let index = |version: u64| {
        let index = IndexDef::new("by_size", "thing", version, |thing, emit| {
            let size = thing.get("size").and_then(|size| size.as_n()).unwrap();
            emit.key(IndexKey::number(size));
        });
        GraphSchema::new().index_def(index)
    };
    let newer = world.db.clone().with_graph(index(2));
    let graph = newer.graph("library");
    graph
        .create(&Node::new("thing", "a").with("size", 1))
        .await
        .unwrap();
    for older in [index(1), GraphSchema::new()] {
        let older = world.db.clone().with_graph(older);
        let changed = Node::new("thing", "a").with("size", 2);
        older.graph("library").set(&changed).await.unwrap();
        assert_ne!(graph.check().await.unwrap().differences, []);
        let rebuilt = graph.rebuild_by("by_size", |_| {}).await.unwrap();
        assert_eq!(rebuilt.changed, 1);
        let found = graph.find_by("by_size").eq(&IndexKey::number(2));
        assert_eq!(found.keys().await.unwrap().len(), 1);
        assert_eq!(graph.check().await.unwrap().differences, []);
        graph
            .set(&Node::new("thing", "a").with("size", 1))
            .await
            .unwrap();
    }
}

/// A deletion in steps removes entries and claims in its first step.
#[tokio::test]
async fn entity_under_deletion_is_hidden_from_indexes_and_lists() {
    let world = slow().await;
    let ann = Author {
        email: Some("ann@x".to_owned()),
        ..author("ann")
    };
    world.graph.create(&ann).await.unwrap();
    for number in 0..130 {
        let subject = shelf(&number.to_string());
        world.graph.create(&subject).await.unwrap();
        world
            .graph
            .related_by(&subject, "likes")
            .link(&ann)
            .await
            .unwrap();
        world
            .graph
            .related_by(&ann, "visits")
            .link(&subject)
            .await
            .unwrap();
    }
    let mut start_polls = 2;
    while !is_unfinished(&world).await {
        start_polls += 2;
        assert!(
            interrupt(world.graph.delete(&ann), start_polls)
                .await
                .is_none()
        );
    }
    let report = world.graph.check().await.unwrap();
    assert!(report.edges > 200, "{}", report.edges);
    assert_eq!(world.graph.find::<ByEmail>().keys().await.unwrap(), []);
    assert_eq!(
        world.graph.related_by(&ann, "visits").keys().await.unwrap(),
        []
    );
    assert_eq!(world.graph.related_all(&ann).keys().await.unwrap(), []);
    assert_eq!(world.graph.referrers(&ann).keys().await.unwrap(), []);
    for number in 0..130 {
        let subject = shelf(&number.to_string());
        let likes = world
            .graph
            .related_by(&subject, "likes")
            .keys()
            .await
            .unwrap();
        assert_eq!(likes, []);
        assert_eq!(world.graph.referrers(&subject).keys().await.unwrap(), []);
    }
    // The unique key is released before the last edge is removed.
    let bob = Author {
        id: "bob".to_owned(),
        ..ann.clone()
    };
    world.graph.create(&bob).await.unwrap();
    world.graph.resume(|_| {}).await.unwrap();
    world.check().await;
    assert_eq!(world.graph.find::<ByEmail>().load().await.unwrap(), [bob]);
}

/// An object that is deleted between the query of edges and the read of objects is not a missing object.
#[tokio::test]
async fn objects_deleted_during_a_read_are_left_out() {
    for polls in 1..9 {
        let world = slow().await;
        world.graph.create(&author("ann")).await.unwrap();
        create(&world, &["a", "b"]).await;
        let wrote = world.graph.related::<Wrote>(&author("ann"));
        wrote.append(["a", "b"].map(article)).await.unwrap();
        let mut read = std::pin::pin!(async { wrote.objects().await });
        if interrupt(read.as_mut(), polls).await.is_none() {
            world.graph.delete(&article("a")).await.unwrap();
            let found = read.await.unwrap();
            assert!(
                found.iter().all(|related| related.object.is_some()),
                "polls={polls}"
            );
        }
    }
}

/// An owned entity is deleted if only entities of the same deletion refer to it, as in a deletion of one transaction.
#[tokio::test]
async fn references_within_a_wide_deletion_do_not_restrict() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    for number in 0..120 {
        let id = number.to_string();
        create(&world, &[id.as_str()]).await;
        wrote.link(&article(&id)).await.unwrap();
    }
    // Two articles cite each other: whichever is deleted first, the other one does not keep it.
    link::<Cites>(&world, &article("0"), &article("119")).await;
    link::<Cites>(&world, &article("119"), &article("0")).await;
    let deleted = world.graph.delete(&author("ann")).await.unwrap();
    assert_eq!(
        (deleted.entities, deleted.kept),
        (121, Vec::<EntityKey>::new())
    );
    world.check().await;
}

#[tokio::test]
async fn entity_with_a_long_key_supports_wide_changes() {
    let world = World::new().await;
    let id = "x".repeat(1800);
    let hub = Node::new("hub", id.as_str());
    world.graph.create(&hub).await.unwrap();
    let keys = world.pages(120).await;
    let pages = world.graph.related_by(&hub, "pages");
    pages.append(keys.clone()).await.unwrap();
    for key in &keys {
        world
            .graph
            .related_by(key, "of")
            .link(&hub)
            .await
            .unwrap_err();
        world.graph.related_by(&hub, "has").link(key).await.unwrap();
    }
    let deleted = world.graph.delete(&hub).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 240));
    world.check().await;
    // The maximum length of a scope leaves room for the graph's own keys.
    let error = world
        .db
        .graph("s".repeat(901))
        .create(&hub)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.field()),
        (ErrorKind::InvalidField, Some("scope"))
    );
}

#[tokio::test]
async fn modify_keeps_attributes_unknown_to_the_type() {
    let world = World::new().await;
    let node = Node::new(Author::TYPE, "ann")
        .with("name", "Ann")
        .with("email", "a@x")
        .with("born", 1970);
    world.graph.create(&node).await.unwrap();
    world
        .graph
        .modify::<Author>("ann", |ann| ann.email = None)
        .await
        .unwrap();
    let found = world.graph.get_node(&author("ann")).await.unwrap().unwrap();
    assert_eq!(found.get("email"), None);
    assert_eq!(found.get("born"), node.get("born"));
    world.check().await;
}

/// Starts the deletion of an article with many incoming edges. It stops before an edge is removed.
async fn start_deletion(world: &World, id: &str) {
    let mut start_polls = 2;
    while !is_unfinished(world).await {
        start_polls += 2;
        let deletion = interrupt(world.graph.delete(&article(id)), start_polls).await;
        assert!(deletion.is_none());
    }
}

/// A wide deletion ends between the requests of a reader: the edges that it read before belong to a deleted entity.
#[tokio::test]
async fn edges_of_an_entity_whose_deletion_ends_during_a_read_are_left_out() {
    for polls in 1..6 {
        let world = slow().await;
        create(&world, &["a", "b"]).await;
        held_by(&world, "a", 120).await;
        link::<Cites>(&world, &article("a"), &article("b")).await;
        start_deletion(&world, "a").await;
        let (graph, a) = (&world.graph, article("a"));
        let mut holds = std::pin::pin!(async { graph.related::<Holds>(&shelf("0")).keys().await });
        let mut cites = std::pin::pin!(async { graph.related::<Cites>(&a).keys().await });
        let mut to_a = std::pin::pin!(async { graph.referrers(&a).keys().await });
        let mut to_b = std::pin::pin!(async { graph.referrers(&article("b")).keys().await });
        let mut subjects = std::pin::pin!(async { graph.referrers(&a).subjects().await });
        let mut objects = std::pin::pin!(async { graph.related::<Cites>(&a).objects().await });
        let are_delayed = [
            interrupt(holds.as_mut(), polls).await.is_none(),
            interrupt(cites.as_mut(), polls).await.is_none(),
            interrupt(to_a.as_mut(), polls).await.is_none(),
            interrupt(to_b.as_mut(), polls).await.is_none(),
            interrupt(subjects.as_mut(), polls).await.is_none(),
            interrupt(objects.as_mut(), polls).await.is_none(),
        ];
        if are_delayed != [true; 6] {
            assert!(polls > 2, "polls={polls}");
            break;
        }
        world.graph.resume(|_| {}).await.unwrap();
        assert_eq!(holds.await.unwrap(), [], "polls={polls}");
        assert_eq!(cites.await.unwrap(), [], "polls={polls}");
        assert_eq!(to_a.await.unwrap(), [], "polls={polls}");
        assert_eq!(to_b.await.unwrap(), [], "polls={polls}");
        assert_eq!(subjects.await.unwrap(), [], "polls={polls}");
        assert_eq!(objects.await.unwrap(), [], "polls={polls}");
        world.check().await;
    }
}

/// The entity is deleted, created and linked again before the reader's second request: the new edge is visible.
#[tokio::test]
async fn edges_of_an_entity_recreated_after_a_wide_deletion_are_visible() {
    let world = World::new().await;
    create(&world, &["a"]).await;
    held_by(&world, "a", 120).await;
    world.graph.delete(&article("a")).await.unwrap();
    create(&world, &["a"]).await;
    link::<Holds>(&world, &shelf("7"), &article("a")).await;
    world.engine.take();
    let holds = world.graph.related::<Holds>(&shelf("7"));
    assert_eq!(ids(&holds.keys().await.unwrap()), ["a"]);
    // The record of the completed deletion makes the reader read the edge again.
    assert_eq!(world.requests(), ["Query", "Query", "GetItem"]);
    let tx = world.db.transact(async |tx| {
        let holds = tx.graph("library");
        let holds = holds.related::<Holds>(&shelf("8"));
        holds.link_with(&article("a"), &None).await?;
        holds.keys().await
    });
    assert_eq!(ids(&tx.await.unwrap()), ["a"]);
    assert_eq!(
        world
            .graph
            .referrers(&article("a"))
            .keys()
            .await
            .unwrap()
            .len(),
        2
    );
    world.check().await;
    world.graph.delete(&article("a")).await.unwrap();
    assert_eq!(holds.keys().await.unwrap(), []);
}

/// Records of completed deletions are removed by later ones, and are no content.
#[tokio::test]
async fn records_of_completed_deletions_are_removed_after_ten_minutes() {
    let clock = ManualClock::at(Timestamp::from_millis(1_795_000_000_000));
    let env = Env::manual(clock.clone(), 1);
    let engine = LocalEngine::memory_with(floe_local::Options::new().env(env.clone())).unwrap();
    let engine = Arc::new(engine);
    let db = Db::with_parts(engine.clone(), env, Arc::new(floe::db::TokioTimer));
    let db = db.with_graph(GraphSchema::new());
    db.ensure_graph().await.unwrap();
    let graph = db.graph("s");
    let mut records = Vec::new();
    for (hub, minutes) in [("h", 0), ("i", 9), ("j", 2)] {
        clock.advance(Duration::from_secs(60 * minutes));
        let hub = Node::new("hub", hub);
        graph.create(&hub).await.unwrap();
        for number in 0..100 {
            let page = Node::new("page", number);
            graph.upsert(&page).await.unwrap();
            graph.related_by(&page, "at").link(&hub).await.unwrap();
        }
        graph.delete(&hub).await.unwrap();
        let key = KeyCondition::partition("_id", "_leaving");
        let page = engine
            .query(Query::new("entities_master", key))
            .await
            .unwrap();
        records.push(page.items.len());
    }
    assert_eq!(records, [1, 2, 2]);
    assert_eq!(graph.check().await.unwrap().differences, []);
    for number in 0..100 {
        graph.delete(&("page", number)).await.unwrap();
    }
    assert_eq!(db.graph_scopes().await.unwrap(), [""; 0]);
}

/// An entity that is deleted while it is loaded with its relations is returned with all its edges, or not at all.
#[tokio::test]
async fn included_entity_deleted_during_the_read_is_complete_or_left_out() {
    for polls in 1..20 {
        for is_wide in [false, true] {
            let world = slow().await;
            world.graph.create(&author("ann")).await.unwrap();
            create(&world, &["a", "b"]).await;
            held_by(&world, "a", if is_wide { 120 } else { 1 }).await;
            link::<Wrote>(&world, &author("ann"), &article("a")).await;
            link::<Cites>(&world, &article("a"), &article("b")).await;
            let cites = [Include::relation::<Cites>()];
            let wrote = [Include::relation::<Wrote>().with(Include::relation::<Cites>())];
            let (ann, a) = (author("ann"), article("a"));
            let mut of_ann = std::pin::pin!(world.graph.include(&ann, &wrote));
            let mut of_a = std::pin::pin!(world.graph.include(&a, &cites));
            let are_delayed = [
                interrupt(of_ann.as_mut(), polls).await.is_none(),
                interrupt(of_a.as_mut(), polls).await.is_none(),
            ];
            if are_delayed != [true; 2] {
                assert!(polls > 4, "polls={polls}");
                return;
            }
            world.graph.delete(&a).await.unwrap();
            let of_ann = of_ann.await.unwrap().unwrap();
            let of_a = of_a.await.unwrap();
            let found = of_a.iter().chain(of_ann.objects::<Wrote>());
            for found in found {
                let cited = found.values::<Cites>().unwrap();
                assert_eq!(cited, [article("b")], "polls={polls} is_wide={is_wide}");
            }
        }
    }
}
