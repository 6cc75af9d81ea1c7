//! `floe graph`: looks at an entity graph, and looks after its tables.

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
    /// Look at an entity graph, and look after its tables
    #[command(after_help = "\
Examples:
  # an entity of the scope `library`
  floe graph get library author ann --data ./data
  # what it leads to
  floe graph related library author ann --data ./data
  # what leads to it
  floe graph referrers library article a-1 --data ./data
  # entities by an index
  floe graph lookup library by_tag rust --data ./data
  # compare the three tables, and tell every difference
  floe graph check --data ./data
  # and make them agree
  floe graph check --data ./data --repair")]
    GraphCommand:
    Get(get::Get) in entity,
    Related(related::RelatedCommand),
    Referrers(referrers::ReferrersCommand),
    Lookup(lookup::LookupCommand),
    Check(check::Check) in store,
}

/// Where a graph is, and how the result is printed.
#[derive(Debug, Args)]
struct GraphPlace {
    #[command(flatten)]
    prefix: Prefix,

    #[command(flatten)]
    at: StoreArgs,
}

impl GraphPlace {
    /// Runs a command on the graph of a scope.
    fn run(&self, scope: &str, work: impl AsyncFnOnce(&Graph<'static>) -> Result) -> Result {
        self.at.run(async |opened| {
            let db = self.prefix.find(&opened.db).await?;
            work(&db.graph(scope)).await
        })
    }
}

/// Which of several graphs it is.
#[derive(Debug, Args)]
struct Prefix {
    /// What the names of the graph's tables begin with: `shop_` for shop_entities_master
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
}

impl Prefix {
    /// The store with its graph. Refuses a place in which there is no graph.
    async fn find(&self, db: &Db) -> Result<Db> {
        let schema = GraphSchema::new().prefix(self.prefix.as_str());
        for table in schema.tables().map_err(Failure::usage)? {
            if describe(db, &table.name).await?.is_none() {
                return Err(Failure::broken(format!(
                    "there is no graph, for there is no such table: table={}; see --prefix and --table-prefix",
                    table.name
                )));
            }
        }
        Ok(db.clone().with_graph(schema))
    }
}

/// An entity, and where its graph is.
#[derive(Debug, Args)]
struct EntityPlace {
    /// The scope
    scope: String,

    /// The type
    #[arg(value_name = "TYPE")]
    type_name: String,

    /// The id
    id: String,

    #[command(flatten)]
    place: GraphPlace,
}

impl EntityPlace {
    /// Runs a command on the entity, if it is there.
    fn run(&self, work: impl AsyncFnOnce((&Graph<'static>, Node)) -> Result) -> Result {
        self.place.run(&self.scope, async |graph| {
            let key = EntityKey::new(self.type_name.as_str(), self.id.as_str());
            let node = graph.get_node(&key).await?;
            work((graph, node.ok_or_else(|| no_entity(graph, &key))?)).await
        })
    }
}

/// An entity of which edges are printed.
#[derive(Debug, Args)]
struct EdgesOf {
    /// Only by this predicate
    #[arg(long, value_name = "NAME")]
    predicate: Option<String>,

    #[command(flatten)]
    entity: EntityPlace,
}

impl EdgesOf {
    /// Prints the edges that are found.
    fn run(
        &self,
        find: impl AsyncFnOnce(
            &Graph<'static>,
            &EntityKey,
            Option<&str>,
        ) -> Result<Vec<Led>, floe::Error>,
    ) -> Result {
        self.entity.run(async |(graph, node)| {
            let found = find(graph, &node.key, self.predicate.as_deref()).await?;
            print_edges(self.entity.place.at.output, &found);
            Ok(())
        })
    }
}

/// The failure of a call for what is not there.
fn no_entity(graph: &Graph<'_>, key: &EntityKey) -> Failure {
    Failure::unmet(format!(
        "there is no such entity: scope={} type={} id={}",
        graph.scope(),
        key.type_name(),
        key.id()
    ))
}

/// Prints an entity.
fn print_node(output: Output, node: &Node) {
    output.either(&|w| write_node(w, node), &|| {
        let mut facts = Table::of_facts();
        facts.fact("type", node.key.type_name());
        facts.fact("id", node.key.id());
        facts.fact_if_any("created", node.created.as_ref());
        facts.fact_if_any("updated", node.updated.as_ref());
        for (name, value) in node.attributes.iter() {
            facts.fact(name, cell(value));
        }
        facts.print();
    });
}

fn write_node(w: &mut Writer, node: &Node) {
    object!(w;
        "type": node.key.type_name(), "id": node.key.id(), "created": node.created,
        "updated": node.updated, "attributes": node.attributes
    );
}

/// An edge, and the entity at its other end.
struct Led {
    edge: Edge,
    other: EntityKey,
    node: Option<Node>,
}

/// Prints edges and where they lead to, or come from.
fn print_edges(output: Output, edges: &[Led]) {
    let attributes = |led: &Led| {
        let attributes = led.node.as_ref().map(|node| item_cell(&node.attributes));
        attributes.unwrap_or_default()
    };
    output.rows(
        edges,
        |w, led| {
            let edge = &led.edge;
            let edge_attributes = (!edge.attributes.is_empty()).then_some(&edge.attributes);
            object!(w;
                "predicate": edge.predicate, "index": edge.index, "type": led.other.type_name(),
                "id": led.other.id(), "edge_attributes": edge_attributes,
                "attributes": led.node.as_ref().map(|node| &node.attributes)
            );
        },
        Table::new(["predicate", "type", "id", "edge", "attributes"]),
        |led| {
            [
                led.edge.predicate.clone(),
                led.other.type_name().to_owned(),
                led.other.id().to_owned(),
                cell_unless_empty(&led.edge.attributes),
                attributes(led),
            ]
        },
    );
}

/// The cell of attributes, which is empty if there are none.
fn cell_unless_empty(attributes: &Item) -> String {
    match attributes.is_empty() {
        true => String::new(),
        false => item_cell(attributes),
    }
}
