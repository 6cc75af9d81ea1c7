//! Deletion: what goes with an entity, what refuses, and deletions that take many steps and are interrupted.

use std::sync::{Arc, Mutex};

use floe::graph::{Deleted, Difference, EntityKey, Graph, Node};
use floe::{Db, ErrorKind};
use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::op::{DeleteItem, PutItem, UpdateItem};
use floe_store::{Capabilities, Engine, Item, Value};
use floe_testkit::fault::{FaultEngine, Faults, Lag};

use super::slow::{Slow, interrupt};
use super::support::{
    Answers, Article, Author, ByEmail, ByTag, Cites, Holds, World, Wrote, article, author, ids,
    shelf,
};

async fn create(world: &World, ids: &[&str]) {
    for id in ids {
        world.graph.create(&article(id)).await.unwrap();
    }
}

#[tokio::test]
async fn what_an_entity_owns_goes_with_it() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    create(&world, &["a", "b", "c"]).await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    wrote.append(["a", "b"].map(article)).await.unwrap();
    let deleted = world.graph.delete(&author("ann")).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (3, 2));
    let left = world.graph.all::<Article>().collect().await.unwrap();
    assert_eq!(left, [article("c")]);
    world.check().await;
}

#[tokio::test]
async fn what_answers_goes_with_what_it_answers() {
    let world = World::new().await;
    create(&world, &["a", "b", "c", "d"]).await;
    for (from, to) in [("b", "a"), ("c", "b"), ("a", "d")] {
        world
            .graph
            .related::<Answers>(&article(from))
            .link(&article(to))
            .await
            .unwrap();
    }
    let deleted = world.graph.delete(&article("a")).await.unwrap();
    assert_eq!(deleted.entities, 3);
    let left = world.graph.all::<Article>().collect().await.unwrap();
    assert_eq!(left, [article("d")]);
    world.check().await;
}

#[tokio::test]
async fn what_is_cited_cannot_be_deleted() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    let cites = world.graph.related::<Cites>(&article("a"));
    cites.link(&article("b")).await.unwrap();
    let error = world.graph.delete(&article("b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
    assert_eq!(
        error.to_string(),
        "the entity is referred to: entity=library:article:b by=article:a predicate=cites"
    );
    world.check().await;
    cites.unlink(&article("b")).await.unwrap();
    world.graph.delete(&article("b")).await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn what_refuses_does_not_if_it_goes_itself() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    world
        .graph
        .related::<Cites>(&article("a"))
        .link(&article("b"))
        .await
        .unwrap();
    world
        .graph
        .related::<Answers>(&article("a"))
        .link(&article("b"))
        .await
        .unwrap();
    let deleted = world.graph.delete(&article("b")).await.unwrap();
    assert_eq!(deleted.entities, 2);
    world.check().await;
}

/// An entity to which many shelves lead, and which has edges, entries and claims of its own.
async fn wide(graph: &Graph<'_>, count: usize) {
    let mut ann = author("ann");
    ann.email = Some("ann@x".to_owned());
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
async fn a_deletion_that_is_too_wide_for_a_transaction_is_done_in_steps() {
    let world = World::new().await;
    wide(&world.graph, 250).await;
    let in_transaction = world
        .db
        .transact(async |tx| tx.graph("library").delete(&author("ann")).await.map(drop));
    let error = in_transaction.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let told = Mutex::new(Vec::new());
    let ann = author("ann");
    let deleted = world.graph.delete_with(&ann, |progress| {
        told.lock().unwrap().push(progress.clone());
    });
    let deleted = deleted.await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 250 + 62));
    let told = told.into_inner().unwrap();
    assert!(told.is_sorted_by_key(|progress| progress.edges));
    assert!(told.iter().any(|progress| progress.incoming_left == 151));
    assert_eq!(told.last().unwrap().entities, 1);
    world.check().await;
    // The unique key is free again.
    let mut bob = author("bob");
    bob.email = Some("ann@x".to_owned());
    world.graph.create(&bob).await.unwrap();
}

#[tokio::test]
async fn a_deletion_can_be_interrupted_anywhere_and_is_ended_later() {
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
            let ended = match is_done {
                false => interrupt(world.graph.delete(&ann), polls).await,
                true => interrupt(world.graph.resume(|_| {}), polls).await,
            };
            // What was begun is gone for readers, and nobody can link to it.
            if world.graph.get::<Author>("ann").await.unwrap().is_none() {
                is_done = true;
                let visits = world
                    .graph
                    .related_by(&ann, "visits")
                    .objects()
                    .await
                    .unwrap();
                assert_eq!(visits, []);
                let likes = world
                    .graph
                    .related_by(&shelf("0"), "likes")
                    .objects()
                    .await
                    .unwrap();
                assert!(likes.iter().all(|like| like.object.is_some()));
                assert_eq!(world.graph.referrers(&ann).subjects().await.unwrap(), []);
                assert_eq!(world.graph.find::<ByEmail>().load().await.unwrap(), []);
                let link = world
                    .graph
                    .related_by(&shelf("1"), "likes")
                    .link(&ann)
                    .await;
                assert_eq!(link.unwrap_err().kind(), ErrorKind::NotFound);
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
async fn a_wide_deletion_takes_along_what_goes_with_it() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    for number in 0..70 {
        let id = number.to_string();
        create(&world, &[id.as_str()]).await;
        world
            .graph
            .related::<Wrote>(&author("ann"))
            .link(&article(&id))
            .await
            .unwrap();
    }
    // One of them is cited by somebody who stays, so it stays as well.
    create(&world, &["stays"]).await;
    world
        .graph
        .related::<Cites>(&article("stays"))
        .link(&article("7"))
        .await
        .unwrap();
    let deleted = world.graph.delete(&author("ann")).await.unwrap();
    assert_eq!(deleted.entities, 70);
    assert_eq!(deleted.kept, [EntityKey::new("article", "7")]);
    let left = world.graph.all::<Article>().collect().await.unwrap();
    assert_eq!(left.len(), 2);
    world.check().await;
}

#[tokio::test]
async fn a_wide_deletion_is_refused_as_a_whole() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    for number in 0..120 {
        let subject = shelf(&number.to_string());
        world.graph.create(&subject).await.unwrap();
        world
            .graph
            .related::<Holds>(&subject)
            .link(&article("b"))
            .await
            .unwrap();
    }
    world
        .graph
        .related::<Cites>(&article("a"))
        .link(&article("b"))
        .await
        .unwrap();
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
async fn what_refuses_a_wide_deletion_does_not_if_it_goes_itself() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    for number in 0..120 {
        let subject = shelf(&number.to_string());
        world.graph.create(&subject).await.unwrap();
        world
            .graph
            .related::<Holds>(&subject)
            .link(&article("b"))
            .await
            .unwrap();
    }
    world
        .graph
        .related::<Cites>(&article("a"))
        .link(&article("b"))
        .await
        .unwrap();
    world
        .graph
        .related::<Answers>(&article("a"))
        .link(&article("b"))
        .await
        .unwrap();
    let deleted = world.graph.delete(&article("b")).await.unwrap();
    assert_eq!((deleted.entities, deleted.kept), (2, Vec::new()));
    world.check().await;
}

#[tokio::test]
async fn an_edge_that_the_index_does_not_show_yet_goes_too() {
    for count in [1, 3, 150] {
        let faults = Faults::seeded(5).index_lag(1.0, Lag::Operations(30));
        let engine = Arc::new(FaultEngine::new(
            Arc::new(LocalEngine::memory().unwrap()),
            faults,
        ));
        let world = World::on(engine, Capabilities::dynamodb()).await;
        create(&world, &["a"]).await;
        for number in 0..count {
            let subject = shelf(&number.to_string());
            world.graph.create(&subject).await.unwrap();
            world
                .graph
                .related::<Holds>(&subject)
                .link(&article("a"))
                .await
                .unwrap();
        }
        let deleted = world.graph.delete(&article("a")).await.unwrap();
        assert_eq!(deleted.edges, count);
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
async fn an_edge_that_is_gone_does_not_refuse_because_the_index_still_shows_it() {
    for seed in 0..10 {
        let faults = Faults::seeded(seed).index_lag(1.0, Lag::Operations(40));
        let engine = Arc::new(FaultEngine::new(
            Arc::new(LocalEngine::memory().unwrap()),
            faults,
        ));
        let world = World::on(engine, Capabilities::dynamodb()).await;
        create(&world, &["a", "b"]).await;
        world.graph.create(&shelf("north")).await.unwrap();
        world
            .graph
            .related::<Cites>(&article("a"))
            .link(&article("b"))
            .await
            .unwrap();
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
        world
            .graph
            .related::<Holds>(&shelf("north"))
            .link(&article("b"))
            .await
            .unwrap();
        world.graph.delete(&article("b")).await.unwrap();
        world.check().await;
    }
}

#[tokio::test]
async fn a_link_that_is_made_while_the_object_is_deleted_is_not_left_behind() {
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
                    .link(&article("a"))
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

/// Changes a table behind the back of the graph.
async fn spoil(world: &World, write: impl Into<floe_store::op::WriteItem>) {
    world.engine.write_item(write.into()).await.unwrap();
}

#[tokio::test]
async fn every_difference_is_told_and_repaired() {
    let world = World::new().await;
    create(&world, &["a", "b", "c"]).await;
    let mut ann = author("ann");
    ann.email = Some("ann@x".to_owned());
    world.graph.create(&ann).await.unwrap();
    let mut tagged = article("a");
    tagged.tags = vec!["code".to_owned()];
    world.graph.set(&tagged).await.unwrap();
    world
        .graph
        .related::<Wrote>(&ann)
        .append(["a", "b", "c"].map(article))
        .await
        .unwrap();
    world.check().await;
    let entity = |id: &str, of: &str| {
        Item::new()
            .with("_id", id)
            .with("_scope_type_key", format!("library:{of}"))
    };
    // An entity vanishes; a number is wrong; an entry is missing, another too many; a claim is gone, another in vain.
    spoil(
        &world,
        DeleteItem::new("entities_master", entity("b", "article")),
    )
    .await;
    let update = floe_store::expr::Update::new().set(
        floe_store::expr::Path::attribute("_meta").field("in"),
        Value::from(9),
    );
    spoil(
        &world,
        UpdateItem::new("entities_master", entity("c", "article"), update),
    )
    .await;
    let entry = |subject: &str, key: &str| {
        Item::new()
            .with("_subject_key", subject)
            .with("_unique_key", key)
    };
    let tag = entry("library:article:a", "by_tag:code");
    spoil(&world, DeleteItem::new("index_entries", tag)).await;
    let extra = entry("library:article:c", "by_tag:none")
        .with("_scope", "library")
        .with("_type", "article")
        .with("_id", "c")
        .with("_index_name", "by_tag")
        .with("_index_key", "none")
        .with("_scope_index_name", "library:by_tag");
    spoil(&world, PutItem::new("index_entries", extra)).await;
    let claim = entry("library::by_email:ann@x", "by_email:ann@x");
    spoil(&world, DeleteItem::new("index_entries", claim)).await;
    let intent = Item::new()
        .with("_id", "_leaving")
        .with("_scope_type_key", "library::article:z")
        .with("_scope", "library")
        .with("_entity_type", "article")
        .with("_entity_id", "z");
    spoil(&world, PutItem::new("entities_master", intent)).await;
    let report = world.graph.repair().await.unwrap();
    let told: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    for expected in [
        "an edge leads to nothing: subject=author:ann predicate=wrote object=article:b",
        "the number of incoming edges is wrong: entity=article:c expected=(1, 0) actual=(9, 0)",
        "an entry is missing or wrong: entity=article:a index=by_tag key=code",
        "an entry is one too many: entity=article:c index=by_tag key=none",
        "a unique key is not held: entity=author:ann index=by_email key=ann@x",
        "a deletion is noted in vain: entity=article:z",
    ] {
        assert!(
            told.iter().any(|told| told == expected),
            "{expected}\n{told:#?}"
        );
    }
    // What is left of the entity that vanished: its entry by year.
    let extra = Difference::ExtraEntry {
        entity: EntityKey::new("article", "b"),
        index: "by_year".to_owned(),
        key: report
            .differences
            .iter()
            .find_map(|difference| match difference {
                Difference::ExtraEntry { entity, key, .. } if entity.id() == "b" => {
                    Some(key.clone())
                }
                _ => None,
            })
            .unwrap(),
    };
    assert!(report.differences.contains(&extra));
    world.check().await;
    let edges = world.graph.related::<Wrote>(&ann).keys().await.unwrap();
    assert_eq!(ids(&edges), ["a", "c"]);
    assert_eq!(
        world
            .graph
            .find::<ByTag>()
            .eq("code")
            .load()
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn what_was_restricted_by_another_declaration_is_told_and_repaired() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    // Linked by a program that did not know that the relation refuses deletions.
    let other = world.db.clone().with_graph(floe::graph::GraphSchema::new());
    other
        .graph("library")
        .related_by(&article("a"), "cites")
        .link(&article("b"))
        .await
        .unwrap();
    let report = world.graph.repair().await.unwrap();
    assert!(
        matches!(report.differences.as_slice(), [Difference::WrongHold(_)]),
        "{report:#?}"
    );
    world.check().await;
    let error = world.graph.delete(&article("b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
}

#[tokio::test]
async fn a_deletion_is_ended_by_another_process() {
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

#[tokio::test]
async fn entities_that_others_have_written_are_taken_in() {
    let world = World::new().await;
    create(&world, &["a"]).await;
    let foreign = |id: &str| {
        Item::new()
            .with("_id", id)
            .with("_scope_type_key", "library:article")
            .with("_scope", "library")
            .with("_type", "article")
            .with("_created", "2017-01-01T00:00:00.000Z")
            .with("_updated", "2017-01-01T00:00:00.000Z")
            .with("title", "Old")
    };
    // With an empty `_meta`, they can be used as they are.
    let bare = foreign("old").with("_meta", Value::M(Item::new()));
    spoil(&world, PutItem::new("entities_master", bare)).await;
    let mut old = world.graph.get::<Article>("old").await.unwrap().unwrap();
    world
        .graph
        .related::<Cites>(&article("a"))
        .link(&old)
        .await
        .unwrap();
    world
        .graph
        .related::<Answers>(&old)
        .link(&article("a"))
        .await
        .unwrap();
    old.title = "New".to_owned();
    world.graph.update(&old).await.unwrap();
    world.check().await;
    // Without one, they have to be taken in first.
    spoil(&world, PutItem::new("entities_master", foreign("older"))).await;
    let unreadable = foreign("broken")
        .with("_meta", Value::M(Item::new()))
        .with("year", "x");
    spoil(&world, PutItem::new("entities_master", unreadable)).await;
    let report = world.graph.repair().await.unwrap();
    let told: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    assert!(
        told.contains(&"an entity has no _meta: entity=article:older".to_owned()),
        "{told:#?}"
    );
    let report = world.graph.check().await.unwrap();
    let [Difference::Unreadable { entity, .. }] = report.differences.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(entity.id(), "broken");
    let older = world.graph.get::<Article>("older").await.unwrap().unwrap();
    world.graph.update(&older).await.unwrap();
    world.graph.delete(&("article", "broken")).await.unwrap();
    world.graph.delete(&old).await.unwrap_err();
    world.graph.delete(&article("a")).await.unwrap();
    world.check().await;
}
