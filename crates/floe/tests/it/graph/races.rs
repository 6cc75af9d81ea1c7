//! Races and crashes that once did harm, each told by its name: who comes too late, what is read behind the times, and what
//! meets in one transaction.

use std::sync::Arc;

use floe::graph::{Difference, EntityKey, GraphSchema, InSteps, IndexDef, IndexKey, Node};
use floe::{Entity, ErrorKind};
use floe_local::LocalEngine;
use floe_store::Capabilities;

use super::slow::{Slow, interrupt};
use super::support::{
    Answers, Article, Author, ByEmail, ByTag, Cites, Holds, World, Wrote, article, author, create,
    held_by, ids, link, shelf,
};

/// A world whose requests can be interrupted.
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

/// Who ends a deletion and is held up comes too late: the entity is gone, was created anew, and has edges again.
#[tokio::test]
async fn who_ends_a_deletion_late_does_nothing_to_what_was_created_since() {
    // Held up after each of the first requests in turn.
    for polls in (2..60).step_by(2) {
        let world = slow().await;
        create(&world, &["a", "b"]).await;
        held_by(&world, "a", 120).await;
        link::<Cites>(&world, &article("a"), &article("b")).await;
        // Begun, and left.
        let mut begun = 2;
        while !is_unfinished(&world).await {
            begun += 2;
            assert!(
                interrupt(world.graph.delete(&article("a")), begun)
                    .await
                    .is_none()
            );
        }
        let late = world.graph.resume(|_| {});
        let mut late = std::pin::pin!(late);
        let is_held_up = interrupt(late.as_mut(), polls).await.is_none();
        world.graph.resume(|_| {}).await.unwrap();
        let anew = tagged("a", &["new"]);
        world.graph.create(&anew).await.unwrap();
        link::<Cites>(&world, &article("a"), &article("b")).await;
        link::<Holds>(&world, &shelf("0"), &article("a")).await;
        if is_held_up {
            late.await.unwrap();
        }
        assert_eq!(world.graph.get::<Article>("a").await.unwrap(), Some(anew));
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

async fn is_unfinished(world: &World) -> bool {
    let report = world.graph.check().await.unwrap();
    let is = |difference: &Difference| matches!(difference, Difference::Unfinished { .. });
    report.differences.iter().any(is)
}

/// Who ends the change of a list and is held up comes too late: it was ended, and the list has been changed since.
#[tokio::test]
async fn who_ends_the_change_of_a_list_late_takes_nothing_back() {
    for polls in (2..40).step_by(2) {
        let world = slow().await;
        world.graph.create(&shelf("book")).await.unwrap();
        let keys = world.pages(120).await;
        let pages = world.graph.related_by(&shelf("book"), "pages");
        let mut begun = 2;
        while !is_unfinished(&world).await {
            begun += 2;
            assert!(interrupt(pages.append(keys.clone()), begun).await.is_none());
        }
        let mut late = std::pin::pin!(world.graph.resume(|_| {}));
        let is_held_up = interrupt(late.as_mut(), polls).await.is_none();
        world.graph.resume(|_| {}).await.unwrap();
        pages.unlink(&keys[3]).await.unwrap();
        pages.link(&keys[0]).await.unwrap();
        let expected = ids(&pages.keys().await.unwrap());
        if is_held_up {
            late.await.unwrap();
        }
        assert_eq!(ids(&pages.keys().await.unwrap()), expected, "polls={polls}");
        world.check().await;
    }
}

/// The note of a change of a list outlives its subject, and is not taken for one of what is created anew.
#[tokio::test]
async fn the_change_of_a_list_is_not_made_to_another_subject_of_the_same_key() {
    let world = slow().await;
    world.graph.create(&shelf("book")).await.unwrap();
    let keys = world.pages(120).await;
    let pages = world.graph.related_by(&shelf("book"), "pages");
    let mut begun = 2;
    while !is_unfinished(&world).await {
        begun += 2;
        assert!(interrupt(pages.append(keys.clone()), begun).await.is_none());
    }
    world.graph.delete(&shelf("book")).await.unwrap();
    world.graph.create(&shelf("book")).await.unwrap();
    let report = world.graph.check().await.unwrap();
    let [Difference::ExtraIntent { what, .. }] = report.differences.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(*what, InSteps::List);
    // It is in nobody's way.
    pages.append(keys.clone()).await.unwrap();
    assert_eq!(pages.keys().await.unwrap().len(), 120);
    pages.replace([keys[0].clone()]).await.unwrap();
    world.graph.resume(|_| {}).await.unwrap();
    assert_eq!(ids(&pages.keys().await.unwrap()), ["0"]);
    world.check().await;
}

/// What is deleted and created again between a read and its commit is not what was read.
#[tokio::test]
async fn an_update_of_what_was_created_anew_since_it_was_read_is_made_again() {
    for polls in (1..12).step_by(1) {
        let world = slow().await;
        world.graph.create(&tagged("a", &["old"])).await.unwrap();
        let update = world.graph.modify::<Article>("a", |article| {
            article.tags.push("more".to_owned());
        });
        let mut update = std::pin::pin!(update);
        let is_held_up = interrupt(update.as_mut(), polls).await.is_none();
        if is_held_up {
            world.graph.delete(&article("a")).await.unwrap();
            world.graph.create(&tagged("a", &["new"])).await.unwrap();
            update.await.unwrap();
        }
        world.check().await;
        let found = world.graph.get::<Article>("a").await.unwrap().unwrap();
        let first = found.tags.first().map(String::as_str);
        assert!(
            !is_held_up || first == Some("new"),
            "polls={polls} {found:?}"
        );
    }
}

/// The same for a list.
#[tokio::test]
async fn a_link_from_what_was_created_anew_since_it_was_read_is_made_again() {
    for polls in 1..12 {
        let world = slow().await;
        create(&world, &["a", "b", "c", "d"]).await;
        link::<Cites>(&world, &article("a"), &article("b")).await;
        let cites = world.graph.related::<Cites>(&article("a"));
        let mut linked = std::pin::pin!(async { cites.link(&article("c")).await });
        if interrupt(linked.as_mut(), polls).await.is_none() {
            world.graph.delete(&article("a")).await.unwrap();
            create(&world, &["a"]).await;
            // One change of the list, as the first had, and another list.
            cites.append(["b", "d"].map(article)).await.unwrap();
            linked.await.unwrap();
        }
        let edges = cites.keys().await.unwrap();
        let mut indexes: Vec<_> = edges.iter().map(|edge| edge.index).collect();
        indexes.dedup();
        assert_eq!(
            indexes.len(),
            edges.len(),
            "two edges have one number: polls={polls}"
        );
        world.check().await;
    }
}

/// The index of reversed edges still shows an edge that is gone: what it led from stays.
#[tokio::test]
async fn what_answers_no_more_stays_though_the_index_still_shows_that_it_does() {
    let world = World::lagging(5, 60).await;
    create(&world, &["a", "b"]).await;
    held_by(&world, "a", 120).await;
    link::<Answers>(&world, &article("b"), &article("a")).await;
    while !shows_answer(&world).await {}
    let answers = world.graph.related::<Answers>(&article("b"));
    answers.unlink(&article("a")).await.unwrap();
    let deleted = world.graph.delete(&article("a")).await.unwrap();
    assert_eq!(deleted.entities, 1);
    assert!(world.graph.get::<Article>("b").await.unwrap().is_some());
    world.check().await;
}

async fn shows_answer(world: &World) -> bool {
    let referrers = world.graph.referrers(&article("a")).by("answers");
    !referrers.keys().await.unwrap().is_empty()
}

#[tokio::test]
async fn what_a_transaction_deletes_cannot_be_linked_in_it() {
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
    // Nor what it has looked for in vain, at once.
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
async fn what_is_appended_comes_last_also_if_the_last_was_removed_before() {
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

/// An edge that is removed and put again under the same key, by a program that knows that it refuses deletions.
#[tokio::test]
async fn an_edge_that_is_put_again_counts_as_its_relation_says() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    let other = world.db.clone().with_graph(GraphSchema::new());
    let cites = other.graph("library");
    cites
        .related_by(&article("a"), "cites")
        .link(&article("b"))
        .await
        .unwrap();
    let anew = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let cites = graph.related::<Cites>(&article("a"));
        cites.unlink(&article("b")).await?;
        cites.link(&article("b")).await
    });
    anew.await.unwrap();
    world.check().await;
}

/// A program that does not have an index deletes an entity: its unique key is free.
#[tokio::test]
async fn a_unique_key_goes_with_its_entity_whoever_deletes_it() {
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

/// An index becomes unique: what had a key before and has another now lets go of nothing that is another's.
#[tokio::test]
async fn an_index_that_becomes_unique_takes_no_key_from_its_holder() {
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
    // And back again.
    let plain = db(index(3));
    let graph = plain.graph("library");
    graph.rebuild_by("by_name", |_| {}).await.unwrap();
    assert_eq!(graph.check().await.unwrap().differences, []);
    graph.create(&third).await.unwrap();
}

/// A program with an older function changes an entity: the newer one's entries are wrong then, and a rebuild knows it.
#[tokio::test]
async fn what_an_older_program_has_changed_is_rebuilt() {
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

/// A deletion in steps: the entries and claims go with its first step.
#[tokio::test]
async fn what_is_being_deleted_is_in_no_index_and_its_edges_are_not_seen() {
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
    let mut begun = 2;
    while !is_unfinished(&world).await {
        begun += 2;
        assert!(interrupt(world.graph.delete(&ann), begun).await.is_none());
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
    // The unique key is free before the last edge is gone.
    let bob = Author {
        id: "bob".to_owned(),
        ..ann.clone()
    };
    world.graph.create(&bob).await.unwrap();
    world.graph.resume(|_| {}).await.unwrap();
    world.check().await;
    assert_eq!(world.graph.find::<ByEmail>().load().await.unwrap(), [bob]);
}

/// What goes between the query of edges and the reading of what they lead to is no reference to nothing.
#[tokio::test]
async fn what_goes_while_a_list_is_read_is_left_out() {
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

/// What an entity owns and others of the same deletion refer to goes with it, as in a deletion of one transaction.
#[tokio::test]
async fn what_only_those_refer_to_that_go_themselves_is_not_kept() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    for number in 0..120 {
        let id = number.to_string();
        create(&world, &[id.as_str()]).await;
        wrote.link(&article(&id)).await.unwrap();
    }
    // The first cites the last and the last the first: whichever goes first, the other does not keep it.
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
async fn an_entity_with_a_long_key_is_deleted_in_steps_and_its_lists_are_changed() {
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
    // A scope leaves room for what is kept of it.
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
async fn modifying_keeps_what_the_type_does_not_know() {
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
