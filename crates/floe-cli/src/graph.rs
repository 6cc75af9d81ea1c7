//! `floe graph`: inspects an entity graph, and checks its tables.

mod check;
mod get;
mod lookup;
mod referrers;
mod related;

use clap::Args;
use floe::Db;
use floe::graph::{Edge, EntityKey, Graph, GraphSchema, Node};
use floe_store::Item;
use floe_store::json::Writer;

use crate::{
    Failure, Output, Result, StoreArgs, Table, cell, commands, describe, item_cell, object,
};

commands! {
    /// Inspect an entity graph, and check its tables
    #[command(after_help = "\
Examples:
  # get an entity of the scope `library`
  floe graph get library author ann --data ./data
  # list its objects
  floe graph related library author ann --data ./data
  # list the referrers of an entity
  floe graph referrers library article a-1 --data ./data
  # find entities by an index
  floe graph lookup library by_tag rust --data ./data
  # compare the three tables and print every difference
  floe graph check --data ./data
  # repair the differences
  floe graph check --data ./data --repair")]
    GraphCommand:
    Get(get::Get) in entity,
    Related(related::RelatedCommand),
    Referrers(referrers::ReferrersCommand),
    Lookup(lookup::LookupCommand),
    Check(check::Check) in store,
}

/// The graph, its store, and the output format.
#[derive(Debug, Args)]
struct GraphArgs {
    #[command(flatten)]
    prefix: Prefix,

    #[command(flatten)]
    target: StoreArgs,
}

impl GraphArgs {
    /// Runs a command on the graph of a scope.
    fn run(&self, scope: &str, command: impl AsyncFnOnce(&Graph<'static>) -> Result) -> Result {
        self.target.run(async |opened| {
            let db = self.prefix.find(&opened.db).await?;
            command(&db.graph(scope)).await
        })
    }
}

/// The table prefix of the graph.
#[derive(Debug, Args)]
struct Prefix {
    /// Prefix of the graph's tables: `shop_` for shop_entities_master
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
}

impl Prefix {
    /// The store with its graph. Fails if a table of the graph does not exist.
    async fn find(&self, db: &Db) -> Result<Db> {
        let schema = GraphSchema::new().prefix(self.prefix.as_str());
        for table in schema.tables().map_err(Failure::usage)? {
            if describe(db, &table.name).await?.is_none() {
                return Err(Failure::failed(format!(
                    "there is no graph: the table does not exist: table={}; check --prefix",
                    table.name
                )));
            }
        }
        Ok(db.clone().with_graph(schema))
    }
}

/// An entity and its graph.
#[derive(Debug, Args)]
struct EntityArgs {
    /// Scope of the entity
    scope: String,

    /// Type of the entity
    #[arg(value_name = "TYPE")]
    type_name: String,

    /// Id of the entity
    id: String,

    #[command(flatten)]
    graph: GraphArgs,
}

impl EntityArgs {
    /// Runs a command on the entity. Fails if the entity does not exist.
    fn run(&self, command: impl AsyncFnOnce((&Graph<'static>, Node)) -> Result) -> Result {
        self.graph.run(&self.scope, async |graph| {
            let key = EntityKey::new(self.type_name.as_str(), self.id.as_str());
            let node = graph.get_node(&key).await?;
            command((graph, node.ok_or_else(|| no_entity(graph, &key))?)).await
        })
    }
}

/// An entity, and the edges of it to print.
#[derive(Debug, Args)]
struct EdgeArgs {
    /// Print only edges of this predicate
    #[arg(long, value_name = "NAME")]
    predicate: Option<String>,

    #[command(flatten)]
    entity: EntityArgs,
}

impl EdgeArgs {
    /// Prints the edges that `find` returns.
    fn run(
        &self,
        find: impl AsyncFnOnce(
            &Graph<'static>,
            &EntityKey,
            Option<&str>,
        ) -> Result<Vec<LinkedEntity>, floe::Error>,
    ) -> Result {
        self.entity.run(async |(graph, node)| {
            let found = find(graph, &node.key, self.predicate.as_deref()).await?;
            print_edges(self.entity.graph.target.output, &found)
        })
    }
}

/// The failure if an entity does not exist.
fn no_entity(graph: &Graph<'_>, key: &EntityKey) -> Failure {
    Failure::unmet(format!(
        "there is no such entity: scope={} type={} id={}",
        graph.scope(),
        key.type_name(),
        key.id()
    ))
}

/// Prints an entity.
fn print_node(output: Output, node: &Node) -> Result {
    output.either(&|w| write_node(w, output, node), &|| {
        let mut summary = Table::key_value();
        summary.entry("type", node.key.type_name());
        summary.entry("id", node.key.id());
        summary.entry_if_some("created", node.created.as_ref());
        summary.entry_if_some("updated", node.updated.as_ref());
        for (name, value) in node.attributes.iter() {
            summary.entry(name, cell(value));
        }
        summary.print()
    })
}

fn write_node(w: &mut Writer, output: Output, node: &Node) {
    object!(w;
        "type": node.key.type_name(), "id": node.key.id(), "created": node.created,
        "updated": node.updated, "attributes": output.item(&node.attributes)
    );
}

/// An edge, and the entity at its other end.
struct LinkedEntity {
    edge: Edge,
    other: EntityKey,
    node: Option<Node>,
}

/// Prints edges with the entities at their other ends.
fn print_edges(output: Output, edges: &[LinkedEntity]) -> Result {
    let attributes = |linked: &LinkedEntity| {
        let attributes = linked.node.as_ref().map(|node| item_cell(&node.attributes));
        attributes.unwrap_or_default()
    };
    output.rows(
        edges,
        |w, linked| {
            let edge = &linked.edge;
            let edge_attributes = Some(&edge.attributes).filter(|item| !item.is_empty());
            let attributes = linked.node.as_ref().map(|node| &node.attributes);
            object!(w;
                "predicate": edge.predicate, "index": edge.index, "type": linked.other.type_name(),
                "id": linked.other.id(),
                "edge_attributes": edge_attributes.map(|item| output.item(item)),
                "attributes": attributes.map(|item| output.item(item))
            );
        },
        Table::new(["predicate", "type", "id", "edge", "attributes"]),
        |linked| {
            [
                linked.edge.predicate.clone(),
                linked.other.type_name().to_owned(),
                linked.other.id().to_owned(),
                cell_unless_empty(&linked.edge.attributes),
                attributes(linked),
            ]
        },
    )
}

/// The cell of attributes. Empty if there are none.
fn cell_unless_empty(attributes: &Item) -> String {
    if attributes.is_empty() {
        String::new()
    } else {
        item_cell(attributes)
    }
}
