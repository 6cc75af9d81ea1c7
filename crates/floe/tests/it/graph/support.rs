//! The test graph: a library.

use std::sync::Arc;

use floe::graph::{
    Difference, Emit, EntityKey, Graph, GraphSchema, MapIndex, Node, OnDelete, Relation, ToKeyOf,
};
use floe::{Db, Entity};
use floe_local::LocalEngine;
use floe_store::op::DeleteItem;
use floe_store::{Capabilities, Engine, Item};
use floe_testkit::fault::{FaultEngine, Faults, Lag};
use floe_testkit::record::RecordingEngine;

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Author {
    pub id: String,
    pub name: String,
    pub email: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Article {
    pub id: String,
    pub title: String,
    #[entity(default)]
    pub year: i64,
    #[entity(default)]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Entity)]
pub(crate) struct Shelf {
    #[entity(id)]
    pub name: String,
}

pub(crate) fn author(id: &str) -> Author {
    Author {
        id: id.to_owned(),
        name: id.to_uppercase(),
        email: None,
    }
}

/// An author with a unique email address.
pub(crate) fn with_email(id: &str) -> Author {
    Author {
        email: Some("ann@x".to_owned()),
        ..author(id)
    }
}

pub(crate) fn article(id: &str) -> Article {
    Article {
        id: id.to_owned(),
        title: format!("On {id}"),
        year: 2000,
        tags: Vec::new(),
    }
}

pub(crate) fn shelf(name: &str) -> Shelf {
    Shelf {
        name: name.to_owned(),
    }
}

/// The articles of an author. They are deleted with the author.
pub(crate) enum Wrote {}

impl Relation for Wrote {
    const PREDICATE: &'static str = "wrote";
    type Subject = Author;
    type Object = Article;
    type Attributes = ();
    const OWNS: bool = true;
}

/// The articles on a shelf, with the day of their placement.
pub(crate) enum Holds {}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Since {
    pub day: u32,
}

impl Relation for Holds {
    const PREDICATE: &'static str = "holds";
    type Subject = Shelf;
    type Object = Article;
    type Attributes = Option<Since>;
}

/// The articles that an article cites. A cited article cannot be deleted.
pub(crate) enum Cites {}

impl Relation for Cites {
    const PREDICATE: &'static str = "cites";
    type Subject = Article;
    type Object = Article;
    type Attributes = ();
    const ON_DELETE: OnDelete = OnDelete::Restrict;
}

/// The articles that an article answers. It is deleted with any of them.
pub(crate) enum Answers {}

impl Relation for Answers {
    const PREDICATE: &'static str = "answers";
    type Subject = Article;
    type Object = Article;
    type Attributes = ();
    const ON_DELETE: OnDelete = OnDelete::Cascade;
}

pub(crate) enum ByTag {}

impl MapIndex for ByTag {
    type Of = Article;
    type Key = String;
    const NAME: &'static str = "by_tag";

    fn map(article: &Article, emit: &mut Emit<String>) {
        for tag in &article.tags {
            emit.key_with(tag.to_lowercase(), [("title", article.title.as_str())]);
        }
    }
}

pub(crate) enum ByYear {}

impl MapIndex for ByYear {
    type Of = Article;
    type Key = i64;
    const NAME: &'static str = "by_year";

    fn map(article: &Article, emit: &mut Emit<i64>) {
        emit.key(article.year);
    }
}

pub(crate) enum ByEmail {}

impl MapIndex for ByEmail {
    type Of = Author;
    type Key = String;
    const NAME: &'static str = "by_email";
    const UNIQUE: bool = true;

    fn map(author: &Author, emit: &mut Emit<String>) {
        author
            .email
            .iter()
            .for_each(|email| emit.key(email.to_lowercase()));
    }
}

pub(crate) fn schema() -> GraphSchema {
    GraphSchema::new()
        .relation::<Wrote>()
        .relation::<Holds>()
        .relation::<Cites>()
        .relation::<Answers>()
        .index::<ByTag>()
        .index::<ByYear>()
        .index::<ByEmail>()
}

/// A test graph, and the recorded requests of its engine.
pub(crate) struct World {
    pub db: Db,
    pub graph: Graph<'static>,
    pub engine: Arc<RecordingEngine>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Capabilities::all()).await
    }

    pub(crate) async fn with(capabilities: Capabilities) -> Self {
        Self::on(Arc::new(LocalEngine::memory().unwrap()), capabilities).await
    }

    pub(crate) async fn on(engine: Arc<dyn Engine>, capabilities: Capabilities) -> Self {
        let engine = Arc::new(RecordingEngine::new(engine).claiming(capabilities));
        let db = Db::with_engine(engine.clone()).with_graph(schema());
        db.ensure_graph().await.unwrap();
        let graph = db.graph("library");
        // Creates the states of the indexes.
        graph.find::<ByTag>().keys().await.unwrap();
        graph.find::<ByYear>().keys().await.unwrap();
        graph.find::<ByEmail>().keys().await.unwrap();
        engine.take();
        Self { db, graph, engine }
    }

    /// A test graph whose indexes lag by a number of operations, with the capabilities of DynamoDB.
    pub(crate) async fn lagging(seed: u64, operations: u64) -> Self {
        let faults = Faults::seeded(seed).index_lag(1.0, Lag::Operations(operations));
        let local = Arc::new(LocalEngine::memory().unwrap());
        let engine = Arc::new(FaultEngine::new(local, faults));
        Self::on(engine, Capabilities::dynamodb()).await
    }

    /// The names of the requests since the last call, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.engine.take().into_iter();
        requests
            .map(|request| request.split(' ').next().unwrap().to_owned())
            .collect()
    }

    /// Creates pages. Returns their keys.
    pub(crate) async fn pages(&self, count: usize) -> Vec<EntityKey> {
        let keys = (0..count).map(|number| EntityKey::new("page", number.to_string()));
        let keys: Vec<EntityKey> = keys.collect();
        for key in &keys {
            let page = Node::new("page", key.id());
            self.graph.create(&page).await.unwrap();
        }
        keys
    }

    /// Asserts that the three tables are consistent.
    pub(crate) async fn check(&self) {
        let report = self.graph.check().await.unwrap();
        assert_eq!(report.differences, []);
    }
}

/// The ids of the objects of edges, in order.
pub(crate) fn ids<'a>(keys: impl IntoIterator<Item = &'a floe::graph::Edge>) -> Vec<String> {
    let keys = keys.into_iter();
    keys.map(|edge| edge.object.id().to_owned()).collect()
}

/// Creates articles.
pub(crate) async fn create(world: &World, ids: &[&str]) {
    for id in ids {
        world.graph.create(&article(id)).await.unwrap();
    }
}

/// Links a subject to an object, with default attributes.
pub(crate) async fn link<R>(
    world: &World,
    from: &impl ToKeyOf<R::Subject>,
    to: &impl ToKeyOf<R::Object>,
) where
    R: Relation<Attributes: Default>,
{
    let (list, attributes) = (world.graph.related::<R>(from), R::Attributes::default());
    list.link_with(to, &attributes).await.unwrap();
}

/// Whether a wide change is unfinished.
pub(crate) async fn is_unfinished(world: &World) -> bool {
    let report = world.graph.check().await.unwrap();
    let is = |difference: &Difference| matches!(difference, Difference::Unfinished { .. });
    report.differences.iter().any(is)
}

/// Removes an entity like a program that does not know the graph, so that edges to it are dangling.
pub(crate) async fn remove_foreign(world: &World, type_name: &str, id: &str) {
    let key = Item::new()
        .with("_id", id)
        .with("_scope_type_key", format!("library:{type_name}"));
    let delete = DeleteItem::new("entities_master", key);
    world.engine.write_item(delete.into()).await.unwrap();
}

/// Creates shelves that hold an article.
pub(crate) async fn held_by(world: &World, id: &str, shelves: usize) {
    for number in 0..shelves {
        let subject = shelf(&number.to_string());
        world.graph.create(&subject).await.unwrap();
        link::<Holds>(world, &subject, &article(id)).await;
    }
}
