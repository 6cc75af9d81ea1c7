//! Table definitions: created in a store, or written as infrastructure code.
//!
//! [`Db::ensure_definitions`](crate::Db::ensure_definitions) creates missing tables and indexes in a store, and
//! [`infrastructure_of`] writes the definitions for CloudFormation, Terraform or the AWS CLI. Nothing here deletes a
//! table, an index or an item. The definitions come from [models](crate::model::tables),
//! [registries](crate::registry::tables), graphs and event stores.

pub(crate) mod cloudformation;
mod create_input;
pub(crate) mod difference;
mod ensure;
pub(crate) mod node;
pub(crate) mod resource_name;
mod terraform;

use std::str::FromStr;

use floe_store::TableDef;

pub use ensure::{ENSURE_DEADLINE, TableChange};

use crate::error::{Error, Result};

/// The output formats of [`infrastructure_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InfrastructureFormat {
    /// An AWS CloudFormation template, as JSON. Tables that are removed from the stack are retained.
    ///
    /// CloudFormation creates at most one index of a table per stack update.
    CloudFormation,
    /// Terraform resources with `prevent_destroy`. Indexes require the provider `hashicorp/aws`
    /// 6.37 or later.
    Terraform,
    /// A list of AWS CLI inputs for each table: `CreateTable`, and `UpdateTimeToLive` if items expire.
    /// `jq '.[0].CreateTable'` extracts one of them for `--cli-input-json`.
    Json,
}

impl FromStr for InfrastructureFormat {
    type Err = Error;

    /// Reads `cloudformation`, `terraform` or `json`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "cloudformation" => Ok(Self::CloudFormation),
            "terraform" => Ok(Self::Terraform),
            "json" => Ok(Self::Json),
            _ => Err(Error::invalid_use(format!(
                "unknown format: expected=cloudformation|terraform|json actual={text}"
            ))),
        }
    }
}

/// Writes tables as infrastructure code: billed per request, and retained when they are removed from the code.
///
/// The name of a resource depends only on the name of its table, so that adding a table never replaces another.
///
/// # Errors
///
/// [`Table`](crate::ErrorKind::Table) if two tables have the same resource name.
pub fn infrastructure_of(tables: Vec<TableDef>, format: InfrastructureFormat) -> Result<String> {
    match format {
        InfrastructureFormat::CloudFormation => cloudformation::template(tables),
        InfrastructureFormat::Terraform => terraform::resources(tables),
        InfrastructureFormat::Json => create_input::inputs(tables),
    }
}
