//! Indexes defined by functions: lookups, unique keys, and rebuilds after a change of the function.

use std::sync::Mutex;

use floe::ErrorKind;
use floe::graph::{Emit, Entity, GraphSchema, IndexDef, IndexKey, MapIndex, Node};

use super::support::{Article, Author, ByEmail, ByTag, ByYear, World, article, author};

fn tagged(id: &str, tags: &[&str]) -> Article {
    Article {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..article(id)
    }
}

fn of_year(id: &str, year: i64) -> Article {
    Article {
        year,
        ..article(id)
    }
}

#[tokio::test]
async fn each_key_finds_an_entity_once() {
    let world = World::new().await;
    world
        .graph
        .create(&tagged("a", &["Code", "code", "Rust"]))
        .await
        .unwrap();
    world.graph.create(&tagged("b", &[])).await.unwrap();
    assert_eq!(
        world
            .graph
            .find::<ByTag>()
            .eq("code")
            .keys()
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        world
            .graph
            .find::<ByTag>()
            .eq("rust")
            .load()
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(world.graph.find::<ByTag>().keys().await.unwrap().len(), 2);
    world.engine.take();
    world
        .graph
        .set(&tagged("a", &["Rust", "New"]))
        .await
        .unwrap();
    let requests = world.engine.take();
    // One entry is added and one deleted; the third is not written.
    assert_eq!(
        requests[1].matches("index_entries {").count(),
        2,
        "{requests:#?}"
    );
    assert_eq!(
        world.graph.find::<ByTag>().eq("code").keys().await.unwrap(),
        []
    );
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

#[tokio::test]
async fn attributes_copied_into_entries_are_updated() {
    let world = World::new().await;
    world.graph.create(&tagged("a", &["code"])).await.unwrap();
    let mut changed = tagged("a", &["code"]);
    changed.title = "Anew".to_owned();
    world.graph.set(&changed).await.unwrap();
    let entries = world
        .graph
        .find::<ByTag>()
        .eq("code")
        .entries()
        .await
        .unwrap();
    assert_eq!(
        entries[0].attributes.get("title").unwrap().as_s(),
        Some("Anew")
    );
    world.check().await;
}

#[tokio::test]
async fn number_keys_sort_numerically() {
    let world = World::new().await;
    let years = [-300, -5, 0, 7, 10, 2000];
    for year in years {
        world
            .graph
            .create(&of_year(&format!("y{year}"), year))
            .await
            .unwrap();
    }
    let found = |articles: Vec<Article>| -> Vec<i64> { articles.iter().map(|a| a.year).collect() };
    let by_year = || world.graph.find::<ByYear>();
    assert_eq!(found(by_year().load().await.unwrap()), years);
    assert_eq!(
        found(by_year().range(&-5..&10).load().await.unwrap()),
        [-5, 0, 7]
    );
    assert_eq!(
        found(by_year().range(&-5..=&10).load().await.unwrap()),
        [-5, 0, 7, 10]
    );
    assert_eq!(
        found(by_year().range(&7..).backward().load().await.unwrap()),
        [2000, 10, 7]
    );
    assert_eq!(
        found(by_year().range(..&0).load().await.unwrap()),
        [-300, -5]
    );
    assert_eq!(found(by_year().eq(&7).load().await.unwrap()), [7]);
    let nothing = by_year().range(&10..&5).load().await.unwrap();
    assert_eq!(nothing, []);
}

#[tokio::test]
async fn index_lookup_is_paged() {
    let world = World::new().await;
    for number in 0..7 {
        world
            .graph
            .create(&of_year(&number.to_string(), number))
            .await
            .unwrap();
    }
    let mut query = world.graph.find::<ByYear>().limit(3);
    let mut found = Vec::new();
    loop {
        let page = query.page().await.unwrap();
        found.extend(page.rows.iter().map(|article| article.year));
        let Some(next) = page.next else { break };
        query = query.after(next);
    }
    assert_eq!(found, (0..7).collect::<Vec<_>>());
    let error = world
        .graph
        .find::<ByYear>()
        .backward()
        .after("00")
        .page()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
}

#[tokio::test]
async fn fifty_matches_take_one_query_and_one_batch() {
    let world = World::new().await;
    for number in 0..50 {
        world
            .graph
            .create(&tagged(&number.to_string(), &["code"]))
            .await
            .unwrap();
    }
    world.engine.take();
    let found = world.graph.find::<ByTag>().eq("code").load().await.unwrap();
    assert_eq!(found.len(), 50);
    assert_eq!(world.requests(), ["Query", "BatchGetItem"]);
}

#[tokio::test]
async fn unique_key_is_rejected_for_a_second_entity() {
    let world = World::new().await;
    let with = |id: &str, email: &str| Author {
        email: Some(email.to_owned()),
        ..author(id)
    };
    world.graph.create(&with("ann", "Ann@x")).await.unwrap();
    let error = world.graph.create(&with("bob", "ann@X")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(
        error.to_string(),
        "another entity has the unique key: index=by_email key=ann@x holder=author:ann"
    );
    assert_eq!(world.graph.get::<Author>("bob").await.unwrap(), None);
    // Scopes are independent.
    world
        .db
        .graph("other")
        .create(&with("bob", "ann@x"))
        .await
        .unwrap();
    // An update of its holder releases the key.
    world.graph.set(&with("ann", "ann@y")).await.unwrap();
    world.graph.create(&with("bob", "ann@x")).await.unwrap();
    world.graph.delete(&author("ann")).await.unwrap();
    world.graph.set(&with("bob", "ann@y")).await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn unique_keys_are_swapped_in_one_transaction() {
    let world = World::new().await;
    let with = |id: &str, email: Option<&str>| Author {
        email: email.map(str::to_owned),
        ..author(id)
    };
    world.graph.create(&with("ann", Some("a@x"))).await.unwrap();
    world.graph.create(&with("bob", Some("b@x"))).await.unwrap();
    let swap = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.set(&with("ann", Some("b@x"))).await?;
        graph.set(&with("bob", Some("a@x"))).await
    });
    swap.await.unwrap();
    let found = world
        .graph
        .find::<ByEmail>()
        .eq("a@x")
        .load()
        .await
        .unwrap();
    assert_eq!(found[0].id, "bob");
    let both = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.set(&with("ann", Some("c@x"))).await?;
        graph.set(&with("bob", Some("c@x"))).await
    });
    assert_eq!(both.await.unwrap_err().kind(), ErrorKind::Conflict);
    world.check().await;
}

#[tokio::test]
async fn concurrent_creators_share_no_unique_key() {
    let world = World::new().await;
    let mut tasks = Vec::new();
    for task in 0..8 {
        let graph = world.graph.clone();
        tasks.push(tokio::spawn(async move {
            let author = Author {
                email: Some("same@x".to_owned()),
                ..author(&task.to_string())
            };
            graph.create(&author).await
        }));
    }
    let mut won = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(()) => won += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
        }
    }
    assert_eq!(won, 1);
    world.check().await;
}

/// The index by tag, with another function: in capital letters.
enum ByLoudTag {}

impl MapIndex for ByLoudTag {
    type Of = Article;
    type Key = String;
    const NAME: &'static str = "by_tag";
    const VERSION: u64 = 2;

    fn map(article: &Article, emit: &mut Emit<String>) {
        article
            .tags
            .iter()
            .for_each(|tag| emit.key(tag.to_uppercase()));
    }
}

#[tokio::test]
async fn index_is_rebuilt_after_a_function_change() {
    let world = World::new().await;
    for number in 0..30 {
        world
            .graph
            .create(&tagged(&number.to_string(), &["code", "x"]))
            .await
            .unwrap();
    }
    let db = world
        .db
        .clone()
        .with_graph(GraphSchema::new().index::<ByLoudTag>());
    let graph = db.graph("library");
    let error = graph
        .find::<ByLoudTag>()
        .eq("CODE")
        .keys()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    assert!(error.to_string().contains("expected=2 actual=1"), "{error}");
    // A scan finds the same, but reads everything.
    let scanned = graph
        .find::<ByLoudTag>()
        .eq("CODE")
        .or_scan()
        .load()
        .await
        .unwrap();
    assert_eq!(scanned.len(), 30);
    // Entities written meanwhile have their entries already.
    graph.create(&tagged("new", &["code"])).await.unwrap();
    let reported = Mutex::new(Vec::new());
    let rebuilt = graph
        .rebuild::<ByLoudTag>(|progress| reported.lock().unwrap().push(progress.entities))
        .await
        .unwrap();
    assert_eq!((rebuilt.entities, rebuilt.changed), (31, 30));
    assert_eq!(reported.into_inner().unwrap().last(), Some(&31));
    assert_eq!(
        graph
            .find::<ByLoudTag>()
            .eq("CODE")
            .load()
            .await
            .unwrap()
            .len(),
        31
    );
    assert_eq!(
        graph.find::<ByLoudTag>().eq("code").keys().await.unwrap(),
        []
    );
    let report = graph.check().await.unwrap();
    assert_eq!(report.differences.len(), 0, "{:#?}", report.differences);
    // A second rebuild changes nothing.
    let again = graph.rebuild::<ByLoudTag>(|_| {}).await.unwrap();
    assert_eq!(again.changed, 0);
}

#[tokio::test]
async fn new_index_over_existing_entities_needs_a_rebuild() {
    let world = World::new().await;
    world
        .graph
        .create(&Node::new("thing", "a").with("size", 3))
        .await
        .unwrap();
    let by_size = |unique: bool| {
        let index = IndexDef::new("by_size", "thing", 1, |thing, emit| {
            let size = thing.get("size").and_then(|size| size.as_n());
            size.into_iter()
                .for_each(|size| emit.key(IndexKey::number(size)));
        });
        let index = if unique { index.unique() } else { index };
        world
            .db
            .clone()
            .with_graph(GraphSchema::new().index_def(index))
    };
    let db = by_size(false);
    let graph = db.graph("library");
    let error = graph.find_by("by_size").keys().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    graph.rebuild_by("by_size", |_| {}).await.unwrap();
    let found = graph
        .find_by("by_size")
        .eq(&IndexKey::number(3))
        .load()
        .await
        .unwrap();
    assert_eq!(found[0].key.id(), "a");
    // In a scope without entities, the index is complete.
    assert_eq!(
        db.graph("empty").find_by("by_size").keys().await.unwrap(),
        []
    );
    let error = graph.find_by("by_weight").keys().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
}

#[tokio::test]
async fn rebuild_of_a_unique_index_fails_on_duplicate_keys() {
    let world = World::new().await;
    for id in ["a", "b"] {
        world
            .graph
            .create(&Node::new("thing", id).with("size", 3))
            .await
            .unwrap();
    }
    let index = IndexDef::new("by_size", "thing", 1, |_, emit| {
        emit.key(IndexKey::text("3"));
    });
    let db = world
        .db
        .clone()
        .with_graph(GraphSchema::new().index_def(index.unique()));
    let graph = db.graph("library");
    let error = graph.rebuild_by("by_size", |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    graph.delete(&("thing", "a")).await.unwrap();
    graph.rebuild_by("by_size", |_| {}).await.unwrap();
    assert_eq!(graph.find_by("by_size").keys().await.unwrap().len(), 1);
}

#[tokio::test]
async fn invalid_index_keys_are_rejected() {
    let world = World::new().await;
    for tag in [String::new(), "x".repeat(1100)] {
        let error = world
            .graph
            .create(&tagged("a", &[tag.as_str()]))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField);
        assert_eq!(error.field(), Some("by_tag"), "{error}");
    }
    for tag in ["a:b", "a\\:b", "\u{0}", "ß", &"x".repeat(1000)] {
        world.graph.set(&tagged(tag, &[tag])).await.unwrap();
        let found = world.graph.find::<ByTag>().eq(tag).load().await.unwrap();
        assert_eq!(found.len(), 1, "{tag}");
    }
    assert_eq!(world.graph.find::<ByTag>().eq("").load().await.unwrap(), []);
    assert_eq!(Article::TYPE, "article");
    world.check().await;
}
