//! `floe item update`: changes parts of an item.

use clap::{Args, ValueEnum};
use floe_store::op::{ReturnValues, UpdateItem};

use super::Writing;
use crate::{Result, with_forms};

/// Change parts of an item
#[derive(Debug, Args)]
#[command(after_help = with_forms("\
Examples:
  floe item update orders --key '{\"customer\":\"ada\",\"placed\":1}' \\
      --update 'SET quantity = quantity + :n REMOVE note' --values '{\":n\":1}' \\
      --data ./shop
  floe item update orders --key @key.json --update 'SET #s = :s' \\
      --names '{\"#s\":\"status\"}' --values '{\":s\":\"sent\"}' \\
      --condition 'attribute_exists(customer)' --data ./shop

The update is DynamoDB's: SET, REMOVE, ADD and DELETE. An item that is not there is made, unless the condition asks for it. \
Exit code 3: the condition does not hold."))]
pub(super) struct Update {
    /// The table
    table: String,

    /// The key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    /// What to change: SET quantity = :n
    #[arg(long, value_name = "EXPRESSION")]
    update: String,

    /// Tell this of the item
    #[arg(long = "return", value_name = "WHAT", default_value = "all-new")]
    returned: Returned,

    #[command(flatten)]
    writing: Writing,
}

/// What is printed of an item that was changed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Returned {
    /// Nothing
    None,
    /// All of it, as it was
    AllOld,
    /// All of it, as it is
    AllNew,
    /// What was changed, as it was
    UpdatedOld,
    /// What was changed, as it is
    UpdatedNew,
}

impl Update {
    pub(super) fn run(&self) -> Result {
        let request = self.request()?;
        self.writing.run(&self.table, request.into(), "updated")
    }

    fn request(&self) -> Result<UpdateItem> {
        let key = self.writing.input.item("--key", &self.key)?;
        let parsed = self.writing.parse(|parser| parser.update(&self.update));
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
