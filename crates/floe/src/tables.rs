//! Tables by their definitions: how they are brought to be so, and the same as infrastructure code.
//!
//! [`Db::ensure_definitions`](crate::Db::ensure_definitions) creates what is missing in a store, and
//! [`infrastructure_of`] writes the definitions for CloudFormation, Terraform or the AWS CLI, for those who
//! let a tool do it. Nothing here removes a table, an index or an item. The definitions are those of
//! [models](crate::model::tables), of [registries](crate::registry::tables), of the graph and of events.

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

/// The tools for which [`infrastructure_of`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InfrastructureFormat {
    /// A template of AWS CloudFormation, as JSON. Tables are retained when the stack no longer has them.
    ///
    /// CloudFormation makes one new index of a table per update of a stack.
    CloudFormation,
    /// Resources of Terraform, which refuses to destroy them. Indexes need the provider `hashicorp/aws`
    /// 6.37 or later.
    Terraform,
    /// A list with the input of the AWS CLI for each table: `CreateTable`, and `UpdateTimeToLive` where
    /// items expire. `jq '.[0].CreateTable'` makes one of them a file for `--cli-input-json`.
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

/// Tables as infrastructure code, paid for by the request and kept when the code no longer names them.
///
/// The name of a resource depends on the name of its table alone, so that a new table never makes a tool
/// replace another.
///
/// # Errors
///
/// [`Table`](crate::ErrorKind::Table) when two tables come to the same name of a resource.
pub fn infrastructure_of(tables: Vec<TableDef>, format: InfrastructureFormat) -> Result<String> {
    match format {
        InfrastructureFormat::CloudFormation => cloudformation::template(tables),
        InfrastructureFormat::Terraform => terraform::resources(tables),
        InfrastructureFormat::Json => create_input::inputs(tables),
    }
}
