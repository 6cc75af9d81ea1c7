//! `floe graph`: looks at an entity graph, and looks after its tables.

mod check;
mod get;
mod lookup;
mod referrers;
mod related;

use clap::{Args, Subcommand};
use floe::Db;
use floe::graph::{Edge, EntityKey, Graph, GraphSchema, Node};
use floe_store::json::{Writer, write_item};

use super::Failure;
use super::out::value::{cell, item_cell};
use super::out::{Output, Table, print_json};
use super::place::{Store, describe, runtime};

const AFTER_HELP: &str = "\
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
  floe graph check --data ./data --repair";

/// Look at an entity graph, and look after its tables
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
#[group(skip)]
pub(super) struct GraphCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(get::Get),
    Related(related::RelatedCommand),
    Referrers(referrers::ReferrersCommand),
    Lookup(lookup::LookupCommand),
    Check(check::Check),
}

impl GraphCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Get(get) => get.run(),
            Command::Related(related) => related.run(),
            Command::Referrers(referrers) => referrers.run(),
            Command::Lookup(lookup) => lookup.run(),
            Command::Check(check) => runtime()?.block_on(check.run()),
        }
    }
}

/// Where a graph is, and how the result is printed.
#[derive(Debug, Args)]
#[group(skip)]
struct GraphPlace {
    /// What the names of the graph's tables begin with: `shop_` for shop_entities_master
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    prefix: String,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: Store,
}

impl GraphPlace {
    /// Runs a command on the graph of a scope.
    fn run(
        &self,
        scope: &str,
        work: impl AsyncFnOnce(&Graph<'static>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.store.run(async |opened| {
            let schema = GraphSchema::new().prefix(self.prefix.as_str());
            check_tables(&opened.db, &schema).await?;
            let db = opened.db.clone().with_graph(schema);
            work(&db.graph(scope)).await
        })
    }
}

/// An entity, and where its graph is.
#[derive(Debug, Args)]
#[group(skip)]
struct EntityPlace {
    /// The scope
    #[arg(value_name = "SCOPE")]
    scope: String,

    /// The type
    #[arg(value_name = "TYPE")]
    type_name: String,

    /// The id
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    place: GraphPlace,
}

impl EntityPlace {
    /// Runs a command on the entity, if it is there.
    fn run(
        &self,
        work: impl AsyncFnOnce(&Graph<'static>, Node) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.place.run(&self.scope, async |graph| {
            let key = EntityKey::new(self.type_name.as_str(), self.id.as_str());
            let node = graph.get_node(&key).await?;
            work(graph, node.ok_or_else(|| no_entity(graph, &key))?).await
        })
    }
}

/// An entity of which edges are told.
#[derive(Debug, Args)]
#[group(skip)]
struct EdgesOf {
    /// Only by this predicate
    #[arg(long, value_name = "NAME")]
    predicate: Option<String>,

    #[command(flatten)]
    entity: EntityPlace,
}

impl EdgesOf {
    /// Tells the edges that are found.
    fn run(
        &self,
        find: impl AsyncFnOnce(
            &Graph<'static>,
            &EntityKey,
            Option<&str>,
        ) -> Result<Vec<Led>, floe::Error>,
    ) -> Result<(), Failure> {
        self.entity.run(async |graph, node| {
            let found = find(graph, &node.key, self.predicate.as_deref()).await?;
            tell_edges(self.entity.place.output, &found);
            Ok(())
        })
    }
}

/// Refuses a place in which there is no graph.
async fn check_tables(db: &Db, schema: &GraphSchema) -> Result<(), Failure> {
    for table in schema.tables().map_err(Failure::usage)? {
        if describe(db, &table.name).await?.is_none() {
            return Err(Failure::broken(format!(
                "there is no graph, for there is no such table: table={}; see --prefix and --table-prefix",
                table.name
            )));
        }
    }
    Ok(())
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
fn tell_node(output: Output, node: &Node) {
    output.tell(
        |w| write_node(w, node),
        || {
            let mut facts = Table::of_facts();
            facts.fact("type", node.key.type_name());
            facts.fact("id", node.key.id());
            for (name, moment) in [("created", &node.created), ("updated", &node.updated)] {
                if let Some(moment) = moment {
                    facts.fact(name, moment);
                }
            }
            for (name, value) in node.attributes.iter() {
                facts.fact(name, cell(value));
            }
            facts.print();
        },
    );
}

fn write_node(w: &mut Writer, node: &Node) {
    w.object(|w| {
        write_key(w, &node.key);
        for (name, moment) in [("created", &node.created), ("updated", &node.updated)] {
            if let Some(moment) = moment {
                w.name(name).string(moment);
            }
        }
        write_item(w.name("attributes"), &node.attributes);
    });
}

fn write_key(w: &mut Writer, key: &EntityKey) {
    w.name("type").string(key.type_name());
    w.name("id").string(key.id());
}

/// An edge, and the entity at its other end.
struct Led {
    edge: Edge,
    other: EntityKey,
    node: Option<Node>,
}

/// Prints edges and where they lead to, or come from.
fn tell_edges(output: Output, edges: &[Led]) {
    if output.json {
        for Led { edge, other, node } in edges {
            print_json(|w| {
                w.object(|w| {
                    w.name("predicate").string(&edge.predicate);
                    w.name("index").number(edge.index);
                    write_key(w, other);
                    if !edge.attributes.is_empty() {
                        write_item(w.name("edge_attributes"), &edge.attributes);
                    }
                    if let Some(node) = node {
                        write_item(w.name("attributes"), &node.attributes);
                    }
                });
            });
        }
        return;
    }
    let mut table = Table::new(["predicate", "type", "id", "edge", "attributes"]);
    for Led { edge, other, node } in edges {
        let told = match edge.attributes.is_empty() {
            true => String::new(),
            false => item_cell(&edge.attributes),
        };
        let attributes = node.as_ref().map(|node| item_cell(&node.attributes));
        table.row([
            edge.predicate.as_str(),
            other.type_name(),
            other.id(),
            &told,
            &attributes.unwrap_or_default(),
        ]);
    }
    table.print();
}
