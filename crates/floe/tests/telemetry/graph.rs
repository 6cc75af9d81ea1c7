//! Spans of graph changes made in steps; other calls of the graph are transactions with a label.

use floe::graph::{Emit, GraphSchema, MapIndex, Relation};
use floe::{Db, Entity};

use crate::collect::{Collector, listen};

#[derive(Clone, Debug, PartialEq, Entity)]
struct Shelf {
    id: String,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Book {
    id: String,
}

enum Holds {}

impl Relation for Holds {
    const PREDICATE: &'static str = "holds";
    type Subject = Shelf;
    type Object = Book;
    type Attributes = ();
}

enum ById {}

impl MapIndex for ById {
    type Of = Book;
    type Key = String;
    const NAME: &'static str = "by_id";

    fn map(book: &Book, emit: &mut Emit<String>) {
        emit.key(book.id.clone());
    }
}

#[test]
fn wide_deletions_and_rebuilds_have_spans() {
    let schema = GraphSchema::new().relation::<Holds>().index::<ById>();
    let db = Db::memory().unwrap().with_graph(schema);
    let collector = Collector::default();
    listen(&collector, async {
        db.ensure_graph().await.unwrap();
        let graph = db.graph("library");
        let shelf = Shelf {
            id: "shelf-secret".to_owned(),
        };
        graph.create(&shelf).await.unwrap();
        for number in 0..120 {
            let book = Book {
                id: format!("book-{number}"),
            };
            graph.create(&book).await.unwrap();
            graph.related::<Holds>(&shelf).link(&book).await.unwrap();
        }
        graph.delete(&shelf).await.unwrap();
        graph.rebuild::<ById>(|_| {}).await.unwrap();
    });
    let deleted = collector.spans("delete in steps");
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0].fields["floe.graph.entities"], "1");
    let rebuilt = collector.spans("rebuild");
    assert_eq!(rebuilt.len(), 1);
    assert_eq!(rebuilt[0].fields["floe.graph.index"], "by_id");
    assert_eq!(rebuilt[0].fields["floe.graph.entities"], "120");
    assert_eq!(rebuilt[0].fields["floe.graph.changed"], "0");
    let transactions = collector.spans("transaction");
    assert!(
        transactions
            .iter()
            .all(|span| span.fields["floe.transaction.label"] == "graph")
    );
    assert!(
        !collector.text().contains("shelf-secret"),
        "a key is in the telemetry"
    );
}
