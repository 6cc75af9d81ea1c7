//! The calls of a relation take its types, and its attributes if it has some.

use floe::Entity;
use floe::graph::{Graph, Relation};

#[derive(Entity)]
struct Author {
    id: String,
}

#[derive(Entity)]
struct Article {
    id: String,
}

enum Wrote {}

impl Relation for Wrote {
    const PREDICATE: &'static str = "wrote";
    type Subject = Author;
    type Object = Article;
    type Attributes = ();
}

enum Reviewed {}

impl Relation for Reviewed {
    const PREDICATE: &'static str = "reviewed";
    type Subject = Author;
    type Object = Article;
    type Attributes = u32;
}

async fn other_object(graph: &Graph<'_>, author: &Author) {
    graph.related::<Wrote>(author).link(author).await.unwrap();
}

async fn other_subject(graph: &Graph<'_>, article: &Article) {
    graph.related::<Wrote>(article).keys().await.unwrap();
}

async fn no_attributes(graph: &Graph<'_>, author: &Author, article: &Article) {
    graph.related::<Reviewed>(author).link(article).await.unwrap();
}

async fn other_referred(graph: &Graph<'_>, author: &Author) {
    graph.referrers(author).of::<Wrote>().await.unwrap();
}

fn main() {}
