//! `floe tables`: the tables of a store as infrastructure code.

use clap::{Args, ValueEnum};
use floe::model::tables::{InfrastructureFormat, infrastructure_of};

use super::table::list::names;
use crate::{Result, Store, print};

/// Write the tables as CloudFormation, Terraform, or the input of the AWS CLI
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe tables --format cloudformation --data ./shop > tables.json
  floe tables --format terraform orders customers \\
      --endpoint http://127.0.0.1:8000 > tables.tf
  floe tables --format json --data ./shop | jq '.[0].CreateTable' > orders.json
  aws dynamodb create-table --cli-input-json file://orders.json

Keys, indexes, change streams and expiry are written as they stand in the store. All tables are paid for by the request and \
kept when the code no longer names them. The tables of models are written by a program as well, without a store: \
floe::model::tables::infrastructure.")]
pub(super) struct Tables {
    /// For which tool
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Format,

    /// Only these tables [default: all]
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,

    #[command(flatten)]
    store: Store,
}

/// The tools that tables are written for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A template of AWS CloudFormation, as JSON
    Cloudformation,
    /// Resources of Terraform
    Terraform,
    /// The input of the AWS CLI: CreateTable, and UpdateTimeToLive where items expire
    Json,
}

impl Tables {
    pub(super) fn run(&self) -> Result {
        self.store.run(async |opened| {
            let names = match self.tables.is_empty() {
                true => names(opened).await?,
                false => self.tables.clone(),
            };
            let tables = opened.tables(&names).await?.into_iter();
            let tables = tables.map(|table| table.definition).collect();
            let format = match self.format {
                Format::Cloudformation => InfrastructureFormat::CloudFormation,
                Format::Terraform => InfrastructureFormat::Terraform,
                Format::Json => InfrastructureFormat::Json,
            };
            print(infrastructure_of(tables, format)?.trim_end());
            Ok(())
        })
    }
}
