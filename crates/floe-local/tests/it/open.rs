//! Opening, closing and reopening a store.

use std::path::Path;

use floe_local::{Durability, LocalEngine, Options};
use floe_store::op::{CreateTable, GetItem, PutItem, Scan};
use floe_store::table::KeyKind;
use floe_store::{Engine, Error, Item, TableDef};

async fn create_table(engine: &LocalEngine, name: &str) {
    let table = TableDef::builder(name, "id", KeyKind::N).build().unwrap();
    engine.create_table(CreateTable::from(table)).await.unwrap();
}

async fn put(engine: &LocalEngine, n: i64) -> Result<(), Error> {
    let item = Item::new().with("id", n).with("text", format!("item {n}"));
    let written = engine.write_item(PutItem::new("Things", item).into()).await;
    written.map(drop)
}

async fn count(engine: &LocalEngine) -> usize {
    engine.scan(Scan::new("Things")).await.unwrap().count
}

fn message(dir: &Path) -> String {
    LocalEngine::open(dir).unwrap_err().to_string()
}

#[tokio::test]
async fn acknowledged_writes_survive_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(dir.path()).unwrap();
    create_table(&engine, "Things").await;
    for n in 0..100 {
        put(&engine, n).await.unwrap();
    }
    let before = engine.describe_table("Things".into()).await.unwrap();
    assert_eq!(before.item_count, 100);
    drop(engine);

    let engine = LocalEngine::open(dir.path()).unwrap();
    assert_eq!(
        engine.describe_table("Things".into()).await.unwrap(),
        before
    );
    assert_eq!(count(&engine).await, 100);
    let get = GetItem::new("Things", Item::new().with("id", 42));
    let found = engine.get_item(get).await.unwrap().item.unwrap();
    assert_eq!(found.get("text").unwrap().as_s(), Some("item 42"));
}

#[tokio::test]
async fn deleted_table_stays_deleted_and_its_name_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(dir.path()).unwrap();
    create_table(&engine, "Things").await;
    put(&engine, 1).await.unwrap();
    let first = engine.delete_table("Things".into()).await.unwrap();
    assert!(matches!(
        put(&engine, 2).await,
        Err(Error::ResourceNotFound(_))
    ));
    create_table(&engine, "Things").await;
    drop(engine);
    let engine = LocalEngine::open(dir.path()).unwrap();
    assert_eq!(count(&engine).await, 0);
    let second = engine.describe_table("Things".into()).await.unwrap();
    assert_ne!(first.id, second.id);
}

#[tokio::test]
async fn directory_is_used_by_one_engine_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(dir.path()).unwrap();
    assert!(message(dir.path()).contains("the directory is in use: process="));
    drop(engine);
    LocalEngine::open(dir.path()).unwrap();
}

#[tokio::test]
async fn newer_format_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    drop(LocalEngine::open(dir.path()).unwrap());
    std::fs::write(dir.path().join("FORMAT"), "floe-local 99\n").unwrap();
    let message = message(dir.path());
    assert!(
        message.contains("newer version") && message.contains("format=99"),
        "{message}"
    );
}

#[tokio::test]
async fn closed_engine_rejects_writes_but_still_reads() {
    let dir = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(dir.path()).unwrap();
    create_table(&engine, "Things").await;
    put(&engine, 1).await.unwrap();
    engine.close().unwrap();
    assert!(matches!(put(&engine, 2).await, Err(Error::Storage(_))));
    assert_eq!(count(&engine).await, 1);
    engine.close().unwrap();
}

#[tokio::test]
async fn relaxed_writes_survive_closing() {
    let dir = tempfile::tempdir().unwrap();
    let relaxed = || Options::new().durability(Durability::Relaxed);
    let engine = LocalEngine::open_with(dir.path(), relaxed()).unwrap();
    create_table(&engine, "Things").await;
    for n in 0..10 {
        put(&engine, n).await.unwrap();
    }
    drop(engine);
    let engine = LocalEngine::open(dir.path()).unwrap();
    assert_eq!(count(&engine).await, 10);
    drop(engine);
    let engine = LocalEngine::open_with(dir.path(), relaxed()).unwrap();
    assert_eq!(count(&engine).await, 10);
}

#[tokio::test]
async fn write_that_is_never_awaited_is_not_applied() {
    let engine = LocalEngine::memory().unwrap();
    create_table(&engine, "Things").await;
    let item = Item::new().with("id", 1);
    drop(engine.write_item(PutItem::new("Things", item).into()));
    engine.close().unwrap();
    assert_eq!(count(&engine).await, 0);
}

/// The files in a folder and its subfolders whose names start with `prefix`.
fn files_named(folder: &Path, prefix: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_named(&path, prefix));
        } else if path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with(prefix)
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn damaged_list_of_files_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(dir.path()).unwrap();
    create_table(&engine, "Things").await;
    put(&engine, 1).await.unwrap();
    drop(engine);
    let lists = files_named(&dir.path().join("data/keyspaces"), "v");
    let list = lists.last().unwrap();
    let bytes = std::fs::read(list).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        std::fs::write(list, damaged).unwrap();
        let message = message(dir.path());
        assert!(
            message.starts_with("a list of files is damaged"),
            "{message}"
        );
    }
    std::fs::write(list, bytes).unwrap();
    assert_eq!(count(&LocalEngine::open(dir.path()).unwrap()).await, 1);
}
