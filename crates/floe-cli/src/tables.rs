//! `floe tables`: prints the tables of a store as infrastructure code.

use clap::{Args, ValueEnum};
use floe::model::tables::{InfrastructureFormat, infrastructure_of};

use super::table::list::names;
use crate::{Result, Store, print};

/// Print tables as CloudFormation, Terraform, or input of the AWS CLI
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe tables --format cloudformation --data ./shop > tables.json
  floe tables --format terraform orders customers \\
      --endpoint http://127.0.0.1:8000 > tables.tf
  floe tables --format json --data ./shop | jq '.[0].CreateTable' > orders.json
  aws dynamodb create-table --cli-input-json file://orders.json

Keys, indexes, change streams and expiry are those of the store. All tables use on-demand billing, and are retained when they \
are removed from the code. A program can print the tables of its models without a store: floe::model::tables::infrastructure.")]
pub(super) struct Tables {
    /// Format of the output
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Format,

    /// Names of the tables [default: all]
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,

    #[command(flatten)]
    store: Store,
}

/// The formats of infrastructure code.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// An AWS CloudFormation template, as JSON
    Cloudformation,
    /// Terraform resources
    Terraform,
    /// Input of the AWS CLI: CreateTable, and UpdateTimeToLive if items expire
    Json,
}

impl Tables {
    pub(super) fn run(&self) -> Result {
        self.store.run(async |opened| {
            let names = if self.tables.is_empty() {
                names(opened).await?
            } else {
                self.tables.clone()
            };
            let tables = opened.tables(&names).await?.into_iter();
            let tables = tables.map(|table| table.definition).collect();
            let format = match self.format {
                Format::Cloudformation => InfrastructureFormat::CloudFormation,
                Format::Terraform => InfrastructureFormat::Terraform,
                Format::Json => InfrastructureFormat::Json,
            };
            print(infrastructure_of(tables, format)?.trim_end())
        })
    }
}
