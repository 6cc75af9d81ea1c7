//! `floe graph`.

use floe::Db;
use floe::db::ConnectOptions;
use floe::graph::{Graph, GraphSchema, IndexDef, IndexKey, Node};
use floe_store::Item;
use floe_store::op::{DeleteItem, PutItem};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{ProgramOutput, Running, block_on, run, with_db};

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

/// Creates two authors who like each other in each of two scopes.
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

/// Deletes an author of the first scope and an index entry of the second directly in the tables.
async fn damage(db: &Db) {
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

struct GraphFixture(TempDir);

impl GraphFixture {
    fn new() -> Self {
        let fixture = Self(tempfile::tempdir().unwrap());
        fixture.with(fill);
        fixture
    }

    fn with<T>(&self, run: impl AsyncFnOnce(&Db) -> T) -> T {
        with_db(self.0.path(), async |db| {
            run(&db.with_graph(schema())).await
        })
    }

    fn check(&self, arguments: &[&str]) -> ProgramOutput {
        let path = self.0.path().to_str().unwrap();
        let words = ["graph", "check", "--prefix", "lib_", "--data", path];
        run(&[&words, arguments].concat())
    }
}

#[test]
fn consistent_graph_has_no_differences() {
    let fixture = GraphFixture::new();
    let output = fixture.check(&[]).assert_success();
    assert_eq!(
        output.stdout,
        "scope  entities  edges  entries  differences\n\
         one           2      2        2            0\n\
         two           2      2        2            0\n"
    );
    let output = fixture
        .check(&["--scope", "two", "--repair"])
        .assert_success();
    assert_eq!(
        output.stdout,
        "scope  entities  edges  entries  differences  left\n\
         two           2      2        2            0     0\n"
    );
}

#[test]
fn differences_are_printed_and_repaired_where_possible() {
    let fixture = GraphFixture::new();
    fixture.with(damage);
    let output = fixture.check(&[]);
    assert_eq!(output.code, Some(1), "{output:?}");
    for line in [
        "one           1      2        2            4",
        "one  the subject of an edge does not exist: subject=author:b predicate=likes object=author:a",
        "one  the object of an edge does not exist: subject=author:a predicate=likes object=author:b",
        "one  no index function emits an entry: entity=author:b index=by_name key=Bob",
        "one  a unique key is claimed by an entity that does not have it: entity=author:b index=by_name key=Bob",
        "two  an index entry is missing or wrong: entity=author:a index=by_name key=Ann",
    ] {
        assert!(
            output.stdout.lines().any(|printed| printed == line),
            "{line}: {output:?}"
        );
    }
    let last = output.stderr.lines().last().unwrap();
    assert!(last.contains("do not agree: differences="), "{output:?}");
    // A check changes nothing.
    assert_eq!(fixture.check(&[]).stdout, output.stdout);
    fixture
        .check(&["--scope", "one", "--repair"])
        .assert_success();
    fixture.check(&["--scope", "one"]).assert_success();
    // The command does not have the index function, so only a program can recreate the entry.
    let output = fixture.check(&["--repair"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let left =
        "two  an index entry is missing or wrong: entity=author:a index=by_name key=Ann (left)";
    assert!(
        output.stdout.lines().any(|printed| printed == left),
        "{output:?}"
    );
    fixture.with(async |db| db.graph("two").repair().await.unwrap());
    fixture.check(&[]).assert_success();
    let kept = fixture.with(async |db| db.graph("one").check().await.unwrap());
    assert_eq!((kept.entities, kept.edges, kept.entries), (1, 0, 1));
}

#[test]
fn interrupted_deletion_is_printed_and_completed() {
    let fixture = GraphFixture::new();
    fixture.with(async |db| {
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
    let output = fixture.check(&["--json", "--scope", "one"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let printed: Value = serde_json::from_str(output.stdout.trim()).unwrap();
    let scope = &printed["scopes"][0];
    assert_eq!(
        (&scope["scope"], &scope["entities"]),
        (&"one".into(), &2.into())
    );
    assert_eq!(scope["differences"][0]["kind"], "extra_intent");
    assert_eq!(
        scope["left"][0]["text"],
        "needless record of a deletion: entity=author:z"
    );
    let output = fixture.check(&["--json", "--repair"]).assert_success();
    let printed: Value = serde_json::from_str(output.stdout.trim()).unwrap();
    assert_eq!(printed["scopes"][0]["left"], serde_json::json!([]));
    assert_eq!(
        printed["scopes"][0]["differences"][0]["kind"],
        "extra_intent"
    );
    fixture.check(&[]).assert_success();
}

#[test]
fn graph_on_a_server_is_checked() {
    let (_server, endpoint) = Running::server();
    block_on(async {
        let db = Db::connect(ConnectOptions::local(&endpoint)).await.unwrap();
        let db = db.with_graph(schema());
        fill(&db).await;
        damage(&db).await;
    });
    let words = [
        "graph",
        "check",
        "--prefix",
        "lib_",
        "--endpoint",
        &endpoint,
    ];
    let output = run(&words);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.stdout.lines().count(), 3 + 1 + 5, "{output:?}");
    let scope = ["--scope", "one", "--repair"];
    run(&[&words[..], &scope].concat()).assert_success();
}

#[test]
fn store_without_a_graph_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    with_db(folder.path(), async |_| ());
    let path = folder.path().to_str().unwrap();
    let output = run(&["graph", "check", "--data", path]);
    output.assert_failure(
        1,
        &["there is no graph", "table=entities_master", "--prefix"],
    );
    run(&["graph", "check", "--data", "/nowhere"]).assert_failure(1, &["no such directory"]);
    run(&["graph", "check", "--scop", "x"]).assert_failure(2, &["--scop"]);
    let fixture = GraphFixture::new();
    fixture
        .check(&["--scope", ""])
        .assert_failure(1, &["scope"]);
}
