//! The graph in transactions, together with models and streams.

use std::sync::atomic::{AtomicU32, Ordering};

use floe::events::{EventData, Expected, StreamName};
use floe::graph::Node;
use floe::{Error, ErrorKind, Model, Tx};
use floe_store::Capabilities;

use super::support::{Article, Author, ByTag, Holds, World, Wrote, article, author, ids, shelf};

#[derive(Model)]
struct Loan {
    #[model(key)]
    id: String,
    article: String,
}

async fn world() -> World {
    let world = World::new().await;
    world.db.ensure_tables(&[Loan::SCHEMA]).await.unwrap();
    world.graph.create(&author("ann")).await.unwrap();
    world.graph.create(&article("a")).await.unwrap();
    world.engine.take();
    world
}

async fn lend(tx: &Tx, id: &str) -> Result<(), Error> {
    let graph = tx.graph("library");
    let article = graph.get::<Article>("a").await?;
    let article = article.ok_or_else(|| Error::from(floe_store::Error::validation("gone")))?;
    graph.create(&shelf(id)).await?;
    let holds = graph.related::<Holds>(&shelf(id));
    holds.link_with(&article, &None).await?;
    tx.create(Loan {
        id: id.to_owned(),
        article: article.id,
    })?;
    Ok(())
}

#[tokio::test]
async fn entities_edges_and_models_commit_together() {
    let world = world().await;
    world
        .db
        .transact(async |tx| lend(tx, "l-1").await)
        .await
        .unwrap();
    assert_eq!(world.requests(), ["GetItem", "TransactWriteItems"]);
    let held = world
        .graph
        .related::<Holds>(&shelf("l-1"))
        .keys()
        .await
        .unwrap();
    assert_eq!(ids(&held), ["a"]);
    let failed = world.db.transact(async |tx| {
        lend(tx, "l-2").await?;
        Err::<(), _>(Error::from(floe_store::Error::validation(
            "changed my mind",
        )))
    });
    failed.await.unwrap_err();
    assert_eq!(world.graph.get_node(&("shelf", "l-2")).await.unwrap(), None);
    // The loan exists already, so the shelf must not be created either.
    let twice = world.db.transact(async |tx| {
        tx.graph("library").create(&shelf("l-3")).await?;
        tx.create(Loan {
            id: "l-1".to_owned(),
            article: "a".to_owned(),
        })
        .map(drop)
    });
    assert_eq!(twice.await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(world.graph.get_node(&("shelf", "l-3")).await.unwrap(), None);
    world.check().await;
}

#[tokio::test]
async fn transaction_sees_its_own_changes() {
    let world = world().await;
    world
        .db
        .transact(async |tx| {
            let graph = tx.graph("library");
            let mut other = article("b");
            graph.create(&other).await?;
            assert_eq!(graph.get::<Article>("b").await?, Some(other.clone()));
            other.title = "Anew".to_owned();
            graph.update(&other).await?;
            assert_eq!(graph.get::<Article>("b").await?.unwrap().title, "Anew");
            let wrote = graph.related::<Wrote>(&author("ann"));
            wrote.link(&article("a")).await?;
            wrote.link_at(0, &other).await?;
            assert_eq!(ids(&wrote.keys().await?), ["b", "a"]);
            let objects = wrote.objects().await?;
            assert_eq!(objects[0].object, Some(other));
            wrote.unlink(&article("a")).await?;
            assert_eq!(ids(&wrote.keys().await?), ["b"]);
            graph.delete(&article("a")).await?;
            assert_eq!(graph.get::<Article>("a").await?, None);
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    assert_eq!(world.graph.get::<Article>("a").await.unwrap(), None);
    let wrote = world
        .graph
        .related::<Wrote>(&author("ann"))
        .keys()
        .await
        .unwrap();
    assert_eq!(ids(&wrote), ["b"]);
    world.check().await;
}

#[tokio::test]
async fn entity_changed_since_it_was_read_causes_a_rerun() {
    let world = world().await;
    let runs = AtomicU32::new(0);
    let copied = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let title = graph.get::<Article>("a").await?.unwrap().title;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            // Another writer changes the entity.
            let mut other = article("a");
            other.title = "Anew".to_owned();
            let update = tx.graph("elsewhere");
            drop(update);
            world
                .db
                .tx()
                .detached()
                .run(async |tx| tx.graph("library").set(&other).await)
                .await?;
        }
        graph
            .create(&Node::new("copy", "1").with("title", title))
            .await
    });
    copied.await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let copy = world.graph.get_node(&("copy", "1")).await.unwrap().unwrap();
    assert_eq!(copy.get("title").unwrap().as_s(), Some("Anew"));
}

#[tokio::test]
async fn entity_created_since_it_was_missing_causes_a_rerun() {
    let world = world().await;
    let runs = AtomicU32::new(0);
    let result = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let is_there = graph.get::<Article>("b").await?.is_some();
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            let create = async |tx: &Tx| tx.graph("library").create(&article("b")).await;
            world.db.tx().detached().run(create).await?;
        }
        graph
            .upsert(&Node::new("note", "n").with("is_there", is_there))
            .await
    });
    result.await.unwrap();
    let note = world.graph.get_node(&("note", "n")).await.unwrap().unwrap();
    assert_eq!(note.get("is_there"), Some(&floe_store::Value::Bool(true)));
}

#[tokio::test]
async fn list_changed_since_it_was_read_causes_a_rerun() {
    let world = world().await;
    let runs = AtomicU32::new(0);
    let result = world.db.transact(async |tx| {
        let graph = tx.graph("library");
        let count = graph.related::<Wrote>(&author("ann")).keys().await?.len() as u64;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            let link = async |tx: &Tx| {
                let graph = tx.graph("library");
                graph
                    .related::<Wrote>(&author("ann"))
                    .link(&article("a"))
                    .await
            };
            world.db.tx().detached().run(link).await?;
        }
        graph
            .upsert(&Node::new("note", "n").with("count", count))
            .await
    });
    result.await.unwrap();
    let note = world.graph.get_node(&("note", "n")).await.unwrap().unwrap();
    assert_eq!(note.get("count"), Some(&floe_store::Value::from(1)));
}

#[tokio::test]
async fn read_only_transaction_rejects_writes() {
    let world = world().await;
    let reads = world.db.tx().read_only();
    let ann = reads
        .run(async |tx| tx.graph("library").get::<Author>("ann").await)
        .await
        .unwrap();
    assert_eq!(ann, Some(author("ann")));
    let writes = world.db.tx().read_only();
    let error = writes
        .run(async |tx| tx.graph("library").create(&shelf("x")).await)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
}

#[tokio::test]
async fn verified_transaction_checks_its_reads() {
    let world = world().await;
    let verified = world.db.tx().verified();
    verified
        .run(async |tx| {
            let graph = tx.graph("library");
            graph.get::<Author>("ann").await?;
            graph.get::<Author>("bob").await.map(drop)
        })
        .await
        .unwrap();
    let requests = world.engine.take();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    assert_eq!(
        requests[2].matches("ConditionCheck").count(),
        2,
        "{requests:#?}"
    );
}

#[tokio::test]
async fn graph_changes_commit_with_an_existing_stream() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let world = World::with(capabilities).await;
        world.db.events().ensure_table().await.unwrap();
        let name = StreamName::new("Log", "1").unwrap();
        let event = EventData::new("Began", b"{}");
        world
            .db
            .events()
            .append(&name, Expected::New, [event])
            .await
            .unwrap();
        let commit = world.db.transact(async |tx| {
            tx.graph("library").create(&author("ann")).await?;
            tx.graph("library").create(&article("a")).await?;
            tx.graph("library")
                .related::<Wrote>(&author("ann"))
                .link(&article("a"))
                .await
        });
        commit.await.unwrap();
        assert_eq!(world.graph.find::<ByTag>().keys().await.unwrap(), []);
        let wrote = world
            .graph
            .related::<Wrote>(&author("ann"))
            .keys()
            .await
            .unwrap();
        assert_eq!(wrote.len(), 1);
        world.check().await;
    }
}

#[tokio::test]
async fn graph_calls_at_the_wrong_level_are_rejected() {
    let world = world().await;
    let error = world
        .db
        .transact(async |_| world.graph.create(&shelf("x")).await)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse, "{error}");
    let error = world
        .db
        .transact(async |tx| tx.graph("library").resume(|_| {}).await.map(drop))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse, "{error}");
}
