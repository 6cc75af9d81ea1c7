//! Only entities can be stored in the graph.

use floe::graph::Graph;

struct Author {
    id: String,
}

async fn create(graph: &Graph<'_>, author: &Author) {
    graph.get::<Author>(&author.id).await.unwrap();
}

fn main() {}
