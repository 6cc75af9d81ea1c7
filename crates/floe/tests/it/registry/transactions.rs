//! Registries in transactions, together with models, streams and the graph.

use std::sync::atomic::{AtomicU32, Ordering};

use floe::events::{Decider, StreamName};
use floe::graph::GraphSchema;
use floe::registry::Published;
use floe::{Db, Entity, Error, ErrorKind, Event, Model, Tx};
use floe_store::Capabilities;

use super::support::{Build, Layer, World, build, layer, numbers};

#[derive(Model)]
struct Release {
    #[model(key)]
    name: String,
    version: u64,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Maintainer {
    id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
enum Noted {
    Released { version: u64 },
}

struct Log;

impl Decider for Log {
    const CATEGORY: &'static str = "Log";
    type Id = String;
    type Event = Noted;
    type State = Vec<u64>;

    fn initial() -> Self::State {
        Vec::new()
    }

    fn evolve(mut state: Self::State, event: &Noted) -> Self::State {
        let Noted::Released { version } = event;
        state.push(*version);
        state
    }
}

/// Test registries, and a database with all four patterns.
async fn world() -> (World, Db) {
    let world = World::new().await;
    let db = world.db.clone().with_graph(GraphSchema::new());
    db.ensure_tables(&[Release::SCHEMA]).await.unwrap();
    db.ensure_graph().await.unwrap();
    db.events().ensure_table().await.unwrap();
    world.clear_records();
    (world, db)
}

async fn release(tx: &Tx, requirements: &str) -> Result<u64, Error> {
    let build = build("numpy", requirements);
    let number = tx.registry::<Build>().publish(&build).await?;
    tx.registry::<Layer>()
        .publish(&layer("eu", "numpy", requirements))
        .await?;
    tx.create(Release {
        name: requirements.to_owned(),
        version: number,
    })?;
    let mut log = tx.stream::<Log>(&"numpy".to_owned()).await?;
    log.append([Noted::Released { version: number }])?;
    let maintainer = Maintainer {
        id: requirements.to_owned(),
    };
    tx.graph("people").create(&maintainer).await?;
    Ok(number)
}

#[tokio::test]
async fn registry_commits_with_models_streams_and_the_graph() {
    let (world, db) = world().await;
    let number = db.transact(async |tx| release(tx, "1").await).await;
    assert_eq!(number, Ok(1));
    let requests = world.requests();
    let commits = requests.iter().filter(|name| *name == "TransactWriteItems");
    assert_eq!(commits.count(), 1, "{requests:?}");
    assert_eq!(
        world.builds.latest("numpy").await.unwrap().unwrap().number,
        1
    );
    // The model exists already, so nothing else is written.
    let twice = db.transact(async |tx| release(tx, "1").await).await;
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let own = db.transact(async |tx| {
        release(tx, "2").await?;
        Err::<(), _>(Error::from(floe_store::Error::validation("no")))
    });
    own.await.unwrap_err();
    let history = world.builds.history("numpy").collect().await.unwrap();
    assert_eq!(numbers(&history), [1]);
    let layers = world
        .layers
        .history(("eu", "numpy"))
        .collect()
        .await
        .unwrap();
    assert_eq!(numbers(&layers), [1]);
    let name = StreamName::new("Log", "numpy").unwrap();
    let events = db.events().read(&name).collect().await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(db.graph("people").get::<Maintainer>("2").await, Ok(None));
}

#[tokio::test]
async fn transaction_sees_its_own_changes() {
    let world = World::new().await;
    let numpy = ("eu", "numpy");
    let done = world.db.transact(async |tx| {
        let layers = tx.registry::<Layer>();
        for (arn, number) in [("1", 1), ("2", 2), ("3", 3)] {
            assert_eq!(layers.publish(&layer("eu", "numpy", arn)).await?, number);
        }
        assert_eq!(layers.latest(numpy).await?.unwrap().number, 3);
        let same = layer("eu", "numpy", "3");
        assert_eq!(
            layers.publish_if_changed(&same).await?,
            Published::Unchanged(3)
        );
        layers.set_alias(numpy, "lts", 1).await?;
        assert_eq!(layers.by_alias(numpy, "lts").await?.unwrap().number, 1);
        assert!(layers.retire(numpy, 3).await?);
        assert!(!layers.retire(numpy, 3).await?);
        assert_eq!(layers.latest(numpy).await?.unwrap().number, 2);
        assert!(layers.version(numpy, 3).await?.unwrap().deleted.is_some());
        layers.retire(numpy, 2).await?;
        layers.pin(numpy, 1).await?;
        Ok::<_, Error>(())
    });
    done.await.unwrap();
    let history = world.layers.history(numpy).collect().await.unwrap();
    assert_eq!(numbers(&history), [1, 2, 3]);
    let latest = world.layers.latest(numpy).await.unwrap().unwrap();
    assert_eq!((latest.number, latest.is_pinned), (1, true));
    assert_eq!(latest.aliases, ["lts"]);
    let listed = world.index("region-status", "rgn", "eu").await;
    assert_eq!(listed, ["lyrVrsn#v0000000001"]);
}

#[tokio::test]
async fn version_published_since_the_read_causes_a_rerun() {
    let world = World::new().await;
    world.db.ensure_tables(&[Release::SCHEMA]).await.unwrap();
    world.publish("eu", "numpy", 1).await;
    let runs = AtomicU32::new(0);
    let done = world.db.transact(async |tx| {
        let latest = tx.registry::<Layer>().latest(("eu", "numpy")).await?;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            // Another process publishes a version.
            let db = Db::with_engine(world.engine.clone());
            let other = layer("eu", "numpy", "other");
            tokio::spawn(async move { db.registry::<Layer>().publish(&other).await })
                .await
                .unwrap()?;
        }
        tx.create(Release {
            name: "numpy".to_owned(),
            version: latest.map_or(0, |latest| latest.number),
        })?;
        Ok::<_, Error>(())
    });
    done.await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let found = world
        .db
        .transact(async |tx| Ok::<_, Error>(*tx.get::<Release>("numpy").await?.unwrap().version));
    assert_eq!(found.await, Ok(2));
}

#[tokio::test]
async fn read_only_transaction_rejects_registry_changes() {
    let world = World::new().await;
    let tx = world.db.tx().read_only();
    let done = tx.run(async |tx| {
        let numpy = layer("eu", "numpy", "1");
        tx.registry::<Layer>().publish(&numpy).await
    });
    let error = done.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(
        error.to_string().contains("groups=Layer(lyr#eu.numpy)"),
        "{error}"
    );
    let read = world.db.tx().read_only();
    let read = read.run(async |tx| tx.registry::<Layer>().latest(("eu", "numpy")).await);
    assert_eq!(read.await, Ok(None));
}

#[tokio::test]
async fn write_of_one_item_is_a_transaction_on_dynamodb() {
    let world = World::with(Capabilities::dynamodb()).await;
    world.publish("eu", "numpy", 3).await;
    world.layers.retire(("eu", "numpy"), 1).await.unwrap();
    assert_eq!(world.requests(), ["BatchGetItem", "TransactWriteItems"]);
}
