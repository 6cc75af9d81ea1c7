//! Lists: ordered edges, their objects, and referrers.

use std::collections::BTreeMap;
use std::sync::Arc;

use floe::ErrorKind;
use floe::graph::{Difference, EntityKey, GraphSchema, Include, List, Node};
use floe::model::Json;
use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::expr::KeyCondition;
use floe_store::op::Query;
use floe_store::{Capabilities, Engine};

use super::slow::{Slow, interrupt};
use super::support::{
    Answers, Article, Author, Cites, Holds, Since, World, Wrote, article, author, ids,
    remove_foreign, shelf,
};

async fn world() -> World {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    for id in ["a", "b", "c", "d"] {
        world.graph.create(&article(id)).await.unwrap();
    }
    world.engine.take();
    world
}

#[tokio::test]
async fn edges_keep_their_order() {
    let world = world().await;
    let list = world.graph.related::<Wrote>(&author("ann"));
    let mut expected: Vec<&str> = Vec::new();
    for id in ["a", "b"] {
        list.link(&article(id)).await.unwrap();
        expected.push(id);
    }
    list.link_at(0, &article("c")).await.unwrap();
    expected.insert(0, "c");
    list.link_at(2, &article("d")).await.unwrap();
    expected.insert(2, "d");
    list.link_at(99, &article("c")).await.unwrap();
    expected.push("c");
    assert_eq!(ids(&list.keys().await.unwrap()), expected);
    list.move_to(0, 4).await.unwrap();
    let first = expected.remove(0);
    expected.push(first);
    assert_eq!(ids(&list.keys().await.unwrap()), expected);
    list.reorder(["c", "d", "c", "b", "a"].map(article))
        .await
        .unwrap();
    assert_eq!(ids(&list.keys().await.unwrap()), ["c", "d", "c", "b", "a"]);
    assert_eq!(list.unlink(&article("c")).await.unwrap(), 2);
    assert_eq!(ids(&list.keys().await.unwrap()), ["d", "b", "a"]);
    world.check().await;
}

#[tokio::test]
async fn insertion_writes_one_edge() {
    let world = world().await;
    let list = world.graph.related::<Wrote>(&author("ann"));
    list.append(["a", "b", "c"].map(article)).await.unwrap();
    world.engine.take();
    list.link_at(1, &article("d")).await.unwrap();
    let requests = world.engine.take();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    assert_eq!(requests[2].matches("relationship_entries").count(), 1);
}

#[tokio::test]
async fn reorder_with_other_objects_is_rejected() {
    let world = world().await;
    let list = world.graph.related::<Wrote>(&author("ann"));
    list.append(["a", "b"].map(article)).await.unwrap();
    for other in [vec!["a"], vec!["a", "c"], vec!["a", "b", "b"]] {
        let error = list
            .reorder(other.into_iter().map(article))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse);
    }
    let error = list.move_to(0, 2).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the position is beyond the end of the list: predicate=wrote from=0 to=2 edges=2"
    );
    assert_eq!(ids(&list.keys().await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn link_fails_if_an_end_is_missing() {
    let world = world().await;
    let list = world.graph.related::<Wrote>(&author("ann"));
    let error = list.link(&article("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().ends_with("entity=library:article:x"),
        "{error}"
    );
    let error = world
        .graph
        .related::<Wrote>(&author("bob"))
        .link(&article("a"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = world
        .graph
        .related_by(&author("ann"), "")
        .keys()
        .await
        .unwrap_err();
    assert_eq!(error.field(), Some("predicate"));
    let error = world
        .graph
        .related_all(&author("ann"))
        .link(&article("a"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    world.check().await;
}

#[tokio::test]
async fn undeclared_relation_is_rejected() {
    let world = world().await;
    let db = world.db.clone().with_graph(GraphSchema::new());
    let graph = db.graph("library");
    let error = graph
        .related::<Wrote>(&author("ann"))
        .keys()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(
        error.to_string().contains("GraphSchema::relation"),
        "{error}"
    );
}

#[tokio::test]
async fn edge_can_have_its_subject_as_object() {
    let world = world().await;
    let cites = world.graph.related_by(&article("a"), "is");
    cites.link(&article("a")).await.unwrap();
    world.check().await;
    let deleted = world.graph.delete(&article("a")).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 1));
    world.check().await;
}

#[tokio::test]
async fn edge_attributes_move_with_the_edge() {
    let world = world().await;
    world.graph.create(&shelf("north")).await.unwrap();
    let holds = world.graph.related::<Holds>(&shelf("north"));
    let since = |day| Some(Since { day });
    holds
        .replace_with([(article("a"), since(1)), (article("b"), None)])
        .await
        .unwrap();
    holds.move_to(0, 1).await.unwrap();
    let found = holds.objects().await.unwrap();
    let attributes: Vec<_> = found
        .iter()
        .map(|related| related.attributes.clone())
        .collect();
    assert_eq!(attributes, [None, since(1)]);
    // Only the edge with changed attributes is written.
    world.engine.take();
    holds
        .replace_with([(article("b"), since(2)), (article("a"), since(1))])
        .await
        .unwrap();
    let requests = world.engine.take();
    assert_eq!(
        requests[2].matches("relationship_entries").count(),
        1,
        "{requests:#?}"
    );
    let found = holds.objects().await.unwrap();
    assert_eq!(found[0].attributes, since(2));
    world.check().await;
}

#[tokio::test]
async fn referrers_are_found() {
    let world = world().await;
    for name in ["north", "south"] {
        world.graph.create(&shelf(name)).await.unwrap();
        world
            .graph
            .related::<Holds>(&shelf(name))
            .link_with(&article("a"), &None)
            .await
            .unwrap();
    }
    world
        .graph
        .related::<Wrote>(&author("ann"))
        .link(&article("a"))
        .await
        .unwrap();
    world.engine.take();
    let all = world
        .graph
        .referrers(&article("a"))
        .subjects()
        .await
        .unwrap();
    assert_eq!(world.requests(), ["Query", "BatchGetItem"]);
    assert_eq!(all.len(), 3);
    let shelves = world
        .graph
        .referrers(&article("a"))
        .of::<Holds>()
        .await
        .unwrap();
    let mut names: Vec<_> = shelves
        .iter()
        .map(|r| r.subject.clone().unwrap().name)
        .collect();
    names.sort();
    assert_eq!(names, ["north", "south"]);
    let referrers = world.graph.referrers(&article("a"));
    let first = referrers.page(2, None).await.unwrap();
    let next = first.next.unwrap();
    let second = referrers.page(2, Some(next.as_str())).await.unwrap();
    assert_eq!((first.rows.len(), second.rows.len()), (2, 1));
    let other = world.graph.referrers(&article("b"));
    let error = other.page(2, Some(next.as_str())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
}

#[tokio::test]
async fn list_is_paged() {
    let world = world().await;
    let list = world.graph.related::<Wrote>(&author("ann"));
    list.append(["a", "b", "c", "d", "a"].map(article))
        .await
        .unwrap();
    let (mut found, mut after) = (Vec::new(), None::<String>);
    loop {
        world.engine.take();
        let page = list.page(2, after.as_deref()).await.unwrap();
        assert_eq!(world.requests(), ["Query", "BatchGetItem"]);
        found.extend(
            page.rows
                .into_iter()
                .map(|related| related.object.unwrap().id),
        );
        match page.next {
            Some(next) => after = Some(next.into()),
            None => break,
        }
    }
    assert_eq!(found, ["a", "b", "c", "d", "a"]);
}

#[tokio::test]
async fn missing_object_is_returned_as_none() {
    let world = world().await;
    let list = world.graph.related::<Wrote>(&author("ann"));
    list.append(["a", "b"].map(article)).await.unwrap();
    // Another program deletes an entity without the graph.
    remove_foreign(&world, "article", "a").await;
    let found = list.objects().await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].object, None);
    assert_eq!(found[0].edge.object.id(), "a");
    assert!(found[1].object.is_some());
    let ann = author("ann");
    let included = world
        .graph
        .include(&ann, &[Include::relation::<Wrote>()])
        .await
        .unwrap();
    assert_eq!(included.unwrap().edges("wrote")[0].object, None);
}

#[tokio::test]
async fn include_loads_related_entities_over_several_levels() {
    let world = world().await;
    let graph = &world.graph;
    graph
        .related::<Wrote>(&author("ann"))
        .append(["a", "b"].map(article))
        .await
        .unwrap();
    graph
        .related::<Cites>(&article("a"))
        .append(["c", "d"].map(article))
        .await
        .unwrap();
    graph
        .related::<Cites>(&article("b"))
        .append(["d"].map(article))
        .await
        .unwrap();
    graph
        .related::<Answers>(&article("d"))
        .link(&article("c"))
        .await
        .unwrap();
    world.engine.take();
    let follow = [Include::relation::<Wrote>()
        .with(Include::relation::<Cites>().with(Include::relation::<Answers>()))];
    let ann = graph
        .include(&author("ann"), &follow)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ann.entity::<Author>().unwrap(), author("ann"));
    let wrote: Vec<_> = ann.objects::<Wrote>().collect();
    assert_eq!(wrote.len(), 2);
    let cited = wrote[0].values::<Cites>().unwrap();
    assert_eq!(cited, [article("c"), article("d")]);
    let answered = wrote[1].objects::<Cites>().next().unwrap();
    assert_eq!(answered.values::<Answers>().unwrap(), [article("c")]);
    // One query for each entity of a level, one batch for all levels; `d` occurs twice, and is read and queried once.
    let counts = world
        .requests()
        .into_iter()
        .fold(BTreeMap::new(), |mut counts, request| {
            *counts.entry(request).or_insert(0) += 1;
            counts
        });
    let expected = [("BatchGetItem", 1), ("GetItem", 1), ("Query", 1 + 2 + 2)];
    let expected: BTreeMap<_, _> = expected.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(counts, expected);
    assert_eq!(graph.include(&author("bob"), &follow).await.unwrap(), None);
}

#[tokio::test]
async fn include_of_a_hundred_takes_one_query_and_one_batch() {
    let world = world().await;
    let graph = &world.graph;
    for number in 0..100 {
        graph
            .create(&Node::new("page", number.to_string()))
            .await
            .unwrap();
    }
    let pages = graph.related_by(&author("ann"), "pages");
    for some in (0..100).collect::<Vec<_>>().chunks(40) {
        let keys = some.iter().map(|number: &u32| ("page", number.to_string()));
        pages.append(keys).await.unwrap();
    }
    world.engine.take();
    let included = graph
        .include(&author("ann"), &[Include::predicate("pages")])
        .await
        .unwrap();
    assert_eq!(included.unwrap().edges("pages").len(), 100);
    assert_eq!(world.requests(), ["Query", "GetItem", "BatchGetItem"]);
}

#[tokio::test]
async fn concurrent_links_are_all_stored() {
    let world = world().await;
    let mut tasks = Vec::new();
    for task in 0..6 {
        let graph = world.graph.clone();
        tasks.push(tokio::spawn(async move {
            for round in 0..5 {
                let list = graph.related_by(&author("ann"), "reads");
                let id = ["a", "b", "c", "d"][(task + round) % 4];
                list.link(&article(id)).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let edges = world
        .graph
        .related_by(&author("ann"), "reads")
        .keys()
        .await
        .unwrap();
    assert_eq!(edges.len(), 30);
    world.check().await;
}

#[tokio::test]
async fn edge_items_have_the_documented_attributes() {
    let world = world().await;
    world
        .graph
        .related::<Wrote>(&author("ann"))
        .link(&article("a"))
        .await
        .unwrap();
    let key = KeyCondition::partition("_subject_key", "library:author:ann");
    let page = world
        .engine
        .query(Query::new("relationship_entries", key))
        .await
        .unwrap();
    let names: Vec<_> = page.items[0]
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "_index",
            "_object_id",
            "_object_key",
            "_object_scope",
            "_object_type",
            "_predicate",
            "_predicate_key",
            "_subject_id",
            "_subject_key",
            "_subject_scope",
            "_subject_type"
        ]
    );
    let predicate_key = page.items[0].get("_predicate_key").unwrap().as_s().unwrap();
    assert_eq!(predicate_key, "wrote:4503599627370496:article:a");
    let _: Article = world.graph.get("a").await.unwrap().unwrap();
}

/// Creates a shelf, and the pages for its list. Returns their keys.
async fn book(world: &World, pages: usize) -> Vec<EntityKey> {
    world.graph.create(&shelf("book")).await.unwrap();
    let keys: Vec<_> = (0..pages)
        .map(|n| EntityKey::new("page", n.to_string()))
        .collect();
    for key in &keys {
        world
            .graph
            .create(&Node::new("page", key.id()))
            .await
            .unwrap();
    }
    keys
}

#[tokio::test]
async fn list_change_too_wide_for_a_transaction_runs_in_steps() {
    let world = World::new().await;
    let mut keys = book(&world, 300).await;
    let pages = world.graph.related_by(&shelf("book"), "pages");
    let found = async || -> Vec<EntityKey> {
        let edges = pages.keys().await.unwrap();
        edges.into_iter().map(|edge| edge.object).collect()
    };
    pages.append(keys.clone()).await.unwrap();
    assert_eq!(found().await, keys);
    keys.reverse();
    pages.reorder(keys.clone()).await.unwrap();
    assert_eq!(found().await, keys);
    world.check().await;
    let half: Vec<_> = keys.iter().step_by(2).cloned().collect();
    pages.replace(half.clone()).await.unwrap();
    assert_eq!(found().await, half);
    world.check().await;
    // A missing object is detected before anything is changed.
    let mut more = keys.clone();
    more.push(EntityKey::new("page", "none"));
    let error = pages.replace(more).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(found().await, half);
    // A transaction cannot run steps.
    let wide = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph
            .related_by(&shelf("book"), "pages")
            .append(keys.clone())
            .await
    });
    assert_eq!(wide.await.unwrap_err().kind(), ErrorKind::TooLarge);
    world.check().await;
}

/// The objects of a list.
async fn objects(list: &List<'_, '_, Node, Json>) -> Vec<EntityKey> {
    let edges = list.keys().await.unwrap().into_iter();
    edges.map(|edge| edge.object).collect()
}

#[tokio::test]
async fn interrupted_list_change_is_completed_by_resume() {
    let random = SeededRandom::new(5);
    let mut interrupted = 0;
    for _ in 0..6 {
        let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
        let world = World::on(Arc::new(engine), Capabilities::all()).await;
        let mut keys = book(&world, 130).await;
        let pages = world.graph.related_by(&shelf("book"), "pages");
        pages.append(keys.clone()).await.unwrap();
        keys.reverse();
        let mut sorted = keys.clone();
        sorted.sort();
        let mut is_started = false;
        for _ in 0..100 {
            let polls = 1 + random.below(30);
            let ended = if is_started {
                interrupt(async { world.graph.resume(|_| {}).await.map(drop) }, polls).await
            } else {
                interrupt(pages.reorder(keys.clone()), polls).await
            };
            if let Some(ended) = ended {
                ended.unwrap();
                break;
            }
            interrupted += 1;
            // At every point, the list contains every page once.
            let mut seen = objects(&pages).await;
            seen.sort();
            assert_eq!(seen, sorted);
            let report = world.graph.check().await.unwrap();
            is_started = match report.differences.as_slice() {
                [] => false,
                [Difference::Unfinished { .. }] => true,
                other => panic!("{other:#?}"),
            };
        }
        world.graph.resume(|_| {}).await.unwrap();
        world.check().await;
        let mut found = objects(&pages).await;
        assert!(
            !is_started || found == keys,
            "the list has the requested order"
        );
        found.sort();
        assert_eq!(found, sorted, "no page is lost");
    }
    assert!(interrupted > 10, "{interrupted}");
}

#[tokio::test]
async fn entities_deleted_during_a_list_change_are_not_in_the_list() {
    let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
    let world = World::on(Arc::new(engine), Capabilities::all()).await;
    let keys = book(&world, 130).await;
    let pages = world.graph.related_by(&shelf("book"), "pages");
    // Started, and interrupted.
    assert!(interrupt(pages.append(keys.clone()), 14).await.is_none());
    for id in ["3", "128"] {
        world.graph.delete(&("page", id)).await.unwrap();
    }
    world.graph.resume(|_| {}).await.unwrap();
    world.check().await;
    assert_eq!(pages.keys().await.unwrap().len(), 128);
    // The list is deleted with its subject.
    let other = world.graph.related_by(&shelf("book"), "more");
    let some: Vec<_> = keys.iter().skip(10).take(100).cloned().collect();
    assert!(interrupt(other.append(some), 14).await.is_none());
    let report = world.graph.check().await.unwrap();
    assert!(matches!(
        report.differences.as_slice(),
        [Difference::Unfinished { .. }]
    ));
    world.graph.delete(&shelf("book")).await.unwrap();
    world.graph.resume(|_| {}).await.unwrap();
    world.check().await;
}

/// The key of a page.
fn page(id: &str) -> EntityKey {
    EntityKey::new("page", id)
}

/// An author with edges to three pages. Another program has removed the second page.
async fn with_dangling_edge() -> World {
    let world = world().await;
    let pages = world.pages(4).await;
    let list = world.graph.related_by(&author("ann"), "reads");
    list.append(pages.into_iter().take(3)).await.unwrap();
    remove_foreign(&world, "page", "1").await;
    world.engine.take();
    world
}

#[tokio::test]
async fn dangling_edge_can_be_unlinked() {
    let world = with_dangling_edge().await;
    let list = world.graph.related_by(&author("ann"), "reads");
    assert_eq!(list.unlink(&page("1")).await.unwrap(), 1);
    assert_eq!(ids(&list.keys().await.unwrap()), ["0", "2"]);
    world.check().await;
    // In a transaction, also if it has read the missing object, and with other changes of the list.
    for reads_objects in [false, true] {
        let world = with_dangling_edge().await;
        let replaced = world.db.transact(async |tx| {
            let graph = tx.graph("library");
            let list = graph.related_by(&author("ann"), "reads");
            if reads_objects {
                let found = list.objects().await?;
                assert_eq!(found[1].object, None);
            }
            list.replace(["2", "3"].map(page)).await
        });
        replaced.await.unwrap();
        let list = world.graph.related_by(&author("ann"), "reads");
        assert_eq!(ids(&list.keys().await.unwrap()), ["2", "3"]);
        world.check().await;
    }
}

#[tokio::test]
async fn dangling_edge_does_not_block_the_deletion_of_its_subject() {
    let world = with_dangling_edge().await;
    let deleted = world.graph.delete(&author("ann")).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 3));
    world.check().await;
    let world = with_dangling_edge().await;
    let deleted = world
        .db
        .transact(async |tx| tx.graph("library").delete(&author("ann")).await);
    assert_eq!(deleted.await.unwrap().edges, 3);
    world.check().await;
}

/// The missing object is created again while its dangling edge is removed: its count of incoming edges stays right.
#[tokio::test]
async fn object_recreated_while_its_dangling_edge_is_unlinked_has_the_right_count() {
    for polls in 1..16 {
        let engine = Slow(Arc::new(LocalEngine::memory().unwrap()));
        let world = World::on(Arc::new(engine), Capabilities::all()).await;
        world.graph.create(&author("ann")).await.unwrap();
        world.pages(1).await;
        let list = world.graph.related_by(&author("ann"), "reads");
        list.link(&page("0")).await.unwrap();
        remove_foreign(&world, "page", "0").await;
        let mut unlink = std::pin::pin!(async { list.unlink(&page("0")).await });
        if interrupt(unlink.as_mut(), polls).await.is_none() {
            world.pages(1).await;
            world.graph.repair().await.unwrap();
            unlink.await.unwrap();
        }
        assert_eq!(list.keys().await.unwrap(), [], "polls={polls}");
        world.check().await;
    }
}
