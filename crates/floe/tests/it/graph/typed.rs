//! Typed relations: what their lists offer, and what untyped calls may add to them.

use floe::ErrorKind;
use floe::graph::{EntityKey, Graph, GraphSchema, Include, KeyOf, Node, Record, Relation, ToKey};
use floe::model::Json;

use super::support::{
    Article, Author, Cites, Holds, Shelf, Since, World, Wrote, article, author, create, ids, shelf,
};

/// The articles that a shelf lends, with the day. The attributes are mandatory.
enum Lends {}

impl Relation for Lends {
    const PREDICATE: &'static str = "lends";
    type Subject = Shelf;
    type Object = Article;
    type Attributes = Since;
}

/// A test graph with a shelf, articles, an author, and the relations of shelves.
async fn world() -> (World, Graph<'static>) {
    let world = World::new().await;
    world.graph.create(&shelf("north")).await.unwrap();
    world.graph.create(&author("ann")).await.unwrap();
    create(&world, &["a", "b", "c"]).await;
    let schema = GraphSchema::new()
        .relation::<Lends>()
        .relation::<Holds>()
        .relation::<Wrote>();
    let graph = world.db.clone().with_graph(schema).graph("library");
    world.engine.take();
    (world, graph)
}

fn since(day: u32) -> Since {
    Since { day }
}

fn json(day: impl Into<Json>) -> Json {
    Json::from_iter([("day", day.into())])
}

#[tokio::test]
async fn untyped_edges_without_the_declared_attributes_are_rejected() {
    let (world, graph) = world().await;
    let (north, a) = (shelf("north"), article("a"));
    let untyped = graph.related_by(&north, "lends");
    let many = || (0..120).map(|_| article("a"));
    let refused = [
        untyped.link(&a).await,
        untyped.link_at(0, &a).await,
        untyped.link_once([a.clone()]).await,
        untyped.append([article("a")]).await,
        untyped.append(many()).await,
        untyped.replace(many()).await,
        untyped.link_with(&a, &json("monday")).await,
        untyped.replace_with([(article("a"), json(-1))]).await,
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
        assert_eq!(error.field(), Some("lends"), "{error}");
    }
    let error = untyped.link(&a).await.unwrap_err().to_string();
    let expected = "the attributes of the edge do not match its relation: pass those that it declares: \
        subject=shelf:north object=article:a";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("day"), "{error}");
    // A relation without attributes takes none.
    let wrote = graph.related_by(&author("ann"), "wrote");
    let error = wrote.link_with(&a, &json(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    wrote.link(&a).await.unwrap();
    // The declared attributes are accepted, and the list can be read.
    untyped.link_with(&a, &json(3)).await.unwrap();
    let lends = graph.related::<Lends>(&north);
    let found = lends.objects().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].attributes, since(3));
    world.check().await;
}

#[tokio::test]
async fn edges_that_stay_keep_their_attributes() {
    let (world, graph) = world().await;
    let pages = world.pages(130).await;
    for count in [3, 130] {
        let list = graph.related_by(&shelf("north"), format!("page{count}"));
        let days = pages.iter().take(count).cloned().zip(0_u32..);
        let attributes = days.map(|(page, day)| (page, json(day)));
        list.append_with(attributes).await.unwrap();
        let mut reversed: Vec<EntityKey> = pages.iter().take(count).skip(1).cloned().collect();
        reversed.reverse();
        list.replace(reversed).await.unwrap();
        let found = list.objects().await.unwrap();
        let days: Vec<Json> = found
            .into_iter()
            .map(|related| related.attributes)
            .collect();
        let expected: Vec<Json> = (1..count as u32).rev().map(json).collect();
        assert_eq!(days, expected);
    }
    // An untyped replacement of a typed list: the articles that stay keep their attributes, others have none.
    let lends = graph.related::<Lends>(&shelf("north"));
    lends
        .append_with([(article("a"), since(1)), (article("b"), since(2))])
        .await
        .unwrap();
    let untyped = graph.related_by(&shelf("north"), "lends");
    untyped.replace(["b", "a"].map(article)).await.unwrap();
    let error = untyped.replace(["b", "c"].map(article)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    let days: Vec<Since> = lends
        .objects()
        .await
        .unwrap()
        .into_iter()
        .map(|related| related.attributes)
        .collect();
    assert_eq!(days, [since(2), since(1)]);
    world.check().await;
}

#[tokio::test]
async fn edges_between_undeclared_types_are_rejected() {
    let (world, graph) = world().await;
    let (north, ann) = (shelf("north"), author("ann"));
    // The object, and then the subject, has another type than the relation.
    let error = graph.related_by(&north, "holds").link(&ann).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(
        error.to_string(),
        "no relation of this predicate has these types: correct the types, or declare the relation: \
         subject=shelf:north predicate=holds object=author:ann declared=shelf-article"
    );
    let by_author = graph.related_by(&ann, "holds");
    let error = by_author.link(&article("a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    let in_transaction = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph
            .related_by(&north, "holds")
            .append([author("ann")])
            .await
    });
    assert_eq!(
        in_transaction.await.unwrap_err().kind(),
        ErrorKind::InvalidUse
    );
    // A predicate without a relation is free.
    graph.related_by(&north, "likes").link(&ann).await.unwrap();
    assert_eq!(graph.related_all(&ann).keys().await.unwrap(), []);
    world.check().await;
}

/// Another program, which does not know the relations, has linked entities of other types.
#[tokio::test]
async fn entities_of_another_type_are_not_read_as_the_declared_type() {
    let (world, graph) = world().await;
    let other = world.db.clone().with_graph(GraphSchema::new());
    let other = other.graph("library");
    // It has all attributes of an article.
    let report = Node::new("report", "r").with("title", "On a");
    other.create(&report).await.unwrap();
    let north = shelf("north");
    other
        .related_by(&north, "holds")
        .link(&report)
        .await
        .unwrap();
    let error = graph.related::<Holds>(&north).objects().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the entity has another type: expected=article actual=report:r model=graph field=type"
    );
    // The referrers of a relation are its subjects only.
    let ann = author("ann");
    for subject in [ann.to_key(), north.to_key()] {
        let list = other.related_by(&subject, "holds");
        list.link(&article("a")).await.unwrap();
    }
    let referrers = graph.referrers(&article("a"));
    assert_eq!(referrers.clone().by("holds").keys().await.unwrap().len(), 2);
    let shelves = referrers.of::<Holds>().await.unwrap();
    let shelves: Vec<_> = shelves.into_iter().map(|found| found.subject).collect();
    assert_eq!(shelves, [Some(north)]);
}

#[tokio::test]
async fn typed_keys_identify_subjects_and_objects() {
    let (world, graph) = world().await;
    let holds = graph.related::<Holds>(&KeyOf::<Shelf>::new("north"));
    let key = KeyOf::<Article>::new;
    holds.link_with(&key("a"), &None).await.unwrap();
    holds
        .link_at_with(0, &article("b"), &Some(since(7)))
        .await
        .unwrap();
    let edges = holds.keys().await.unwrap();
    assert_eq!(ids(&edges), ["b", "a"]);
    let objects = edges.into_iter().rev().map(|edge| edge.object);
    let objects: Vec<KeyOf<Article>> = objects.map(|key| key.try_into().unwrap()).collect();
    holds.reorder(objects).await.unwrap();
    let found = holds.objects().await.unwrap();
    assert_eq!(found[1].attributes, Some(since(7)));
    assert_eq!(holds.unlink(&key("b")).await.unwrap(), 1);
    let shelves = graph.referrers(&key("a")).of::<Holds>().await.unwrap();
    assert_eq!(shelves.len(), 1);
    let error = KeyOf::<Author>::try_from(EntityKey::new("article", "a")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key has another type: expected=author actual=article:a"
    );
    world.check().await;
}

#[tokio::test]
async fn link_once_adds_only_objects_that_are_missing() {
    let world = World::new().await;
    world.graph.create(&author("ann")).await.unwrap();
    world.graph.create(&shelf("north")).await.unwrap();
    create(&world, &["a", "b", "c"]).await;
    let wrote = world.graph.related::<Wrote>(&author("ann"));
    // An object that the list contains twice stays twice.
    wrote.append(["b", "b"].map(article)).await.unwrap();
    world.engine.take();
    wrote
        .link_once(["c", "b", "c", "a"].map(article))
        .await
        .unwrap();
    assert_eq!(world.requests(), ["GetItem", "Query", "TransactWriteItems"]);
    assert_eq!(ids(&wrote.keys().await.unwrap()), ["b", "b", "c", "a"]);
    world.engine.take();
    wrote.link_once(["a", "b"].map(article)).await.unwrap();
    assert_eq!(world.requests(), ["GetItem", "Query"]);
    // Present edges keep their attributes.
    let holds = world.graph.related::<Holds>(&shelf("north"));
    holds
        .link_with(&article("a"), &Some(since(1)))
        .await
        .unwrap();
    let days = [("a", since(2)), ("b", since(3))];
    let days = days.map(|(id, day)| (article(id), Some(day)));
    holds.link_once_with(days).await.unwrap();
    let found = holds.objects().await.unwrap();
    let days: Vec<_> = found
        .into_iter()
        .map(|related| related.attributes)
        .collect();
    assert_eq!(days, [Some(since(1)), Some(since(3))]);
    // Concurrent calls add an object once.
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let graph = world.graph.clone();
        tasks.push(tokio::spawn(async move {
            let cites = graph.related::<Cites>(&article("a"));
            cites.link_once([article("b"), article("c")]).await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let cites = world.graph.related::<Cites>(&article("a"));
    assert_eq!(ids(&cites.keys().await.unwrap()), ["b", "c"]);
    // More than one commit.
    let pages = world.pages(150).await;
    let list = world.graph.related_by(&author("ann"), "pages");
    list.append(pages.iter().take(10).cloned()).await.unwrap();
    list.link_once(pages.clone()).await.unwrap();
    let found = list.keys().await.unwrap();
    let found: Vec<EntityKey> = found.into_iter().map(|edge| edge.object).collect();
    assert_eq!(found, pages);
    world.check().await;
}

#[tokio::test]
async fn include_of_a_relation_with_other_subjects_is_rejected() {
    let (world, graph) = world().await;
    graph
        .related::<Wrote>(&author("ann"))
        .link(&article("a"))
        .await
        .unwrap();
    world.engine.take();
    let of_shelf = [Include::relation::<Holds>()];
    let error = graph.include(&author("ann"), &of_shelf).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(
        error.to_string(),
        "the included relation has subjects of another type: predicate=holds expected=shelf actual=author"
    );
    let nested = [Include::relation::<Wrote>().with(Include::relation::<Holds>())];
    let error = graph.include(&author("ann"), &nested).await.unwrap_err();
    assert!(
        error.to_string().ends_with("expected=shelf actual=article"),
        "{error}"
    );
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test]
async fn record_is_set_with_its_lists_in_one_commit() {
    let (world, graph) = world().await;
    let south = shelf("south");
    let record = |days: &[(&str, u32)], held: &[&str]| {
        let days = days.iter().map(|(id, day)| (article(id), since(*day)));
        let held = held.iter().map(|id| (article(id), None));
        let record = Record::new(&south).unwrap();
        let record = record.related_with::<Lends>(days.collect::<Vec<_>>());
        record.related_with::<Holds>(held.collect::<Vec<_>>())
    };
    // A new entity has no lists to read.
    let first = record(&[("a", 1), ("b", 2)], &["c"]);
    graph.set_record(&first).await.unwrap();
    assert_eq!(world.requests(), ["GetItem", "TransactWriteItems"]);
    let likes = graph.related_by(&south, "likes");
    likes.link(&author("ann")).await.unwrap();
    world.engine.take();
    graph
        .set_record(&record(&[("b", 3)], &["c", "a"]))
        .await
        .unwrap();
    assert_eq!(
        world.requests(),
        ["GetItem", "Query", "Query", "TransactWriteItems"]
    );
    let lends = graph.related::<Lends>(&south);
    let found = lends.objects().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].edge.object.id(), found[0].attributes.day),
        ("b", 3)
    );
    let holds = graph.related::<Holds>(&south);
    assert_eq!(ids(&holds.keys().await.unwrap()), ["c", "a"]);
    assert_eq!(likes.keys().await.unwrap().len(), 1, "other lists stay");
    // A missing object: nothing is changed, and the entity is not created.
    let west = Record::new(&shelf("west")).unwrap();
    let west = west.related_with::<Holds>([(article("none"), None)]);
    let error = graph.set_record(&west).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(graph.get::<Shelf>("west").await.unwrap(), None);
    world.check().await;
}

#[tokio::test]
async fn record_with_long_lists_is_set_in_steps() {
    let (world, graph) = world().await;
    let pages = world.pages(150).await;
    let south = Node::new("shelf", "south");
    let record = |counts: [usize; 2]| {
        let some = |count| pages.iter().take(count).cloned();
        let record = Record::new(&south).unwrap();
        let record = record.related_by("pages", some(counts[0]));
        record.related_by("more", some(counts[1]))
    };
    // Each list fits into a commit, but not both; then neither fits.
    for counts in [[30, 30], [150, 120], [1, 0]] {
        graph.set_record(&record(counts)).await.unwrap();
        for (predicate, count) in ["pages", "more"].into_iter().zip(counts) {
            let list = graph.related_by(&south, predicate);
            assert_eq!(list.keys().await.unwrap().len(), count);
        }
        world.check().await;
    }
    let wide = record([150, 0]);
    let refused = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.set_record(&wide).await
    });
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::TooLarge);
    let set = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.set_record(&record([3, 2])).await
    });
    set.await.unwrap();
    let all = graph.related_all(&south).keys().await.unwrap();
    assert_eq!(all.len(), 5);
    world.check().await;
}
