//! The twelve use cases of the tables: their results and their requests.

use super::support::{
    Article, Author, ByTag, Holds, Since, World, Wrote, article, author, ids, shelf,
};

/// A library in which Ann wrote three articles, and the second one is on two shelves.
async fn library() -> World {
    let world = World::new().await;
    let graph = &world.graph;
    graph.create(&author("ann")).await.unwrap();
    for id in ["a-1", "a-2", "a-3"] {
        let mut article = article(id);
        article.tags = vec!["Code".to_owned(), id.to_owned()];
        graph.create(&article).await.unwrap();
    }
    let wrote = graph.related::<Wrote>(&author("ann"));
    wrote
        .append(["a-1", "a-2", "a-3"].map(article))
        .await
        .unwrap();
    for name in ["north", "south"] {
        graph.create(&shelf(name)).await.unwrap();
        let holds = graph.related::<Holds>(&shelf(name));
        holds
            .link_with(&article("a-2"), &Some(Since { day: 7 }))
            .await
            .unwrap();
    }
    world.engine.take();
    world
}

#[tokio::test]
async fn get_subject_by_id() {
    let world = library().await;
    let ann = world.graph.get::<Author>("ann").await.unwrap();
    assert_eq!(ann, Some(author("ann")));
    assert_eq!(
        world.engine.take(),
        [r#"GetItem entities_master {"_id": "ann", "_scope_type_key": "library:author"}"#]
    );
    assert_eq!(world.graph.get::<Author>("bob").await.unwrap(), None);
    // The same id under another type or scope is another entity.
    assert_eq!(world.graph.get::<Article>("ann").await.unwrap(), None);
    let other = world.db.graph("other");
    assert_eq!(other.get::<Author>("ann").await.unwrap(), None);
}

#[tokio::test]
async fn page_all_subjects_by_type() {
    let world = library().await;
    let articles = world.graph.all::<Article>().limit(2);
    let first = articles.page().await.unwrap();
    assert_eq!(world.requests(), ["Query"]);
    let second = articles
        .clone()
        .after(first.next.unwrap())
        .page()
        .await
        .unwrap();
    assert_eq!(world.requests(), ["Query"]);
    let found: Vec<_> = first
        .rows
        .iter()
        .chain(&second.rows)
        .map(|a| a.id.as_str())
        .collect();
    assert_eq!(found, ["a-1", "a-2", "a-3"]);
    let newest = world.graph.all::<Article>().newest_first().limit(1);
    assert_eq!(newest.page().await.unwrap().rows[0].id, "a-3");
    // An updated entity comes last.
    world.graph.update(&article("a-1")).await.unwrap();
    let all = world.graph.all::<Article>().collect().await.unwrap();
    let order: Vec<_> = all.iter().map(|article| article.id.as_str()).collect();
    assert_eq!(order, ["a-2", "a-3", "a-1"]);
}

#[tokio::test]
async fn get_relationship_keys_for_subject() {
    let world = library().await;
    let edges = world
        .graph
        .related_all(&author("ann"))
        .keys()
        .await
        .unwrap();
    // The edges, and the deletions in progress, whose edges are left out.
    assert_eq!(world.requests(), ["Query", "Query"]);
    assert_eq!(ids(&edges), ["a-1", "a-2", "a-3"]);
    assert!(edges.iter().all(|edge| edge.predicate == "wrote"));
}

#[tokio::test]
async fn get_relationship_objects_for_subject() {
    let world = library().await;
    let related = world
        .graph
        .related_all(&author("ann"))
        .objects()
        .await
        .unwrap();
    assert_eq!(world.requests(), ["Query", "BatchGetItem"]);
    let titles: Vec<_> = related
        .iter()
        .map(|related| {
            related
                .object
                .as_ref()
                .unwrap()
                .get("title")
                .unwrap()
                .as_s()
                .unwrap()
        })
        .collect();
    assert_eq!(titles, ["On a-1", "On a-2", "On a-3"]);
}

#[tokio::test]
async fn get_relationship_keys_by_predicate_for_subject() {
    let world = library().await;
    let ann = author("ann");
    // A predicate that is a prefix of another one does not match it.
    let more = world.graph.related_by(&ann, "wrote_more");
    more.link(&article("a-3")).await.unwrap();
    world.engine.take();
    let edges = world.graph.related::<Wrote>(&ann).keys().await.unwrap();
    assert_eq!(world.requests(), ["Query", "Query"]);
    assert_eq!(ids(&edges), ["a-1", "a-2", "a-3"]);
    let none = world.graph.related_by(&ann, "read").keys().await.unwrap();
    assert_eq!(
        (none.len(), world.requests()),
        (0, vec!["Query".to_owned()])
    );
    let edges = more.keys().await.unwrap();
    assert_eq!(ids(&edges), ["a-3"]);
}

#[tokio::test]
async fn get_relationship_objects_by_predicate_for_subject() {
    let world = library().await;
    let related = world
        .graph
        .related::<Holds>(&shelf("north"))
        .objects()
        .await
        .unwrap();
    assert_eq!(world.requests(), ["Query", "BatchGetItem"]);
    assert_eq!(related.len(), 1);
    assert_eq!(related[0].object.as_ref().unwrap().id, "a-2");
    assert_eq!(related[0].attributes, Some(Since { day: 7 }));
}

#[tokio::test]
async fn query_objects_from_index() {
    let world = library().await;
    let found = world.graph.find::<ByTag>().eq("code").load().await.unwrap();
    assert_eq!(world.requests(), ["Query", "BatchGetItem"]);
    assert_eq!(found.len(), 3);
    let some = world.graph.find::<ByTag>().prefix("a-").backward().limit(2);
    let keys = some.keys().await.unwrap();
    assert_eq!(world.requests(), ["Query"]);
    let keys: Vec<_> = keys.iter().map(|key| key.id()).collect();
    assert_eq!(keys, ["a-3", "a-2"]);
    let entries = world
        .graph
        .find::<ByTag>()
        .eq("a-1")
        .entries()
        .await
        .unwrap();
    assert_eq!(
        entries[0].attributes.get("title").unwrap().as_s(),
        Some("On a-1")
    );
}

#[tokio::test]
async fn delete_a_record() {
    let world = library().await;
    let deleted = world.graph.delete(&article("a-2")).await.unwrap();
    assert_eq!((deleted.entities, deleted.edges), (1, 3));
    assert_eq!(
        world.requests(),
        ["GetItem", "Query", "Query", "TransactWriteItems"]
    );
    assert_eq!(world.graph.get::<Article>("a-2").await.unwrap(), None);
    let left = world
        .graph
        .related::<Wrote>(&author("ann"))
        .keys()
        .await
        .unwrap();
    assert_eq!(ids(&left), ["a-1", "a-3"]);
    let found = world.graph.find::<ByTag>().eq("code").keys().await.unwrap();
    assert_eq!(found.len(), 2);
    world.check().await;
    // A second deletion does nothing.
    world.engine.take();
    let deleted = world.graph.delete(&article("a-2")).await.unwrap();
    assert_eq!(deleted.entities, 0);
    assert_eq!(world.requests(), ["GetItem"]);
}

#[tokio::test]
async fn set_a_record() {
    let world = library().await;
    let mut changed = article("a-2");
    changed.title = "Anew".to_owned();
    world.graph.set(&changed).await.unwrap();
    assert_eq!(world.requests(), ["GetItem", "TransactWriteItems"]);
    let found = world.graph.get::<Article>("a-2").await.unwrap();
    assert_eq!(found, Some(changed), "the tags are removed");
    let holders = world
        .graph
        .referrers(&article("a-2"))
        .by("holds")
        .keys()
        .await
        .unwrap();
    assert_eq!(holders.len(), 2, "its edges stay");
    assert_eq!(
        world
            .graph
            .find::<ByTag>()
            .eq("code")
            .keys()
            .await
            .unwrap()
            .len(),
        2
    );
    // A missing entity is created.
    world.engine.take();
    world.graph.set(&shelf("west")).await.unwrap();
    assert_eq!(world.requests(), ["GetItem", "PutItem"]);
    world.check().await;
}

#[tokio::test]
async fn remove_some_relationships_from_subject() {
    let world = library().await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    assert_eq!(wrote.unlink(&article("a-2")).await.unwrap(), 1);
    assert_eq!(world.requests(), ["GetItem", "Query", "TransactWriteItems"]);
    assert_eq!(ids(&wrote.keys().await.unwrap()), ["a-1", "a-3"]);
    assert!(world.graph.get::<Article>("a-2").await.unwrap().is_some());
    world.check().await;
}

#[tokio::test]
async fn add_some_relationships_on_subject() {
    let world = library().await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    // The list may contain an object several times.
    wrote
        .append([article("a-1"), article("a-1")])
        .await
        .unwrap();
    assert_eq!(world.requests(), ["GetItem", "Query", "TransactWriteItems"]);
    let edges = wrote.keys().await.unwrap();
    assert_eq!(ids(&edges), ["a-1", "a-2", "a-3", "a-1", "a-1"]);
    world.check().await;
}

#[tokio::test]
async fn replace_relationships_on_subject() {
    let world = library().await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    wrote.replace(["a-3", "a-1"].map(article)).await.unwrap();
    let requests = world.engine.take();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    // One edge is removed and one moves: three writes of edges, two counts of incoming edges, one list version.
    let writes = requests[2].matches("relationship_entries").count();
    assert_eq!(writes, 3, "{requests:#?}");
    assert_eq!(ids(&wrote.keys().await.unwrap()), ["a-3", "a-1"]);
    wrote.replace::<Article>([]).await.unwrap();
    assert_eq!(wrote.keys().await.unwrap(), []);
    world.check().await;
}
