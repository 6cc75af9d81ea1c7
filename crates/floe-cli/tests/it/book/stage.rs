//! Prepares the stores for the commands of a page.

use std::path::Path;

use floe::db::ConnectOptions;
use floe::events::feed::{FeedConsumer, Handled, Partition};
use floe::events::{EventData, EventStoreOptions, Expected, Recorded, StreamName};
use floe::graph::{GraphSchema, Node};
use floe::{Db, Registry};

use crate::support::{block_on, with_db};

/// Creates two graphs in a directory, without and with a prefix.
pub(crate) fn graphs(directory: &Path) {
    with_db(directory, async |db| {
        for prefix in ["", "new_"] {
            let db = db.clone().with_graph(GraphSchema::new().prefix(prefix));
            db.ensure_graph().await.unwrap();
            let graph = db.graph("library");
            for id in ["ann", "bob"] {
                graph.create(&Node::new("author", id)).await.unwrap();
            }
            let likes = graph.related_by(&("author", "ann"), "likes");
            likes.link(&("author", "bob")).await.unwrap();
        }
    });
}

/// Creates the registry of the guide, with three published versions.
pub(crate) fn registry(directory: &Path) {
    #[derive(Registry)]
    #[registry(
        table = "images",
        pk = "img#{stage}.{service}",
        sk = "v{version}",
        latest = "latest",
        status = "state",
        expires = "expires",
        retention = "30d",
        index(name = "by-stage", key = stage)
    )]
    struct Image {
        stage: String,
        service: String,
        digest: String,
    }
    with_db(directory, async |db| {
        db.ensure_registries(&[Image::SCHEMA]).await.unwrap();
        for digest in ["a1", "b2", "c3"] {
            let (stage, service) = ("live".to_owned(), "shop".to_owned());
            let digest = digest.to_owned();
            let image = Image {
                stage,
                service,
                digest,
            };
            db.registry().publish(&image).await.unwrap();
        }
    });
}

/// Creates the feed of a table on a server: three batches, and a group that has parked a stream in the last.
pub(crate) fn feed(endpoint: &str, index: impl Fn()) {
    let store = block_on(async {
        let db = Db::connect(ConnectOptions::local(endpoint)).await.unwrap();
        let store = db.event_store(EventStoreOptions::new("shop"));
        store.ensure_table().await.unwrap();
        store
    });
    for (stream, events) in [("Cart-8", 1), ("Order-1", 2), ("Cart-7", 6)] {
        block_on(async {
            let stream = StreamName::parse(stream).unwrap();
            let events = (0..events).map(|_| EventData::new("Added", "{}"));
            store.append(&stream, Expected::New, events).await.unwrap();
        });
        index();
    }
    let handle = async |stream: StreamName, events: Vec<Recorded>| {
        let bad = events
            .iter()
            .find(|event| stream.as_str() == "Cart-7" && event.index >= 4);
        match bad {
            None => Ok(Handled::All),
            Some(event) if event.index == events.first().map_or(0, |first| first.index) => {
                Err("no such address")
            }
            Some(event) => Ok(Handled::UpTo(event.index)),
        }
    };
    let mail = FeedConsumer::new(store, "mail", Partition::FIRST).attempts_max(1);
    block_on(mail.run_until_caught_up(handle)).unwrap();
}
