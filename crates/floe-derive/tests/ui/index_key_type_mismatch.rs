//! An index of text cannot be queried with a number.

use floe::Entity;
use floe::graph::{Emit, Graph, MapIndex};

#[derive(Entity)]
struct Author {
    id: String,
    name: String,
}

enum ByName {}

impl MapIndex for ByName {
    type Of = Author;
    type Key = String;
    const NAME: &'static str = "by_name";

    fn map(author: &Author, emit: &mut Emit<String>) {
        emit.key(author.name.clone());
    }
}

async fn find(graph: &Graph<'_>) {
    graph.find::<ByName>().eq(&7).keys().await.unwrap();
}

fn main() {}
