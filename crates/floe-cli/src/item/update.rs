//! `floe item update`: updates attributes of an item.

use clap::{Args, ValueEnum};
use floe_store::op::{ReturnValues, UpdateItem};

use super::WriteArgs;
use crate::{Result, with_formats};

/// Update attributes of an item
#[derive(Debug, Args)]
#[command(after_help = with_formats("\
Examples:
  floe item update orders --key '{\"customer\":\"ada\",\"placed\":1}' \\
      --update 'SET quantity = quantity + :n REMOVE note' --values '{\":n\":1}' \\
      --data ./shop
  floe item update orders --key @key.json --update 'SET #s = :s' \\
      --names '{\"#s\":\"status\"}' --values '{\":s\":\"sent\"}' \\
      --condition 'attribute_exists(customer)' --data ./shop

--update takes DynamoDB's update expressions: SET, REMOVE, ADD and DELETE. An item that does not exist is created, unless the \
condition requires it to exist. Exit code 3: the condition is false."))]
pub(super) struct Update {
    /// Name of the table
    table: String,

    /// Key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    /// Update expression: SET quantity = :n
    #[arg(long, value_name = "EXPRESSION")]
    update: String,

    /// Attributes to print after the update
    #[arg(long = "return", value_name = "WHAT", default_value = "all-new")]
    returned: Returned,

    #[command(flatten)]
    args: WriteArgs,
}

/// The attributes to print after an update.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Returned {
    /// Nothing
    None,
    /// The whole item before the update
    AllOld,
    /// The whole item after the update
    AllNew,
    /// Updated attributes before the update
    UpdatedOld,
    /// Updated attributes after the update
    UpdatedNew,
}

impl Update {
    pub(super) fn run(&self) -> Result {
        let request = self.request()?;
        self.args.run(&self.table, request.into(), "updated")
    }

    fn request(&self) -> Result<UpdateItem> {
        let key = self.args.input.item("--key", &self.key)?;
        let parsed = self.args.parse(|parser| parser.update(&self.update));
        let (condition, update) = parsed?;
        let mut request = UpdateItem::new(self.table.as_str(), key, update);
        request.condition = condition;
        request.return_values = match self.returned {
            Returned::None => ReturnValues::None,
            Returned::AllOld => ReturnValues::AllOld,
            Returned::AllNew => ReturnValues::AllNew,
            Returned::UpdatedOld => ReturnValues::UpdatedOld,
            Returned::UpdatedNew => ReturnValues::UpdatedNew,
        };
        Ok(request)
    }
}
