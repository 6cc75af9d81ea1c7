//! Deletion: cascades, restrictions, and deletions in steps that are interrupted.

use std::sync::{Arc, Mutex};

use floe::graph::{Deleted, Difference, EntityKey, Graph, Node};
use floe::{Db, ErrorKind};
use floe_local::LocalEngine;
use floe_store::Capabilities;
use floe_store::env::SeededRandom;

use super::slow::{Slow, interrupt};
use super::support::{
    Answers, Article, Author, ByEmail, Cites, Holds, World, Wrote, article, author, create,
    held_by, link, shelf, with_email,
};

#[tokio::test]
async fn owned_entities_are_deleted_with_their_owner() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    create(&world, &["a", "b", "c"]).await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    wrote.append(["a", "b"].map(article)).await.unwrap();
    let deleted = world.graph.delete(&author("ann")).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (3, 2));
    assert_eq!(articles(&world).await, [article("c")]);
    world.check().await;
}

#[tokio::test]
async fn cascading_relation_deletes_the_subjects() {
    let world = World::new().await;
    create(&world, &["a", "b", "c", "d"]).await;
    for (from, to) in [("b", "a"), ("c", "b"), ("a", "d")] {
        link::<Answers>(&world, &article(from), &article(to)).await;
    }
    let deleted = world.graph.delete(&article("a")).await.unwrap();
    assert_eq!(deleted.entities, 3);
    assert_eq!(articles(&world).await, [article("d")]);
    world.check().await;
}

#[tokio::test]
async fn restricting_relation_prevents_deletion() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    let cites = world.graph.related::<Cites>(&article("a"));
    cites.link(&article("b")).await.unwrap();
    let error = world.graph.delete(&article("b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
    assert_eq!(
        error.to_string(),
        "another entity refers to the entity and prevents its deletion: entity=library:article:b by=article:a predicate=cites"
    );
    world.check().await;
    cites.unlink(&article("b")).await.unwrap();
    world.graph.delete(&article("b")).await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn restriction_by_a_deleted_subject_has_no_effect() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    link::<Cites>(&world, &article("a"), &article("b")).await;
    link::<Answers>(&world, &article("a"), &article("b")).await;
    let deleted = world.graph.delete(&article("b")).await.unwrap();
    assert_eq!(deleted.entities, 2);
    world.check().await;
}

/// All articles.
async fn articles(world: &World) -> Vec<Article> {
    world.graph.all::<Article>().collect().await.unwrap()
}

/// Creates an entity with `count` incoming edges, and with outgoing edges, index entries and claims.
async fn wide(graph: &Graph<'_>, count: usize) {
    let ann = with_email("ann");
    graph.create(&ann).await.unwrap();
    for number in 0..count {
        let subject = shelf(&number.to_string());
        graph.create(&subject).await.unwrap();
        graph
            .related_by(&subject, "likes")
            .link(&ann)
            .await
            .unwrap();
    }
    for number in 0..count / 4 {
        let object = shelf(&number.to_string());
        graph
            .related_by(&ann, "visits")
            .link(&object)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn deletion_too_wide_for_a_transaction_runs_in_steps() {
    let world = World::new().await;
    wide(&world.graph, 250).await;
    let in_transaction = world
        .db
        .transact(async |tx| tx.graph("library").delete(&author("ann")).await.map(drop));
    let error = in_transaction.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let reported = Mutex::new(Vec::new());
    let ann = author("ann");
    let deleted = world.graph.delete_with(&ann, |progress| {
        reported.lock().unwrap().push(progress.clone());
    });
    let deleted = deleted.await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 250 + 62));
    let reported = reported.into_inner().unwrap();
    assert!(reported.is_sorted_by_key(|progress| progress.edges));
    assert!(
        reported
            .iter()
            .any(|progress| progress.incoming_left == 151)
    );
    assert_eq!(reported.last().unwrap().entities, 1);
    world.check().await;
    // The unique key is free again.
    let bob = with_email("bob");
    world.graph.create(&bob).await.unwrap();
}

/// Checks that an entity under deletion is invisible to readers and cannot be linked to.
async fn check_invisible(world: &World) {
    let (graph, ann) = (&world.graph, author("ann"));
    let visits = graph.related_by(&ann, "visits").objects().await.unwrap();
    assert_eq!(visits, []);
    let likes = graph.related_by(&shelf("0"), "likes");
    let liked = likes.objects().await.unwrap();
    assert!(liked.iter().all(|like| like.object.is_some()));
    assert_eq!(likes.keys().await.unwrap(), []);
    assert_eq!(graph.related_all(&ann).keys().await.unwrap(), []);
    assert_eq!(graph.referrers(&ann).subjects().await.unwrap(), []);
    assert_eq!(graph.find::<ByEmail>().load().await.unwrap(), []);
    let link = graph.related_by(&shelf("1"), "likes").link(&ann).await;
    assert_eq!(link.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn interrupted_deletion_is_completed_by_resume() {
    let random = SeededRandom::new(11);
    let mut interrupted = 0;
    for _ in 0..12 {
        let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
        let world = World::on(Arc::new(engine), Capabilities::all()).await;
        wide(&world.graph, 120).await;
        let ann = author("ann");
        let mut is_done = false;
        for _ in 0..200 {
            let polls = 1 + random.below(24);
            let ended = if is_done {
                interrupt(world.graph.resume(|_| {}), polls).await
            } else {
                interrupt(world.graph.delete(&ann), polls).await
            };
            if world.graph.get::<Author>("ann").await.unwrap().is_none() {
                is_done = true;
                check_invisible(&world).await;
            }
            match ended {
                Some(ended) => {
                    ended.unwrap();
                    break;
                }
                None => interrupted += 1,
            }
        }
        world.graph.resume(|_| {}).await.unwrap();
        world.check().await;
        assert_eq!(world.graph.get::<Author>("ann").await.unwrap(), None);
    }
    assert!(interrupted > 20, "{interrupted}");
}

#[tokio::test]
async fn wide_deletion_cascades() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    for number in 0..70 {
        let id = number.to_string();
        create(&world, &[id.as_str()]).await;
        link::<Wrote>(&world, &author("ann"), &article(&id)).await;
    }
    // One of them is cited by an article that stays, so it stays as well.
    create(&world, &["stays"]).await;
    link::<Cites>(&world, &article("stays"), &article("7")).await;
    let deleted = world.graph.delete(&author("ann")).await.unwrap();
    assert_eq!(deleted.entities, 70);
    assert_eq!(deleted.kept, [EntityKey::new("article", "7")]);
    assert_eq!(articles(&world).await.len(), 2);
    world.check().await;
}

#[tokio::test]
async fn restriction_prevents_a_wide_deletion_completely() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    held_by(&world, "b", 120).await;
    link::<Cites>(&world, &article("a"), &article("b")).await;
    let error = world.graph.delete(&article("b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
    assert!(
        error.to_string().ends_with("by=article:a predicate=cites"),
        "{error}"
    );
    world.check().await;
    assert!(world.graph.get::<Article>("b").await.unwrap().is_some());
}

#[tokio::test]
async fn restriction_by_a_deleted_subject_has_no_effect_on_a_wide_deletion() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    held_by(&world, "b", 120).await;
    link::<Cites>(&world, &article("a"), &article("b")).await;
    link::<Answers>(&world, &article("a"), &article("b")).await;
    let deleted = world.graph.delete(&article("b")).await.unwrap();
    assert_eq!((deleted.entities, deleted.kept), (2, Vec::new()));
    world.check().await;
}

#[tokio::test]
async fn edges_missing_from_a_lagging_index_are_deleted() {
    for count in [1, 3, 150] {
        let world = World::lagging(5, 30).await;
        create(&world, &["a"]).await;
        held_by(&world, "a", count).await;
        let deleted = world.graph.delete(&article("a")).await.unwrap();
        assert_eq!(deleted.edges, count as u64);
        for number in 0..count {
            let edges = world
                .graph
                .related::<Holds>(&shelf(&number.to_string()))
                .keys()
                .await;
            assert_eq!(edges.unwrap(), []);
        }
        world.check().await;
    }
}

#[tokio::test]
async fn removed_edge_in_a_lagging_index_does_not_restrict() {
    for seed in 0..10 {
        let world = World::lagging(seed, 40).await;
        create(&world, &["a", "b"]).await;
        world.graph.create(&shelf("north")).await.unwrap();
        link::<Cites>(&world, &article("a"), &article("b")).await;
        while world
            .graph
            .referrers(&article("b"))
            .keys()
            .await
            .unwrap()
            .is_empty()
        {}
        world
            .graph
            .related::<Cites>(&article("a"))
            .unlink(&article("b"))
            .await
            .unwrap();
        link::<Holds>(&world, &shelf("north"), &article("b")).await;
        world.graph.delete(&article("b")).await.unwrap();
        world.check().await;
    }
}

#[tokio::test]
async fn concurrent_links_to_a_deleted_object_leave_no_edges() {
    for _ in 0..20 {
        let world = World::new().await;
        create(&world, &["a"]).await;
        let mut tasks = Vec::new();
        for number in 0..6 {
            let subject = shelf(&number.to_string());
            world.graph.create(&subject).await.unwrap();
            let graph = world.graph.clone();
            tasks.push(tokio::spawn(async move {
                graph
                    .related::<Holds>(&subject)
                    .link_with(&article("a"), &None)
                    .await
                    .map(|()| Deleted::default())
            }));
        }
        let graph = world.graph.clone();
        tasks.push(tokio::spawn(
            async move { graph.delete(&article("a")).await },
        ));
        for task in tasks {
            if let Err(error) = task.await.unwrap() {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            }
        }
        assert_eq!(world.graph.get::<Article>("a").await.unwrap(), None);
        world.check().await;
    }
}

#[tokio::test]
async fn another_process_completes_a_deletion() {
    let directory = tempfile::tempdir().unwrap();
    {
        let db = Db::open(directory.path())
            .unwrap()
            .with_graph(super::support::schema());
        db.ensure_graph().await.unwrap();
        let graph = db.graph("library");
        graph.create(&Node::new("hub", "h")).await.unwrap();
        for number in 0..150 {
            graph.create(&shelf(&number.to_string())).await.unwrap();
            let list = graph.related_by(&shelf(&number.to_string()), "at");
            list.link(&("hub", "h")).await.unwrap();
        }
        let stop = tokio::sync::Notify::new();
        let delete = graph.delete_with(&("hub", "h"), |_| stop.notify_one());
        tokio::select! {
            biased;
            () = stop.notified() => {}
            _ = delete => {}
        }
    }
    let db = Db::open(directory.path())
        .unwrap()
        .with_graph(super::support::schema());
    let graph = db.graph("library");
    let report = graph.check().await.unwrap();
    assert!(
        matches!(
            report.differences.as_slice(),
            [Difference::Unfinished { .. }]
        ),
        "{report:#?}"
    );
    let deleted = graph.resume(|_| {}).await.unwrap();
    assert_eq!(deleted.entities, 1);
    let report = graph.check().await.unwrap();
    assert_eq!((report.entities, report.edges), (150, 0));
    assert_eq!(report.differences, []);
}
