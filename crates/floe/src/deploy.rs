//! Deployments: a template of AWS CloudFormation with the tables of a program, the functions of AWS Lambda that follow
//! their changes, the rights of each, and alarms.
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
//! let template = Deployment::new("Orders, and what follows from them.")
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
//! Everything follows from the models, the store and the router: which tables there are, which streams a function follows,
//! and what it may do. The template is text that depends on these alone, so that a test can compare it with the one that
//! is deployed. `deploy/` of the project shows one, with an app of the AWS CDK that makes the same.
//!
//! What each [function](Function) comes with:
//!
//! | resource | why |
//! |---|---|
//! | a role | reads the streams, writes its own log and its own queue, and does what was [granted](Function::grant); nothing else |
//! | a log group | kept for a month |
//! | a mapping for each stream | reports what failed change by change, and halves what fails as a whole |
//! | a queue | where Lambda tells of changes that it has given up |
//! | three alarms | the function fails; it falls behind; something was given up; told to one topic |

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

/// What is deployed together.
#[derive(Clone, Debug)]
#[must_use = "a deployment is a template once it is written"]
pub struct Deployment {
    description: String,
    tables: Vec<TableDef>,
    functions: Vec<Function>,
}

impl Deployment {
    /// Nothing yet, with a description for whoever sees the stack.
    pub fn new(description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            tables: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Adds tables. Those of models, registries, graphs and event stores are told by
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

    /// The tables in another form, for a tool that makes the functions itself.
    ///
    /// # Errors
    ///
    /// As for [`template`](Self::template).
    pub fn infrastructure(&self, format: InfrastructureFormat) -> Result<String> {
        let tables = self.known_tables()?;
        infrastructure_of(tables.into_values().cloned().collect(), format)
    }

    /// The template of CloudFormation, as JSON.
    ///
    /// Its parameters are the bucket and the keys of the code. Alarms are told to a topic that is part of it: subscribe to it.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) when two tables have one name, or a function follows a table that is not there or has
    /// no stream; [`InvalidUse`](ErrorKind::InvalidUse) when a function cannot be called so, when two are called the same,
    /// or when it is granted what is no operation on items.
    pub fn template(&self) -> Result<String> {
        let tables = self.known_tables()?;
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
        let mut taken = BTreeSet::new();
        if let Some((id, _)) = resources.iter().find(|(id, _)| !taken.insert(id)) {
            let message = format!("two resources come to the same name: resource={id}");
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
    fn known_tables(&self) -> Result<Tables<'_>> {
        let mut known = BTreeMap::new();
        for table in &self.tables {
            if known.insert(table.name.as_str(), table).is_some() {
                let message = format!("two tables have the same name: table={}", table.name);
                return Err(Error::new(ErrorKind::Table, message));
            }
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests;
