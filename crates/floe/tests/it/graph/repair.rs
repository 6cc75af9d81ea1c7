//! Checks and repairs of inconsistent tables.

use floe::ErrorKind;
use floe::graph::{Difference, EntityKey, GraphSchema};
use floe_store::expr::{Path, Update};
use floe_store::op::{DeleteItem, PutItem, UpdateItem};
use floe_store::{Engine, Item, Value};

use super::support::{
    Answers, Article, ByTag, Cites, World, Wrote, article, create, ids, link, with_email,
};

/// Writes to a table directly, without the graph.
async fn spoil(world: &World, write: impl Into<floe_store::op::WriteItem>) {
    world.engine.write_item(write.into()).await.unwrap();
}

#[tokio::test]
async fn every_difference_is_reported_and_repaired() {
    let world = World::new().await;
    create(&world, &["a", "b", "c"]).await;
    let ann = with_email("ann");
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
    // A deleted entity, a wrong count, a missing entry, an extra entry, a missing claim, a needless intent.
    spoil(
        &world,
        DeleteItem::new("entities_master", entity("b", "article")),
    )
    .await;
    let update = Update::new().set(Path::attribute("_meta").field("in"), Value::from(9));
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
    let reported: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    for expected in [
        "the object of an edge does not exist: subject=author:ann predicate=wrote object=article:b",
        "the stored number of incoming edges is wrong: entity=article:c expected=(1, 0) actual=(9, 0)",
        "an index entry is missing or wrong: entity=article:a index=by_tag key=code",
        "no index function emits an entry: entity=article:c index=by_tag key=none",
        "a unique key is not claimed: entity=author:ann index=by_email key=ann@x",
        "needless record of a deletion: entity=article:z",
    ] {
        assert!(
            reported.iter().any(|text| text == expected),
            "{expected}\n{reported:#?}"
        );
    }
    // The deleted entity left an entry: by year.
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
async fn hold_that_differs_from_the_relation_is_repaired() {
    let world = World::new().await;
    create(&world, &["a", "b"]).await;
    // Linked by a program that does not declare the relation as restricting.
    let other = world.db.clone().with_graph(GraphSchema::new());
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
async fn entities_of_other_programs_are_usable_after_repair() {
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
    // With an empty `_meta`, they are usable without repair.
    let bare = foreign("old").with("_meta", Value::M(Item::new()));
    spoil(&world, PutItem::new("entities_master", bare)).await;
    let mut old = world.graph.get::<Article>("old").await.unwrap().unwrap();
    link::<Cites>(&world, &article("a"), &old).await;
    link::<Answers>(&world, &old, &article("a")).await;
    old.title = "New".to_owned();
    world.graph.update(&old).await.unwrap();
    world.check().await;
    // Without `_meta`, they need a repair.
    spoil(&world, PutItem::new("entities_master", foreign("older"))).await;
    let unreadable = foreign("broken")
        .with("_meta", Value::M(Item::new()))
        .with("year", "x");
    spoil(&world, PutItem::new("entities_master", unreadable)).await;
    let report = world.graph.repair().await.unwrap();
    let reported: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    assert!(
        reported.contains(&"an entity has no _meta: entity=article:older".to_owned()),
        "{reported:#?}"
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

/// Marks without an intent, and items that cannot be decoded, are reported, and repaired if possible.
#[tokio::test]
async fn marks_without_intents_and_damaged_items_are_reported() {
    let world = World::new().await;
    create(&world, &["a", "b", "c"]).await;
    for (id, mark) in [("a", "busy"), ("b", "behind"), ("c", "leaving")] {
        let mark = Path::attribute("_meta").field(mark);
        let update = Update::new().set(mark, "x");
        let key = Item::new()
            .with("_id", id)
            .with("_scope_type_key", "library:article");
        spoil(&world, UpdateItem::new("entities_master", key, update)).await;
    }
    let none = Item::new()
        .with("_subject_key", "library:article:a")
        .with("_predicate_key", "x")
        .with("_subject_scope", "library");
    spoil(&world, PutItem::new("relationship_entries", none.clone())).await;
    let report = world.graph.repair().await.unwrap();
    let reported: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 4, "{reported:#?}");
    assert!(reported[0].starts_with("an item cannot be decoded: table=relationship_entries"));
    for expected in [
        "unrecorded list change: entity=article:a",
        "unrecorded writing of index entries: entity=article:b",
        "unrecorded deletion: entity=article:c",
    ] {
        assert!(
            reported.iter().any(|text| text == expected),
            "{reported:#?}"
        );
    }
    let left = world.graph.check().await.unwrap().differences;
    assert!(
        matches!(left.as_slice(), [Difference::Damaged { .. }]),
        "{left:#?}"
    );
    assert_eq!(world.graph.get::<Article>("c").await.unwrap(), None);
    link::<Cites>(&world, &article("a"), &article("b")).await;
}

/// A program without relations and indexes takes the data stored on entities as correct, and its repair does no harm.
#[tokio::test]
async fn check_without_schema_uses_the_data_stored_on_entities() {
    let world = World::new().await;
    create(&world, &["b"]).await;
    let tagged = Article {
        tags: vec!["code".to_owned()],
        ..article("a")
    };
    world.graph.create(&tagged).await.unwrap();
    world.graph.create(&with_email("ann")).await.unwrap();
    link::<Cites>(&world, &article("a"), &article("b")).await;
    let other = world.db.clone().with_graph(GraphSchema::new());
    let other = other.graph("library");
    assert_eq!(other.check().await.unwrap().differences, []);
    let entry = |subject: &str, key: &str| {
        Item::new()
            .with("_subject_key", subject)
            .with("_unique_key", key)
    };
    let tag = entry("library:article:a", "by_tag:code");
    spoil(&world, DeleteItem::new("index_entries", tag)).await;
    let claim = entry("library::by_email:ann@x", "by_email:ann@x");
    spoil(&world, DeleteItem::new("index_entries", claim)).await;
    let reported = other.repair().await.unwrap().differences;
    assert_eq!(reported.len(), 2, "{reported:#?}");
    // The claim follows from the entity's stored keys; the entry needs a program with the function.
    let left = other.check().await.unwrap().differences;
    assert!(
        matches!(left.as_slice(), [Difference::MissingEntry { .. }]),
        "{left:#?}"
    );
    world.graph.repair().await.unwrap();
    world.check().await;
    let error = world.graph.delete(&article("b")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
}
