//! `floe graph`.

use floe::Db;
use floe::db::ConnectOptions;
use floe::graph::{Graph, GraphSchema, IndexDef, IndexKey, Node};
use floe_store::Item;
use floe_store::op::{DeleteItem, PutItem};
use serde_json::Value;
use tempfile::TempDir;

use crate::world::{Ended, Running, block_on, run, with_db};

fn schema() -> GraphSchema {
    let by_name = IndexDef::new("by_name", "author", 1, |author, emit| {
        let name = author.get("name").and_then(|name| name.as_s());
        name.into_iter()
            .for_each(|name| emit.key(IndexKey::text(name)));
    });
    GraphSchema::new()
        .prefix("lib_")
        .index_def(by_name.unique())
}

/// Two authors who like each other, in each of two scopes.
async fn fill(db: &Db) {
    db.ensure_graph().await.unwrap();
    for scope in ["one", "two"] {
        let graph = db.graph(scope);
        for (id, name) in [("a", "Ann"), ("b", "Bob")] {
            let author = Node::new("author", id).with("name", name);
            graph.create(&author).await.unwrap();
        }
        link(&graph, "a", "b").await;
        link(&graph, "b", "a").await;
    }
}

async fn link(graph: &Graph<'_>, from: &str, to: &str) {
    let list = graph.related_by(&("author", from), "likes");
    list.link(&("author", to)).await.unwrap();
}

/// Removes an author of the first scope behind the back of the graph, and an entry of the second.
async fn spoil(db: &Db) {
    let entity = Item::new()
        .with("_id", "b")
        .with("_scope_type_key", "one:author");
    let delete = DeleteItem::new("lib_entities_master", entity);
    db.engine().write_item(delete.into()).await.unwrap();
    let entry = Item::new()
        .with("_subject_key", "two:author:a")
        .with("_unique_key", "by_name:Ann");
    let delete = DeleteItem::new("lib_index_entries", entry);
    db.engine().write_item(delete.into()).await.unwrap();
}

struct World(TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        world.with(fill);
        world
    }

    fn with<T>(&self, work: impl AsyncFnOnce(&Db) -> T) -> T {
        with_db(self.0.path(), async |db| {
            work(&db.with_graph(schema())).await
        })
    }

    fn check(&self, arguments: &[&str]) -> Ended {
        let path = self.0.path().to_str().unwrap();
        let words = ["graph", "check", "--prefix", "lib_", "--data", path];
        run(&[&words, arguments].concat())
    }
}

#[test]
fn tables_that_agree_are_told_by_scope() {
    let world = World::new();
    let ended = world.check(&[]).succeeded();
    assert_eq!(
        ended.stdout,
        "scope  entities  edges  entries  differences\n\
         one           2      2        2            0\n\
         two           2      2        2            0\n"
    );
    let ended = world.check(&["--scope", "two", "--repair"]).succeeded();
    assert_eq!(
        ended.stdout,
        "scope  entities  edges  entries  differences  left\n\
         two           2      2        2            0     0\n"
    );
}

#[test]
fn differences_are_told_and_what_can_be_is_repaired() {
    let world = World::new();
    world.with(spoil);
    let ended = world.check(&[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for line in [
        "one           1      2        2            4",
        "one  an edge leads from nothing: subject=author:b predicate=likes object=author:a",
        "one  an edge leads to nothing: subject=author:a predicate=likes object=author:b",
        "one  an entry is one too many: entity=author:b index=by_name key=Bob",
        "one  a unique key is held in vain: entity=author:b index=by_name key=Bob",
        "two  an entry is missing or wrong: entity=author:a index=by_name key=Ann",
    ] {
        assert!(
            ended.stdout.lines().any(|told| told == line),
            "{line}: {ended:?}"
        );
    }
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("do not agree: differences="), "{ended:?}");
    // Telling changes nothing.
    assert_eq!(world.check(&[]).stdout, ended.stdout);
    world.check(&["--scope", "one", "--repair"]).succeeded();
    world.check(&["--scope", "one"]).succeeded();
    // The function of the index is not known here: the entry is for a program that has it.
    let ended = world.check(&["--repair"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let left = "two  an entry is missing or wrong: entity=author:a index=by_name key=Ann (left)";
    assert!(ended.stdout.lines().any(|told| told == left), "{ended:?}");
    world.with(async |db| db.graph("two").repair().await.unwrap());
    world.check(&[]).succeeded();
    let kept = world.with(async |db| db.graph("one").check().await.unwrap());
    assert_eq!((kept.entities, kept.edges, kept.entries), (1, 0, 1));
}

#[test]
fn what_was_begun_in_steps_is_told_and_ended() {
    let world = World::new();
    world.with(async |db| {
        let graph = db.graph("one");
        let note = Item::new()
            .with("_id", "_leaving")
            .with("_scope_type_key", "one::author:z")
            .with("_scope", "one")
            .with("_entity_type", "author")
            .with("_entity_id", "z");
        let put = PutItem::new("lib_entities_master", note);
        db.engine().write_item(put.into()).await.unwrap();
        assert_eq!(graph.check().await.unwrap().differences.len(), 1);
    });
    let ended = world.check(&["--json", "--scope", "one"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told: Value = serde_json::from_str(ended.stdout.trim()).unwrap();
    let scope = &told["scopes"][0];
    assert_eq!(
        (&scope["scope"], &scope["entities"]),
        (&"one".into(), &2.into())
    );
    assert_eq!(scope["differences"][0]["kind"], "extra_intent");
    assert_eq!(
        scope["left"][0]["text"],
        "a deletion is noted in vain: entity=author:z"
    );
    let ended = world.check(&["--json", "--repair"]).succeeded();
    let told: Value = serde_json::from_str(ended.stdout.trim()).unwrap();
    assert_eq!(told["scopes"][0]["left"], serde_json::json!([]));
    assert_eq!(told["scopes"][0]["differences"][0]["kind"], "extra_intent");
    world.check(&[]).succeeded();
}

#[test]
fn a_graph_behind_a_server_is_checked() {
    let (_server, endpoint) = Running::server();
    block_on(async {
        let db = Db::connect(ConnectOptions::local(&endpoint)).await.unwrap();
        let db = db.with_graph(schema());
        fill(&db).await;
        spoil(&db).await;
    });
    let words = [
        "graph",
        "check",
        "--prefix",
        "lib_",
        "--endpoint",
        &endpoint,
    ];
    let ended = run(&words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 3 + 1 + 5, "{ended:?}");
    let scope = ["--scope", "one", "--repair"];
    run(&[&words[..], &scope].concat()).succeeded();
}

#[test]
fn a_place_without_a_graph_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    with_db(folder.path(), async |_| ());
    let path = folder.path().to_str().unwrap();
    let ended = run(&["graph", "check", "--data", path]);
    ended.failed(
        1,
        &["there is no graph", "table=entities_master", "--prefix"],
    );
    run(&["graph", "check", "--data", "/nowhere"]).failed(1, &["no such directory"]);
    run(&["graph", "check", "--scop", "x"]).failed(2, &["--scop"]);
    let world = World::new();
    world.check(&["--scope", ""]).failed(1, &["scope"]);
}
