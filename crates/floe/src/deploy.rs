//! Deployments: an AWS CloudFormation template with the tables of a program, the AWS Lambda functions that process their
//! changes, the permissions of each, and alarms.
//!
//! ```
//! use floe::changes::{Inserted, Router};
//! use floe::deploy::{Deployment, Function};
//! use floe::model::tables::table_definitions;
//! use floe::{Db, Error, Model};
//!
//! #[derive(Model)]
//! #[model(table = "orders", stream)]
//! struct Order { #[model(key)] id: String, total: u64 }
//!
//! # fn main() -> Result<(), Error> {
//! let router = Router::new().on_inserted::<Order>(async |_: Inserted<Order>| Ok(()));
//! let store = Db::memory()?.events();
//! let template = Deployment::new("Orders and their changes.")
//!     .tables(table_definitions(&[Order::SCHEMA])?)
//!     .tables([store.table()?, store.feed_table()?])
//!     .function(Function::indexer(&store))
//!     .function(Function::router("Router", &router))
//!     .template()?;
//! assert!(template.contains("AWS::Lambda::EventSourceMapping"));
//! # Ok(())
//! # }
//! ```
//!
//! Everything is derived from the models, the store and the router: the tables, the streams that a function follows, and
//! its permissions. The template depends on nothing else, so a test can compare it with the deployed one. `deploy/` in the
//! repository shows an example, and the same deployment as an AWS CDK app.
//!
//! The resources of each [function](Function):
//!
//! | resource | purpose |
//! |---|---|
//! | a role | allows reading the streams, writing its own log and its own queue, and [granted](Function::grant) operations; nothing else |
//! | a log group | retained for a month |
//! | a mapping for each stream | reports failures per change, and bisects batches that fail as a whole |
//! | a queue | receives changes that Lambda gave up |
//! | three alarms | the function fails, it falls behind, changes were given up; all notify one topic |

mod alarms;
mod function;
mod resources;

use std::collections::{BTreeMap, BTreeSet};

use floe_store::TableDef;

pub use self::function::Function;

use crate::error::{Error, ErrorKind, Result};
use crate::tables::node::Node;
use crate::tables::{InfrastructureFormat, cloudformation, infrastructure_of};

/// Tables by their names.
type Tables<'a> = BTreeMap<&'a str, &'a TableDef>;

/// The tables and functions of one stack.
#[derive(Clone, Debug)]
#[must_use = "a deployment does nothing until its template is written"]
pub struct Deployment {
    description: String,
    tables: Vec<TableDef>,
    functions: Vec<Function>,
}

impl Deployment {
    /// An empty deployment with a description of the stack.
    pub fn new(description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            tables: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Adds tables. Those of models, registries, graphs and event stores are returned by
    /// [`table_definitions`](crate::model::tables::table_definitions),
    /// [`registry_tables`](crate::registry::tables::registry_tables),
    /// [`GraphSchema::tables`](crate::graph::GraphSchema::tables) and
    /// [`EventStore::table`](crate::events::EventStore::table).
    pub fn tables(mut self, tables: impl IntoIterator<Item = TableDef>) -> Self {
        self.tables.extend(tables);
        self
    }

    /// Adds a function.
    pub fn function(mut self, function: Function) -> Self {
        self.functions.push(function);
        self
    }

    /// Writes the tables only, in any format, for a tool that creates the functions itself.
    ///
    /// # Errors
    ///
    /// As for [`template`](Self::template).
    pub fn infrastructure(&self, format: InfrastructureFormat) -> Result<String> {
        let tables = self.tables_by_name()?;
        infrastructure_of(tables.into_values().cloned().collect(), format)
    }

    /// Writes the CloudFormation template, as JSON.
    ///
    /// Its parameters are the S3 bucket and keys of the code. Alarms notify a topic in the template: subscribe to it.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) if two tables have the same name, or a function follows a table that is missing or has
    /// no stream; [`InvalidUse`](ErrorKind::InvalidUse) if the name of a function is invalid or not unique, or if it is
    /// granted something other than an operation on items.
    pub fn template(&self) -> Result<String> {
        let tables = self.tables_by_name()?;
        let definitions = tables.values().copied().cloned();
        let mut resources = cloudformation::resources(definitions.collect())?;
        for function in &self.functions {
            function.check(&tables)?;
            resources.extend(resources::of(function, &tables));
            resources.extend(alarms::of(function));
        }
        if !self.functions.is_empty() {
            resources.push(alarms::topic());
        }
        let mut seen = BTreeSet::new();
        if let Some((id, _)) = resources.iter().find(|(id, _)| !seen.insert(id)) {
            let message = format!("two resources have the same name: resource={id}");
            return Err(Error::invalid_use(message));
        }
        let mut template = vec![
            ("AWSTemplateFormatVersion", Node::text("2010-09-09")),
            ("Description", Node::text(&self.description)),
        ];
        if !self.functions.is_empty() {
            template.push(("Parameters", resources::parameters(&self.functions)));
        }
        template.push(("Resources", Node::map(resources)));
        Node::map(template).write()
    }

    /// The tables by their names, which must differ.
    fn tables_by_name(&self) -> Result<Tables<'_>> {
        let mut tables = BTreeMap::new();
        for table in &self.tables {
            if tables.insert(table.name.as_str(), table).is_some() {
                let message = format!("two tables have the same name: table={}", table.name);
                return Err(Error::new(ErrorKind::Table, message));
            }
        }
        Ok(tables)
    }
}

#[cfg(test)]
mod tests;
